/* Estimates of what requests cost, by which they are handed to another thread. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The estimate decides on the thread: elements times the cost of the options, plus parsed bytes.
 * The values of the elements do not matter. */
Test(cost, decides_what_thread_runs_a_request)
{
    static const struct {
        size_t elements;
        const char *query;
        bool binary, coded, handed_over;
    } cases[] = {
        {4, NULL, true, false, false},
        {4, "diagnose=true&gradient=input", true, false, false},
        {4, NULL, true, true, false},
        {60000, NULL, true, true, true},
        {4, NULL, false, false, false},
        {20000, NULL, true, false, false},
        {20000, "reduction=none", true, false, false},
        {20000, NULL, false, false, true},
        {20000, "gradient=input,target&diagnose=true", true, false, true},
        {200000, NULL, true, false, true},
    };
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        size_t n = cases[i / 2].elements;
        struct api_buffer body = {0};
        if (cases[i / 2].binary) {
            char header[200];
            uint64_t size = (uint64_t)sprintf(
                header,
                "{\"input\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]},"
                "\"target\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}}",
                n, 4 * n, n, 4 * n, 8 * n);
            api_append(&body, &size, sizeof size);
            api_append(&body, header, size);
            for (size_t j = 0; j < 2 * n; j++)
                api_append(&body, i % 2 && j == n / 2 ? "%\\u" : "\0\0\0", 4);
        } else {
            for (int tensor = 0; tensor < 2; tensor++) {
                api_append_text(&body, tensor ? "],\"target\":[1" : "{\"input\":[1");
                for (size_t j = 1; j < n; j++)
                    api_append_text(&body, ",1");
            }
            api_append_text(&body, "]}");
        }
        if (cases[i / 2].coded)
            gzip(&body);
        const struct question question = {
            .query = cases[i / 2].query,
            .content_type = cases[i / 2].binary ? "application/safetensors" : "application/json",
            .content_encoding = cases[i / 2].coded ? "gzip" : NULL,
            .accept = "application/safetensors", /* which is never compressed */
            .accept_encoding = "gzip"};
        struct answer answer = ask_question(&question, NULL, body.data, body.size);
        cr_expect_eq(answer.status, 200, "%.*s", (int)answer.response.body.size,
                     answer.response.body.data);
        cr_expect_eq(answer.handed_over, cases[i / 2].handed_over, "case %zu", i / 2);
        answer_free(&answer);
        api_buffer_free(&body);
    }
}

/* Triton's clients ask for binary outputs, which take no decimals. */
Test(cost, of_binary_inferences_is_not_that_of_decimals)
{
    static const char *const outputs[] = {"true", "false"};
    enum { N = 4000 };
    for (size_t i = 0; i < COUNT(outputs); i++) {
        struct api_buffer body = {0};
        char json_size[20];
        static const float zeros[2 * N];
        api_append_format(&body,
                          "{\"inputs\":[{\"name\":\"input\",\"shape\":[%d],\"datatype\":\"FP32\"},{"
                          "\"name\":\"target\",\"shape\":[%d],\"datatype\":\"FP32\"}],"
                          "\"parameters\":{\"binary_data_output\":%s,\"reduction\":\"none\"}}",
                          N, N, outputs[i]);
        snprintf(json_size, sizeof json_size, "%zu", body.size);
        api_append(&body, zeros, sizeof zeros);
        const struct question question = {.path = "/v2/models/kl_div/infer",
                                          .inference_header_length = json_size};
        struct answer answer = ask_question(&question, NULL, body.data, body.size);
        cr_expect_eq(answer.status, 200, "%.*s", (int)answer.response.body.size,
                     answer.response.body.data);
        cr_expect_eq(answer.handed_over, i == 1);
        answer_free(&answer);
        api_buffer_free(&body);
    }
}
