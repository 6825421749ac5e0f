/* Columns as people have them: decimal commas, booleans. What a table means by its form alone is in tests/tables. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Asks with a body in which each blank of `fields` is a line end, below a header. */
static json_t *ask_lines(const struct api_service *service, const char *line, const char *fields,
                         int status)
{
    char body[400];
    snprintf(body, sizeof body, "%s\n", fields);
    for (char *p = body; *p; p++)
        *p = *p == ' ' ? '\n' : *p;
    return monitors_get(service, line, body, status);
}

/* Appends a table, with its rows ten times if each of its labels is to have a bin. */
static void append_table(struct api_buffer *to, const char *table, bool tenfold)
{
    size_t header = strcspn(table, " ");
    api_append(to, table, header);
    for (int i = 0; i < (tenfold ? 10 : 1); i++)
        api_append_text(to, table + header);
    api_append(to, "", 1);
}

/* Warnings but for those of labels that were chosen, or not. */
static size_t count_warnings(const json_t *json)
{
    size_t n = 0, i;
    const json_t *warning;
    json_array_foreach(at(json, "warnings"), i, warning)
    {
        n += strncmp(text_of(warning, "code"), "labels_", 7) != 0;
    }
    return n;
}

/* Code of the first of these. */
static const char *first_warning(const json_t *json)
{
    size_t i;
    const json_t *warning;
    json_array_foreach(at(json, "warnings"), i, warning)
    {
        if (strncmp(text_of(warning, "code"), "labels_", 7) != 0)
            return text_of(warning, "code");
    }
    return "";
}

/* ---- Decimal commas */

Test(monitors_columns, decimal_commas_are_decided_by_column)
{
    static const struct {
        const char *table, *bins, *reference, *code;
    } cases[] = {
        /* one dot elsewhere says nothing of this column */
        {"a;b 1,5;x.y 2,5;z 4;z", "{\"edges\":[1.5,2.5,4]}",
         "{\"counts\":[1,2],\"missing\":0,\"overflow\":0,\"underflow\":0}", ""},
        {"a;b 1,5;20.11.2026 2,5;21.11.2026 -0,5;NA \"\";", "{\"edges\":[-0.5,1.5,2.5]}",
         "{\"counts\":[1,2],\"missing\":1,\"overflow\":0,\"underflow\":0}", "dates"},
        {"a;b 1,5;2.5 2,5;3.5", "{\"edges\":[1.5,2,2.5]}",
         "{\"counts\":[1,1],\"missing\":0,\"overflow\":0,\"underflow\":0}", ""},
        {"a;b 1;2.5 2;3.5", "{\"labels\":[\"1\",\"2\"]}",
         "{\"counts\":[10,10],\"missing\":0,\"other\":0}", ""},
        {"a,b \"1,5\",2.5 2,3.5", "{\"edges\":[1.5,1.75,2]}",
         "{\"counts\":[1,1],\"missing\":0,\"overflow\":0,\"underflow\":0}", ""},
        {"a\tb 1,5\t2.5 2,5\t3.5", "{\"edges\":[1.5,2,2.5]}",
         "{\"counts\":[1,1],\"missing\":0,\"overflow\":0,\"underflow\":0}", ""},
        /* a dot in the column, or most of it, decides against commas */
        {"a;b 1,5;x 2,5;x 3.5;x", "{\"labels\":[\"1,5\",\"2,5\",\"3.5\"]}",
         "{\"counts\":[10,10,10],\"missing\":0,\"other\":0}", "numbers_as_text"},
        {"a;b 1,5;x 2.5;x 3.5;x", "{\"edges\":[1.5,2.5,3.5]}",
         "{\"counts\":[1,2],\"missing\":0,\"overflow\":0,\"underflow\":0}", "decimal_marks_mixed"},
        {"a;b 1,5;x 2,5;x ?;x", "{\"edges\":[1.5,2,2.5]}",
         "{\"counts\":[1,1],\"missing\":1,\"overflow\":0,\"underflow\":0}", "values_unreadable"},
        {"a;b 1,5;x ?;x -;x", "{\"labels\":[\"-\",\"1,5\",\"?\"]}",
         "{\"counts\":[10,10,10],\"missing\":0,\"other\":0}", ""},
        {"a;b 1.234,5;x 1.234,5;x", "{\"labels\":[\"1.234,5\"]}",
         "{\"counts\":[20],\"missing\":0,\"other\":0}", "numbers_as_text"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer table = {0};
        append_table(&table, cases[i].table, strncmp(cases[i].bins, "{\"labels\"", 9) == 0);
        json_t *json = ask_lines(&service, "PUT /monitors/g", table.data, i ? 200 : 201);
        expect_at(json, "monitors.0.bins", cases[i].bins);
        const char *code = first_warning(json);
        expect_counts_at(json, "monitors.0.reference", cases[i].reference);
        cr_expect_eq(count_warnings(json), *cases[i].code != 0, "%s", cases[i].table);
        cr_expect_str_eq(code, cases[i].code, "%s", cases[i].table);
        json_decref(json);
        api_buffer_free(&table);
    }
    monitors_end(&service);
}

/* A monitor of numbers takes both forms, whatever else the table has. */
Test(monitors_columns, observations_have_the_comma_that_their_monitor_expects)
{
    static const char *const bodies[] = {"a;d 1,5;20.11.2026 2;x", "a,d 1.5,x 2,y",
                                         "a;d 1.5;x 2,0;y", "a,d \"1,5\",x \"2.0\",y",
                                         "a\td 1,5\t1.1 2\tx"};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/a",
                    "{\"bins\":{\"edges\":[1,2,3]},\"reference\":{\"counts\":[1,1]}}", 201);
    monitors_expect(&service, "PUT /monitors/g/d",
                    "{\"bins\":{\"labels\":[\"1.5\",\"1,5\"]},\"reference\":{\"counts\":[1,1]}}",
                    201);
    for (size_t i = 0; i < COUNT(bodies); i++) {
        json_t *json = ask_lines(&service, "POST /monitors/g/observations", bodies[i], 200);
        expect_at(json, "monitors.0.bins.1.current", "0.5");
        expect_at(json, "monitors.0.bins.2.current", "0.5");
        expect_at(json, "monitors.0.missing_ratio", "0");
        expect_at(json, "warnings.0.code", "\"batches_too_small\"");
        json_decref(json);
    }
    json_t *json = ask_lines(&service, "POST /monitors/g/d/evaluate", "d;x 1,5;x 1.50;x", 200);
    expect_at(json, "bins.0.current", "0.5");
    expect_at(json, "bins.1.current", "0.5");
    json_decref(json);
    monitors_end(&service);
}

