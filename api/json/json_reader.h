/* Reads small JSON objects, such as the headers of binary formats, in place: no tree is built
 * and no memory is allocated. api_json_check must accept a text first; a value is then a pointer
 * to its first character. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Limits: bytes of a name or string with its NUL, members of an object. */
enum { API_JSON_TEXT = 1025, API_JSON_MEMBERS = 64 };

/* Checks that the `size` bytes are one JSON value: RFC 8259's grammar, UTF-8, no duplicate
 * names, nesting of at most 16, within the limits above. API_PADDING bytes after them must be
 * readable. If false, *at is the position of the error and *what its description.
 *
 * A text that `is_large` may exceed the limits, and a name may be repeated unless it is one of the first
 * of an object, spelt alike. */
bool api_json_check(const char *text, size_t size, bool is_large, const char **at,
                    const char **what);

/* api_json_reader: an iterator over the members of an object or the items of an array. */
struct api_json_reader {
    const char *next;
};

/* Starts before the first member or item. A value of another kind has none. */
struct api_json_reader api_json_read_object(const char *object);
struct api_json_reader api_json_read_array(const char *array);

/* Advances to the next member or item; false at the end. A name without room becomes "". */
bool api_json_next_member(struct api_json_reader *reader, char name[API_JSON_TEXT],
                          const char **value);
bool api_json_next_item(struct api_json_reader *reader, const char **value);

/* Finds the value of a member; NULL if the name is absent, or if `object` is NULL or of another
 * kind. */
const char *api_json_member(const char *object, const char *name);

/* Finds the values of `n` members by their names in one pass, NULL for absent ones. Returns the
 * key of the first member of another name, or NULL. */
const char *api_json_members(const char *object, const char *const *names, const char **values,
                             size_t n);

/* True if the string from `string` to `end`, quotes included, equals `text`. Accepts unchecked
 * text: false if it is malformed. */
bool api_json_means_text(const char *string, const char *end, const char *text);
static inline bool api_json_is_text(const char *string, const char *end, const char *text)
{
    size_t size = (size_t)(end - string), length = strlen(text);
    if (size == length + 2 && memcmp(string + 1, text, length) == 0)
        return true;
    return memchr(string, '\\', size) && api_json_means_text(string, end, text);
}

/* The item of an array of one, which some clients make of every scalar; else the value itself. */
const char *api_json_scalar(const char *value);

/* Reads a string; false, with "", if `value` is NULL or of another kind, or has no room. */
bool api_json_string(const char *value, char to[API_JSON_TEXT]);

/* Reads a string, or the characters of any other value; false if they have no room. */
bool api_json_characters(const char *value, char to[API_JSON_TEXT]);

/* Reads a non-negative integer, written without a point or an exponent. */
bool api_json_size(const char *value, size_t *size);

/* Reads an array of at most `max` non-negative integers. */
bool api_json_sizes(const char *value, size_t *sizes, size_t max, size_t *n);
