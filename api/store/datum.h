/* Parameters of statements, and values of their rows. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

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
#define API_REAL(value) api_datum_real(value)
#define API_TEXT_DATUM(value)                                                                      \
    ((struct api_datum){.kind = API_SQL_TEXT, .text = (value), .size = strlen(value)})
#define API_BYTES(data, length)                                                                    \
    ((struct api_datum){.kind = API_SQL_BYTES, .text = (data), .size = (length)})

/* A number; NaN becomes NULL, which is how a row gives it back. */
static inline struct api_datum api_datum_real(double value)
{
    if (isnan(value))
        return (struct api_datum){.kind = API_SQL_NULL};
    return (struct api_datum){.kind = API_SQL_REAL, .real = value};
}

static inline double api_datum_number(const struct api_datum *datum)
{
    return datum->kind == API_SQL_REAL      ? datum->real
           : datum->kind == API_SQL_INTEGER ? (double)datum->integer
                                            : (double)NAN;
}

/* api_rows: the receiver of a statement's rows; `row` may be NULL where there are none. */
struct api_rows {
    void (*row)(void *context, const struct api_datum *values);
    void *context;
};

/* Receives one row of one integer into an int64_t. */
static inline void api_datum_read_integer(void *context, const struct api_datum *values)
{
    *(int64_t *)context = values[0].integer;
}