/* ---- Booleans */

/* Values counted by labels that are given. */
Test(monitors_columns, booleans_are_the_same_in_any_case)
{
    static const struct {
        const char *labels, *values, *reference;
    } cases[] = {
        {"[true,false]", "[true,\"True\",\"TRUE\",false,\"fALSE\"]",
         "{\"counts\":[3,2],\"missing\":0,\"other\":0}"},
        {"[\"False\",\"True\"]", "[true,\"True\",\"TRUE\",false,\"yes\"]",
         "{\"counts\":[1,4],\"missing\":0,\"other\":0}"},
        {"[\"TRUE\",\"FALSE\"]", "[true,\"True\",false]",
         "{\"counts\":[2,1],\"missing\":0,\"other\":0}"},
        {"[true]", "[true,\"True\",false,\"False\"]", "{\"counts\":[2],\"missing\":0,\"other\":2}"},
        {"[true,\"x\"]", "[true,\"True\",\"x\"]", "{\"counts\":[2,1],\"missing\":0,\"other\":0}"},
        {"[true,false,\"True\"]", "[\"True\",\"TRUE\",false,null]",
         "{\"counts\":[1,1,1],\"missing\":1,\"other\":0}"},
        {"[\"x\"]", "[true,\"True\",\"x\"]", "{\"counts\":[1],\"missing\":0,\"other\":2}"},
        /* as other programs write them, to and from any pair */
        {"[true,false]", "[\"t\",\"F\",\"yes\",\"No\",\"y\",\"0\",1,0,\"1.0\",2,\"x\",null]",
         "{\"counts\":[5,4],\"missing\":1,\"other\":2}"},
        {"[0,1]", "[true,\"FALSE\",\"t\",\"no\",1,\"2\"]",
         "{\"counts\":[2,3],\"missing\":0,\"other\":1}"},
        {"[\"no\",\"yes\"]", "[true,\"FALSE\",0,\"NO\",\"maybe\"]",
         "{\"counts\":[3,1],\"missing\":0,\"other\":1}"},
        {"[true,false,\"maybe\"]", "[\"t\",1,\"TRUE\",\"maybe\",0]",
         "{\"counts\":[3,1,1],\"missing\":0,\"other\":0}"},
        {"[true,false,3]", "[\"t\",1,\"TRUE\",\"3\",0]",
         "{\"counts\":[1,0,1],\"missing\":0,\"other\":3}"},
        {"[\"y\",\"n\",\"a\",\"b\"]", "[true,\"yes\",1,\"y\"]",
         "{\"counts\":[1,0,0,0],\"missing\":0,\"other\":3}"},
        {"[\"a\",\"t\"]", "[true,\"t\",1]", "{\"counts\":[0,1],\"missing\":0,\"other\":2}"},
        {"[\"n\"]", "[false,0,\"n\"]", "{\"counts\":[1],\"missing\":0,\"other\":2}"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[300];
        snprintf(body, sizeof body, "{\"bins\":{\"labels\":%s},\"reference\":{\"values\":%s}}",
                 cases[i].labels, cases[i].values);
        json_t *json = monitors_get(&service, "PUT /monitors/g/m", body, i ? 200 : 201);
        expect_at(json, "reference", cases[i].reference);
        json_decref(json);
    }
    monitors_end(&service);
}

/* Booleans as pandas writes them to CSV, and as its JSON has them, are one column without drift. */
Test(monitors_columns, a_csv_of_true_and_a_json_of_true_agree)
{
    struct api_service service = monitors_new(10);
    json_t *json = ask_lines(&service, "PUT /monitors/g?pseudocount=0",
                             "b True False True True False True True False True True False True "
                             "True False True True False True True False True True False True "
                             "True False True True False True",
                             201);
    expect_at(json, "monitors.0.bins", "{\"labels\":[\"true\",\"false\"]}");
    json_decref(json);
    json = monitors_get(&service, "POST /monitors/g/observations",
                        "{\"columns\":{\"b\":[true,false,\"TRUE\"]}}", 200);
    expect_at(json, "monitors.0.kl", "0");
    json_decref(json);
    monitors_end(&service);
}

/* ---- Warnings */

/* Appends a table of `n` rows: an id that rises, a number, a text that is distinct in the first rows, a label. */
static void append_ids(struct api_buffer *to, size_t n, size_t distinct)
{
    api_append_text(to, "id,x,text,label\n");
    for (size_t i = 0; i < n; i++)
        api_append_format(to, "%zu,%zu,t%zu,%c\n", i < n - distinct ? 0 : i, i * 7 % 31,
                          i < distinct ? i : 0, 'a' + (int)(i % 3));
    api_append(to, "", 1);
}

static const char *const all[] = {"id", "x", "text", "label", NULL};

/* Expects the names of the monitors of an answer. */
static void expect_names(const json_t *json, const char *const *names)
{
    size_t n = 0;
    for (; names[n]; n++)
        cr_expect_str_eq(text_at(json_array_get(at(json, "monitors"), n), "name"), names[n]);
    cr_expect_eq(json_array_size(at(json, "monitors")), n);
}

Test(monitors_columns, of_distinct_values_get_no_monitor_unless_they_are_named)
{
    static const struct {
        size_t n, distinct;
        bool are_unique;
    } cases[] = {{100, 100, true}, {99, 99, false}, {100, 49, false}, {300, 299, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        struct api_buffer body = {0};
        append_ids(&body, cases[i].n, cases[i].distinct);
        json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, 201);
        if (cases[i].are_unique) {
            expect_names(json, (const char *const[]){"x", "label", NULL});
            expect_at(json, "warnings.0.code", "\"nearly_unique\"");
            expect_at(json, "warnings.0.column", "\"id\"");
            expect_at(json, "warnings.1.column", "\"text\"");
            cr_expect_eq(number_at(json, "warnings.1.count"), (double)cases[i].n);
            cr_expect_eq(json_array_size(at(json, "warnings")), 2);
        } else {
            expect_names(json, all);
        }
        json_decref(json);
        json = monitors_get(&service, "PUT /monitors/g?include=id,text", body.data,
                            cases[i].are_unique ? 201 : 200);
        expect_names(json, (const char *const[]){"id", "text", NULL});
        json_decref(json);
        api_buffer_free(&body);
        monitors_end(&service);
    }
}

Test(monitors_columns, of_ids_may_rise_or_fall)
{
    struct api_service service = monitors_new(10);
    for (int which = 0; which < 3; which++) { /* rises, falls, does neither */
        struct api_buffer body = {0};
        api_append_text(&body, "id,x\n");
        for (int i = 0; i < 200; i++)
            api_append_format(&body, "%d,%d\n",
                              which == 0   ? i
                              : which == 1 ? 200 - i
                                           : i * 77 % 199,
                              i % 4);
        api_append(&body, "", 1);
        json_t *json =
            monitors_get(&service, "PUT /monitors/g", body.data, which ? 200 + (which > 1) : 201);
        expect_names(json, which < 2 ? (const char *const[]){"x", NULL}
                                     : (const char *const[]){"id", "x", NULL});
        json_decref(json);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

Test(monitors_columns, that_are_the_only_one_get_a_monitor)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    api_append_text(&body, "x\n");
    for (size_t i = 0; i < 1000; i++)
        api_append_format(&body, "%zu\n", i + 1);
    api_append(&body, "", 1);
    json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, 201);
    expect_names(json, (const char *const[]){"x", NULL});
    expect_at(json, "warnings.0.code", "\"nearly_unique\"");
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Columns of dates; `n` rows are made of a format and a number that grows by `step`, every tenth being another text. */
Test(monitors_columns, of_dates_get_no_monitor_unless_they_are_named)
{
    static const struct {
        const char *format;
        long first, step, span;
        bool are_dates;
    } cases[] = {
        {"2026-11-%02ld", 1, 1, 30, true},
        {"2026-11-25T%02ld:15:00Z", 0, 7, 24, true},
        {"%02ld.11.2026", 1, 1, 30, true},
        {"Nov %ld, 2026", 1, 1, 30, true},
        {"%ld", 1795602615, 7919, 100000, true},
        {"%ld000", 1795602615, 7919, 100000, true},
        {"%ld123456789", 1795602615, 7919, 100000, true},
        {"%ld", 20261101, 1, 30, true},
        {"%ld", 1795602615, 0, 1, false},
        {"%ld.5", 1795602615, 7919, 100000, false},
        {"%ld", 20261200, 37, 9000, false},
        {"version 2026-11-%02ld", 1, 1, 30, false},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int others = 0; others <= 1; others++) {
            struct api_buffer body = {0};
            api_append_text(&body, "day;x\n");
            for (long row = 0; row < 60; row++) {
                if (others && row % (5 * others) == 1)
                    api_append_text(&body, "later");
                else
                    api_append_format(&body, cases[i].format,
                                      cases[i].first + row * cases[i].step % cases[i].span);
                api_append_format(&body, ";%ld\n", row % 3);
            }
            api_append(&body, "", 1);
            bool are_dates = cases[i].are_dates && !others;
            json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, 201);
            expect_names(json, are_dates ? (const char *const[]){"x", NULL}
                                         : (const char *const[]){"day", "x", NULL});
            cr_expect_eq(strcmp(text_at(json, "warnings.0.code"), "dates") == 0, are_dates, "%s",
                         body.data);
            if (are_dates)
                expect_at(json, "warnings.0.count", "60");
            json_decref(json);
            json = monitors_get(&service, "PUT /monitors/g?include=day", body.data,
                                are_dates ? 201 : 200);
            expect_names(json, (const char *const[]){"day", NULL});
            json_decref(json);
            monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
            api_buffer_free(&body);
        }
    monitors_end(&service);
}

/* Free text may be longer than labels. */
Test(monitors_columns, of_long_free_text_do_not_refuse_the_table)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    api_append_text(&body, "note,x\n");
    for (size_t i = 0; i < 120; i++) {
        for (size_t j = 0; j < (i % 2 ? 300 : 1); j++)
            api_append_format(&body, "n%09zu", i);
        api_append_format(&body, ",%zu\n", i % 5);
    }
    api_append(&body, "", 1);
    json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, 201);
    expect_names(json, (const char *const[]){"x", NULL});
    expect_at(json, "warnings.0.code", "\"nearly_unique\"");
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/g?include=note", body.data,
                     "reference_empty ~'note' (labels_too_large)");
    api_buffer_free(&body);
    monitors_end(&service);
}

