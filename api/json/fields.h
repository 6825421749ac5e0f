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
};

/* api_field_value: the bytes of a field while it is read. */
union api_field_value {
    char bytes[sizeof(uint64_t[2])];
    int word;
    bool boolean;
    unsigned bits;
    double number;
    uint64_t sets[2];
};

/* api_field: a row. Tables end with a row without a name. */
struct api_field {
    const char *name;
    size_t offset, size;  /* of its field */
    const char *expected; /* its values in words: "a string" */
    bool is_list;
    const char *const *words; /* its values, NULL at the end; NULL if it has others */

    /* Reads one value; appends it if the option is a list. Fails with a code and a detail, or with neither if the
     * value is of the wrong kind. */
    bool (*read)(const struct api_value *value, union api_field_value *to,
                 struct kl_problem *problem);
};
/* API_FIELD: offset and size of a member. */
#define API_FIELD(type, member) offsetof(type, member), sizeof((type *)0)->member

/* Row of a name, which for a list may end in "[]"; or NULL. */
const struct api_field *api_field_find(const struct api_field *rows, const char *name);

/* Stores a value in its field of an object. One that is given again is not stored: false if it is another. */
bool api_field_store(const struct api_field *row, void *object, const union api_field_value *value,
                     bool again);
