/* A query and a body of JSON, split at the first NUL. */
#include "tests/tools/fuzz/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, 0, size);
    size_t query_size = nul ? (size_t)(nul - data) : 0, start = nul ? query_size + 1 : 0;
    char *query = calloc(1, query_size + 1);
    if (!query)
        abort();
    memcpy(query, data, query_size);
    ask((struct question){.query = query}, data + start, size - start);
    free(query);
    return 0;
}