Test(monitors_columns, are_chosen_by_their_names)
{
    static const char body[] = "a,\"b,c\",c,\n1,2,3,0\n";
    static const struct {
        const char *query, *names[4];
    } cases[] = {
        {"", {"a", "b,c", "c"}},
        {"?include=a", {"a"}},
        {"?include=a,c", {"a", "c"}},
        {"?include=b,c", {"b,c"}},
        {"?include=a,b,c,c", {"a", "b,c", "c"}},
        {"?exclude=b%2Cc", {"a", "c"}},
        {"?exclude=a,b,c", {"c"}},
        {"?include=a,c&exclude=a", {"c"}},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/g%s", cases[i].query);
        json_t *json = monitors_get(&service, line, body, i ? 200 : 201);
        expect_names(json, cases[i].names);
        json_decref(json);
    }
    monitors_refused(&service, "PUT /monitors/g?include=a,d", body, "column_missing ?include ~'d'");
    monitors_refused(&service, "PUT /monitors/g?exclude=b", body, "column_missing ?exclude ~'b'");
    monitors_refused(&service, "PUT /monitors/g?include=", body, "option_invalid ?include ~empty");
    monitors_refused(&service, "PUT /monitors/g?exclude=", body, "option_invalid ?exclude ~empty");
    monitors_refused(&service, "PUT /monitors/g/a?include=a", body, "option_unknown ?include");
    monitors_end(&service);
}

