/* Columns as people have them: decimal commas, booleans. What a table means by its form alone is in tests/tables. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
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

/* Code of the first warning but for those of labels that were chosen, or not. */
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

Test(monitors_column_values, decimal_commas_are_decided_by_column)
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
        /* of a column with both marks each is decimal */
        {"a;b 1,5;x 2,5;x 3.5;x", "{\"edges\":[1.5,2.5,3.5]}",
         "{\"counts\":[1,2],\"missing\":0,\"overflow\":0,\"underflow\":0}", "decimal_marks_mixed"},
        {"a;b 1,5;x 2.5;x 3.5;x", "{\"edges\":[1.5,2.5,3.5]}",
         "{\"counts\":[1,2],\"missing\":0,\"overflow\":0,\"underflow\":0}", "decimal_marks_mixed"},
        {"a;b 1,5;x 2,5;x ?;x", "{\"edges\":[1.5,2,2.5]}",
         "{\"counts\":[1,1],\"missing\":1,\"overflow\":0,\"underflow\":0}", ""},
        {"a;b 1,5;x n;x m;x -;x", "{\"labels\":[\"-\",\"1,5\",\"m\",\"n\"]}",
         "{\"counts\":[10,10,10,10],\"missing\":0,\"other\":0}", ""},
        {"a;b 1.234,5;x 1.234,5;x", "{\"edges\":[1234.5,1234.5]}",
         "{\"counts\":[2],\"missing\":0,\"overflow\":0,\"underflow\":0}", "numbers_grouped"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer table = {0};
        append_table(&table, cases[i].table, strncmp(cases[i].bins, "{\"labels\"", 9) == 0);
        json_t *json = ask_lines(&service, "PUT /monitors/g", table.data, i ? 200 : 201);
        expect_at(json, "monitors.0.bins", cases[i].bins);
        const char *code = first_warning(json);
        expect_counts_at(json, "monitors.0.reference", cases[i].reference);
        cr_expect_eq(monitors_warnings(json), *cases[i].code != 0, "%s", cases[i].table);
        cr_expect_str_eq(code, cases[i].code, "%s", cases[i].table);
        json_decref(json);
        api_buffer_free(&table);
    }
    monitors_end(&service);
}

/* A monitor of numbers takes both forms, whatever else the table has. */
Test(monitors_column_values, observations_have_the_comma_that_their_monitor_expects)
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
Test(monitors_column_values, booleans_are_the_same_in_any_case)
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
Test(monitors_column_values, a_csv_of_true_and_a_json_of_true_agree)
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

/* ---- Separators of thousands */

/* The means of two columns, `a` at PUT and at POST: of values that are read by the file's own fields, else as the reference
 * was. */
Test(monitors_column_values, thousands_are_grouped_where_nothing_contradicts_it)
{
    static const struct {
        const char *reference, *observations;
        double means[2];
        size_t grouped;
    } cases[] = {
        {"a,b\n\"1,200\",x\n\"3,400\",y\n", "a,b\n\"5,000\",x\n", {2300, 5000}, 2},
        {"a,b\n950,x\n\"1,200\",y\n", "a,b\n950,x\n", {1075, 950}, 1},
        {"a,b\n\"1,200\",x\n\"3.5\",y\n", "a,b\n\"1,000.5\",x\n", {601.75, 1000.5}, 1},
        {"a\tb\n950\tx\n1,200\ty\n", "a\tb\n1,200,000\tx\n", {1075, 1200000}, 1},
        {"a;b\n1,200;x\n2,400;y\n", "a;b\n1,200;x\n", {1.8, 1.2}, 0},
        {"a;b\n1.200,5;x\n2.400;y\n", "a;b\n3.600;x\n", {1800.25, 3600}, 2},
        {"a;b\n1,5;x\n2.400;y\n", "a,b\n\"1,234\",x\n", {1200.75, 1.234}, 1},
        {"a;b\n1.234.567;x\n7;y\n", "a;b\n1.5;x\n", {617287, 1.5}, 1},
        {"a,b\n1'200,x\n2'400,y\n", "a,b\n1 200,x\n", {1800, 1200}, 2},
        {"a,b\n1\xe2\x80\xaf"
         "200,x\n2\xc2\xa0"
         "400,y\n",
         "a,b\n1\xe2\x80\x89"
         "200,x\n",
         {1800, 1200},
         2},
        {"a,b\n\"0,200\",x\n\"1,500\",y\n", "a,b\n2,x\n", {0.85, 2}, 0},
        {"a,b\n\"-1,200\",x\n\"+3,400\",y\n", "a,b\n\"1,5\",x\n\"2.5\",y\n", {1100, 2}, 2},
        {"a,b\n1.200,x\n2.400,y\n", "a,b\n\"1,5\",x\n", {1.8, 1.5}, 0},
        {"a\tb\n1.234.567\tx\n12.345\ty\n", "a\tb\n1.000\tx\n", {623456, 1000}, 2},
        {"a\tb\n10.5\tx\n", "a\tb\n1.234.567\tx\n", {10.5, 1234567}, 0},
        {"a\tb\n1,234.5\tx\n2,234.5\ty\n3,5\tz\n",
         "a\tb\n1,234.5\tx\n1,000.5\ty\n3,5\tz\n",
         {1734.5, 1117.5},
         2},
        {"a;b\n1.234,5;x\n2.234,5;y\n3.5;z\n",
         "a;b\n1.234,5;x\n2.234;y\n3.5;z\n",
         {1734.5, 1734.25},
         2},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        json_t *made = monitors_get(&service, "PUT /monitors/g?include=a&method=quantile",
                                    cases[i].reference, 201);
        json_t *result =
            monitors_get(&service, "POST /monitors/g/observations", cases[i].observations, 200);
        double count = strcmp(first_warning(made), "numbers_grouped") == 0
                           ? number_at(made, "warnings.0.count")
                           : 0;
        cr_expect_float_eq(number_at(made, "monitors.0.reference.mean"), cases[i].means[0], 1e-9,
                           "case %zu: %g", i, number_at(made, "monitors.0.reference.mean"));
        cr_expect_float_eq(number_at(result, "monitors.0.mean"), cases[i].means[1], 1e-9,
                           "case %zu: %g", i, number_at(result, "monitors.0.mean"));
        cr_expect_eq(count, (double)cases[i].grouped, "case %zu: %g", i, count);
        json_decref(made);
        json_decref(result);
        monitors_end(&service);
    }
}

