#include "api/store/row_fields.h"

#include <stdlib.h>

/* A copy of a text or of bytes, with a NUL; NULL if there are none. */
static bool copy(const struct api_datum *datum, enum api_datum_kind kind, char **to)
{
    bool is_there = datum->kind == kind;
    *to = is_there ? malloc(datum->size + 1) : NULL;
    if (!*to)
        return !is_there;
    if (datum->size > 0)
        memcpy(*to, datum->text, datum->size);
    (*to)[datum->size] = '\0';
    return true;
}

static bool read_field(const struct api_row_field *field, const struct api_datum *datum, char *row)
{
    void *member = row + field->offset;
    bool is_whole = datum->kind == API_SQL_INTEGER;
    switch (field->kind) {
    case API_MEMBER_WHOLE:
        *(int64_t *)member = is_whole ? datum->integer : field->none;
        return true;
    case API_MEMBER_SIZE:
        *(size_t *)member = is_whole ? (size_t)datum->integer : 0;
        return true;
    case API_MEMBER_ENUM:
        *(int *)member = is_whole ? (int)datum->integer : 0;
        return true;
    case API_MEMBER_FLAG:
        *(bool *)member = is_whole && datum->integer != 0;
        return true;
    case API_MEMBER_COUNT:
    case API_MEMBER_REAL:
        *(double *)member = api_datum_number(datum);
        return true;
    case API_MEMBER_STRUCT:
        if (datum->kind == API_SQL_BYTES && datum->size == field->size)
            memcpy(member, datum->text, datum->size);
        return true;
    case API_MEMBER_CHARS:
        memset(member, 0, field->size);
        if (datum->kind == API_SQL_TEXT)
            memcpy(member, datum->text, datum->size < field->size ? datum->size : field->size - 1);
        return true;
    case API_MEMBER_TEXT:
        return copy(datum, API_SQL_TEXT, member);
    case API_MEMBER_BYTES:
        *(size_t *)(void *)(row + field->size) = datum->kind == API_SQL_BYTES ? datum->size : 0;
        return copy(datum, API_SQL_BYTES, member);
    }
    return true;
}

bool api_row_read(const struct api_row_field *fields, size_t n, const struct api_datum *values,
                  void *row)
{
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good &= read_field(&fields[i], &values[i], row);
    return good;
}

static bool are_zeros(const char *bytes, size_t size)
{
    size_t i = 0;
    while (i < size && bytes[i] == 0)
        i++;
    return i == size;
}

static struct api_datum write_field(const struct api_row_field *field, const char *row)
{
    static const struct api_datum null = {.kind = API_SQL_NULL};
    const void *member = row + field->offset;
    switch (field->kind) {
    case API_MEMBER_WHOLE: {
        int64_t whole = *(const int64_t *)member;
        return whole == field->none ? null : API_INTEGER(whole);
    }
    case API_MEMBER_SIZE: {
        size_t size = *(const size_t *)member;
        return size == 0 ? null : API_INTEGER(size);
    }
    case API_MEMBER_ENUM:
        return API_INTEGER(*(const int *)member);
    case API_MEMBER_FLAG:
        return API_INTEGER(*(const bool *)member);
    case API_MEMBER_COUNT: {
        double count = *(const double *)member;
        return isnan(count) ? null : API_INTEGER(count);
    }
    case API_MEMBER_REAL:
        return api_datum_real(*(const double *)member);
    case API_MEMBER_STRUCT:
        return are_zeros(member, field->size) ? null : API_BYTES(member, field->size);
    case API_MEMBER_CHARS:
        return api_datum_text(member);
    case API_MEMBER_TEXT: {
        const char *text = *(char *const *)member;
        return text ? api_datum_text(text) : null;
    }
    case API_MEMBER_BYTES: {
        const char *bytes = *(char *const *)member;
        return bytes ? API_BYTES(bytes, *(const size_t *)(const void *)(row + field->size)) : null;
    }
    }
    return null;
}

void api_row_write(const struct api_row_field *fields, size_t n, const void *row,
                   struct api_datum *values)
{
    for (size_t i = 0; i < n; i++)
        values[i] = write_field(&fields[i], row);
}