Test(monitors_columns, that_are_not_what_they_seem_are_told)
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
        cr_expect_eq(count_warnings(json), 0, "%s", silent[i]);
        json_decref(json);
    }
    monitors_end(&service);
}

/* Half numbers hide the categories of the other half, if these repeat. */
Test(monitors_columns, of_numbers_with_categories_among_them_are_labels)
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

Test(monitors_columns, that_are_all_left_out_are_named_with_the_reason)
{
    struct api_service service = monitors_new(10);
    monitors_refused(&service, "PUT /monitors/g", "day,a,\n2026-11-25,,1\n2026-11-26,NA,2\n",
                     "reference_empty ~'day' (dates), 'a' (column_empty), '' (column_unnamed); "
                     "?include=");
    monitors_refused(&service, "PUT /monitors/g", "{\"columns\":{}}",
                     "reference_empty ~no columns");
    struct api_buffer body = {0};
    for (int i = 0; i < 100; i++)
        api_append_format(&body, i ? ",column %d" : "column %d", i);
    api_append(&body, "\n", 2);
    monitors_refused(&service, "PUT /monitors/g", body.data,
                     "reference_empty ~'column 0' (column_empty), 'column 1'");
    api_buffer_free(&body);
    monitors_end(&service);
}

/* One bad column does not refuse the table. */
Test(monitors_columns, that_are_bad_are_left_out_or_renamed_and_told)
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
    cr_expect_eq(count_warnings(json), 0);
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/h", "[{\"a\":[]},{\"..\":1}]",
                     "reference_empty ~'a' (values_nested), '..' (name_invalid)");
    monitors_refused(&service, "POST /monitors/g/b/observations", "[{\"b\":[1]}]",
                     "value_invalid #/0/b");
    monitors_end(&service);
}

