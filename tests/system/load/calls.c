#include "tests/system/load/calls.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 400 };

#define SMALL "{\"input\": [[-1, -0.5], [-2, -0.2]], \"target\": [[0.4, 0.6], [0.1, 0.9]]}"

bool call_get(struct call *call, const char *path, const char *head)
{
    call->bytes = malloc(HEAD);
    if (call->bytes)
        call->size =
            (size_t)snprintf(call->bytes, HEAD, "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, head);
    return call->bytes != NULL;
}

bool call_small(struct call *call, const char *head)
{
    call->bytes = malloc(2 * HEAD);
    if (call->bytes)
        call->size = (size_t)snprintf(call->bytes, (size_t)2 * HEAD,
                                      "POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Type: "
                                      "application/json\r\nContent-Length: %zu\r\n%s\r\n" SMALL,
                                      strlen(SMALL), head);
    return call->bytes != NULL;
}

/* A safetensors body whose two tensors have n float32 each, all 0.5. */
static bool safetensors(struct call *call, const char *target, const char *metadata,
                        const char *const shapes[2], size_t n, const char *head)
{
    char layout[HEAD], start[2 * HEAD];
    int size = snprintf(layout, sizeof layout,
                        "{%s\"input\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,%zu]},"
                        "\"target\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}}",
                        metadata, shapes[0], 4 * n, shapes[1], 4 * n, 8 * n);
    int first = snprintf(start, sizeof start,
                         "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/safetensors\r\n"
                         "Accept: application/safetensors, application/json\r\n"
                         "Content-Length: %zu\r\n%s\r\n",
                         target, 8 + (size_t)size + 8 * n, head);
    char *to = call->bytes = malloc((size_t)first + 8 + (size_t)size + 8 * n);
    if (!to)
        return false;
    to = (char *)memcpy(to, start, (size_t)first) + first;
    to = (char *)memcpy(to, &(uint64_t){(uint64_t)size}, 8) + 8;
    to = (char *)memcpy(to, layout, (size_t)size) + size;
    for (size_t i = 0; i < 2 * n; i++, to += sizeof(float))
        memcpy(to, &(float){0.5f}, sizeof(float));
    call->size = (size_t)(to - call->bytes);
    return true;
}

bool call_rows(struct call *call, size_t n, const char *head)
{
    char shape[30];
    snprintf(shape, sizeof shape, "[%zu]", n);
    return safetensors(call, "/kl_div", "", (const char *const[]){shape, shape}, n, head);
}

bool call_outer(struct call *call, size_t n)
{
    static const char metadata[] =
        "\"__metadata__\":{\"broadcast\":\"true\",\"input_space\":\"logit\","
        "\"target_space\":\"logit\",\"reduction\":\"none\"},";
    char column[30], row[30];
    snprintf(column, sizeof column, "[%zu,1]", n);
    snprintf(row, sizeof row, "[1,%zu]", n);
    return safetensors(call, "/kl_div", metadata, (const char *const[]){column, row}, n, "");
}

void call_free(struct call *call)
{
    free(call->bytes);
    *call = (struct call){0};
}
