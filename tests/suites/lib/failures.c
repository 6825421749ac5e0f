/* Allocations that fail. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <string.h>

/* Fails every allocation, once alone and once with all later ones, until the request succeeds. */
static void fail_each_allocation(const char *query, const char *body, int expected, bool sticky)
{
    for (long n = 0; n < 500; n++) {
        const struct api_service service = {.endpoints = api_endpoints, .max_body = 1 << 20};
        fail_allocation(n, sticky);
        struct answer answer =
            ask_question(&(struct question){.query = query}, &service, body, strlen(body));
        bool failed = allocation_failed();
        int status = answer.status;
        answer_free(&answer);
        if (!failed) {
            cr_expect_eq(status, expected);
            cr_expect_gt(n, 0, "small tensors need none, the answer does");
            return;
        }
        cr_expect(status == 503 || status == expected, "allocation %ld: %d", n, status);
    }
    cr_expect(false, "it never comes through");
}

Test(failures, each_allocation_in_turn)
{
    for (int sticky = 0; sticky <= 1; sticky++) {
        fail_each_allocation("reduction=none",
                             "{\"input\": [[-1, -2], [-3, -4]], \"compat\": \"math\", "
                             "\"target\": [[0.1, 0.2], [0.3, 0.4]], \"log_target\": false}",
                             200, sticky);
        fail_each_allocation(NULL, "{\"in\\u0070ut\": [1], \"target\": [1], \"shape\": [1, 1]}",
                             200, sticky);
        fail_each_allocation(NULL, "{\"input\": [1], \"target\": [1], \"redution\": 1}", 422,
                             sticky);
        fail_each_allocation(NULL, "{\"input\": [1, 2], \"target\": [1]}", 422, sticky);
        fail_each_allocation("gradient=input,target&broadcast=true&diagnose=true&dim=1",
                             "{\"input\": [[1, 2], [3, 4]], \"target\": [[1, 2]], "
                             "\"mask\": [1, 0], \"weight\": [2, 3]}",
                             200, sticky);
    }
}

/* Answers that are coded or archived have more to allocate. */
Test(failures, answers_without_memory_are_whole_problems)
{
    static const char *const accept[] = {"application/json", "application/x-npz",
                                         "application/octet-stream"};
    static char body[20000];
    size_t size = (size_t)sprintf(body, "{\"input\": [1");
    for (int tensor = 0; tensor < 2; tensor++) {
        for (int i = 1; i < 600; i++)
            size += (size_t)sprintf(body + size, ",1");
        size += (size_t)sprintf(body + size, tensor ? "]}" : "], \"target\": [1");
    }
    for (size_t i = 0; i < COUNT(accept); i++)
        for (long n = 0, failed = 1; failed; n++) {
            const struct api_service service = {.endpoints = api_endpoints, .max_body = 1 << 20};
            const struct question question = {.query = "reduction=none&gradient=input",
                                              .accept = accept[i],
                                              .accept_encoding = "gzip"};
            fail_allocation(n, n % 2);
            struct answer answer = ask_question(&question, &service, body, size);
            failed = allocation_failed();
            cr_expect(answer.status == (failed ? 503 : 200) || answer.status == 200, "%s, %ld: %d",
                      accept[i], n, answer.status);
            for (size_t j = 0; j < answer.response.n_headers; j++)
                cr_expect(answer.status == 200 ||
                          strcmp(answer.response.headers[j].name, "Content-Encoding") != 0);
            cr_expect(answer.status != 503 || answer.json || answer.response.body.size == 0);
            answer_free(&answer);
        }
}

Test(failures, a_full_budget_is_503_and_nothing_is_kept)
{
    struct api_budget budget = {.limit = 4000};
    struct api_service service = {
        .endpoints = api_endpoints, .budget = &budget, .max_body = 1 << 20};
    static char body[60000];
    size_t n = (size_t)snprintf(body, sizeof body, "{\"input\": [1");
    while (n < 20000)
        n += (size_t)snprintf(body + n, 3, ",1");
    n += (size_t)snprintf(body + n, 40, "], \"target\": 1}");
    struct answer answer = ask_question(&(struct question){.chunked = true}, &service, body, n);
    cr_expect_eq(answer.status, 503);
    cr_expect_str_eq(answer.response.code, "out_of_memory");
    answer_free(&answer);
    cr_expect_eq(atomic_load(&budget.used), 0);
}

/* Memory for the sums of broadcast gradients counts in the budget; here it exceeds all tensors. */
Test(failures, sums_of_broadcast_gradients_are_on_the_budget)
{
    enum { N = 20000 };
    static const struct {
        const char *query;
        int status;
    } cases[] = {{"broadcast=true&gradient=target", 200}, {"broadcast=true&gradient=input", 503}};
    static char body[6 * N + 100];
    struct api_budget budget = {.limit = 1100000};
    struct api_service service = {
        .endpoints = api_endpoints, .budget = &budget, .max_body = 1 << 20};
    size_t n = (size_t)sprintf(body, "{\"input\": [1");
    for (size_t i = 1; i < N; i++)
        n += (size_t)sprintf(body + n, ",1");
    n += (size_t)sprintf(body + n, "], \"target\": [[1");
    for (size_t i = 1; i < 2 * N; i++)
        n += (size_t)sprintf(body + n, "%s1", i == N ? "],[" : ",");
    n += (size_t)sprintf(body + n, "]]}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {.query = cases[i].query,
                                          .accept = "application/x-safetensors"};
        struct answer answer = ask_question(&question, &service, body, n);
        cr_expect_eq(answer.status, cases[i].status, "%s: %d", cases[i].query, answer.status);
        answer_free(&answer);
        cr_expect_eq(atomic_load(&budget.used), 0);
    }
}
