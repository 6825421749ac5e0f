/* api_envelope: a JSON body without its bulk of numbers, which jansson parses. The reader of the bulk
 * copies everything else, errors included, and jansson finds them. */
#pragma once

#include "api/problem.h"
#include "api/text/json_load.h"

enum { API_MAX_CUTS = 8 };

/* The caller sets `body`, `start`, `copied`, `max`, `too_large`, the budget of `text`, `problem`. */
struct api_envelope {
    const char *body;      /* the whole text, ended by a NUL */
    const char *start;     /* first character that is not white space */
    const char *copied;    /* end of the part that was copied or cut; at first `start` */
    size_t max;            /* bytes of `text` */
    const char *too_large; /* detail of the problem if there are more */
    struct api_buffer text;
    struct {
        size_t text_end; /* offset in `text` of each omission */
        const char *body_end;
    } cuts[API_MAX_CUTS];
    size_t n_cuts;
    struct api_problem *problem;
};

/* Copies the body up to `end`. Fails with members_too_large; the text's own failure waits for the
 * end. */
bool api_envelope_copy(struct api_envelope *envelope, const char *end);

/* Omits what follows the copied part, up to `end`. */
void api_envelope_cut(struct api_envelope *envelope, const char *end);

/* Copies the rest of a body. If its reader met malformed JSON in a member that begins at `last`, `is_malformed`,
 * only the start of a long rest: jansson needs no more to find the error. */
bool api_envelope_finish(struct api_envelope *envelope, const char *last, const char *body_end,
                         bool is_malformed);

/* True if the text is an object without members, as most are whose tensors were cut. */
bool api_envelope_is_empty(const struct api_envelope *envelope);

/* Parses the text. A problem has line and column of the body. */
bool api_envelope_parse(const struct api_envelope *envelope, struct api_json *json);
