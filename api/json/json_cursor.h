/* api_json_cursor: a position in a JSON text, which is read once from its start to its end: no tree is built and no
 * memory is allocated. A value that was read is before the cursor. Functions that read fail, with a problem, where
 * the text is malformed; they have no other failures but those that their comment names. */
#pragma once

#include "api/json/problem.h"

/* Limits: bytes of a name or string with its NUL, members of an object, lists that are open. */
enum { API_JSON_TEXT = 1025, API_JSON_MEMBERS = 64, API_JSON_DEPTH = 16 };

struct api_json_cursor {
    const char *text, *end; /* API_PADDING bytes after the end must be readable */
    const char *p;          /* the cursor: the next token, or white space before it */
    const char *key;        /* of the member that was reached last */
    struct api_problem *problem;
    bool is_header; /* of safetensors, which its problems say */
    bool is_large;  /* the limits of texts and members do not hold: a longer string is cut */
    bool is_cut;    /* true if the last string was */
    int depth;
    unsigned reached[API_JSON_DEPTH + 1]; /* members or items of each open list */
};

/* Begins a text, whose limits `is_large` lifts, at its first token. */
void api_json_begin(struct api_json_cursor *c, const char *text, size_t size, bool is_large,
                    struct api_problem *problem);

/* The next character, NUL at the end. After api_json_member and api_json_item, the first of a value. */
static inline char api_json_peek(const struct api_json_cursor *c)
{
    return c->p < c->end ? *c->p : '\0';
}

/* Opens an object or an array, and fails for another value, or passes over it: both return false. Then moves to
 * each value in turn; false when the list was closed, or with a problem. `name` may be NULL. */
bool api_json_open(struct api_json_cursor *c, char opening);
bool api_json_open_if(struct api_json_cursor *c, char opening);
bool api_json_member(struct api_json_cursor *c, char name[API_JSON_TEXT]);
bool api_json_item(struct api_json_cursor *c);

/* Skips a value, which is checked. */
bool api_json_skip(struct api_json_cursor *c);

/* Read a string; a non-negative integer, written without a point or an exponent; an array of at most `max`
 * of them. False, too, for a value of another kind, with "" or a part of the sizes. */
bool api_json_string(struct api_json_cursor *c, char to[API_JSON_TEXT]);
bool api_json_size(struct api_json_cursor *c, size_t *size);
bool api_json_sizes(struct api_json_cursor *c, size_t *sizes, size_t max, size_t *n);

/* True at an array of one string, number or word, which some clients make of every scalar. */
bool api_json_is_boxed(const struct api_json_cursor *c);

/* Reads a string, or the characters of another value; of an array of one item, the item's. False, too, if they do not
 * fit. */
bool api_json_characters(struct api_json_cursor *c, char to[API_JSON_TEXT]);

/* Moves to the next member of an object that may have the members `names`, NULL at their end, in any order. The first
 * call, with *given 0, opens the object. *i becomes the number of the member's name, or the number of names for
 * another member, and its bit in *given is set. Fails if a name is repeated; skips a value that is no object. */
bool api_json_field(struct api_json_cursor *c, const char *const *names, unsigned *given,
                    char name[API_JSON_TEXT], size_t *i);

/* Checks that nothing follows. */
bool api_json_end(struct api_json_cursor *c);

/* Fails at the cursor, and at the key of the member that was reached last. */
bool api_json_wrong(struct api_json_cursor *c, const char *what);
bool api_json_repeated(struct api_json_cursor *c);
