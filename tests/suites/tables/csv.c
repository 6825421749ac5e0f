/* Tables of CSV: the rules, as cases. */
#include "api/tables/field.h"
#include "tests/suites/support/support.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(tables_csv, csv_is_that_of_rfc_4180)
{
    static const struct table_case cases[] = {
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
        {"a,b\n1,\n,2\n\"\",\n", "a: `1` `` ``|b: `` `2` ``"},
        /* a quote that begins no field is a character */
        {"a,b\n1,x\"y\n21\" monitor,\"\"\n", "a: `1` `21\" monitor`|b: `x\"y` ``"},
        {"a,b\n1, \"x\"\n", "a: `1`|b: ` \"x\"`"},
        {"a\tb\n5' 11\"\tx\n", "a: `5' 11\"`|b: `x`"},
        {"size (\"),b,c;d\n1,2,3\n", "size (\"): `1`|b: `2`|c;d: `3`"},
        {"a, b \n 1 , x y \n", "a: ` 1 `|b: ` x y `"},
        {"a,a,a.1,\"a \",a.1\n1,2,3,4,5\n", "a: `1`|a.1: `2`|a.1.1: `3`|a.2: `4`|a.1.2: `5`"},
        {"a,b\n\"1\",\"x,y\"\n\"\",\"say \"\"hi\"\"\"\n", "a: `1` ``|b: `x,y` `say \"hi\"`"},
        {"a,b\n\" x \",y\n", "a: ` x `|b: `y`"},
        {"a,b\n\"x\r\ny\",z\n1,2\n", "a: `x\r\\y` `1`@4|b: `z`@3 `2`@4"},
        {"a,b\n\"x\ry\n\nz\",\"1\n\"\n1,2\n", "a: `x\ry\\\\z` `1`@7|b: `1\\`@5 `2`@7"},
        {"\"a\nb\",c\n1,2\n", "a\nb: `1`@3|c: `2`@3"},
        {"\"a\"\"\",\"\"\"\"\n1,2\n", "a\": `1`|\": `2`"},
        {"a,b\n\"\"\"\",\"\"\"x\"\"\"\n", "a: `\"`|b: `\"x\"`"},
        {"a,b\n\"x\"\"\r\"\"\n\",\"\r\"\n1,2\n", "a: `x\"\r\"\\` `1`@6|b: `\r`@4 `2`@6"},
        {"a\n\"\"\"\"\"\"", "a: `\"\"`"},
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
    table_check("text/csv", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables_csv, blank_lines_are_empty_fields_of_one_column_alone)
{
    static const struct table_case cases[] = {
        {"\n\na,b\n\n1,2\n\n\n3,4\n\n", "a: `1`@5 `3`@8|b: `2`@5 `4`@8"},
        {"a,b\r\n\r\n1,2\r\n", "a: `1`@3|b: `2`@3"},
        {"a\n1\n\n2\n", "a: `1` `` `2`"},
        {"a\n1\n", "a: `1`"},
        {"a\n1\n\n", "a: `1` ``"},
        {"a\n\n", "a: ``"},
        {"a\r\n\r\n\r\n", "a: `` ``"},
        {"a\n\"\"\n", "a: ``"},
        {"\n\n\na\n1", "a: `1`@5"},
        /* so are lines of delimiters */
        {";;\r\n,,,\n\na;b\r\n1;2\r\n;\r\n;;;;\r\n3;4\r\n;", "a: `1`@5 `3`@8|b: `2`@5 `4`@8"},
        {"sep=|\n|\na|b\n||\n1|\n|2\n", "a: `1`@5 ``@6|b: ``@5 `2`@6"},
        {"a,b\n1,2\n  \n", "csv_malformed line 3 has 1 fields, but the header has 2"},
    };
    table_check("text/csv", API_MANY_COLUMNS, cases, COUNT(cases));
}

Test(tables_csv, csv_that_is_malformed_is_refused_with_its_line)
{
    static const struct table_case cases[] = {
        {"a,b\n1,2\n3\n", "csv_malformed line 3 has 1 fields, but the header has 2"},
        {"a,b\n1,2,3\n", "csv_malformed line 2 has more than 2 fields, but the header has 2"},
        {"a,b\n\"x\ny\",1\n\n\n1\n", "csv_malformed line 6 has 1 fields"},
        {"a,b\n\"x\ny\",1,2\n", "csv_malformed line 2 has more than 2"},
        {"a,b\n1,\"x\"y\n", "csv_malformed line 2: a quoted field goes on"},
        {"a,b\n\"1\n\n2\"x,2\n", "csv_malformed line 4: a quoted field goes on"},
        {"a,b\n1,2\n\"3,4\n5,6\n", "csv_malformed line 3: a quoted field begins here"},
        {"\"a,b\n", "csv_malformed line 1: a quoted field begins here"},
        {"a,b\n\"\"\"\n", "csv_malformed line 2: a quoted field begins here"},
        {"a,b\n1,\"", "csv_malformed line 2: a quoted field begins here"},
        {"a,b\n\"x\"\"\r\n\"y,1\n", "csv_malformed line 3: a quoted field goes on"},
        {"a,b\n\"x\r\ry\" ,1\n", "csv_malformed line 4: a quoted field goes on"},
        {"\n\n", "csv_malformed the body is empty"},
        {"\xef\xbb\xbf", "csv_malformed the body is empty"},
        {"", "csv_malformed the body is empty"},
        {"a,b\n1,2\n\xff,3\n", "csv_malformed line 3: byte 8 (0xFF) is not UTF-8"},
        {"a\n\xc3", "csv_malformed line 2: byte 2 (0xC3) is not UTF-8"},
        {"a\n\xed\xa0\x80", "csv_malformed line 2: byte 2 (0xED) is not UTF-8"},
        {"\xff\xfe"
         "a",
         "csv_malformed byte 2 is not UTF-16"},
    };
    table_check("text/csv", API_MANY_COLUMNS, cases, COUNT(cases));
    struct table_text result = table_read(
        &(struct table_reading){.content_type = "text/csv", .body = "a\n1\0\n", .size = 5});
    table_expect(result.text, "csv_malformed line 2: there is a NUL at byte 3", "NUL");
    table_text_free(&result);
}

Test(tables_csv, decimal_commas_are_in_fields_that_can_have_a_comma)
{
    static const struct table_case cases[] = {
        {"a;b\n1,5;2\n-0,25;1e3\n", "a: 1.5 -0.25|b: 2 1000"},
        {"a.x;b\n1,5;2\n", "a.x: 1.5|b: 2"},
        {"a;b\n1,5;2.5\n", "a: 1.5|b: 2.5"},
        {"a;b\n\"1,5\";2\n", "a: 1.5|b: 2"},
        {"a\n\"1,5\"\n", "a: 1.5"},
        {"a\tb\n1,5\t2\n", "a: 1.5|b: 2"},
        {"a;b\n1,5,6;1,\n,;,5e1\n", "a: `1,5,6` `,`|b: 1 5"},
        {"a;b\n1.234,5;1,234.5\n", "a: `1.234,5`|b: `1,234.5`"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct table_text result = table_read(&(struct table_reading){
            .content_type = "text/csv; charset=utf-8", .body = cases[i].body, .numbers = true});
        table_expect(result.text, cases[i].expected, cases[i].body);
        table_text_free(&result);
    }
}

Test(tables_csv, numbers_of_fields_are_those_of_strtod)
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
    for (size_t i = 0; i < COUNT(cases); i++) {
        char field[200];
        double number = 7;
        size_t size = (size_t)snprintf(field, sizeof field, "%s,123", cases[i].field) - 4;
        const struct api_cell cell = {.kind = API_CELL_FIELD, .text = field, .size = size};
        bool is_number = api_field_number(&cell, API_PLAIN, &number);
        cr_expect_eq(is_number, cases[i].is_number, "'%s'", cases[i].field);
        if (is_number)
            cr_expect(memcmp(&number, &(double){strtod(cases[i].field, NULL)}, sizeof number) == 0,
                      "%s: %a", cases[i].field, number);
    }
}

/* Digits far past those of a double decide between its neighbours. */
Test(tables_csv, long_numbers_are_rounded_by_all_their_digits)
{
    enum { ZEROS = 3000 };
    static char field[ZEROS + 2000];
    for (int above = 0; above <= 1; above++) {
        size_t size =
            (size_t)sprintf(field, "+0001.00000000000000011102230246251565404236316680908203125");
        memset(field + size, '0', ZEROS);
        size += ZEROS;
        field[size++] = above ? '1' : '0';
        field[size] = '\0';
        double number;
        const struct api_cell cell = {.text = field, .size = size};
        cr_assert(api_field_number(&cell, API_PLAIN, &number));
        cr_expect_eq(number, above ? 1 + 0x1p-52 : 1);
    }
    memset(field, '1', sizeof field);
    field[0] = '+';
    double number;
    const struct api_cell text = {.text = field, .size = sizeof field};
    cr_expect_not(api_field_number(&text, API_PLAIN, &number), "a field of %zu bytes",
                  sizeof field);
}

Test(tables_csv, numbers_that_people_write)
{
    static const char *const numbers[] = {"1",
                                          "1.5",
                                          "1,5",
                                          "-1,5",
                                          "1,234.50",
                                          "1.234,50",
                                          "1,234,567",
                                          "1 234,5",
                                          "1'234",
                                          "$12",
                                          "$ 1,234.5",
                                          "-$12.50",
                                          "$-12.50",
                                          "12 $",
                                          "12.5 %",
                                          "12.5%",
                                          "(12.50)",
                                          "+3",
                                          "1e5",
                                          "1.5E-3",
                                          ".5",
                                          "5.",
                                          "EUR 12",
                                          "12,00 EUR",
                                          " 7 ",
                                          "12-",
                                          "\xe2\x82\xac 5",
                                          "5\xc2\xa0\xe2\x82\xac",
                                          "\xe2\x88\x92"
                                          "5",
                                          "1_000"};
    static const char *const texts[] = {"",          " ",     "$",           "x",
                                        "1x",        "12:30", "2026-11-20",  "20.11.2026",
                                        "1,2,3",     "1.2.3", "10.0.0.1",    "1e",
                                        "1,234.5.6", "1/2",   "5 kg",        "1,23,456",
                                        "-",         "%",     "1,234 567.5", "+49 30 1234567",
                                        "1 2"};
    for (size_t i = 0; i < COUNT(numbers); i++)
        cr_expect(api_text_is_formatted_number(numbers[i], strlen(numbers[i])), "%s", numbers[i]);
    for (size_t i = 0; i < COUNT(texts); i++)
        cr_expect_not(api_text_is_formatted_number(texts[i], strlen(texts[i])), "%s", texts[i]);
}

Test(tables_csv, texts_that_are_missing)
{
    static const char *const missing[] = {"",    "NaN", "NA",   "null", "None",
                                          "nan", "N/A", "NULL", "<NA>", "\\N"};
    static const char *const present[] = {" ", "Nan", "na", "none", "0", "NaN ", "-", "1", "#"};
    for (size_t i = 0; i < COUNT(missing); i++)
        cr_expect(api_text_is_missing(missing[i], strlen(missing[i])), "%s", missing[i]);
    for (size_t i = 0; i < COUNT(present); i++)
        cr_expect(!api_text_is_missing(present[i], strlen(present[i])), "%s", present[i]);
}

Test(tables_csv, columns_are_at_most_10000)
{
    static char body[100000];
    for (int n = 10000; n <= 10001; n++) {
        size_t size = (size_t)sprintf(body, "c0");
        for (int i = 1; i < n; i++)
            size += (size_t)sprintf(body + size, ",c%d", i);
        struct table_text result = table_read(
            &(struct table_reading){.content_type = "text/csv", .body = body, .only = "c9999"});
        table_expect(result.text, n > 10000 ? "too_many_columns ~" : "c0:|c1:~", "columns");
        table_text_free(&result);
    }
}
