/* A service with monitors in memory for fuzzers, which lives as long as the process. */
#pragma once

#include "api/monitors/monitors.h"
#include "api/monitors/rows/transaction.h"
#include "tests/suites/support/question.h"
#include "tests/tools/fuzz/archive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct api_budget budget = {.limit = 256 << 20};

static inline const struct api_service *fuzz_service(void)
{
    static struct api_service service = {
        .endpoints = api_endpoints, .budget = &budget, .max_body = 1 << 20};
    char reason[200];
    if (service.monitors)
        return &service;
    service.monitors = api_monitors_open("memory", 200, &budget, reason, sizeof reason);
    if (!service.monitors || !api_monitors_start(service.monitors, NULL))
        abort();
    return &service;
}

/* True for the statuses that the contract has for monitors. */
static inline bool is_documented(int status)
{
    static const int statuses[] = {200, 201, 204, 400, 404, 412, 413, 415, 422, 503};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i] == status)
            return true;
    return false;
}

/* Asks, and gives the status; *answer becomes the content, which ends with a NUL, unless it is NULL.
 * Aborts if the status is undocumented, or if a problem has no content. */
static inline int fuzz_ask(struct question question, const void *body, size_t size, char **answer)
{
    struct api_exchange x = question_exchange(&question, fuzz_service(), 0);
    char *padded = calloc(1, size + API_PADDING);
    if (!padded)
        abort();
    memcpy(padded, body, size);
    if (api_begin(&x)) {
        x.request.body = padded;
        x.request.body_size = size;
        bool done = api_handle(&x, API_LIGHT_NS);
        while (!done && (!x.work || api_wait(&x)))
            done = api_handle(&x, HUGE_VAL);
    }
    int status = x.response.status;
    if (!is_documented(status) || (status != 204 && api_response_size(&x.response) == 0))
        abort();
    if (answer) {
        const struct api_shared *shared = x.response.shared;
        size_t first = shared ? shared->bytes.size : 0;
        *answer = calloc(1, first + x.response.body.size + 1);
        if (!*answer)
            abort();
        memcpy(*answer, shared ? shared->bytes.data : "", first);
        memcpy(*answer + first, x.response.body.data, x.response.body.size);
    }
    api_end(&x);
    free(padded);
    return status;
}

/* Asks as fuzz_ask does. With the media type of .npz, the body is an archive that is made of the bytes. */
static inline int fuzz_ask_table(struct question question, const uint8_t *data, size_t size)
{
    struct api_buffer archive = {0};
    bool is_made = question.content_type && strcmp(question.content_type, "application/x-npz") == 0;
    if (is_made)
        make_archive(&archive, data, size);
    int status = fuzz_ask(question, is_made ? archive.data : (const char *)data,
                          is_made ? archive.size : size, NULL);
    api_buffer_free(&archive);
    return status;
}

/* Aborts if requests hold memory. */
static inline void check_memory(void)
{
    api_budget_trim(&budget, 0);
    if (atomic_load(&budget.used) != atomic_load(&budget.retained))
        abort();
}