/* Labels that are numbers are so in any style, and addresses of the internet are no numbers. */
/* A table is read alike as a reference, and as observations of a monitor whose reference shows no separators. */
Test(monitors_column_values, references_and_observations_read_numbers_alike)
{
    static const char *const kinds[] = {"1.234", "12.345",  "1,234",   "12,345",    "1.5",
                                        "2,5",   "1.234,5", "1,234.5", "1.234.567", "1,234,567",
                                        "1 234", "7",       "1'234"};
    enum { TABLES = 300, ROWS = 60 };
    struct api_service service = monitors_new(100);
    struct api_buffer body = {0};
    unsigned long long seed = 5;
    size_t compared = 0;
    monitors_expect(&service, "PUT /monitors/g/x",
                    "{\"bins\":{\"edges\":[0,1e9]},\"reference\":{\"counts\":[100]}}", 201);
    for (size_t i = 0; i < TABLES; i++) {
        const char *mixed[4];
        size_t n = 1 + (size_t)(uniform(&seed) * COUNT(mixed));
        char delimiter = ",;\t"[(size_t)(uniform(&seed) * 3)];
        for (size_t j = 0; j < n; j++)
            mixed[j] = kinds[(size_t)(uniform(&seed) * COUNT(kinds))];
        body.size = 0;
        api_append_format(&body, "a%cx\n", delimiter);
        for (size_t j = 0; j < ROWS; j++)
            api_append_format(&body, "q%c\"%s\"\n", delimiter, mixed[(size_t)(uniform(&seed) * n)]);
        api_append(&body, "", 1);
        json_t *reference = monitors_get(&service, "PUT /monitors/r?method=width&include=x",
                                         body.data, i == 0 ? 201 : 200),
               *observed = monitors_get(&service, "POST /monitors/g/evaluate", body.data, 200);
        double mean = number_at(reference, "monitors.0.reference.mean");
        if (!isnan(mean)) { /* else it has labels */
            double missing = number_at(reference, "monitors.0.reference.missing");
            cr_expect_float_eq(number_at(observed, "monitors.0.mean"), mean, 1e-9 * mean,
                               "table %zu", i);
            cr_expect_float_eq(number_at(observed, "monitors.0.missing_ratio") * ROWS, missing,
                               1e-9, "table %zu", i);
            compared++;
        }
        json_decref(reference);
        json_decref(observed);
    }
    cr_expect_gt(compared, TABLES / 2);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* A file that is the reference, and then a batch, is ok: also where only its delimiter tells what a comma is, or the format of the reference
 * before was another. */
Test(monitors_column_values, a_reference_is_like_itself)
{
    static const struct {
        const char *before, *line, *rows;
    } cases[] = {
        {NULL, "PUT /monitors/g?method=width&include=x", "q;1,234\nq;1.234\n"},
        {NULL, "PUT /monitors/g?method=width&include=x", "q;12,345\nq;1 234 567\n"},
        {"q;1,5\nq;2,25\n", "POST /monitors/g/reference?method=width", "q;1.500\nq;2.250\n"},
        {"q;1.5\nq;2.5\n", "POST /monitors/g/reference?method=width", "q;1.234,5\nq;2.345\n"},
        {"q;24/11/2026\nq;03/04/2026\n", "POST /monitors/g/reference?include=x",
         "q;11/24/2026\nq;04/03/2026\n"},
    };
    struct api_service service = monitors_new(100);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const tables[] = {cases[i].before, cases[i].rows};
        const char *const lines[] = {"PUT /monitors/g?method=width&include=x", cases[i].line};
        struct api_buffer body = {0};
        for (size_t j = cases[i].before ? 0 : 1; j < COUNT(tables); j++) {
            body.size = 0;
            api_append_text(&body, "a;x\n");
            for (int k = 0; k < 100; k++)
                api_append_text(&body, tables[j]);
            api_append(&body, "", 1);
            struct answer answer = monitors_ask(&service, lines[j], body.data);
            answer_free(&answer);
        }
        json_t *json = monitors_get(&service, "POST /monitors/g/evaluate", body.data, 200);
        cr_expect_str_eq(text_at(json, "monitors.0.verdict"), "ok", "%zu", i);
        expect_at(json, "monitors.0.missing_ratio", "0");
        json_decref(json);
        api_buffer_free(&body);
        monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
    }
    monitors_end(&service);
}

