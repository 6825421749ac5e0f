/* api_envelope: a JSON body without its bulk of numbers, which jansson parses. The reader of the bulk
 * copies everything else, errors included, and jansson finds them. */
#pragma once

#include "api/json/json_load.h"
#include "api/json/problem.h"

enum { API_MAX_CUTS = 8 };

/* The caller sets what stands before `start`, and the budget of `text`. */
struct api_envelope {
    const char *body; /* the whole text, ended by a NUL */
    size_t size;
    size_t max;             /* bytes of `text` */
    const char *too_large;  /* detail of the problem if there are more */
    const char *not_object; /* detail of the problem if the body is an array */
    struct api_problem *problem;

    /* Reads the value of a member, whose key ends at `key_end`; returns the position after it, or NULL: with a
     * problem, or where the JSON is malformed. */
    const char *(*member)(struct api_envelope *envelope, const char *key, const char *key_end,
                          const char *value);
    void *context;
    const char *start;  /* first character that is not white space */
    const char *copied; /* end of the part that was copied or cut; at first `start` */
    const char *last;   /* the key that was read last */
    struct api_buffer text;
    struct {
        size_t text_end; /* offset in `text` of each omission */
        const char *body_end;
    } cuts[API_MAX_CUTS];
    size_t n_cuts;
};

/* Reads a body, which must be an object, by its members, then copies and parses the rest. A problem has line
 * and column of the body. An object without members is not parsed if `may_be_empty`, as most are whose
 * tensors were cut: json->root is then NULL. */
bool api_envelope_read(struct api_envelope *envelope, bool may_be_empty, struct api_json *json);

/* For members. Reads those of an object at `p` in turn, and returns the position after it, or NULL as they
 * do. */
const char *api_envelope_walk(struct api_envelope *envelope, const char *p);

/* For members. Copies the body up to `end`. Fails with members_too_large; the text's own failure waits for
 * the end. */
bool api_envelope_copy(struct api_envelope *envelope, const char *end);

/* For members. Omits what follows the copied part, up to `end`. */
void api_envelope_cut(struct api_envelope *envelope, const char *end);
