/* Inference requests: the first two bytes are the length of the JSON; 0 omits the header. */
#include "tests/tools/fuzz/ask.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char length[16];
    if (size < 2)
        return 0;
    unsigned number = data[0] | (unsigned)data[1] << 8;
    snprintf(length, sizeof length, "%u", number);
    ask((struct question){.path = "/v2/models/kl_div/infer",
                          .accept_encoding = number & 1 ? "gzip" : NULL,
                          .inference_header_length = number ? length : NULL},
        data + 2, size - 2);
    return 0;
}
