/* Tables of TSV, of rows alone, in JSON Lines or an array, and of forms: the rules, as cases. */
#include "tests/suites/support/support.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(tables_lines, tsv_is_csv_with_tabs)
{
    static const struct table_case cases[] = {
        {"a\tb\n1\t2\n", "a: `1`|b: `2`"},
        {"a,b;c,d\te\n1,5\tx;y\n", "a,b;c,d: `1,5`|e: `x;y`"},
        {"a,b\n1,5\n", "a,b: `1,5`"},
        {"a\t\"b\tc\"\r\n\"x\ty\"\t2\r\n", "a: `x\ty`|b\tc: `2`"},
        {"a\tb\n1\n", "csv_malformed line 2 has 1 fields, but the header has 2"},
    };
    table_check("text/tab-separated-values", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables_lines, a_first_line_names_the_separator)
{
    static const struct table_case cases[] = {
        {"sep=;\na,x;b\n1,5;2\n", "a,x: `1,5`@3|b: `2`@3"},
        {"sep=,\r\na,b;c;d\r\n1,2\r\n", "a: `1`@3|b;c;d: `2`@3"},
        {"\"sep=\t\"\na\tb\n1\t2\n", "a: `1`@3|b: `2`@3"},
        {"SEP=|\na|b\n1|2\n", "a: `1`@3|b: `2`@3"},
        {"\xef\xbb\xbfsep=;\na\n1\n", "a: `1`@3"},
        {"sep=;\n", "csv_malformed the body is empty"},
        {"sep=x\n1\n", "sep=x: `1`"},
        {"sep=\n1\n", "sep=: `1`"},
        {"sep=;;b\n1;2;3\n", "sep=: `1`|: `2`|b: `3`"},
        {"\"sep=;\n\"\n1\n", "sep=;: `1`@3"},
    };
    table_check("text/csv", API_MANY_COLUMNS, cases, COUNT(cases));
}

static const struct table_case lines[] = {
    {"{\"a\":1,\"b\":\"x\"}\n{\"a\":2.5,\"b\":true}\n", "a: 1 2.5|b: 'x' true"},
    {"{\"a\":1}\r\n\r\n  {\"b\":null}  \n\n{}", "a: 1 - -|b: - - -"},
    {" {\"a\":1}", "a: 1"},
    {"{\n\"a\"\n:1}\n{\"a\":2\n}\n", "a: 1 2"},
    {"", ""},
    {"\n\n", ""},
    {"{\"a\":1}{\"a\":2}", "json_malformed line 1, column 8: expected a line end, found '{'"},
    {"{\"a\":1},\n{\"a\":2}", "json_malformed line 1, column 8: expected a line end, found ','"},
    {"{\"a\":1}\n[2]", "json_malformed line 2, column 1: expected '{', found '['"},
    {"{\"a\":1}\n2", "json_malformed line 2, column 1: expected '{', found '2'"},
    {"{\"a\":1}\n{\"a\":[2]}", "value_invalid line 2, column 'a': a value must be a number, a "
                               "string, a boolean or null, not an array"},
    {"{\"a\":1}\n\n{\"a\":\"FAIL\"}", "value_invalid line 3, column 'a': no"},
    {"{\"a\":1}\n{\"a\":2,\"a\":3}",
     "column_repeated line 2, column 'a': a row has this member twice"},
    {"{\"a\":1}\n{\"a\":", "json_malformed line 2, column 6: expected a value, found the end"},
};

Test(tables_lines, json_lines_are_rows)
{
    table_check("application/x-ndjson", API_MANY_COLUMNS, lines, COUNT(lines));
    table_check("application/jsonl", API_ONE_COLUMN, lines, COUNT(lines));
}

/* Two lines tell themselves, also under the type of JSON, and where none is named. */
Test(tables_lines, json_lines_are_recognized)
{
    static const struct table_case cases[] = {
        {"{\"a\":1}\n{\"a\":2}\n", "a: 1 2"},
        {" {\"a\":1} \t\r\n \n{\"b\":2}", "a: 1 -|b: - 2"},
        {"{\"rows\":[{\"a\":1}]}\n", "a: 1"},
        {"{\"rows\":[{\"a\":1\n}\n,{\"a\":2}\n]}\n", "a: 1 2"},
        {"[{\"a\":1}\n,{\"a\":2}]", "a: 1 2"},
        {"{\"columns\":{\"a\":[1]}}\n", "a: 1"},
    };
    table_check("application/json", API_MANY_COLUMNS, cases, COUNT(cases));
    table_check("text/plain", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables_lines, an_array_is_of_rows)
{
    static const struct table_case cases[] = {
        {"[{\"a\":1,\"b\":\"x\"},{\"b\":\"y\"}]", "a: 1 -|b: 'x' 'y'"},
        {" [ {\"a\":1} , {} ] ", "a: 1 -"},
        {"[]", ""},
        {"[{}]", ""},
        {"[{\"a\":1},2]", "value_invalid a row must be an object"},
        {"[{\"a\":1},]", "json_malformed line 1, column 10: expected '{', found ']'"},
        {"[{\"a\":1}", "json_malformed line 1, column 9: expected ',' or ']', found the end"},
        {"[{\"a\":1}]x",
         "json_malformed line 1, column 10: expected the end of the body, found 'x'"},
        {"[{\"a\":{}}]", "value_invalid a value must be ~"},
        {"[1,2]", "body_not_object the body must be an object ~"},
        {"[[1]]", "body_not_object the body must be an object ~"},
    };
    table_check("application/json", API_MANY_COLUMNS, cases, COUNT(cases));
    struct table_text result = table_read(&(struct table_reading){
        .content_type = "application/json", .body = "[{\"a\":1},{\"b/c\":[2]}]"});
    cr_expect_str_eq(result.problem.location, "#/1/b~1c");
    table_text_free(&result);
}

/* ---- Forms */

#define FORM "multipart/form-data; boundary=XyZ"
#define PART(header, content)                                                                      \
    "--XyZ\r\nContent-Disposition: form-data; name=\"file\"" header "\r\n\r\n" content "\r\n"
#define FILE_OF(name) "; filename=\"" name "\""

Test(tables_lines, forms_have_one_file_of_any_format)
{
    static const struct table_case cases[] = {
        {PART(FILE_OF("x.csv"), "a,b\n1,2\n") "--XyZ--\r\n", "a: `1`|b: `2`"},
        {PART(FILE_OF("x.csv") "\r\nContent-Type: text/csv", "a,b\r\n1,2") "--XyZ--\r\n",
         "a: `1`|b: `2`"},
        {PART(FILE_OF("x.tsv") "\r\ncontent-type:text/tab-separated-values",
              "a,b\tc\n1\t2\n") "--XyZ--",
         "a,b: `1`|c: `2`"},
        {PART(FILE_OF("x.csv") "\r\nContent-Type: application/vnd.ms-excel",
              "a;b\n1;2\n") "--XyZ--",
         "a: `1`|b: `2`"},
        {PART(FILE_OF("x.json") "\r\nContent-Type: application/json",
              "{\"columns\":{\"a\":[1]}}") "--XyZ--",
         "a: 1"},
        {PART(FILE_OF("x"), "[{\"a\":1}]") "--XyZ--", "a: 1"},
        {PART("", "{\"a\":1}\n{\"a\":2}\n") "--XyZ--", "a: 1 2"},
        {PART(FILE_OF("x"), "") "--XyZ--", "csv_malformed the body is empty"},
        {PART(FILE_OF("x"), "a\n\"1") "--XyZ--",
         "csv_malformed line 2: a quoted field begins here"},
        {PART(FILE_OF("x") "\r\nContent-Type: " FORM, "a\n1\n") "--XyZ--", "a: `1`"},
        {PART("", "a\n1\n") PART("", "b\n1\n") "--XyZ--",
         "multipart_malformed the form must have one file"},
        {"--XyZ\r\nContent-Disposition: form-data; name=\"f\"\r\nb\n1,2\r\n--XyZ--",
         "multipart_malformed byte 56 of the body: the header of a part does not end"},
        {"--XyZ--", "multipart_malformed the form has no file"},
        {"--XyZ\r\n\r\nx\r\n--XyZ--", "multipart_malformed byte 9 of the body: a part has no"},
        {PART("", "a\n1\n"), "multipart_malformed byte 54 of the body: no boundary ends this part"},
        {"", "multipart_malformed byte 0 of the body: the boundary"},
    };
    table_check(FORM, API_MANY_COLUMNS, cases, COUNT(cases));
    struct table_text result = table_read(
        &(struct table_reading){.content_type = "multipart/form-data", .body = cases[0].body});
    table_expect(result.text, "multipart_malformed the Content-Type has no boundary", "boundary");
    table_text_free(&result);
}