Test(monitors_columns, of_names_that_are_too_long_are_left_out)
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
Test(monitors_columns, of_batches_that_never_have_a_verdict_are_told)
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
Test(monitors_columns, labels_that_are_chosen_and_cut_are_told)
{
    static const struct {
        size_t n, distinct;
        bool chosen, cut;
    } cases[] = {{120, 12, false, false}, {119, 12, true, false},      {12, 2, true, false},
                 {240, 110, true, true},  {10000, 1000, false, false}, {11011, 1001, true, true}};
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

Test(monitors_columns, counts_that_look_cumulative_are_told)
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

/* ---- Observations */

Test(monitors_columns, that_are_absent_are_told)
{
    static const struct {
        const char *body, *absent;
    } cases[] = {
        {"a,b,c\n1,2,3\n", ""},
        {"c,a\n1,2\n", "b"},
        {"c,x\n1,2\n", "a b"},
        {"c\n", "a b"},
        {"{\"rows\":[{\"a\":1},{\"b\":2}]}", "c"},
    };
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g", "a,b,c\n1,2,3\n", 201);
    monitors_expect(&service, "PUT /monitors/f", "d\n1\n", 201);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer absent = {0};
        size_t j;
        json_t *warning,
            *json = monitors_get(&service, "POST /monitors/g/observations", cases[i].body, 200);
        json_array_foreach(at(json, "warnings"), j, warning)
        {
            if (strcmp(text_at(warning, "code"), "column_absent") == 0)
                api_append_format(&absent, "%s%s", absent.size ? " " : "",
                                  text_at(warning, "column"));
        }
        api_append(&absent, "", 1);
        cr_expect_str_eq(absent.data, cases[i].absent, "%s", cases[i].body);
        api_buffer_free(&absent);
        json_decref(json);
    }
    monitors_end(&service);
}

