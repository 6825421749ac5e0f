/* Bodies as forms, with JSON and options. */
#include "tests/tools/fuzz/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ask((struct question){.content_type = "multipart/form-data; boundary=XyZ"}, data, size);
    return 0;
}
