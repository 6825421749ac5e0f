#include "api/json/fields.h"

#include "api/text/nearest.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct api_value api_value_of(const json_t *json)
{
    static const enum api_kind kinds[] = {
        [JSON_OBJECT] = API_OTHER,   [JSON_ARRAY] = API_OTHER, [JSON_STRING] = API_STRING,
        [JSON_INTEGER] = API_NUMBER, [JSON_REAL] = API_NUMBER, [JSON_TRUE] = API_BOOLEAN,
        [JSON_FALSE] = API_BOOLEAN,  [JSON_NULL] = API_NULL};
    return (struct api_value){kinds[json_typeof(json)], json_string_value(json),
                              json_number_value(json), json_is_true(json), json};
}

/* Forms of Rails and others name a list "dim[]"; PHP and axios name its elements "dim[0]" and "dim[1]". */
static bool is_name(const struct api_field *row, const char *name)
{
    const char *own = row->name;
    while (*own && *own == *name)
        own++, name++;
    return !*own && (!*name || (row->is_list && *name == '[' &&
                                strcmp(name + 1 + strspn(name + 1, "0123456789"), "]") == 0));
}

const struct api_field *api_field_find(const struct api_field *rows, const char *name)
{
    while (rows->name && !is_name(rows, name))
        rows++;
    return rows->name ? rows : NULL;
}

static bool read_word(const struct api_field *row, const struct api_value *value, int *to)
{
    size_t i = value->kind == API_STRING ? api_word_index(row->words, value->text) : 0;
    *to = (int)i;
    return value->kind == API_STRING && row->words[i];
}

static bool read_number(const struct api_field *row, const struct api_value *value, double *to)
{
    double number = value->kind == API_NUMBER ? value->number + 0.0 : (double)NAN; /* -0 is 0 */
    bool is_power = row->kind == API_POWER;
    *to = number;
    return number >= row->min && number <= row->max && !(row->open && number == row->min) &&
           (row->kind == API_REAL || number == floor(number)) &&
           (!is_power || ((int)number & ((int)number - 1)) == 0);
}

bool api_field_read(const struct api_field *row, const struct api_value *value,
                    union api_field_value *to, struct kl_problem *problem)
{
    if (row->read)
        return row->read(value, to, problem);
    if (row->words)
        return read_word(row, value, &to->word);
    to->number = row->fallback ? strtod(row->fallback, NULL) : (double)NAN;
    return value->kind == API_NULL || read_number(row, value, &to->number);
}

struct api_value api_field_value_of(const struct api_field *row, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    bool is_number = !row->read && !row->words;
    if (is_number && strcmp(text, "null") == 0)
        return (struct api_value){.kind = API_NULL};
    if (is_number && !*end && !text[strspn(text, "0123456789+-.eE")] && isfinite(number))
        return (struct api_value){.kind = API_NUMBER, .number = number};
    return (struct api_value){.kind = API_STRING, .text = text};
}

void api_fields_init(const struct api_field *rows, void *object)
{
    for (; rows->name; rows++) {
        union api_field_value value = {{0}};
        const struct api_value fallback =
            api_field_value_of(rows, rows->fallback ? rows->fallback : "null");
        api_field_read(rows, &fallback, &value, NULL);
        api_field_store(rows, object, &value, false);
    }
}

const char *api_field_range(const struct api_field *row, char to[API_RANGE])
{
    static const char *const kinds[] = {"a number", "a whole number", "a power of two"};
    if (row->kind >= sizeof kinds / sizeof *kinds)
        return row->expected;
    snprintf(to, API_RANGE, "%s from %s%g to %.16g", kinds[row->kind], row->open ? "above " : "",
             row->min, row->max);
    return to;
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
