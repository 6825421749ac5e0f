/* Small requests in the steady state: the service allocates nothing for them. */
#include "api/api.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BODY = 4 << 10, REPLY = 1 << 10 };

/* Answers a request with memory that the host lends, as the server does; gives the bytes allocated. */
static size_t answer(const char *json)
{
    static char body[BODY + API_PADDING], response[REPLY];
    struct api_service service = {.endpoints = api_endpoints, .max_body = 1 << 20};
    struct api_exchange x = {.service = &service,
                             .request = {.method = "POST",
                                         .path = "/kl_div",
                                         .query = "reduction=sum",
                                         .content_length = strlen(json),
                                         .body = body,
                                         .body_size = strlen(json)}};
    memset(body, 0, sizeof body);
    memcpy(body, json, strlen(json));
    api_buffer_borrow(&x.response.body, response, sizeof response);
    size_t before = bytes_allocated();
    cr_expect(api_begin(&x));
    cr_expect(api_handle(&x, HUGE_VAL));
    cr_expect_eq(x.response.status, 200, "%.*s", (int)x.response.body.size, x.response.body.data);
    api_end(&x);
    return bytes_allocated() - before;
}

/* Writes two tensors of `n` numbers of 5 characters. */
static void write_json(char *to, size_t n)
{
    for (int tensor = 0; tensor < 2; tensor++) {
        to += sprintf(to, tensor ? ",\"target\":[" : "{\"input\":[");
        for (size_t i = 0; i < n; i++)
            to += sprintf(to, i ? ",%s" : "%s", tensor ? "0.125" : "-1.25");
        to += sprintf(to, "]");
    }
    strcpy(to, "}");
}

Test(small_requests, of_up_to_4_kib_of_json_allocate_nothing_once_one_was_answered)
{
    enum { MAX = 335 };
    char json[BODY];
    write_json(json, 2);
    answer(json);
    for (size_t n = 1; n <= MAX; n = n < MAX && 2 * n > MAX ? MAX : 2 * n) {
        write_json(json, n);
        cr_expect_eq(answer(json), 0, "%zu numbers", n);
    }
}

Test(small_requests, lent_memory_is_left_for_more)
{
    char lent[16];
    struct api_buffer b = {0};
    api_buffer_borrow(&b, lent, sizeof lent);
    api_append_text(&b, "0123456789");
    cr_expect_eq(b.data, lent);
    api_append_text(&b, "0123456789");
    cr_expect_neq(b.data, lent);
    cr_expect_eq(b.size, 20);
    cr_expect_eq(memcmp(b.data, "01234567890123456789", 20), 0);
    api_buffer_free(&b);
    api_buffer_borrow(&b, lent, sizeof lent);
    api_append_text(&b, "abc");
    cr_expect(api_buffer_own(&b));
    cr_expect_neq(b.data, lent);
    cr_expect_eq(memcmp(b.data, "abc", 3), 0);
    api_buffer_free(&b);
    cr_expect_null(b.data);
}
