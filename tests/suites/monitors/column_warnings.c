/* Warnings of reference tables, and of observations. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(monitors_column_warnings, that_are_not_what_they_seem_are_told)
{
    static const struct {
        const char *table, *code, *column;
        size_t count;
    } cases[] = {
        {"1,2,x\n3,4,5\n", "header_looks_like_data", "", 2},
        {"1;1,5\n3;4\n", "header_looks_like_data", "", 2},
        {"a|b|c\n1|2|3\n", "one_column", "a|b|c", 0},
        {"a b\n1 2\n3 x\n", "one_column", "a b", 0},
        {"id   size  kind\n1    2.5   x\n20   3.25  y\n\n", "one_column", "id   size  kind", 0},
        {"\"a,b\"\n\"1,2\"\n", "one_column", "a,b", 0},
        {"p,q\n\"1,234.50\",1\n$12,2\nx,3\n", "numbers_as_text", "p", 2},
        {"p,q\n12.5 %,1\n,2\nfree,3\n", "numbers_as_text", "p", 1},
        {"{\"columns\":{\"p\":[\"1\",\"2\",\"x\"]}}", "numbers_as_text", "p", 2},
    };
    static const char *const silent[] = {"a,b,c\n1,2,3\n",
                                         "1,b,c\n1,2,3\n",
                                         "p,q\n$12,1\nx,2\ny,3\n",
                                         "{\"columns\":{\"0\":[1,2],\"1\":[1,2],\"a|b\":[1,2]}}",
                                         "a b\n1\n",
                                         "a b\n1 2\n3\n",
                                         "full name\nAnn Lee\nBo Ek\n",
                                         "p,q\n01058,1\n01059,1\n01058,1\n",
                                         "p,q\n12:30,1\n12:40,1\n"};
    struct api_service service = monitors_new(100);
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *json = monitors_get(&service, "PUT /monitors/g?dry_run=true", cases[i].table, 200);
        const char *code = text_at(json, "warnings.0.code");
        cr_expect_str_eq(code, cases[i].code, "%s: %s", cases[i].table, code);
        cr_expect_str_eq(text_at(json, "warnings.0.column"), cases[i].column);
        double count = number_at(json, "warnings.0.count");
        cr_expect_eq(cases[i].count ? count : 0, (double)cases[i].count, "%s", cases[i].table);
        json_decref(json);
    }
    for (size_t i = 0; i < COUNT(silent); i++) {
        json_t *json = monitors_get(&service, "PUT /monitors/g?dry_run=true", silent[i], 200);
        cr_expect_eq(monitors_warnings(json), 0, "%s", silent[i]);
        json_decref(json);
    }
    monitors_end(&service);
}

/* A reference that holds none of its labels is told once, and nothing is ok beside it. */
Test(monitors_column_warnings, of_a_reference_that_is_all_other_come_once)
{
    static const char config[] = "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"pool\":1,"
                                 "\"reference\":{\"counts\":[0,0],\"other\":500}}";
    struct api_service service = monitors_new(10);
    struct api_buffer values = {0};
    api_append_text(&values, "{\"values\":[\"x\"");
    for (int i = 1; i < 200; i++)
        api_append_text(&values, ",\"x\"");
    api_append(&values, "]}", 3);
    for (int i = 0; i < 2; i++) {
        json_t *json = monitors_get(&service, "PUT /monitors/g/m", config, i ? 200 : 201);
        const char *code = i ? "" : "reference_other";
        cr_expect_eq(monitors_warnings(json), i ? 0 : 1);
        cr_expect(i || strcmp(text_at(json, "warnings.0.code"), code) == 0);
        json_decref(json);
    }
    json_t *json = monitors_get(&service, "POST /monitors/g/m/observations", values.data, 200);
    expect_at(json, "verdict", "\"insufficient_data\"");
    json_decref(json);
    for (char *p = values.data; *p; p++)
        *p = *p == 'x' ? 'a' : *p;
    json = monitors_get(&service, "POST /monitors/g/m/observations", values.data, 200);
    expect_at(json, "verdict", "\"critical\"");
    json_decref(json);
    api_buffer_free(&values);
    monitors_end(&service);
}

