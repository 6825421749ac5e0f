/* Forms with .npy files: the first byte is the size of the first file as a share of the data. */
#include "tests/tools/fuzz/ask.h"

static size_t put(uint8_t *to, const void *bytes, size_t size)
{
    memcpy(to, bytes, size);
    return size;
}

static size_t put_part(uint8_t *to, const char *header, const uint8_t *file, size_t size)
{
    size_t n = put(to, header, strlen(header));
    return n + put(to + n, file, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char input[] = "--XyZ\r\nContent-Disposition: form-data; name=input\r\n\r\n";
    static const char target[] = "\r\n--XyZ\r\nContent-Disposition: form-data; name=target\r\n\r\n";
    static const char end[] = "\r\n--XyZ--";
    if (size == 0)
        return 0;
    size_t first = (size - 1) * data[0] / 255, n = 0;
    uint8_t *body = malloc(size + sizeof input + sizeof target + sizeof end);
    if (!body)
        abort();
    n += put_part(body, input, data + 1, first);
    n += put_part(body + n, target, data + 1 + first, size - 1 - first);
    n += put(body + n, end, strlen(end));
    ask((struct question){.content_type = "multipart/form-data; boundary=XyZ"}, body, n);
    free(body);
    return 0;
}
