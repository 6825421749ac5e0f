/* Parameters of statements by their types. */
#include "api/store/sql.h"

#include <criterion/criterion.h>

enum word { FIRST, SECOND };

Test(store_rows, values_have_the_kind_of_their_type)
{
    struct {
        char text[8];
        bool flag;
        enum word word;
        double number;
    } const of = {"text", true, SECOND, 0.5};
    const struct api_datum *row =
        API_ROW((int64_t)-7, of.number, (double)NAN, of.text, "constant", of.flag, of.word,
                (size_t)3, API_BYTES("ab", 2), API_INTEGER(2.0), SECOND, 1 + 1);
    static const struct {
        enum api_datum_kind kind;
        int64_t integer;
        size_t size;
    } expected[] = {{API_SQL_INTEGER, -7, 0}, {API_SQL_REAL, 0, 0},    {API_SQL_NULL, 0, 0},
                    {API_SQL_TEXT, 0, 4},     {API_SQL_TEXT, 0, 8},    {API_SQL_INTEGER, 1, 0},
                    {API_SQL_INTEGER, 1, 0},  {API_SQL_INTEGER, 3, 0}, {API_SQL_BYTES, 0, 2},
                    {API_SQL_INTEGER, 2, 0},  {API_SQL_INTEGER, 1, 0}, {API_SQL_INTEGER, 2, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        cr_expect_eq(row[i].kind, expected[i].kind, "%zu: %d", i, (int)row[i].kind);
        cr_expect_eq(row[i].integer, expected[i].integer, "%zu", i);
        cr_expect_eq(row[i].size, expected[i].size, "%zu", i);
    }
    cr_expect_eq(row[1].real, 0.5);
    cr_expect_str_eq(row[3].text, "text");
}
