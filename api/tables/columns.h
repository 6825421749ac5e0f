/* Tables: named columns of values. What the formats of tables share: what they find when a table is
 * opened, and what they fill in. */
#pragma once

#include "api/json/problem.h"
#include "api/text/number.h"
#include "lib/kldiv.h"

#include <jansson.h>

/* api_names: names of columns, in their order, which are searched by name. Empty if zeroed, the budgets of its buffers
 * aside. */
struct api_names {
    struct api_buffer text;  /* the names, each with a NUL after it */
    struct api_buffer list;  /* struct api_name */
    struct api_buffer order; /* size_t: the names' numbers, sorted by their bytes */
    size_t n;
};

/* api_name: a column while its table is opened. */
struct api_name {
    size_t start;     /* of its bytes in the text */
    unsigned flaws;   /* of enum api_flaw */
    unsigned repeats; /* columns that were given this name, too */
};

/* Column number `i`; its name, with its NUL, valid until the next one is added. */
struct api_name *api_names_at(const struct api_names *names, size_t i);
const char *api_names_get(const struct api_names *names, size_t i);

/* True if name number `i` has these bytes. */
bool api_names_is(const struct api_names *names, size_t i, const char *name, size_t size);

/* Finds a name in O(log n) comparisons; false if it is not there. */
bool api_names_find(const struct api_names *names, const char *name, size_t size, size_t *i);

/* api_cell: one value. Texts are UTF-8, end without a NUL, and last until the sink returns. */
enum api_cell_kind {
    API_CELL_MISSING, /* null of JSON, or a member that a row lacks */
    API_CELL_NUMBER,  /* of JSON, or of an array; may be NaN or infinite */
    API_CELL_BOOLEAN, /* `number` is 0 or 1 */
    API_CELL_STRING,  /* of JSON, or of numpy's '<U' */
    API_CELL_FIELD, /* of CSV, blanks and all; its type depends on the column: see api_field_number */
};
struct api_cell {
    enum api_cell_kind kind;
    double number;
    const char *text;
    size_t size;
    size_t row; /* from 0 */
    size_t
        line; /* physical line, the first being 1, of a field, and of a row of JSON Lines; else 0 */
};

/* api_sink: the receiver of values. Both functions return false with a problem to end the read. */
struct api_sink {
    void *context;
    bool (*cell)(void *context, size_t column, const struct api_cell *cell,
                 struct api_problem *problem);
    /* n rows of a column at once, from arrays of floating point; at any address. `row` is the first. */
    bool (*numbers)(void *context, size_t column, enum kl_dtype dtype, const void *values,
                    size_t row, size_t n, struct api_problem *problem);
};

/* api_flaw: what is wrong with a column, as bits. API_NAME_BLANK: blanks were around its name, and are not part of it.
 * API_NAME_REPEATED: its name was there before, and has a number behind it: name.1, as pandas writes. API_NESTED: an array
 * or an object is among its values, which cannot be read. */
enum api_flaw { API_NAME_BLANK = 1, API_NAME_REPEATED = 2, API_NESTED = 4 };

/* api_column: `name` ends with a NUL and is "" for a column without one. */
struct api_column {
    const char *name;
    unsigned flaws; /* of enum api_flaw */
    bool wanted;    /* set by the caller before a read; false after the table is opened */
    unsigned style; /* of all rows, if they were read: enum api_style; else 0 */
};

/* api_table_kind: what a body may be. API_ONE_COLUMN: JSON with a member `values`, or with a reference that has one;
 * or a table, of which the only column is taken, or the column of the monitor's name, or `values`. */
enum api_table_kind { API_MANY_COLUMNS, API_ONE_COLUMN };

/* Empty if zeroed. */
struct api_table {
    const struct api_table_format *format;
    enum api_table_kind kind;
    const char *body; /* borrowed; API_PADDING zero bytes follow */
    size_t size;
    struct api_budget *budget;
    size_t max_inflated;      /* bytes that compressed entries may have in all */
    const char *content_type; /* with its parameters; NULL if it is not known */
    const char *part; /* the name of its file in a form of several; NULL: the form has one file */
    struct api_column *columns;
    size_t n_columns;
    size_t n_rows; /* known for arrays after opening, for other formats after a read */
    const uint32_t *part_of_row; /* reads give the rows of the part `selected` alone; NULL: all */
    uint32_t selected;
    size_t n_whole;  /* rows of all parts */
    json_t *members; /* of JSON: the object without its values, which are null in it; else NULL */
    bool has_values; /* false for JSON without values: counts, or settings alone */
    bool is_rows;    /* read row by row, not column by column */
    bool has_header; /* names stand in a line of their own */
    bool has_blanks; /* of CSV: what has one column may have several, with blanks between */

    /* Private to the formats: */
    struct api_names names;
    struct api_buffer memory;  /* of `columns` */
    struct api_buffer arrays;  /* struct api_array: of each column, if they are arrays */
    struct api_buffer file;    /* a copy of a form's file, which is then the body */
    struct api_buffer text;    /* of another encoding: the body in UTF-8, which is the body then */
    char delimiter;            /* of CSV: ',', ';' or a tab */
    size_t rows_at, rows_line; /* of CSV: the first byte after the header, and its line */
    void *state;
};

/* API_MAX_COLUMNS: maximum number of columns of a table. Names are looked up by sorted lists, and libzip keeps
 * some hundred bytes for each entry. */
enum { API_MAX_COLUMNS = 10000 };

/* api_table_format: `close` frees the state, which a failed `open` may have left half made. */
struct api_table_format {
    const char *const *media_types; /* lower case, the preferred one first, NULL at the end */
    const char *refusal;            /* why a table of this format is not read; NULL: it is */
    bool (*open)(struct api_table *table, struct api_problem *problem);
    bool (*read_rows)(struct api_table *table, const struct api_sink *sink,
                      struct api_problem *problem); /* NULL if no table `is_rows` */
    bool (*read_column)(struct api_table *table, size_t column, const struct api_sink *sink,
                        struct api_problem *problem); /* NULL if all are */
    void (*close)(struct api_table *table);           /* NULL if there is no state */

    /* Formats the JSON Pointer of a cell, or of its column if `cell` is NULL; NULL if the format has
     * none. */
    void (*location)(const struct api_table *table, size_t column, const struct api_cell *cell,
                     char *to, size_t size);
};

/* Cuts blanks off a name. */
void api_name_trim(const char **name, size_t *size);

/* Adds a column, with a name of its own unless it is "" or too long for a monitor. Fails with too_many_columns. */
bool api_table_add(struct api_table *table, const char *name, size_t size,
                   struct api_problem *problem);

/* Fails with columns_unequal at a column of n values unless the table, or its first column, has as
 * many. */
bool api_table_count(struct api_table *table, size_t column, size_t n, struct api_problem *problem);

/* Fails at a cell: a JSON Pointer for JSON, the line for CSV and JSON Lines, the row otherwise. */
bool api_table_fail(const struct api_table *table, size_t column, const struct api_cell *cell,
                    struct api_problem *problem, const char *code, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
