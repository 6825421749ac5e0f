/* traceparent, by W3C Trace Context: which values are taken, and where they show. */
#include "api/text/trace.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <string.h>

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define ZEROS "0000000000000000"

Test(traces, values_are_taken_as_the_recommendation_says)
{
    static const struct {
        const char *value, *taken; /* NULL: it is not */
    } cases[] = {
        {"00-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
        {"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
        {"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-ff"},
        {"cc-" TRACE "-" SPAN "-01", "00-" TRACE "-" SPAN "-01"},
        {"00-" TRACE "-" SPAN "-01 \t", "00-" TRACE "-" SPAN "-01"},
        {"00-" TRACE "-" SPAN "-01 x", NULL},
        {"cc-" TRACE "-" SPAN "-01-what-the-future-holds", "00-" TRACE "-" SPAN "-01"},
        {"cc-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01"},
        {"cc-" TRACE "-" SPAN "-01.x", NULL},
        {"cc-" TRACE "-" SPAN "-010", NULL},
        {"00-" TRACE "-" SPAN "-01-x", NULL},
        {"00-" TRACE "-" SPAN "-01-", NULL},
        {"00-" TRACE "-" SPAN "-011", NULL},
        {"00-" TRACE "-" SPAN "-1", NULL},
        {"00-" TRACE "-" SPAN "-", NULL},
        {"00-" TRACE "-" SPAN, NULL},
        {"ff-" TRACE "-" SPAN "-01", NULL},
        {"0-" TRACE "-" SPAN "-01", NULL},
        {"000-" TRACE "-" SPAN "-01", NULL},
        {"0G-" TRACE "-" SPAN "-01", NULL},
        {"00-" ZEROS ZEROS "-" SPAN "-01", NULL},
        {"00-" TRACE "-" ZEROS "-01", NULL},
        {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", NULL},
        {"00-" TRACE "-B7AD6B7169203331-01", NULL},
        {"00-" TRACE "-" SPAN "-0A", NULL},
        {"00-" TRACE "0-" SPAN "-01", NULL},
        {"00-0af7651916cd43dd8448eb211c80319-" SPAN "0-01", NULL},
        {"00_" TRACE "-" SPAN "-01", NULL},
        {" 00-" TRACE "-" SPAN "-01", NULL},
        {"00-0af7651916cd43dd8448eb211c8031\n\"-" SPAN "-01", NULL},
        {"", NULL},
        {"00", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_trace trace = {.text = "left from before"};
        api_trace_read(&trace, cases[i].value);
        cr_expect_eq(api_trace_is_set(&trace), cases[i].taken != NULL, "case %zu", i);
        cr_expect_str_eq(trace.text, cases[i].taken ? cases[i].taken : "", "case %zu", i);
    }
}

Test(traces, problems_name_the_trace_and_inference_errors_keep_their_form)
{
    static const struct {
        const char *path, *value, *id;
    } cases[] = {
        {"/kl_div", "00-" TRACE "-" SPAN "-01", TRACE},
        {"/monitors/g/a/nothing", "00-" TRACE "-" SPAN "-00", TRACE},
        {"/kl_div", "00-" TRACE "-" SPAN "-01-x", ""},
        {"/v2/models/kl_div/infer", "00-" TRACE "-" SPAN "-01", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {.path = cases[i].path,
                                          .content_type = "application/json",
                                          .others = {{"traceparent", cases[i].value}}};
        struct answer answer = ask_question(&question, NULL, "{", 1);
        cr_expect(answer.status >= 400, "case %zu: %d", i, answer.status);
        cr_expect_str_eq(text_of(answer.json, "trace_id"), cases[i].id, "case %zu", i);
        answer_free(&answer);
    }
}

Test(traces, children_are_of_the_same_trace_from_another_span)
{
    struct api_trace parent, child, again, read;
    api_trace_read(&parent, "00-" TRACE "-" SPAN "-01");
    child = api_trace_child(&parent);
    again = api_trace_child(&parent);
    api_trace_read(&read, child.text);
    cr_expect_str_eq(read.text, child.text, "it is valid");
    cr_expect(api_trace_is_same(&parent, &child));
    cr_expect_str_neq(child.text, parent.text);
    cr_expect_str_neq(child.text, again.text);
    cr_expect_eq(strncmp(child.text + 52, "-01", 3), 0, "%s", child.text);
}
