/* Bodies as .npz. */
#include "tests/tools/fuzz/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ask((struct question){.content_type = "application/x-npz",
                          .accept = "application/x-safetensors"},
        data, size);
    return 0;
}
