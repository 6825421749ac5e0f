/* The formats of tables: a row of functions each. For the files of formats alone. */
#ifndef KLDIV_API_FORMATS_TABLE_FORMATS_H
#define KLDIV_API_FORMATS_TABLE_FORMATS_H

#include "api/formats/table.h"

/* API_MOST_COLUMNS: the most columns of a table. Names are looked up by sorted lists, and libzip keeps
 * some hundred bytes for each entry. */
enum { API_MOST_COLUMNS = 10000 };

/* api_table_format: `close` frees the state, which a failed `open` may have left half made. */
struct api_table_format {
    const char *const *media_types; /* lower case, the preferred one first, NULL at the end */
    bool (*open)(struct api_table *table, struct api_problem *problem);
    bool (*read)(struct api_table *table, const struct api_sink *sink, struct api_problem *problem);
    void (*close)(struct api_table *table); /* NULL if there is no state */

    /* Formats the JSON Pointer of a cell, or of its column if `cell` is NULL; NULL if the format has
     * none. */
    void (*place)(const struct api_table *table, size_t column, const struct api_cell *cell,
                  char *to, size_t size);
};

extern const struct api_table_format api_table_csv, api_table_json, api_table_npz,
    api_table_safetensors;

/* Adds a column. Fails with column_repeated for a name that is there already, "" aside if `unnamed` may
 * repeat, and with too_many_columns. */
bool api_table_add(struct api_table *table, const char *name, size_t size, bool unnamed,
                   struct api_problem *problem);

/* Makes table->columns of the names that were added. */
bool api_table_finish(struct api_table *table, struct api_problem *problem);

/* Fails with columns_unequal at a column of n values unless the table, or its first column, has as
 * many. */
bool api_table_count(struct api_table *table, size_t column, size_t n, struct api_problem *problem);

#endif
