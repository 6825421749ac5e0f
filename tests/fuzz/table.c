/* Tables of JSON, .npz and safetensors: the first byte selects the format. */
#include "tests/fuzz/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"application/json", "application/x-npz",
                                        "application/safetensors", NULL};
    if (size == 0)
        return 0;
    fuzz_table(types[data[0] & 3], data[0] & 4 ? API_ONE_COLUMN : API_MANY_COLUMNS, data + 1,
               size - 1);
    return 0;
}
