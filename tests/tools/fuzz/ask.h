/* Asks the service a question for the fuzzers of requests. */
#pragma once

#include "tests/suites/support/question.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Handles a body by the whole service. Aborts unless the answer has content and all memory is
 * freed. */
static inline void ask_of_regions(struct api_regions *regions, struct question question,
                                  const uint8_t *body, size_t size)
{
    struct api_budget budget = {.limit = 64 << 20};
    const struct api_service service = {
        .endpoints = api_endpoints, .budget = &budget, .max_body = 1 << 20, .regions = regions};
    struct api_exchange x = question_exchange(&question, &service, 0);
    char *padded = calloc(1, size + API_PADDING);
    if (!padded)
        abort();
    memcpy(padded, body, size);
    if (api_begin(&x)) {
        x.request.body = padded;
        x.request.body_size = size;
        if (!api_handle(&x, API_LIGHT_NS))
            api_handle(&x, HUGE_VAL);
    }
    if (x.response.status < 200 || x.response.status == 500 || api_response_size(&x.response) == 0)
        abort();
    api_end(&x);
    api_budget_trim(&budget, 0);
    if (atomic_load(&budget.used) != 0 || atomic_load(&budget.idle) != 0)
        abort();
    free(padded);
}

static inline void ask(struct question question, const uint8_t *body, size_t size)
{
    ask_of_regions(NULL, question, body, size);
}
