/* Places in a JSON text. */
#ifndef KLDIV_API_TEXT_JSON_TEXT_H
#define KLDIV_API_TEXT_JSON_TEXT_H

#include "api/problem.h"

/* The first character at or after `p` that is not white space. */
static inline const char *api_json_skip_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    return p;
}

/* Past the string that starts at `p` with its quote, or NULL if it does not end. */
const char *api_json_skip_string(const char *p);

/* Past the value that starts at `p`, whatever is in it, or NULL if the text ends before. Only
 * brackets and strings are looked at. */
const char *api_json_skip_value(const char *p);

/* Fails with json_malformed: line and column of `at`, and what is wrong there. */
bool api_json_malformed(const char *text, const char *at, const char *what,
                        struct api_problem *problem);

/* The same, where `expected` should stand and something else does. */
bool api_json_expected(const char *text, const char *at, const char *expected,
                       struct api_problem *problem);

#endif
