/* The statements of the store, in SQL that SQLite and PostgreSQL share: upserts, RETURNING, and
 * parameters $1, $2, … in order of their first use; parameters and values of rows; how a transaction went. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each row of statements.h. */
enum api_statement {
#define STATEMENT(name, text) API_SQL_##name,
#include "api/store/statements.h"
#undef STATEMENT
    API_STATEMENTS,
};

extern const char *const api_sql[API_STATEMENTS];

/* api_migration: number n, from 1, leads to version n of the schema. */
struct api_migration {
    const char *text; /* {clustered} is replaced by the engine's words; NULL ends the table */
    const char *what; /* what it is for, told to people */

    /* The oldest version of the schema whose servers may go on beside: that of the migration before, if this one only
     * adds tables, indices, numbers, and columns that are NULL or have a default, and what those servers write keeps
     * its meaning; otherwise n. Such servers list their columns, and see none that they do not name. */
    int64_t oldest;

    const char *end; /* runs after data are moved that SQL cannot move; or NULL */
};
extern const struct api_migration api_migrations[];

/* API_SQL_ADOPT: gives the tables of versions that named them generically, all of the third schema or
 * older, the names that these statements use. The view has an older version that starts see that the store
 * is newer, where it would make another. */
#define API_SQL_ADOPT                                                                              \
    "ALTER TABLE meta RENAME TO kldiv_meta;"                                                       \
    "ALTER TABLE monitors RENAME TO kldiv_monitors;"                                               \
    "ALTER TABLE revisions RENAME TO kldiv_revisions;"                                             \
    "ALTER TABLE windows RENAME TO kldiv_windows;"                                                 \
    "ALTER TABLE counts RENAME TO kldiv_counts;"                                                   \
    "ALTER TABLE events RENAME TO kldiv_events;"                                                   \
    "ALTER TABLE keys RENAME TO kldiv_keys;"                                                       \
    "CREATE VIEW meta AS SELECT name, value FROM kldiv_meta;"

/* ---- Data */

/* api_datum: a parameter of a statement, or a value of a row. Texts and bytes are borrowed: from rows
 * until the row's function returns. */
enum api_datum_kind { API_SQL_NULL, API_SQL_INTEGER, API_SQL_REAL, API_SQL_TEXT, API_SQL_BYTES };
struct api_datum {
    enum api_datum_kind kind;
    int64_t integer;
    double real;
    const char *text;
    size_t size;
};

#define API_INTEGER(value)                                                                         \
    ((struct api_datum){.kind = API_SQL_INTEGER, .integer = (int64_t)(value)})
#define API_BYTES(data, length)                                                                    \
    ((struct api_datum){.kind = API_SQL_BYTES, .text = (data), .size = (length)})

static inline struct api_datum api_datum_integer(int64_t value) { return API_INTEGER(value); }
static inline struct api_datum api_datum_size(size_t value) { return API_INTEGER(value); }
static inline struct api_datum api_datum_same(struct api_datum datum) { return datum; }
static inline struct api_datum api_datum_text(const char *text)
{
    return (struct api_datum){.kind = API_SQL_TEXT, .text = text, .size = strlen(text)};
}

/* A number; NaN becomes NULL, which is how a row gives it back. */
static inline struct api_datum api_datum_real(double value)
{
    if (isnan(value))
        return (struct api_datum){.kind = API_SQL_NULL};
    return (struct api_datum){.kind = API_SQL_REAL, .real = value};
}

/* API_DATUM: a value, by its type: whole numbers, a double, a text, or an api_datum. */
#define API_DATUM(value)                                                                           \
    _Generic((value), double                                                                       \
             : api_datum_real, char *                                                              \
             : api_datum_text, const char *                                                        \
             : api_datum_text, size_t                                                              \
             : api_datum_size, struct api_datum                                                    \
             : api_datum_same, default                                                             \
             : api_datum_integer)(value)

/* API_ROW: the parameters of a statement, 1 to 13 values; they last until the block ends. */
#ifdef __cppcheck__ /* it cannot read arrays in the middle of expressions */
const struct api_datum *api_row_checked(const void *first, ...);
#define API_ROW(...) api_row_checked("", __VA_ARGS__)
#else
#define API_ROW(...)                                                                               \
    ((const struct api_datum[]){                                                                   \
        API_ROW_OF(__VA_ARGS__, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)(__VA_ARGS__)})
#endif
#define API_ROW_OF(a, b, c, d, e, f, g, h, i, j, k, l, m, n, ...) API_ROW_##n
#define API_ROW_1(a) API_DATUM(a)
#define API_ROW_2(a, ...) API_DATUM(a), API_ROW_1(__VA_ARGS__)
#define API_ROW_3(a, ...) API_DATUM(a), API_ROW_2(__VA_ARGS__)
#define API_ROW_4(a, ...) API_DATUM(a), API_ROW_3(__VA_ARGS__)
#define API_ROW_5(a, ...) API_DATUM(a), API_ROW_4(__VA_ARGS__)
#define API_ROW_6(a, ...) API_DATUM(a), API_ROW_5(__VA_ARGS__)
#define API_ROW_7(a, ...) API_DATUM(a), API_ROW_6(__VA_ARGS__)
#define API_ROW_8(a, ...) API_DATUM(a), API_ROW_7(__VA_ARGS__)
#define API_ROW_9(a, ...) API_DATUM(a), API_ROW_8(__VA_ARGS__)
#define API_ROW_10(a, ...) API_DATUM(a), API_ROW_9(__VA_ARGS__)
#define API_ROW_11(a, ...) API_DATUM(a), API_ROW_10(__VA_ARGS__)
#define API_ROW_12(a, ...) API_DATUM(a), API_ROW_11(__VA_ARGS__)
#define API_ROW_13(a, ...) API_DATUM(a), API_ROW_12(__VA_ARGS__)

static inline double api_datum_number(const struct api_datum *datum)
{
    return datum->kind == API_SQL_REAL      ? datum->real
           : datum->kind == API_SQL_INTEGER ? (double)datum->integer
                                            : (double)NAN;
}

/* api_rows: the receiver of a statement's rows. */
typedef void api_row_reader(void *context, const struct api_datum *values);
struct api_rows {
    api_row_reader *row;
    void *context;
};

/* api_call: a statement that is run together with others, for one wait. */
struct api_call {
    enum api_statement statement;
    struct api_datum parameters[2]; /* as many as it has */
    struct api_rows rows;
};

/* Receives one row of one integer into an int64_t. */
static inline void api_datum_read_integer(void *context, const struct api_datum *values)
{
    *(int64_t *)context = values[0].integer;
}

/* Receives one row of two integers. */
static inline void api_datum_read_integers(void *context, const struct api_datum *values)
{
    ((int64_t *)context)[0] = values[0].integer;
    ((int64_t *)context)[1] = values[1].integer;
}

/* ---- Transactions */

/* api_store_outcome: how a transaction went. One that failed may be run again, unless it is uncertain. */
struct api_store_outcome {
    bool is_lost;      /* the connection failed, or a wait was too long: others will fail as well */
    bool is_uncertain; /* its commit was asked for, and nobody knows whether it was done */
    bool is_new;       /* it had to connect: the database may be another copy of the one before */
    bool has_written;  /* it ran a statement that writes */
    bool out_of_memory; /* it failed for that, which says nothing of the database */
};
