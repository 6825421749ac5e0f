/* Errors of requests that say what the sender most likely meant. */
#include "api/loss/options.h"
#include "api/text/nearest.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <string.h>

Test(hints, errors_name_what_to_send)
{
    static const struct {
        const char *path, *body, *detail;
    } cases[] = {
        {"/kl_div", "{\"pred\":[-1],\"true\":[1]}",
         "The tensors are input, target, grad_output, weight, mask, indices and log_normalizer, "
         "the"},
        {"/kl_div", "{\"y_pred\":{\"a\":1}}",
         "The tensors are input, target, grad_output, weight, mask, indices and log_normalizer, "
         "the"},
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
        {"/kl_div", "{\"input\":[[1,2,3]],\"target\":[[0.1,0.2]],\"indices\":[[1,2,0]]}",
         "indices: one is needed for each number of target (got [1,3], expected [1,2])"},
        {"/kl_div", "{\"input\":[[1,2,3]],\"target\":[[0.1,0.2]]}",
         "target has shape [1, 2]: if target names a part of each row, its indices are missing"},
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

/* Each word of each option, all of its letters and the first alone in upper case: the error names the word. */
Test(hints, words_in_upper_case_are_recognized)
{
    static const char body[] = "{\"input\": -1, \"target\": 1}";
    int asked = 0;
    for (const struct api_field *row = api_loss_options; row->name; row++)
        for (size_t i = 0; row->words && row->words[i]; i++)
            for (int all = 0; all < 2; all++) {
                char word[40], query[100], mean[100];
                strcpy(word, row->words[i]);
                for (char *p = word; *p && (all || p == word); p++)
                    *p = (char)toupper(*p);
                if (strcmp(word, row->words[i]) == 0)
                    continue; /* a digit */
                snprintf(query, sizeof query, "%s=%s", row->name, word);
                snprintf(mean, sizeof mean, "; did you mean '%s'?", row->words[i]);
                struct answer answer = ask("POST", "/kl_div", query, NULL, body, sizeof body - 1);
                cr_expect_eq(answer.status, 422, "%s: %d", query, answer.status);
                cr_expect(strstr(text_of(answer.json, "detail"), mean), "%s: %s", query,
                          text_of(answer.json, "detail"));
                answer_free(&answer);
                asked++;
            }
    cr_expect_gt(asked, 40);
}

/* Files as curl -d sends them: without NUL bytes and newlines, or cut at the first. */
Test(hints, files_without_nuls_are_told_of_data_binary)
{
    static const struct {
        const char *type, *body;
        size_t size;
        bool is_told;
    } cases[] = {
        {"application/vnd.safetensors", "P", 1, true},
        {"application/vnd.safetensors", "P{\"input\":{\"dtype\":\"F32\"}}", 26, true},
        {"application/vnd.safetensors", "", 0, false},
        {"application/vnd.safetensors", "P\0\0\0\0\0\0\0{", 9, false},
        {"application/x-npz", "PK\3\4\24", 5, true},
        {"application/x-npz", "PK\3\4\24\0", 6, false},
        {NULL, "PK\3\4\24", 5, true},
        {"application/json", "{\"input\": [}", 12, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer =
            ask("POST", "/kl_div", NULL, cases[i].type, cases[i].body, cases[i].size);
        const char *detail = text_of(answer.json, "detail");
        cr_expect(answer.status >= 400);
        cr_expect_eq(strstr(detail, "--data-binary") != NULL, cases[i].is_told, "case %zu: %s", i,
                     detail);
        answer_free(&answer);
    }
}

/* Asks with a value that no option has, in the query or as a member of the body, and gives the error's detail to `to`. */
static void refuse(const char *name, const char *value, bool in_query, char *to, size_t size)
{
    char query[100] = "", body[100];
    if (in_query)
        snprintf(query, sizeof query, "%s=%s", name, value);
    snprintf(body, sizeof body, in_query ? "{%s%s%s}" : "{\"%s\": %s, %s}", in_query ? "" : name,
             in_query ? "" : value, "\"input\": -1, \"target\": 1");
    struct answer answer = ask("POST", "/kl_div", query, NULL, body, strlen(body));
    cr_expect_eq(answer.status, 422, "%s %s: %d", query, body, answer.status);
    snprintf(to, size, "%s", text_of(answer.json, "detail"));
    answer_free(&answer);
}

Test(hints, words_of_an_option_are_told_once)
{
    static const struct {
        const char *value;
        bool in_query;
    } cases[] = {{"zzzz", true}, {"\"zzzz\"", false}, {"7", false}};
    size_t told = 0;
    for (const struct api_field *row = api_loss_options; row->name; row++)
        for (size_t i = 0; row->words && i < COUNT(cases); i++) {
            char list[200] = "", detail[500];
            for (size_t word = 0; row->words[word]; word++)
                api_append_word(list, sizeof list, row->words[word]);
            refuse(row->name, cases[i].value, cases[i].in_query, detail, sizeof detail);
            char *end = strstr(detail, list);
            told += end != NULL;
            if (end)
                *end = '\0';
            for (size_t word = 0; end && row->words[word]; word++)
                cr_expect_not(strlen(row->words[word]) > 1 && strstr(detail, row->words[word]),
                              "%s, then %s", detail, list);
            cr_expect_not(end && strstr(detail, " or "), "%s, then %s", detail, list);
        }
    cr_expect_gt(told, 15, "%zu", told);
}
