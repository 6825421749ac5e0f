/* Errors of requests that say what the sender most likely meant. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <string.h>

Test(hints, errors_name_what_to_send)
{
    static const struct {
        const char *path, *body, *detail;
    } cases[] = {
        {"/kl_div", "{\"pred\":[-1],\"true\":[1]}",
         "The tensors are input and target, the options are"},
        {"/kl_div", "{\"y_pred\":{\"a\":1}}", "The tensors are input and target, the options are"},
        {"/kl_div", "{\"input\":{\"0\":-1,\"1\":-2},\"target\":[1]}", "send Array.from(array)"},
        {"/kl_div", "{\"input\":[-1],\"target\":{ \"0\":1}}", "Float32Array"},
        {"/kl_div", "{\"input\":[{\"0\":-1}],\"target\":[[1]]}", "send Array.from(array)"},
        {"/kl_div", "{\"input\":[{\"x\":-1}],\"target\":[[1]]}", "must be a number, not an object"},
        {"/kl_div", "{\"input\":-1,\"target\":1,\"reduction\":\"su\\u0000m\"}",
         "a text may not hold the character \\u0000"},
        {"/kl_div", "{\"input\":-1,\"target\":1,\"re\\u0000duction\":\"sum\"}",
         "a text may not hold the character \\u0000"},
        {"/v2/models/kl_div/infer",
         "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":{\"0\":-1}}"
         "]}",
         "send Array.from(array)"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer =
            ask("POST", cases[i].path, NULL, NULL, cases[i].body, strlen(cases[i].body));
        const char *detail = *text_of(answer.json, "detail") ? text_of(answer.json, "detail")
                                                             : text_of(answer.json, "error");
        cr_expect(strstr(detail, cases[i].detail), "%s: %s", cases[i].body, detail);
        cr_expect_not(strstr(detail, "JSON_ALLOW_NUL"));
        answer_free(&answer);
    }
}