Test(monitors_columns, that_are_all_unknown_are_refused)
{
    static const char *const bodies[] = {"x,y\n1,2\n",
                                         ",x\n1,2\n",
                                         "x\n",
                                         "A\n1\n",
                                         "{\"columns\":{\"x\":[1]}}",
                                         "[{\"x\":1}]",
                                         "{\"columns\":{\"x\":[]}}"};
    static const char *const without[] = {"{\"columns\":{}}",
                                          "{\"rows\":[]}",
                                          "{\"rows\":[{},{}]}",
                                          "{\"columns\":{},\"timestamp\":1000}",
                                          "[{}]",
                                          "{}\n{}\n"};
    static const char *const empty[] = {"a\n", "b,a\r\n", "{\"columns\":{\"b\":[]}}",
                                        "{\"columns\":{\"a\":[],\"b\":[]}}"};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g", "a,b\n1,2\n", 201);
    for (size_t i = 0; i < COUNT(bodies); i++)
        monitors_refused(&service, "POST /monitors/g/observations", bodies[i],
                         "columns_unknown ~such as 'a'");
    for (size_t i = 0; i < COUNT(without); i++)
        monitors_refused(&service, "POST /monitors/g/observations", without[i],
                         "columns_unknown ~has no columns");
    for (size_t i = 0; i < COUNT(empty); i++)
        monitors_expect(&service, "POST /monitors/g/observations", empty[i], 200);
    monitors_refused(&service, "POST /monitors/h/observations", bodies[0], "group_not_found");
    monitors_refused(&service, "POST /monitors/h/observations", without[0], "group_not_found");
    monitors_expect(&service, "GET /monitors/g/a/windows/latest", NULL, 404);
    monitors_refused(&service, "POST /monitors/g/observations", "{\"a\":[1]}",
                     "option_unknown #/a ~\"columns\"");
    monitors_refused(&service, "PUT /monitors/g", "{}", "reference_empty ~\"columns\"");
    monitors_end(&service);
}

/* More than a thousand are counted. */
Test(monitors_columns, that_are_absent_are_named_up_to_a_thousand)
{
    struct api_service service = monitors_new(2000);
    struct api_buffer header = {0};
    for (size_t i = 0; i < 1011; i++)
        api_append_format(&header, "%sc%04zu", i ? "," : "", i);
    for (size_t i = 0; i < 1011; i++)
        api_append_text(&header, i ? ",1" : "\n1");
    api_append(&header, "\n", 2);
    monitors_expect(&service, "PUT /monitors/g?window=1000", header.data, 201);
    json_t *json = monitors_get(&service, "POST /monitors/g/observations", "c0003\n1\n", 200);
    cr_expect_eq(json_array_size(at(json, "warnings")), 1001);
    expect_at(json, "warnings.999.column", "\"c1000\"");
    expect_at(json, "warnings.1000.column", "\"\"");
    expect_at(json, "warnings.1000.count", "10");
    json_decref(json);
    api_buffer_free(&header);
    monitors_end(&service);
}

/* Annotations of a table are written with the config of each of its monitors. */
Test(monitors_columns, of_any_number_share_annotations)
{
    enum { COLUMNS = 1000 };
    struct api_service service = monitors_new(COLUMNS);
    struct api_buffer body = {0};
    for (int i = 0; i < COLUMNS; i++)
        api_append_format(&body, "%s\"m%04d\":[1,2,3,4,5,6,7,8,9]", i ? "," : "{\"columns\":{", i);
    api_append_text(&body, "},\"annotations\":{\"owner\":{\"team\":\"risk\",\"of\":[1,\"x\"]}}}");
    api_append(&body, "", 1);
    json_t *made = monitors_get(&service, "PUT /monitors/g", body.data, 201);
    cr_expect_eq(json_array_size(at(made, "monitors")), COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++)
        expect_at(json_array_get(at(made, "monitors"), i), "annotations",
                  "{\"owner\":{\"of\":[1,\"x\"],\"team\":\"risk\"}}");
    json_decref(made);
    api_buffer_free(&body);
    monitors_end(&service);
}
