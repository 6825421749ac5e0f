/* Options and settings as tables: of the loss, of monitors and of the command line. A row says what an option is
 * called, where its field is, and how a value of it is read. */
#pragma once

#include "api/json/problem.h"

#include <stdint.h>

struct kl_problem;

/* api_value: a value that is read. API_TEXT has no type of its own, as in a query, a form or
 * metadata: it may be a boolean, a number, or a list with commas. API_STRING is a string of
 * JSON. */
enum api_kind { API_TEXT, API_STRING, API_NUMBER, API_BOOLEAN, API_NULL, API_OTHER };
struct api_value {
    enum api_kind kind;
    const char *text; /* of API_TEXT and API_STRING */
    double number;
    bool boolean;
    const struct json_t *json; /* of API_OTHER, where it may be an object; or NULL */
};

struct api_value api_value_of(const struct json_t *json);

/* api_field_value: the bytes of a field while it is read. */
union api_field_value {
    unsigned char bytes[3 * sizeof(double)];
    int word;
    bool boolean;
    unsigned bits;
    double number, numbers[3];
    size_t size;
    const char *text;
    uint64_t sets[2];
};

/* api_field_kind: of a number: any, one without a fraction, a power of two, one with a unit K, M or G, an octal one. */
enum api_field_kind { API_REAL, API_WHOLE, API_POWER, API_BYTES, API_OCTAL };

/* api_field: a row. Tables end with a row without a name. A value is what `read` reads, or else one of `words`, whose
 * number is stored, or else a number. */
struct api_field {
    const char *name;
    size_t offset, size;  /* of its field */
    const char *expected; /* its values in words, "a string"; or NULL for a number */
    bool is_list;
    const char *const *words; /* NULL at the end */

    /* Reads one value; appends it if the option is a list. Fails with a code and a detail, or with neither if the
     * value is of the wrong kind. */
    bool (*read)(const struct api_value *value, union api_field_value *to,
                 struct kl_problem *problem);

    const char *parent;   /* the member that it is a member of; or NULL */
    const char *fallback; /* as a query has it; NULL is null, and that of a number is NaN */
    enum api_field_kind kind;
    double min, max;
    bool open;                       /* `min` itself is not allowed */
    const char *metavariable, *help; /* of the command line */
};
/* API_FIELD: offset and size of a member. */
#define API_FIELD(type, member) offsetof(type, member), sizeof((type *)0)->member

/* Row of a name, which for a list may end in "[]"; or NULL. */
const struct api_field *api_field_find(const struct api_field *rows, const char *name);

/* Reads a value as the row says; null, where that has no reader, is its fallback. */
bool api_field_read(const struct api_field *row, const struct api_value *value,
                    union api_field_value *to, struct kl_problem *problem);

/* The value that a text stands for where the row has a type: a number, null, or a string. */
struct api_value api_field_value_of(const struct api_field *row, const char *text);

/* Stores a value in its field of an object. One that is given again is not stored: false if it is another. */
bool api_field_store(const struct api_field *row, void *object, const union api_field_value *value,
                     bool again);

/* Sets the fields of an object to their fallbacks. */
void api_fields_init(const struct api_field *rows, void *object);

/* The numbers of a row in words: "a whole number from 1 to 10". */
enum { API_RANGE = 100 };
const char *api_field_range(const struct api_field *row, char to[API_RANGE]);
