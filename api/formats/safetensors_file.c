#include "api/formats/safetensors_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool api_safetensors_header(const char *body, size_t body_size, size_t max, size_t *size,
                            struct api_problem *problem)
{
    uint64_t length;
    if (body_size < API_SAFETENSORS_PREFIX)
        return api_fail(problem, "safetensors_malformed",
                        "the body has %zu bytes, but a safetensors file begins with 8 bytes for "
                        "the length of its header",
                        body_size);
    memcpy(&length, body, sizeof length);
    if (length > body_size - API_SAFETENSORS_PREFIX)
        return api_fail(problem, "safetensors_malformed",
                        "the header's length is %llu bytes, more than the body has",
                        (unsigned long long)length);
    if (length > max)
        return api_fail(problem, "members_too_large",
                        "the header has %llu bytes; at most %zu are allowed",
                        (unsigned long long)length, max);
    if (length == 0 || body[API_SAFETENSORS_PREFIX] != '{')
        return api_fail(problem, "safetensors_malformed", "the header does not begin with '{'");
    *size = (size_t)length;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct api_span *x = a, *y = b;
    int order = (x->begin > y->begin) - (x->begin < y->begin);
    return order ? order : (x->end > y->end) - (x->end < y->end);
}

const struct api_span *api_spans_check(struct api_span *spans, size_t n, size_t *due)
{
    *due = 0;
    if (n > 0)
        qsort(spans, n, sizeof *spans, compare);
    for (size_t i = 0; i < n; i++) {
        if (spans[i].begin != *due)
            return &spans[i];
        *due = spans[i].end;
    }
    return NULL;
}
