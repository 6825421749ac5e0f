/* Tables of CSV. */
#include "tests/tools/fuzz/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_table("text/csv", API_MANY_COLUMNS, data, size);
    return 0;
}
