/* Bodies of monitors that are no table, or a table with one bad column. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/tables/files.h"

#include <criterion/criterion.h>

static const struct {
    const char *line, *body, *problem;
} no_tables[] = {
    {"PUT /monitors/g", "{}", "reference_empty"},
    {"PUT /monitors/g", "{\"columns\":{}}", "reference_empty"},
    {"PUT /monitors/g", "{\"rows\":[]}", "reference_empty"},
    {"PUT /monitors/g", "", "csv_malformed"},
    {"PUT /monitors/g", "{\"colums\":{\"a\":[1]}}", "option_unknown #/colums ~'columns'"},
    {"PUT /monitors/g", "{\"values\":[1]}", "option_unknown #/values"},
    {"PUT /monitors/g", "{\"columns\":{\"a\":[1]},\"rows\":[]}", "value_invalid #"},
    {"PUT /monitors/g", "{\"columns\":{\"a\":[1]},\"bins\":{\"edges\":[0,1]}}",
     "option_unknown #/bins"},
    {"PUT /monitors/g", "{\"columns\":{\"a\":[1]},\"reference\":{\"counts\":[1]}}",
     "option_unknown #/reference"},
    {"PUT /monitors/g", "{\"columns\":{\"a\":[1]},\"fire_after\":0}",
     "option_invalid #/fire_after"},
    {"PUT /monitors/g/m", "{\"values\":[1]}", "option_unknown #/values"},
    {"PUT /monitors/g/m", "\xef\xbb\xbf{\"values\":[1]}", "option_unknown #/values"},
    {"PUT /monitors/g/observations", "{}", "method_not_allowed ~no monitor can be called so"},
    {"PUT /monitors/g/observations/", "{}", "method_not_allowed"},
    {"POST /monitors/g/evaluate", "{}", "observations_empty #"},
    {"POST /monitors/g/windows", "{}", "method_not_allowed ~GET /monitors/{group}/{name}/windows"},
    {"POST /monitors/g/x", "{}",
     "method_not_allowed ~takes PUT, GET, HEAD, PATCH, DELETE, not POST"},
    {"POST /monitors/g/observations", "[NaN, \"x\"]", "body_not_object # ~array of rows"},
    {"POST /monitors/g/observations", "[1, NaN, \"x\"]", "csv_malformed ~application/json"},
    {"PUT /monitors/g", "[1, 2]\n[1]\n", "csv_malformed ~application/json"},
    {"PUT /monitors/g/m", "", "csv_malformed"},
    {"PUT /monitors/g/m", "a,b\n1,2\n", "column_missing"},
    {"POST /monitors/g/observations", "{}", "observations_empty #"},
    {"POST /monitors/g/observations", "{\"timestamp\":1000000000}", "observations_empty #"},
    {"POST /monitors/g/observations", "{\"columns\":null}", "observations_empty #"},
    {"POST /monitors/g/m/observations", "{}", "counts_invalid #"},
    {"POST /monitors/g/m/observations", "{\"values\":[]}", "observations_empty"},
    {"POST /monitors/g/m/observations", "{\"values\":5}", "value_invalid #/values"},
    {"POST /monitors/g/m/observations", "{\"values\":{\"0\":1}}",
     "value_invalid #/values ~Array.from"},
    {"POST /monitors/g/m/observations", "{\"columns\":{\"m\":{\"0\":1}}}",
     "value_invalid #/columns/m ~Array.from"},
    {"POST /monitors/g/m/observations", "{\"counts\":[1],\"timestamp\":\"\\u0000\"}",
     "json_malformed ~\\u0000"},
    {"PATCH /monitors/g/m", "{\"annotations\":{\"a\":\"\\u0000\"}}",
     "json_malformed ~may not hold"},
    {"POST /monitors/g/m/observations", "{\"values\":[1],\"counts\":[1]}",
     "option_unknown #/counts"},
    {"POST /monitors/g/m/observations", "{\"columns\":{}}", "column_missing"},
    {"POST /monitors/g/m/observations", "{\"columns\":null}", "counts_invalid #"},
    {"POST /monitors/g/m/observations", "{\"colums\":{\"m\":[1]}}",
     "option_unknown #/colums ~'columns'"},
    {"POST /monitors/g/m/observations", "{\"columns\":{\"m\":[1]},\"counts\":[1]}",
     "option_unknown #/counts"},
    {"POST /monitors/g/m/observations", "{\"columns\":{\"a\":[1],\"b\":[1]}}", "column_missing"},
    {"POST /monitors/g/m/observations", "{\"columns\":{\"m\":[\"x\"]}}",
     "value_not_number #/columns/m/0"},
    {"POST /monitors/g/m/observations", "{\"rows\":[]}", "column_missing"},
    {"POST /monitors/g/m/observations", "{\"rows\":[{\"m\":1},{\"m\":\"x\"}]}",
     "value_not_number #/rows/1/m"},
    {"POST /monitors/g/m/observations", "{\"rows\":[{\"m\":1}],\"values\":[1]}", "value_invalid #"},
    {"PUT /monitors/g/m", "{\"columns\":{}}", "column_missing"},
    {"PUT /monitors/g/m", "{\"rows\":[{\"a\":1,\"b\":2}]}", "column_missing"},
    {"PUT /monitors/g/m", "{\"columns\":{\"m\":[]}}", "reference_empty"},
    {"PUT /monitors/g/m", "{\"columns\":{\"m\":[1]},\"reference\":{\"values\":[1]}}",
     "value_invalid #"},
    {"PUT /monitors/g/m", "{\"columns\":{\"m\":[1]},\"colums\":1}", "option_unknown #/colums"},
    {"POST /monitors/g/m/observations", "a,b\n1,2\n", "column_missing"},
    {"POST /monitors/g/m/observations", "m\n", "observations_empty"},
    {"POST /monitors/g/m/observations", "{\"counts\":[1],\"missing\":null}",
     "counts_invalid #/missing"},
    {"POST /monitors/g/m/observations", "{\"probabilities\":[1]}", "counts_invalid #/n"},
};

Test(monitors_bodies, what_is_no_table_is_told)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[1]}}", 201);
    for (size_t i = 0; i < COUNT(no_tables); i++)
        monitors_refused(&service, no_tables[i].line, no_tables[i].body, no_tables[i].problem);
    cr_expect_eq(monitors_count(&service), 1);
    monitors_end(&service);
}

/* Elements without bytes: any number of them is a body of 200 bytes. */
Test(monitors_bodies, elements_without_bytes_are_no_rows)
{
    static const char *const shapes[] = {"(2305843009213693951,)", "(2305843009213693950,)",
                                         "(1000000000000,)", "(1,)"};
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const struct tables_array array = {.name = "a", .dtype = "U0", .shape = shapes[i]};
        struct api_buffer body = {0};
        tables_npz(&body, &array, 1, false);
        struct answer answer = monitors_send(
            &service, &(struct monitors_request){
                          "PUT /monitors/g", "application/x-npz", body.data, body.size, {{0}}});
        cr_expect_eq(answer.status, 422);
        cr_expect_str_eq(text_of(answer.json, "code"), "dtype_unsupported");
        answer_free(&answer);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

/* ---- All or nothing */

static void expect_n(const struct api_service *service, const char *name, double n)
{
    char line[100];
    snprintf(line, sizeof line, "GET /monitors/g/%s/windows/current", name);
    struct answer answer = monitors_ask(service, line, NULL);
    double got = answer.status == 200 ? number_at(answer.json, "n") : 0;
    cr_expect_eq(got, n, "%s: %g and not %g", name, got, n);
    answer_free(&answer);
}

Test(monitors_bodies, tables_with_one_bad_column_store_nothing)
{
    static const struct {
        const char *body, *problem; /* NULL: 200, and adds 2 to a and b */
    } cases[] = {
        {"a,b\n1,2\n3,4\n", NULL},
        {"{\"columns\":{\"a\":[1,2],\"b\":[3,\"x\"]}}", "value_not_number #/columns/b/1"},
        {"{\"rows\":[{\"a\":1,\"b\":2},{\"a\":1,\"b\":\"x\"}]}", "value_not_number #/rows/1/b"},
        {"{\"columns\":{\"a\":[1,2],\"b\":[3]}}", "columns_unequal #/columns/b"},
        {"{\"columns\":{\"a\":[1,2],\"b\":[3,4]},\"timestamp\":\"x\"}",
         "timestamp_invalid #/timestamp"},
        {"{\"columns\":{\"a\":[1,2]},\"timestamp\":1}", "timestamp_invalid"},
        {"a,b\n1,2\n3\n", "csv_malformed"},
        {"{\"rows\":[{\"a\":1,\"b\":2,\"a\":3}]}", "column_repeated #/rows/0/a"},
        {"{\"columns\":{\"a\":[1,2]},\"counts\":[1]}", "option_unknown #/counts"},
        {"{\"columns\":{\"a\":[1,2]},\"colums\":{}}", "option_unknown #/colums ~'columns'"},
        {"b,c,a\n1,2,3\n3,x,\n", NULL},
        {"{\"rows\":[{\"a\":1,\"b\":2},{}]}", NULL},
    };
    struct api_service service = monitors_new(10);
    double n = 0;
    monitors_expect(&service, "PUT /monitors/g?window=100000&method=width&bins=2",
                    "a,b\n1,1\n9,9\n", 201);
    monitors_expect(&service, "POST /monitors/g/a/observations", "{\"values\":[1,2]}", 200);
    monitors_expect(&service, "POST /monitors/g/b/observations", "{\"values\":[1,2]}", 200);
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (cases[i].problem)
            monitors_refused(&service, "POST /monitors/g/observations", cases[i].body,
                             cases[i].problem);
        else
            monitors_expect(&service, "POST /monitors/g/observations", cases[i].body, 200);
        n += cases[i].problem ? 0 : 2;
        expect_n(&service, "a", 2 + n);
        expect_n(&service, "b", 2 + n);
    }
    json_t *json = monitors_get(&service, "POST /monitors/g/observations", "a,b\n", 200);
    expect_at(json, "monitors", "[]");
    json_decref(json);
    expect_n(&service, "a", 2 + n);
    monitors_end(&service);
}
