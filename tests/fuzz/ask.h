/* What the fuzzers of requests share. */
#ifndef KLDIV_TESTS_FUZZ_ASK_H
#define KLDIV_TESTS_FUZZ_ASK_H

#include "api/api.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Puts a body through the whole service. Aborts unless there is an answer, with content, and all
 * memory is given back. */
static inline void ask(struct api_request request, const uint8_t *body, size_t size)
{
    struct api_budget budget = {.limit = 64 << 20};
    struct api_service service = {.budget = &budget, .max_body = 1 << 20};
    struct api_reply reply;
    request.method = "POST";
    request.path = request.path ? request.path : "/kl_div";
    request.body_size = size;
    request.body = calloc(1, size + API_PADDING);
    if (!request.body)
        abort();
    memcpy(request.body, body, size);
    if (api_begin(&service, &request, &reply))
        api_handle(&service, &request, &reply);
    if (reply.status < 200 || reply.status == 500 || api_reply_size(&reply) == 0)
        abort();
    api_reply_free(&reply);
    api_budget_trim(&budget, 0);
    if (atomic_load(&budget.used) != 0 || atomic_load(&budget.idle) != 0)
        abort();
    free(request.body);
}

#endif
