/* Small JSON objects, such as the headers of binary formats, read where they lie: no tree is
 * built and no memory is needed. A text is checked first; afterwards a value is the place where
 * it starts, and all that follows here relies on the check. */
#ifndef KLDIV_API_TEXT_JSON_READER_H
#define KLDIV_API_TEXT_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>

/* Names and strings have less than so many bytes, objects at most so many members. */
enum { API_JSON_TEXT = 1025, API_JSON_MEMBERS = 64 };

/* Whether the `size` bytes are one JSON value: RFC 8259's grammar, UTF-8, no name twice in an
 * object, nested at most 16 deep, within the limits above. API_PADDING bytes after them must be
 * readable. Where it is not, *at is the place and *what says what is wrong there. */
bool api_json_check(const char *text, size_t size, const char **at, const char **what);

/* A way through the members of an object, or the items of an array. */
struct api_json_reader {
    const char *next;
};

/* Starts before the first of them. A value of another kind has none. */
struct api_json_reader api_json_read_object(const char *object);
struct api_json_reader api_json_read_array(const char *array);

/* The next; false at the end. */
bool api_json_next_member(struct api_json_reader *reader, char name[API_JSON_TEXT],
                          const char **value);
bool api_json_next_item(struct api_json_reader *reader, const char **value);

/* The value of a member, NULL if there is none of that name or `object` is NULL or no object. */
const char *api_json_member(const char *object, const char *name);

/* The values of `n` members by their names, each NULL where there is none, in one pass. Gives the
 * key of the first member of another name, or NULL. */
const char *api_json_members(const char *object, const char *const *names, const char **values,
                             size_t n);

/* Whether the string from `string` to `end`, quotes included, says `text`. It need not have been checked:
 * false if it is malformed. */
bool api_json_is_text(const char *string, const char *end, const char *text);

/* Reads a string; false if the value, which may be NULL, is none. */
bool api_json_string(const char *value, char to[API_JSON_TEXT]);

/* Reads an integer from 0 on, written without a point or an exponent. */
bool api_json_size(const char *value, size_t *size);

/* Reads an array of at most `most` of them. */
bool api_json_sizes(const char *value, size_t *sizes, size_t most, size_t *n);

#endif
