/* Tables: the rules of each format, as cases. */
#include "tests/tables.h"

#include "tests/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* tcase: a body, and the start of what comes of it; see struct table_text. */
struct tcase {
    const char *body, *expected;
};

static void expect_start(const char *text, const char *expected, const char *body)
{
    bool whole = !strstr(expected, "_malformed") && !strchr(expected, '~');
    size_t size = strcspn(expected, "~");
    cr_expect(whole ? strcmp(text, expected) == 0 : strncmp(text, expected, size) == 0,
              "%s\n  gives    %s\n  and not %s", body, text, expected);
}

static void check(const char *type, enum api_table_kind kind, const struct tcase *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int in_turn = 0; in_turn <= 1; in_turn++) {
            struct table_text result = table_read(&(struct table_reading){
                .content_type = type, .kind = kind, .body = cases[i].body, .in_turn = in_turn});
            expect_start(result.text, cases[i].expected, cases[i].body);
            table_text_free(&result);
        }
}

Test(tables, csv_is_that_of_rfc_4180)
{
    static const struct tcase cases[] = {
        {"a,b\n1,2\n3,4\n", "a: `1` `3`|b: `2` `4`"},
        {"a,b\r\n1,2\r\n3,4", "a: `1` `3`|b: `2` `4`"},
        {"a,b\r1,2\r3,4\r", "a: `1` `3`|b: `2` `4`"},
        {"\xef\xbb\xbf"
         "a,b\n1,2\n",
         "a: `1`|b: `2`"},
        {"\xef\xbb\xbf\"a\",b\n1,2\n", "a: `1`|b: `2`"},
        {"a;b\n1;2\n", "a: `1`|b: `2`"},
        {"a\tb\n1\t2\n", "a: `1`|b: `2`"},
        {"a,x;b,c\n1,2,3\n", "a: `1`|x;b: `2`|c: `3`"},
        {"\"a;b;c\",b\n1,2\n", "a;b;c: `1`|b: `2`"},
        {"a (m, s);b\n1;2\n", "a (m, s): `1`|b: `2`"},
        {"a,b\n1,\n,2\n,\n", "a: `1` `` ``|b: `` `2` ``"},
        {"a, b \n 1 , x y \n", "a: ` 1 `| b : ` x y `"},
        {"a,b\n\"1\",\"x,y\"\n\"\",\"say \"\"hi\"\"\"\n", "a: `1` ``|b: `x,y` `say \"hi\"`"},
        {"a,b\n\" x \",y\n", "a: ` x `|b: `y`"},
        {"a,b\n\"x\r\ny\",z\n1,2\n", "a: `x\r\\y` `1`@4|b: `z`@3 `2`@4"},
        {"a,b\n\"x\ry\n\nz\",\"1\n\"\n1,2\n", "a: `x\ry\\\\z` `1`@7|b: `1\\`@5 `2`@7"},
        {"\"a\nb\",c\n1,2\n", "a\nb: `1`@3|c: `2`@3"},
        {"a,b\n1,\"2\"", "a: `1`|b: `2`"},
        {"a,b\n1,\"2\n3\"", "a: `1`|b: `2\\3`"},
        {"a,b", "a:|b:"},
        {"a,b\n", "a:|b:"},
        {"a\n", "a:"},
        {"a,\n1,2\n", "a: `1`|: `2`"},
        {",,a\n1,2,3\n", ": `1`|: `2`|a: `3`"},
        {"\"\"\n5\n", ": `5`"},
        {"\xc3\xa9,\xe6\xb0\xb4\n\xf0\x9f\x98\x80,2\n",
         "\xc3\xa9: `\xf0\x9f\x98\x80`|\xe6\xb0\xb4: `2`"},
    };
    check("text/csv", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables, blank_lines_are_empty_fields_of_one_column_alone)
{
    static const struct tcase cases[] = {
        {"\n\na,b\n\n1,2\n\n\n3,4\n\n", "a: `1`@5 `3`@8|b: `2`@5 `4`@8"},
        {"a,b\r\n\r\n1,2\r\n", "a: `1`@3|b: `2`@3"},
        {"a\n1\n\n2\n", "a: `1` `` `2`"},
        {"a\n1\n", "a: `1`"},
        {"a\n1\n\n", "a: `1` ``"},
        {"a\n\n", "a: ``"},
        {"a\r\n\r\n\r\n", "a: `` ``"},
        {"a\n\"\"\n", "a: ``"},
        {"\n\n\na\n1", "a: `1`@5"},
        {"a,b\n1,2\n  \n", "csv_malformed line 3 has 1 fields, and the header has 2"},
    };
    check("text/csv", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables, csv_that_is_malformed_is_refused_with_its_line)
{
    static const struct tcase cases[] = {
        {"a,b\n1,2\n3\n", "csv_malformed line 3 has 1 fields, and the header has 2"},
        {"a,b\n1,2,3\n", "csv_malformed line 2 has more than 2 fields, and the header has 2"},
        {"a,b\n\"x\ny\",1\n\n\n1\n", "csv_malformed line 6 has 1 fields"},
        {"a,b\n\"x\ny\",1,2\n", "csv_malformed line 2 has more than 2"},
        {"a,b\n1,x\"y\n", "csv_malformed line 2: a quote within a field"},
        {"a,b\n1,\"x\"y\n", "csv_malformed line 2: a quote within a field"},
        {"a,b\n1, \"x\"\n", "csv_malformed line 2: a quote within a field"},
        {"a,b\n\"1\n\n2\"x,2\n", "csv_malformed line 4: a quote within a field"},
        {"a,b\n1,2\n\"3,4\n5,6\n", "csv_malformed line 3: a quoted field begins here"},
        {"\"a,b\n", "csv_malformed line 1: a quoted field begins here"},
        {"a,a\n1,2\n", "column_repeated two columns have the name 'a'"},
        {"a,b,\"a\"\n", "column_repeated two columns have the name 'a'"},
        {"\n\n", "csv_malformed the body is empty"},
        {"\xef\xbb\xbf", "csv_malformed the body is empty"},
        {"", "csv_malformed the body is empty"},
        {"a,b\n1,2\n\xff,3\n", "csv_malformed line 3: byte 8 is not UTF-8"},
        {"a\n\xc3", "csv_malformed line 2: byte 2 is not UTF-8"},
        {"a\n\xed\xa0\x80", "csv_malformed line 2: byte 2 is not UTF-8"},
        {"\xff\xfe"
         "a",
         "csv_malformed line 1: byte 0 is not UTF-8"},
    };
    check("text/csv", API_MANY_COLUMNS, cases, COUNT(cases));
    struct table_text result = table_read(
        &(struct table_reading){.content_type = "text/csv", .body = "a\n1\0\n", .size = 5});
    expect_start(result.text, "csv_malformed line 2: there is a NUL at byte 3", "NUL");
    table_text_free(&result);
}

Test(tables, decimal_commas_are_those_of_tables_without_a_dot)
{
    static const struct tcase cases[] = {
        {"a;b\n1,5;2\n-0,25;1e3\n", "a: 1.5 -0.25|b: 2 1000"},
        {"a.x;b\n1,5;2\n", "a.x: 1.5|b: 2"},
        {"a;b\n1,5;2.5\n", "a: `1,5`|b: 2.5"},
        {"a;b\n\"1,5\";2\n", "a: 1.5|b: 2"},
        {"a\n\"1,5\"\n", "a: `1,5`"},
        {"a\tb\n1,5\t2\n", "a: `1,5`|b: 2"},
        {"a;b\n1,5,6;1,\n,;,5e1\n", "a: `1,5,6` `,`|b: 1 5"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(&(struct table_reading){
            .content_type = "text/csv; charset=utf-8", .body = cases[i].body, .numbers = true});
        expect_start(result.text, cases[i].expected, cases[i].body);
        table_text_free(&result);
    }
}

Test(tables, numbers_of_fields_are_those_of_strtod)
{
    static const struct {
        const char *field;
        bool is_number;
    } cases[] = {
        {"1", true},
        {"-1", true},
        {"+1", true},
        {"007", true},
        {".5", true},
        {"5.", true},
        {" 1", true},
        {"1 ", true},
        {"\t1.5 ", true},
        {"1e5", true},
        {"1E+05", true},
        {"-.5e-3", true},
        {"+0.1", true},
        {"00.10", true},
        {"-0", true},
        {"1e999", true},
        {"-1e999", true},
        {"1e-999", true},
        {"inf", true},
        {"-inf", true},
        {"+Inf", true},
        {"Infinity", true},
        {"-Infinity", true},
        {"INF", true},
        {"0e5", true},
        {"+9007199254740993", true},
        {"+2.4703282292062327e-324", true},
        {"+2.4703282292062328e-324", true},
        {"+1.7976931348623158e308", true},
        {"+1.7976931348623159e308", true},
        {"+1e99999999999999999999", true},
        {"+0.00000000000000000000000000000000000000000000000000001e53", true},
        {"+1.00000000000000011102230246251565404236316680908203124", true},
        {"+1.00000000000000011102230246251565404236316680908203125", true},
        {"+1.00000000000000011102230246251565404236316680908203126", true},
        {"", false},
        {" ", false},
        {".", false},
        {"+", false},
        {"-", false},
        {"e5", false},
        {"1e", false},
        {"1e+", false},
        {"1 2", false},
        {"1.2.3", false},
        {"0x10", false},
        {"+0x10", false},
        {"1_000", false},
        {"1,5", false},
        {"nan", false},
        {"NaN", false},
        {"--1", false},
        {"+-1", false},
        {"- 1", false},
        {"infinit", false},
        {"1f", false},
        {"1e5.", false},
        {"1e5e5", false},
        {"1d5", false},
        {"\xef\xbc\x91", false},
    };
    const struct api_table table = {.delimiter = ','};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char field[200];
        double number = 7;
        size_t size = (size_t)snprintf(field, sizeof field, "%s,123", cases[i].field) - 4;
        const struct api_cell cell = {.kind = API_CELL_FIELD, .text = field, .size = size};
        bool is_number = api_field_number(&table, &cell, &number);
        cr_expect_eq(is_number, cases[i].is_number, "'%s'", cases[i].field);
        if (is_number)
            cr_expect(memcmp(&number, &(double){strtod(cases[i].field, NULL)}, sizeof number) == 0,
                      "%s: %a", cases[i].field, number);
    }
}

/* Digits far past those of a double decide between its neighbours. */
Test(tables, long_numbers_are_rounded_by_all_their_digits)
{
    enum { ZEROS = 3000 };
    static char field[ZEROS + 100];
    const struct api_table table = {.delimiter = ','};
    for (int above = 0; above <= 1; above++) {
        size_t size =
            (size_t)sprintf(field, "+0001.00000000000000011102230246251565404236316680908203125");
        memset(field + size, '0', ZEROS);
        size += ZEROS;
        field[size++] = above ? '1' : '0';
        field[size] = '\0';
        double number;
        const struct api_cell cell = {.text = field, .size = size};
        cr_assert(api_field_number(&table, &cell, &number));
        cr_expect_eq(number, above ? 1 + 0x1p-52 : 1);
    }
}

Test(tables, texts_that_are_missing)
{
    static const char *const missing[] = {"", "NaN", "NA", "null", "None"};
    static const char *const present[] = {" ", "nan", "N/A", "NULL", "none", "0", "NaN "};
    for (size_t i = 0; i < COUNT(missing); i++)
        cr_expect(api_text_is_missing(missing[i], strlen(missing[i])), "%s", missing[i]);
    for (size_t i = 0; i < COUNT(present); i++)
        cr_expect(!api_text_is_missing(present[i], strlen(present[i])), "%s", present[i]);
}

Test(tables, json_of_columns)
{
    static const struct tcase cases[] = {
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
        {"{\"columns\":{\"a\":[1],\"\\u0061\":[1]}}",
         "column_repeated two columns have the name 'a'"},
        {"{\"columns\":{\"a\":[1]},\"columns\":{\"a\":[1]}}",
         "json_malformed line 1, column 32: a member is given twice"},
        {"{\"columns\":{\"a\":[1,[2]]}}", "value_invalid a value must be ~"},
        {"{\"columns\":{\"a\":[1,{}]}}", "value_invalid a value must be ~"},
        {"{\"columns\":{\"a\":1}}", "value_invalid a column must be an array"},
        {"{\"columns\":[1]}", "value_invalid it must be an object of arrays"},
        {"{\"columns\":null}", ""},
        {"{\"columns\":{\"a\":[1,]}}",
         "json_malformed line 1, column 20: expected a value, found ']'"},
        {"{\"columns\":{\"a\":[1 2]}}",
         "json_malformed line 1, column 20: expected ',' or ']', found '2'"},
        {"{\"columns\":{\"a\":[01]}}",
         "json_malformed line 1, column 18: expected a number of JSON's grammar"},
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
        {"{\"columns\":{\"a\":[1]},\"rows\":[]}", "value_invalid values come once~"},
        {"{\"columns\":{\"a\":[1,\"FAIL\"]}}", "value_invalid no"},
    };
    check("application/json", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables, json_of_rows)
{
    static const struct tcase cases[] = {
        {"{\"rows\":[{\"a\":1,\"b\":\"x\"},{\"b\":\"y\",\"a\":2}]}", "a: 1 2|b: 'x' 'y'"},
        {"{\"rows\":[{\"a\":1},{\"c\":true},{},{\"b\":null,\"a\":3}]}",
         "a: 1 - - 3|c: - true - -|b: - - - -"},
        {"{\"rows\":[]}", ""},
        {"{\"rows\":[{}]}", ""},
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
    check("application/json", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables, json_of_one_column)
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
        {"{\"values\":[1],\"reference\":{\"values\":[1]}}", "value_invalid values come once~",
         NULL},
        {"{\"reference\":{\"values\":[1]},\"values\":[1]}", "value_invalid values come once~",
         NULL},
        {"{\"values\":[1],\"values\":[1]}", "json_malformed line 1, column 24: a member", NULL},
        {"{\"reference\":{\"values\":[1]}", "json_malformed line 1, column ", NULL},
        {"{\"reference\":{\"values\":[1],}}", "json_malformed line 1, column ", NULL},
        {"{\"values\":5}", "value_invalid it must be an array", NULL},
        {"{\"reference\":{\"values\":{}}}", "value_invalid it must be an array", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(&(struct table_reading){
            .content_type = "application/json", .kind = API_ONE_COLUMN, .body = cases[i].body});
        expect_start(result.text, cases[i].expected, cases[i].body);
        if (cases[i].members)
            cr_expect_str_eq(result.members, cases[i].members);
        if (!result.problem.code)
            cr_expect_eq(result.has_values, *cases[i].expected != '\0', "%s", cases[i].body);
        table_text_free(&result);
    }
}

Test(tables, problems_have_pointers)
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
        cr_expect_str_eq(result.problem.place, cases[i].place);
        table_text_free(&result);
    }
}

Test(tables, envelopes_may_have_a_mebibyte)
{
    static char body[(1 << 20) + 200];
    for (int larger = 0; larger <= 1; larger++) {
        size_t size = (size_t)sprintf(body, "{\"values\":[1],\"labels\":\"");
        memset(body + size, 'x', (1 << 20) - 100 + 100 * (size_t)larger);
        strcpy(body + size + (1 << 20) - 100 + 100 * larger, "\"}");
        struct table_text result = table_read(&(struct table_reading){
            .content_type = "application/json", .kind = API_ONE_COLUMN, .body = body});
        expect_start(result.text, larger ? "members_too_large ~" : "values: 1", "1 MiB");
        table_text_free(&result);
    }
}

Test(tables, rows_that_lack_most_members_are_refused)
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
    expect_start(result.text, "table_too_sparse ~", "rows");
    table_text_free(&result);
    free(body);
}

Test(tables, columns_are_at_most_10000)
{
    static char body[100000];
    for (int n = 10000; n <= 10001; n++) {
        size_t size = (size_t)sprintf(body, "c0");
        for (int i = 1; i < n; i++)
            size += (size_t)sprintf(body + size, ",c%d", i);
        struct table_text result = table_read(
            &(struct table_reading){.content_type = "text/csv", .body = body, .only = "c9999"});
        expect_start(result.text, n > 10000 ? "too_many_columns ~" : "c0:|c1:~", "columns");
        table_text_free(&result);
    }
}

Test(tables, formats_are_told_by_the_media_type_or_the_first_bytes)
{
    static const struct {
        const char *type, *body, *expected;
    } cases[] = {
        {NULL, "a\n1\n", "a: `1`"},
        {"", "a\n1\n", "a: `1`"},
        {"application/x-www-form-urlencoded", "a\n1\n", "a: `1`"},
        {"text/plain; charset=utf-8", "a\n1\n", "a: `1`"},
        {"application/octet-stream", "a\n1\n", "a: `1`"},
        {"application/csv", "a\n1\n", "a: `1`"},
        {"TEXT/CSV ; header=present", "{a\n1\n", "{a: `1`"},
        {NULL, " \n{\"columns\":{\"a\":[1]}}", "a: 1"},
        {"text/plain", "{\"columns\":{\"a\":[1]}}", "a: 1"},
        {"application/json", "a\n1\n", "json_malformed line 1, column 1: expected '{', found 'a'"},
        {"text/html", "a", "media_type_unsupported Content-Type 'text/html' is not ~"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(
            &(struct table_reading){.content_type = cases[i].type, .body = cases[i].body});
        expect_start(result.text, cases[i].expected, cases[i].body);
        table_text_free(&result);
    }
}

Test(tables, one_column_may_be_wanted_alone)
{
    static const struct {
        const char *type, *body, *expected;
    } cases[] = {
        {"text/csv", "a,b,c\n1,2,3\n4,\"5\",6\n", "a:|b: `2` `5`|c:"},
        {"application/json", "{\"columns\":{\"a\":[1],\"b\":[2]}}", "a:|b: 2"},
        {"application/json", "{\"rows\":[{\"a\":1},{\"b\":2},{\"c\":[]}]}", "value_invalid ~"},
        {"application/json", "{\"rows\":[{\"a\":1},{\"b\":2}]}", "a:|b: - 2"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(&(struct table_reading){
            .content_type = cases[i].type, .body = cases[i].body, .only = "b"});
        expect_start(result.text, cases[i].expected, cases[i].body);
        table_text_free(&result);
    }
}
