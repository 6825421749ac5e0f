/* Tables of JSON: the rules, as cases. */
#include "tests/suites/support/support.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(tables_json, json_of_columns)
{
    static const struct table_case cases[] = {
        {"{\"columns\": {\"a\": [1, 2.5, null], \"b\": [\"x\", true, false]}}",
         "a: 1 2.5 -|b: 'x' true false"},
        {" {\"columns\":{\"a\":[NaN,Infinity,-Infinity,1e999,-1e999,-0]}}",
         "a: nan inf -inf inf -inf -0"},
        {"{\"columns\":{\"a\":[\"NaN\",\"1\",\"\"]}}", "a: 'NaN' '1' ''"},
        {"{\"columns\":{\"a\":[\"\\u00e9\\ud83d\\ude00\\n\\\"\\/\",\"\xc3\xa9\"]}}",
         "a: '\xc3\xa9\xf0\x9f\x98\x80\\\"/' '\xc3\xa9'"},
        {"{\"columns\":{\"\\u0061\":[1],\"\":[2]}}", "a: 1|: 2"},
        {"{\"columns\":{}}", ""},
        {"{\"columns\":{\"a\":[],\"b\":[ ]}}", "a:|b:"},
        {"{\"col\\u0075mns\":{\"a\":[1]}}", "a: 1"},
        {"{\"columns\":{\"a\":[1],\"b\":[1,2]}}",
         "columns_unequal column 'b' has 2 values, and 'a' has 1"},
        {"{\"columns\":{\"a\":[1],\"\\u0061\":[2],\" a\\n\":[3],\"\":[4],\" \":[5]}}",
         "a: 1|a.1: 2|a.2: 3|: 4|: 5"},
        {"{\"columns\":{\"a\":[1]},\"columns\":{\"a\":[1]}}",
         "json_malformed line 1, column 32: a member is given twice"},
        {"{\"columns\":{\"a\":[1,[2]]}}", "value_invalid a value must be ~"},
        {"{\"columns\":{\"a\":[1,{}]}}", "value_invalid a value must be ~"},
        {"{\"columns\":{\"a\":1}}", "value_invalid a column must be an array"},
        {"{\"columns\":[1]}", "value_invalid it must be an object of arrays, {NAME: [...]}~"},
        {"{\"columns\":null}", ""},
        {"{\"columns\":{\"a\":[1,]}}",
         "json_malformed line 1, column 20: expected a value, found ']'"},
        {"{\"columns\":{\"a\":[1 2]}}",
         "json_malformed line 1, column 20: expected ',' or ']', found '2'"},
        {"{\"columns\":{\"a\":[01]}}",
         "json_malformed line 1, column 18: expected a number as JSON writes it"},
        {"{\"columns\":{\"a\":[nul]}}", "json_malformed line 1, column 18: expected a value"},
        {"{\"columns\":{\"a\":[nullx]}}", "json_malformed line 1, column 22: expected ',' or ']'"},
        {"{\"columns\":{\"a\":[\"\\ud800\"]}}", "json_malformed line 1, column 19: not an escape"},
        {"{\"columns\":{\"a\":[\"\\u0000\"]}}", "json_malformed line 1, column 19: not an escape"},
        {"{\"columns\":{\"a\":[\"\xff\"]}}",
         "json_malformed line 1, column 19: a string is not UTF-8"},
        {"{\"columns\":{\"a\":[\"x\ny\"]}}",
         "json_malformed line 1, column 20: a control character"},
        {"{\"columns\":{\"a\":[\"x",
         "json_malformed line 1, column 20: expected the end of a string, found the end"},
        {"{\"columns\":{\"a\":[1",
         "json_malformed line 1, column 19: expected ',' or ']', found the end"},
        {"{\"columns\":{\"a\":[1],}}",
         "json_malformed line 1, column 21: expected a name, found '}'"},
        {"{\"columns\":{\"a\" [1]}}", "json_malformed line 1, column 17: expected ':', found '['"},
        {"{\"columns\":{\"a\":[1]}", "json_malformed line 1, column 21: "},
        {"{\"columns\":{\"a\":[1]},}", "json_malformed line 1, column "},
        {"{\"columns\":{\"a\":[1]}}x", "json_malformed line 1, column "},
        {"{\"columns\":{\"a\":[1]},\"n\":nope}", "json_malformed line 1, column "},
        {"{\"columns\":{\"a\":[1]},\"n\":1,\"n\":2}", "json_malformed line 1, column "},
        {"", "json_malformed line 1, column 1: expected '{', found the end"},
        {"[1]", "body_not_object the body must be an object with ~"},
        {"\"x\"", "json_malformed line 1, column 1: expected '{'"},
        {"{\"columns\":{\"a\":[1]},\"rows\":[]}", "value_invalid values may be given only once~"},
        {"{\"columns\":{\"a\":[1,\"FAIL\"]}}", "value_invalid no"},
    };
    table_check("application/json", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables_json, json_of_rows)
{
    static const struct table_case cases[] = {
        {"{\"rows\":[{\"a\":1,\"b\":\"x\"},{\"b\":\"y\",\"a\":2}]}", "a: 1 2|b: 'x' 'y'"},
        {"{\"rows\":[{\"a\":1},{\"c\":true},{},{\"b\":null,\"a\":3}]}",
         "a: 1 - - 3|c: - true - -|b: - - - -"},
        {"{\"rows\":[]}", ""},
        {"{\"rows\":[{}]}", ""},
        {"{\"rows\":[{\"a \":1,\"b\":2},{\"b\":3,\" a\":4},{\"a\":5}]}", "a: 1 4 5|b: 2 3 -"},
        {"{\"rows\":[{\"a\":1,\"\\u0061\":2}]}", "column_repeated a row has this member twice"},
        {"{\"rows\":[{\"a\":1},2]}", "value_invalid a row must be an object"},
        {"{\"rows\":[[1]]}", "value_invalid a row must be an object"},
        {"{\"rows\":{}}", "value_invalid it must be an array"},
        {"{\"rows\":[{\"a\":[1]}]}", "value_invalid a value must be~"},
        {"{\"rows\":[{\"a\":1,}]}", "json_malformed line 1, column 17: expected a name, found '}'"},
        {"{\"rows\":[{\"a\":1}\n,]}", "json_malformed line 2, column 2: "},
        {"{\"rows\":[{\"a\":1}",
         "json_malformed line 1, column 17: expected ',' or ']', found the end"},
        {"{\"rows\":[{a:1}]}", "json_malformed line 1, column 11: expected a name, found 'a'"},
        {"{\"rows\":[{\"a\":1}],\"values\":[1]}", "a: 1"},
    };
    table_check("application/json", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables_json, json_of_one_column)
{
    static const struct {
        const char *body, *expected, *members;
    } cases[] = {
        {"{\"values\":[1,2],\"timestamp\":5}", "values: 1 2", "{\"values\":null,\"timestamp\":5}"},
        {"{\"window\":\"batch\",\"reference\":{\"n\":3,\"values\":[1,\"x\"],\"m\":[1]},\"k\":1}",
         "values: 1 'x'",
         "{\"window\":\"batch\",\"reference\":{\"n\":3,\"values\":null,\"m\":[1]},\"k\":1}"},
        {"{\"reference\":{\"counts\":[1,2]}}", "", "{\"reference\":{\"counts\":[1,2]}}"},
        {"{\"values\":null}", "", "{\"values\":null}"},
        {"{}", "", "{}"},
        {"{\"a\":{\"values\":[1]}}", "", "{\"a\":{\"values\":[1]}}"},
        {"{\"columns\":{\"a\":[1],\"b\":[2]},\"c\":[]}", "a: 1|b: 2",
         "{\"columns\":null,\"c\":[]}"},
        {"{\"values\":[1],\"reference\":{\"values\":[1]}}",
         "value_invalid values may be given only once~", NULL},
        {"{\"reference\":{\"values\":[1]},\"values\":[1]}",
         "value_invalid values may be given only once~", NULL},
        {"{\"values\":[1],\"values\":[1]}", "json_malformed line 1, column 24: a member", NULL},
        {"{\"reference\":{\"values\":[1]}", "json_malformed line 1, column ", NULL},
        {"{\"reference\":{\"values\":[1],}}", "json_malformed line 1, column ", NULL},
        {"{\"values\":5}", "value_invalid it must be an array", NULL},
        {"{\"reference\":{\"values\":{}}}", "value_invalid it must be an array", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(&(struct table_reading){
            .content_type = "application/json", .kind = API_ONE_COLUMN, .body = cases[i].body});
        table_expect(result.text, cases[i].expected, cases[i].body);
        if (cases[i].members)
            cr_expect_str_eq(result.members, cases[i].members);
        if (!result.problem.code)
            cr_expect_eq(result.has_values, *cases[i].expected != '\0', "%s", cases[i].body);
        table_text_free(&result);
    }
}

Test(tables_json, problems_have_pointers)
{
    static const struct {
        const char *body, *place;
    } cases[] = {
        {"{\"columns\":{\"a/b c\":[1,{}]}}", "#/columns/a~1b%20c/1"},
        {"{\"columns\":{\"a\":[1],\"b\":[]}}", "#/columns/b"},
        {"{\"columns\":{\"a\":{}}}", "#/columns/a"},
        {"{\"rows\":[{},{\"x\":[]}]}", "#/rows/1/x"},
        {"{\"rows\":[{},{\"x\":1,\"x\":1}]}", "#/rows/1/x"},
        {"{\"rows\":[{},1]}", "#/rows/1"},
        {"{\"values\":[1,{}]}", "#/values/1"},
        {"{\"values\":[1,\"FAIL\"]}", "#/values/1"},
        {"{\"reference\":{\"values\":[{}]}}", "#/reference/values/0"},
        {"{\"reference\":{\"values\":1}}", "#/reference/values"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(&(struct table_reading){
            .content_type = "application/json", .kind = API_ONE_COLUMN, .body = cases[i].body});
        cr_expect_eq(result.problem.where, API_BODY, "%s", cases[i].body);
        cr_expect_str_eq(result.problem.location, cases[i].place);
        table_text_free(&result);
    }
}

Test(tables_json, envelopes_may_have_a_mebibyte)
{
    static char body[(1 << 20) + 200];
    for (int larger = 0; larger <= 1; larger++) {
        size_t size = (size_t)sprintf(body, "{\"values\":[1],\"labels\":\"");
        memset(body + size, 'x', (1 << 20) - 100 + 100 * (size_t)larger);
        strcpy(body + size + (1 << 20) - 100 + 100 * larger, "\"}");
        struct table_text result = table_read(&(struct table_reading){
            .content_type = "application/json", .kind = API_ONE_COLUMN, .body = body});
        table_expect(result.text, larger ? "members_too_large ~" : "values: 1", "1 MiB");
        table_text_free(&result);
    }
}

Test(tables_json, rows_that_lack_most_members_are_refused)
{
    enum { COLUMNS = 2000, ROWS = 1000000 };
    char *body = malloc(COLUMNS * 16 + ROWS * 3 + 100);
    cr_assert(body);
    size_t size = (size_t)sprintf(body, "{\"rows\":[{");
    for (int i = 0; i < COLUMNS; i++)
        size += (size_t)sprintf(body + size, "%s\"c%d\":1", i ? "," : "", i);
    size += (size_t)sprintf(body + size, "}");
    for (int i = 0; i < ROWS; i++)
        size += (size_t)sprintf(body + size, ",{}");
    sprintf(body + size, "]}");
    struct table_text result =
        table_read(&(struct table_reading){.content_type = "application/json", .body = body});
    table_expect(result.text, "table_too_sparse ~", "rows");
    table_text_free(&result);
    free(body);
}
