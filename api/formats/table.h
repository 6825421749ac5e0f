/* Tables: named columns of values, from bodies of any format. A table is opened, which finds its
 * columns, then read once or several times, in any choice of columns. */
#ifndef KLDIV_API_FORMATS_TABLE_H
#define KLDIV_API_FORMATS_TABLE_H

#include "api/api.h"
#include "api/text/names.h"

#include <jansson.h>

/* api_cell: one value. Texts are UTF-8, end without a NUL, and last until the sink returns. */
enum api_cell_kind {
    API_CELL_MISSING, /* null of JSON, or a member that a row lacks */
    API_CELL_NUMBER,  /* of JSON, or of an array; may be NaN or infinite */
    API_CELL_TRUTH,   /* `number` is 0 or 1 */
    API_CELL_STRING,  /* of JSON, or of numpy's '<U' */
    API_CELL_FIELD, /* of CSV, blanks and all; its type depends on the column: see api_field_number */
};
struct api_cell {
    enum api_cell_kind kind;
    double number;
    const char *text;
    size_t size;
    size_t row;  /* from 0 */
    size_t line; /* physical line of a field, the header being 1; else 0 */
};

/* api_sink: the receiver of values. Both functions return false with a problem to end the read. */
struct api_sink {
    void *context;
    bool (*cell)(void *context, size_t column, const struct api_cell *cell,
                 struct api_problem *problem);
    /* All of a column at once, from arrays of floating point; at any address. */
    bool (*numbers)(void *context, size_t column, enum kl_dtype dtype, const void *values, size_t n,
                    struct api_problem *problem);
};

/* api_column: `name` ends with a NUL and is "" for a column without one. */
struct api_column {
    const char *name;
    bool wanted; /* set by the caller before a read; false after the table is opened */
};

/* api_table_kind: what a body may be. API_ONE_COLUMN: JSON with a member `values`, or a reference with
 * one; otherwise one column, or among several that of the monitor's name, or `values`. */
enum api_table_kind { API_MANY_COLUMNS, API_ONE_COLUMN };

struct api_table_format;

/* Empty if zeroed. */
struct api_table {
    const struct api_table_format *format;
    enum api_table_kind kind;
    const char *body; /* borrowed; API_PADDING zero bytes follow */
    size_t size;
    struct api_budget *budget;
    size_t most_inflated; /* bytes that compressed entries may have in all */
    struct api_column *columns;
    size_t n_columns;
    size_t n_rows;   /* known for arrays after opening, for other formats after a read */
    json_t *members; /* of JSON: the object without its values, which are null in it; else NULL */
    bool has_values; /* false for JSON without values: counts, or settings alone */

    /* Private to the formats: */
    struct api_names names;
    struct api_buffer memory; /* of `columns` */
    char delimiter;           /* of CSV: ',', ';' or a tab */
    bool decimal_comma;
    size_t rows_at, rows_line; /* of CSV: the first byte after the header, and its line */
    void *state;
};

/* Finds the format by a Content-Type, which may be NULL. Fails with media_type_unsupported. */
const struct api_table_format *api_table_format(const char *content_type,
                                                struct api_problem *problem);

/* Formats the media types that are read: "text/csv, application/json, ...". */
void api_table_list_formats(char *to, size_t size);

/* Opens a body whose format, kind, body, size, budget and most_inflated are set. Where the format was
 * not named, the first bytes tell it: a body that begins with { is JSON, one that is neither .npz nor
 * safetensors is CSV. Fails for malformed bodies,
 * columns that are named twice, columns of unequal length. Of CSV only the header and the encoding
 * are checked: reads find malformed rows. The caller frees a table that failed to open, too.
 *
 * JSON: until the table is freed, jansson allocates from the table's memory in this thread, and
 * api_json_load may not be called. */
bool api_table_open(struct api_table *table, struct api_problem *problem);

/* Gives the values of the wanted columns to the sink, in order of their rows within each column. A row
 * whose length is wrong fails after some of its values were given. */
bool api_table_read(struct api_table *table, const struct api_sink *sink,
                    struct api_problem *problem);
void api_table_free(struct api_table *table);

/* Parses a field of CSV as a number, rounded once, in the dialect of the table: "1.5", "1,5" where that
 * is the decimal comma, also "+1", "007", ".5", "5.", "1E+05"; inf and infinity in any case, with
 * signs; not NaN, not hexadecimal. Blanks around it are ignored. False if it is none.
 *
 * A copy of a text must be followed by API_PADDING readable bytes, the first of them a NUL. */
bool api_field_number(const struct api_table *table, const struct api_cell *cell, double *number);

/* True for the texts that stand for no value: "", NaN, NA, null, None. */
bool api_text_is_missing(const char *text, size_t size);

/* Reads the strings that stand for the numbers that JSON lacks: "Infinity", "-Infinity", and R's "Inf",
 * "-Inf". False for others; "NaN" is a missing value. */
bool api_text_infinity(const char *text, size_t size, double *number);

/* Fails at a cell: a JSON Pointer for JSON, the line for CSV, the row otherwise. */
bool api_table_fail(const struct api_table *table, size_t column, const struct api_cell *cell,
                    struct api_problem *problem, const char *code, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#endif
