/* Tables from bodies of any format. A table is opened, which finds its columns, then read once or
 * several times, in any choice of columns. */
#pragma once

#include "api/tables/columns.h"

/* Finds the format by a Content-Type, which may be NULL. Fails with media_type_unsupported. */
const struct api_table_format *api_table_format(const char *content_type,
                                                struct api_problem *problem);

/* Formats the media types that are read: "text/csv, application/json, ...". */
void api_table_list_formats(char *to, size_t size);

/* Checks that a form has each of the files `names`, NULL at their end, once at most, and no other part. Fails with
 * multipart_malformed. */
bool api_table_check_parts(const char *content_type, const char *body, size_t size,
                           const char *const *names, struct api_problem *problem);

/* Opens a body whose format, kind, body, size, budget, max_inflated and content_type are set. Where the format was
 * not named, the first bytes tell it: a body that begins with {, or with [ and what does not follow that in CSV, is
 * JSON or JSON Lines, one that is neither .npz nor safetensors is CSV. A form's file is opened in its place. Fails
 * for malformed bodies, columns that are named twice, columns of unequal length. Of CSV only the header and the encoding
 * are checked: reads find malformed rows. The caller frees a table that failed to open, too.
 *
 * JSON: until the table is freed, jansson allocates from the table's memory in this thread, and
 * api_json_load may not be called. */
bool api_table_open(struct api_table *table, struct api_problem *problem);

/* Has reads give those rows alone whose part is this; n of them. NULL: all again. */
void api_table_select(struct api_table *table, const uint32_t *part_of_row, uint32_t part,
                      size_t n);

/* Gives the values of the wanted columns to the sink, in order of their rows within each column. A row
 * whose length is wrong fails after some of its values were given. */
bool api_table_read(struct api_table *table, const struct api_sink *sink,
                    struct api_problem *problem);
void api_table_free(struct api_table *table);
