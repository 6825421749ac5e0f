/* Tables of any format: how it is told, and single columns. */
#include "tests/suites/tables/tables.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>

#define PARQUET                                                                                    \
    "media_type_unsupported Parquet and Arrow are not read here; the package of Python ~"

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
        {"application/vnd.apache.parquet", "", PARQUET},
        {NULL, "PAR1\x15\4\x15\4", PARQUET},
        {NULL, "PAR1,b\n1,2\n", "PAR1: `1`|b: `2`"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(
            &(struct table_reading){.content_type = cases[i].type, .body = cases[i].body});
        table_expect(result.text, cases[i].expected, cases[i].body);
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
        {"application/json", "{\"rows\":[{\"a\":1},{\"b\":2},{\"c\":[]}]}", "a:|b: - 2 -|c:"},
        {"application/json", "{\"rows\":[{\"a\":1},{\"b\":{}}]}", "value_invalid a value must ~"},
        {"application/json", "{\"columns\":{\"a\":[{\"b\":[\"]\"]}, 1],\"b\":[2, 3]}}",
         "a:|b: 2 3"},
        {"application/json", "{\"columns\":{\"a\":[[1}],\"b\":[2]}}", "json_malformed ~"},
        {"application/json", "{\"columns\":{\"a\":[[nul]],\"b\":[2]}}", "json_malformed ~"},
        {"application/json", "[{\"a\":[1,],\"b\":2}]", "json_malformed ~"},
        {"application/json", "{\"rows\":[{\"a\":1},{\"b\":2}]}", "a:|b: - 2"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(&(struct table_reading){
            .content_type = cases[i].type, .body = cases[i].body, .only = "b"});
        table_expect(result.text, cases[i].expected, cases[i].body);
        table_text_free(&result);
    }
}
