/* api_cells: the values of a table of JSON, checked in one pass and converted in later ones. */
#pragma once

#include "api/json/json_load.h"
#include "api/json/json_text.h"
#include "api/tables/columns.h"

/* api_layout: where the values are. */
enum api_layout {
    API_NO_VALUES,
    API_COLUMNS,
    API_ROWS,
    API_VALUES,
    API_REFERENCE,
    API_ARRAY, /* the body is an array of rows */
    API_LINES, /* the body is rows with line ends between */
};

/* Zeroed, then filled by the opening of a table. */
struct api_cells {
    struct api_table *table;
    enum api_layout layout;
    const char *at;           /* where the values begin, in a member or in the body */
    size_t line;              /* of API_LINES: where the row begins; else 0 */
    struct api_buffer starts; /* of API_COLUMNS: const char *, each column's array */
    struct api_buffer
        last_row_seen;           /* of API_ROWS: size_t, 1 + the last row that has each column */
    struct api_buffer text;      /* of a string or a name with escapes */
    struct api_json json;        /* the members without their values */
    const struct api_sink *sink; /* NULL while the table is opened */
    struct api_problem *problem;
};

/* Each function gets the position of its value and returns that after it, or NULL with a problem. */

/* Reads a name and its colon, up to the value; *name lasts until the next string. */
const char *api_cells_name(struct api_cells *cells, const char *p, const char **name, size_t *size);

/* Reads an array of *n values, and gives them to the sink if `give`. */
const char *api_cells_array(struct api_cells *cells, const char *p, size_t column, bool give,
                            size_t *n);

/* Reads an array of rows. Adds the columns without a sink; with one gives the wanted values, and a
 * missing one for each member that a row lacks. Sets the table's number of rows. */
const char *api_cells_rows(struct api_cells *cells, const char *p);

/* Does the same for rows up to the end of the body, each in lines of its own. */
const char *api_cells_lines(struct api_cells *cells, const char *p);

/* Go from the bracket that opens an array or an object to its first element, and from the end of an element to the next
 * one; *is_end becomes true behind the closing bracket. api_cells_next fails if neither follows. */
const char *api_cells_first(const char *p, char closing, bool *is_end);
const char *api_cells_next(struct api_cells *cells, const char *p, char closing, bool *is_end);

/* Fails with json_malformed at `p`, and with value_invalid at a JSON Pointer; both return NULL. */
const char *api_cells_malformed(struct api_cells *cells, const char *p, const char *what);
const char *api_cells_fail(struct api_cells *cells, const char *location, const char *detail);
