/* Rows as structs: a table of fields says which member each column is kept in. */
#pragma once

#include "api/store/sql.h"

/* api_member_kind: the type of a member, and which of its values is NULL. */
enum api_member_kind {
    API_MEMBER_WHOLE, /* int64_t; `none` */
    API_MEMBER_SIZE,  /* size_t; 0 */
    API_MEMBER_ENUM,  /* int; none, and NULL is 0 */
    API_MEMBER_FLAG,  /* bool; likewise */
    API_MEMBER_COUNT, /* a whole double; NaN */
    API_MEMBER_REAL,  /* double; NaN */
    API_MEMBER_STRUCT, /* `size` bytes; zeros alone, and what is read of another size leaves the member as it is */
    API_MEMBER_CHARS, /* an array of `size` chars with a NUL at its end; longer ones are cut */
    API_MEMBER_TEXT,  /* char *, allocated; NULL */
    API_MEMBER_BYTES, /* char *, allocated, whose size is a size_t at `size`; NULL */
};

struct api_row_field {
    enum api_member_kind kind;
    size_t offset, size;
    int64_t none;
};

/* Sets the members of a struct from the values of a row; false if memory is exhausted, when all that was allocated is to be freed. */
bool api_row_read(const struct api_row_field *fields, size_t n, const struct api_datum *values,
                  void *row);

/* Makes values of the members, which are borrowed. */
void api_row_write(const struct api_row_field *fields, size_t n, const void *row,
                   struct api_datum *values);
