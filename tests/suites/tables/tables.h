/* Tables read into text, for the tests of tables. */
#pragma once

#include "api/tables/table.h"

/* table_reading: a body that is read, then its result. */
struct table_reading {
    const char *content_type;
    enum api_table_kind kind;
    const char *body;
    size_t size;               /* 0: a text that ends with a NUL */
    struct api_budget *budget; /* NULL: one without a limit */
    const char *only;          /* the one column that is wanted; NULL: all */
    bool numbers;              /* fields are given as numbers where they are */
    bool in_turn;              /* columns are read one after another */
    bool no_lines;             /* lines are not told */
};

/* table_text: what was read. `text` holds each column's name and values: "a: 1 2.5 'x' - true|b: ...",
 * `-` for what is missing, `field` in backquotes for one of CSV, with @LINE if its line is not 2 more
 * than its row. It is "CODE DETAIL" if the table was refused. */
struct table_text {
    char *text;
    char *members; /* of JSON, compact; else NULL */
    struct api_problem problem;
    size_t n_rows;
    bool has_values;
};

/* Reads a table. Fails the test if a column's rows do not come in order. */
struct table_text table_read(const struct table_reading *reading);
void table_text_free(struct table_text *text);

/* Expects a table's text, or how it begins if `expected` has "_malformed" or "~", which is its end. */
void table_expect(const char *text, const char *expected, const char *body);

/* table_case: a body, and the text of its table. */
struct table_case {
    const char *body, *expected;
};

/* Reads each of `n` bodies, all columns at once and one by one. */
void table_check(const char *type, enum api_table_kind kind, const struct table_case *cases,
                 size_t n);
