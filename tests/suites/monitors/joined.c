/* Labels that are too rare to be judged alone: what is seen of them all the same. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

/* RARE: b is one in a thousand. EXACT: c is impossible. */
#define RARE                                                                                       \
    "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":{\"counts\":[700000,1000],\"other\":"      \
    "299000}}"
#define EXACT                                                                                      \
    "{\"bins\":{\"labels\":[\"a\",\"b\",\"c\"]},\"reference\":{\"probabilities\":[0.998,0.002,0]}" \
    "}"

/* Values of kl and p_value by rules of labels in numpy and scipy, of which p_value is that of the test that decides. */
static const struct {
    const char *config, *counts, *verdict;
    double kl, p_value, bins;
    bool infinite;
} cases[] = {
    {RARE, "{\"counts\":[350,100],\"other\":50}", "critical", 0.951389069046, 3.20578805831e-187, 3,
     false},
    {RARE, "{\"counts\":[350,1],\"other\":149}", "ok", NAN, NAN, 2, false},
    {EXACT, "{\"counts\":[499,1,0]}", "ok", NAN, NAN, 2, false},
    {EXACT, "{\"counts\":[450,50,0]}", "critical", NAN, NAN, 2, false},
    {EXACT, "{\"counts\":[499,0,1]}", "critical", INFINITY, NAN, 3, true},
};

Test(monitors_joined, rare_labels_are_judged_by_themselves_and_impossible_ones_never_joined)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(1);
        monitors_expect(&service, "PUT /monitors/g/m", cases[i].config, 201);
        json_t *result =
            monitors_get(&service, "POST /monitors/g/m/observations", cases[i].counts, 200);
        cr_expect_str_eq(text_at(result, "verdict"), cases[i].verdict, "case %zu", i);
        cr_expect_eq(json_is_true(at(result, "infinite")), cases[i].infinite, "case %zu", i);
        cr_expect_eq(number_at(result, "pooled.bins"), cases[i].bins, "case %zu: %g", i,
                     number_at(result, "pooled.bins"));
        double kl = number_at(result, "pooled.kl"), p_value = number_at(result, "pooled.p_value");
        cr_expect(!isfinite(cases[i].kl) || fabs(kl - cases[i].kl) <= 1e-9, "case %zu: %.12g", i,
                  kl);
        cr_expect(isnan(cases[i].p_value) || fabs(p_value - cases[i].p_value) <= 1e-3 * p_value,
                  "case %zu: %.12g", i, p_value);
        json_decref(result);
        monitors_end(&service);
    }
}

/* 60 labels of 4 each, beside 240 of others; then none of them: alone each is too rare, and `other` holds them all. */
Test(monitors_joined, labels_that_all_go_are_seen)
{
    struct api_service service = monitors_new(1);
    struct api_buffer config = {0};
    api_append_text(&config, "{\"bins\":{\"labels\":[");
    for (int i = 0; i < 60; i++)
        api_append_format(&config, i ? ",\"L%d\"" : "\"L%d\"", i);
    api_append_text(&config, "]},\"reference\":{\"counts\":[");
    for (int i = 0; i < 60; i++)
        api_append_text(&config, i ? ",4" : "4");
    api_append(&config, "],\"other\":240}}", 16);
    monitors_expect(&service, "PUT /monitors/g/m", config.data, 201);
    struct api_buffer values = {0};
    api_append_text(&values, "{\"values\":[");
    for (int i = 0; i < 800; i++)
        api_append_format(&values, i ? ",\"N%d\"" : "\"N%d\"", i % 400);
    api_append(&values, "]}", 3);
    json_t *result = monitors_get(&service, "POST /monitors/g/m/observations", values.data, 200);
    cr_expect_str_eq(text_at(result, "verdict"), "critical");
    cr_expect_eq(number_at(result, "pooled.bins"), 2);
    json_decref(result);
    api_buffer_free(&config);
    api_buffer_free(&values);
    monitors_end(&service);
}