Test(monitors_column_values, labels_are_found_by_the_style_of_the_column)
{
    static const struct {
        const char *line, *body, *path, *expected;
    } cases[] = {
        {"PUT /monitors/g/x",
         "{\"bins\":{\"labels\":[\"1000\",\"2000\"]},\"reference\":{\"counts\":[5,5]}}",
         "bins.labels", "[\"1000\",\"2000\"]"},
        {"POST /monitors/g/observations", "x;y\n2.000,00;1\n1.000,00;1\n",
         "monitors.0.unseen_ratio", "0"},
        {"POST /monitors/g/observations", "x;y\n2,000.00;1\n3,000.00;1\n",
         "monitors.0.unseen.0.label", "\"3000\""},
        {"PUT /monitors/h?method=quantile",
         "x\ty\n192.168.100.12\t1\n192.168.100.12\t1\n10.120.130.14\t1\n", "monitors.0.bins",
         "{\"labels\":[\"192.168.100.12\",\"10.120.130.14\"]}"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *json = monitors_get(&service, cases[i].line, cases[i].body,
                                    strncmp(cases[i].line, "PUT", 3) == 0 ? 201 : 200);
        expect_at(json, cases[i].path, cases[i].expected);
        json_decref(json);
    }
    monitors_end(&service);
}

/* Texts that pandas takes for missing are missing among texts and among numbers; marks are where all others are numbers. */
Test(monitors_column_values, missing_texts_are_those_of_pandas)
{
    static const char *const words[] = {"",    "NaN",    "nan",      "-NaN", "-nan", "NA",   "N/A",
                                        "n/a", "#N/A",   "#NA",      "<NA>", "NULL", "null", "None",
                                        "\\N", "1.#IND", "#N/A N/A", ".",    "-",    "?"};
    static const char numbers[] = "1.5\n2.25\n3\n4.5\n", texts[] = "x\nx\ny\ny\n";
    for (size_t i = 0; i < 2 * COUNT(words); i++) {
        bool is_text = i >= COUNT(words), is_mark = i % COUNT(words) >= COUNT(words) - 3;
        const char *word = words[i % COUNT(words)];
        struct api_buffer table = {0};
        api_append_text(&table, "a\n");
        for (int n = 0; n < 10; n++)
            api_append_format(&table, "%s%s\n%s\n%s\n", is_text ? texts : numbers, word, word,
                              word);
        api_append(&table, "", 1);
        struct api_service service = monitors_new(10);
        json_t *made = monitors_get(&service, "PUT /monitors/g?include=a", table.data, 201);
        json_t *result = monitors_get(&service, "POST /monitors/g/observations", table.data, 200);
        double missing = is_text && is_mark ? 0 : 30;
        cr_expect_eq(number_at(made, "monitors.0.reference.missing"), missing, "%s: %g", word,
                     number_at(made, "monitors.0.reference.missing"));
        cr_expect_float_eq(number_at(result, "monitors.0.missing_ratio"), missing / 70, 1e-12,
                           "%s: %g", word, number_at(result, "monitors.0.missing_ratio"));
        cr_expect_eq(monitors_warnings(result), 0, "%s", word);
        api_buffer_free(&table);
        json_decref(made);
        json_decref(result);
        monitors_end(&service);
    }
}
