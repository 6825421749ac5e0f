/* Memory that is not to be had. */
#include "tests/support.h"

#include <criterion/criterion.h>
#include <string.h>

/* Every allocation fails once, and once for good, until the request comes through. */
static void fail_each_allocation(const char *query, const char *body, int expected, bool sticky)
{
    for (long n = 0; n < 500; n++) {
        fail_allocation(n, sticky);
        struct answer answer = {0};
        struct api_service service = {.max_body = 1 << 20};
        char padded[400] = {0};
        strcpy(padded, body);
        struct api_request request = {.method = "POST",
                                      .path = "/kl_div",
                                      .query = query,
                                      .body = padded,
                                      .body_size = strlen(body)};
        if (api_begin(&service, &request, &answer.reply))
            api_handle(&service, &request, &answer.reply);
        bool failed = allocation_failed();
        fail_allocation(-1, false);
        int status = answer.reply.status;
        api_reply_free(&answer.reply);
        if (!failed) {
            cr_expect_eq(status, expected);
            cr_expect_gt(n, 2);
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

Test(failures, a_full_budget_is_503_and_nothing_is_kept)
{
    struct api_budget budget = {.limit = 4000};
    struct api_service service = {.budget = &budget, .max_body = 1 << 20};
    static char body[60000];
    size_t n = (size_t)snprintf(body, sizeof body, "{\"input\": [1");
    while (n < 20000)
        n += (size_t)snprintf(body + n, 3, ",1");
    n += (size_t)snprintf(body + n, 40, "], \"target\": 1}");
    struct api_request request = {
        .method = "POST", .path = "/kl_div", .body = body, .body_size = n};
    struct api_reply reply;
    cr_assert(api_begin(&service, &request, &reply));
    api_handle(&service, &request, &reply);
    cr_expect_eq(reply.status, 503);
    cr_expect_str_eq(reply.code, "out_of_memory");
    api_reply_free(&reply);
    cr_expect_eq(atomic_load(&budget.used), 0);
}

/* What the library takes to sum gradients back is the budget's, too: more here than all tensors. */
Test(failures, sums_of_broadcast_gradients_are_on_the_budget)
{
    enum { N = 20000 };
    static const struct {
        const char *query;
        int status;
    } cases[] = {{"broadcast=true&gradient=target", 200}, {"broadcast=true&gradient=input", 503}};
    static char body[6 * N + 100];
    struct api_budget budget = {.limit = 1100000};
    struct api_service service = {.budget = &budget, .max_body = 1 << 20};
    size_t n = (size_t)sprintf(body, "{\"input\": [1");
    for (size_t i = 1; i < N; i++)
        n += (size_t)sprintf(body + n, ",1");
    n += (size_t)sprintf(body + n, "], \"target\": [[1");
    for (size_t i = 1; i < 2 * N; i++)
        n += (size_t)sprintf(body + n, "%s1", i == N ? "],[" : ",");
    n += (size_t)sprintf(body + n, "]]}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_request request = {.method = "POST",
                                      .path = "/kl_div",
                                      .query = cases[i].query,
                                      .accept = "application/x-safetensors",
                                      .body = body,
                                      .body_size = n};
        struct api_reply reply;
        cr_assert(api_begin(&service, &request, &reply));
        api_handle(&service, &request, &reply);
        cr_expect_eq(reply.status, cases[i].status, "%s: %d", cases[i].query, reply.status);
        api_reply_free(&reply);
        cr_expect_eq(atomic_load(&budget.used), 0);
    }
}
