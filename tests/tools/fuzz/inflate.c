/* Compressed bodies: the first byte selects the coding. */
#include "tests/tools/fuzz/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct question question = {.content_encoding = data[0] & 1 ? "gzip" : "deflate",
                                      .content_type = "application/x-safetensors"};
    ask(question, data + 1, size - 1);
    return 0;
}
