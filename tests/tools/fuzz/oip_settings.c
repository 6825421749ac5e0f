/* Bodies that set settings of traces and logs. */
#include "tests/tools/fuzz/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ask((struct question){.path = "/v2/trace/setting"}, data, size);
    ask((struct question){.path = "/v2/logging"}, data, size);
    return 0;
}
