#include "api/json/fields.h"

#include <string.h>

/* Forms of Rails and others name a list "dim[]"; PHP and axios name its elements "dim[0]" and "dim[1]". */
static bool is_name(const struct api_field *row, const char *name)
{
    size_t size = strlen(row->name);
    if (strncmp(name, row->name, size) != 0)
        return false;
    name += size;
    if (*name == '[' && row->is_list && strcmp(name + 1 + strspn(name + 1, "0123456789"), "]") == 0)
        return true;
    return *name == '\0';
}

const struct api_field *api_field_find(const struct api_field *rows, const char *name)
{
    while (rows->name && !is_name(rows, name))
        rows++;
    return rows->name ? rows : NULL;
}

bool api_field_store(const struct api_field *row, void *object, const union api_field_value *value,
                     bool again)
{
    char *field = (char *)object + row->offset;
    if (again)
        return memcmp(field, value->bytes, row->size) == 0;
    memcpy(field, value->bytes, row->size);
    return true;
}