/* Half numbers hide the categories of the other half, if these repeat. */
Test(monitors_column_warnings, of_numbers_with_categories_among_them_are_labels)
{
    static const struct {
        const char *texts[5];
        size_t n, distinct; /* rows of 1000 that are texts, and how many of the texts are there */
        bool are_labels;
    } cases[] = {
        {{"A", "B", "C", "D", "E"}, 450, 5, true},  {{"A", "B", "C", "D", "E"}, 101, 5, true},
        {{"A", "B", "C", "D", "E"}, 100, 5, false}, {{"A", "B", "C", "D"}, 450, 4, false},
        {{"A", "B", "C", "D"}, 501, 4, true},       {{"A", "B", "C", "D"}, 500, 4, false},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer body = {0};
        api_append_text(&body, "boat,x\n");
        for (size_t row = 0; row < 1000; row++)
            if (row < cases[i].n)
                api_append_format(&body, "%s,0\n", cases[i].texts[row % cases[i].distinct]);
            else
                api_append_format(&body, "%zu.5,0\n", row * 7 % 13);
        api_append(&body, "", 1);
        json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, i ? 200 : 201);
        cr_expect_eq(at(json, "monitors.0.bins.labels") != NULL, cases[i].are_labels, "%zu", i);
        json_decref(json);
        json = monitors_get(&service, "POST /monitors/g/observations", body.data, 200);
        expect_at(json, "monitors.0.kl", "0");
        json_decref(json);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

Test(monitors_column_warnings, that_are_bad_are_left_out_or_renamed_and_told)
{
    static const struct {
        const char *body, *monitors, *warnings; /* names, and codes with names */
    } cases[] = {
        {"a, b ,a\n1,2,3\n", "a b a.1", "column_renamed b, column_renamed a.1, "},
        {"a,..,observations\n1,2,3\n", "a", "name_invalid .., name_invalid observations, "},
        {"a,\"x\ty\"\n1,2\n", "a", "name_invalid x\ty, "},
        {"{\"columns\":{\"a\":[1,[2]],\"b\":[1,2]}}", "b", "values_nested a, "},
        {"{\"rows\":[{\"a\":1,\"b\":1,\"c\":{\"d\":[1]}},{\"a\":{},\"b\":2}]}", "b",
         "values_nested a, values_nested c, "},
        {"[{\"a\":[]},{\" b\":1}]", "b", "values_nested a, column_renamed b, "},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int observes = 0; observes <= 1; observes++) {
            struct api_buffer names = {0}, codes = {0};
            size_t j;
            json_t *each, *json = monitors_get(&service,
                                               observes ? "POST /monitors/g/observations"
                                                        : "PUT /monitors/g?window=1000",
                                               cases[i].body, observes ? 200 : 201);
            json_array_foreach(at(json, "monitors"), j, each)
                api_append_format(&names, j ? " %s" : "%s", text_at(each, "name"));
            json_array_foreach(at(json, "warnings"), j, each)
            {
                if (strcmp(text_at(each, "code"), "labels_chosen") != 0)
                    api_append_format(&codes, "%s %s, ", text_at(each, "code"),
                                      text_at(each, "column"));
            }
            api_append(&names, "", 1);
            api_append(&codes, "", 1);
            cr_expect_str_eq(names.data, cases[i].monitors);
            if (!observes || !strstr(cases[i].warnings, "name_invalid"))
                cr_expect_str_eq(codes.data, cases[i].warnings, "%s: %s", cases[i].body,
                                 codes.data);
            api_buffer_free(&names);
            api_buffer_free(&codes);
            json_decref(json);
            if (observes)
                monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
        }
    /* nobody looks at what is excluded */
    json_t *json = monitors_get(&service, "PUT /monitors/g?exclude=a,..",
                                "[{\"a\":[]},{\"..\":1,\"b\":1}]", 201);
    cr_expect_eq(monitors_warnings(json), 0);
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/h", "[{\"a\":[]},{\"..\":1}]",
                     "reference_empty ~'a' (values_nested), '..' (name_invalid)");
    monitors_refused(&service, "POST /monitors/g/b/observations", "[{\"b\":[1]}]",
                     "value_invalid #/0/b");
    monitors_end(&service);
}

Test(monitors_column_warnings, of_names_that_are_too_long_are_left_out)
{
    struct api_service service = monitors_new(10);
    for (int n = 128; n <= 129; n++) {
        char body[400];
        snprintf(body, sizeof body, "a,%0*d,%0*d\n1,2,3\n", n, 0, n, 0);
        json_t *json = monitors_get(&service, "PUT /monitors/g", body, n > 128 ? 200 : 201);
        cr_expect_eq(json_array_size(at(json, "monitors")), n > 128 ? 1 : 2, "%d", n);
        expect_at(json, "warnings.0.code", "\"name_invalid\"");
        json_decref(json);
        json = monitors_get(&service, "POST /monitors/g/observations", body, 200);
        cr_expect_eq(json_array_size(at(json, "monitors")), n > 128 ? 1 : 2);
        json_decref(json);
    }
    monitors_end(&service);
}

/* Windows so small that even the largest pool has too few observations. */
Test(monitors_column_warnings, of_batches_that_never_have_a_verdict_are_told)
{
    static const struct {
        const char *query;
        size_t n;
        bool are_told;
    } cases[] = {{"", 1, true},
                 {"", 3, true},
                 {"", 4, false}, /* 16 of them are 64 */
                 {"?pool=1", 49, true},
                 {"?pool=1", 50, false},
                 {"?min_observations=10", 1, false},
                 {"?min_observations=200", 12, true},
                 {"?window=1000", 1, false},
                 {"?window=3600s", 1, false}};
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer body = {0};
        char line[60];
        api_append_text(&body, "a,b\n");
        for (size_t row = 0; row < cases[i].n; row++)
            api_append_format(&body, "%zu,x\n", row % 2);
        api_append(&body, "", 1);
        snprintf(line, sizeof line, "PUT /monitors/g%s", cases[i].query);
        monitors_expect(&service, line, "a,b\n0,x\n1,x\n", i ? 200 : 201);
        for (int single = 0; single <= 1; single++) {
            json_t *json = monitors_get(&service,
                                        single ? "POST /monitors/g/a/observations"
                                               : "POST /monitors/g/observations",
                                        body.data, 200);
            cr_expect_str_eq(text_at(json, "warnings.0.code"),
                             cases[i].are_told ? "batches_too_small" : "", "%zu", i);
            if (cases[i].are_told)
                cr_expect_eq(number_at(json, "warnings.0.count"), single ? 1 : 2);
            json_decref(json);
        }
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

/* Texts of which each is seen ten times have a label each; others are chosen, and it is told how many were not. */
Test(monitors_column_warnings, labels_that_are_chosen_and_cut_are_told)
{
    static const struct {
        size_t n, distinct;
        bool chosen, cut;
    } cases[] = {{120, 12, false, false}, {119, 12, true, false},      {12, 2, true, false},
                 {600, 110, true, true},  {10000, 1000, false, false}, {11011, 1001, true, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        struct api_buffer body = {0};
        api_append_text(&body, "a\n");
        for (size_t j = 0; j < cases[i].n; j++)
            api_append_format(&body, "v%zu\n", j % cases[i].distinct);
        api_append(&body, "", 1);
        json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, 201);
        double labels = (double)json_array_size(at(json, "monitors.0.bins.labels"));
        double cut = (double)cases[i].distinct - labels;
        cr_expect_str_eq(text_at(json, "warnings.0.code"), cases[i].chosen ? "labels_chosen" : "");
        cr_expect_str_eq(text_at(json, "warnings.1.code"), cut > 0 ? "labels_cut" : "");
        cr_expect(!cases[i].chosen || number_at(json, "warnings.0.count") == labels);
        cr_expect(cut == 0 || number_at(json, "warnings.1.count") == cut);
        cr_expect(cut == 0 || cases[i].chosen);
        cr_expect(cut > 0 || !cases[i].cut);
        json_decref(json);
        api_buffer_free(&body);
        monitors_end(&service);
    }
}

Test(monitors_column_warnings, counts_that_look_cumulative_are_told)
{
    static const struct {
        const char *counts;
        bool told;
    } cases[] = {{"[100, 250, 260, 270, 270]", true},
                 {"[100, 250, 260, 270, 270], \"overflow\": 280", true},
                 {"[100, 250, 260, 270, 270], \"overflow\": 10", false},
                 {"[100, 250, 240, 270, 280]", false},
                 {"[11, 11, 11, 11, 12]", false},
                 {"[0, 0, 0, 0, 0], \"overflow\": 7", false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        char body[200];
        snprintf(body, sizeof body,
                 "{\"bins\": {\"edges\": [1, 2, 3, 4, 5, 6]}, \"reference\": {\"counts\": %s}}",
                 cases[i].counts);
        json_t *json = monitors_get(&service, "PUT /monitors/g/a", body, 201);
        cr_expect_str_eq(text_at(json, "warnings.0.code"), cases[i].told ? "looks_cumulative" : "",
                         "%s", cases[i].counts);
        json_decref(json);
        monitors_end(&service);
    }
}
