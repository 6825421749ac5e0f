/* Bodies as safetensors. */
#include "tests/tools/fuzz/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ask((struct question){.content_type = "application/x-safetensors",
                          .accept = "application/x-npy"},
        data, size);
    return 0;
}
