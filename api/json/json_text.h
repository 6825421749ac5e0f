/* Positions in a JSON text. */
#pragma once

#include "api/json/problem.h"

#include <string.h>

/* The first character at or after `p` that is not white space. */
static inline const char *api_json_skip_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    return p;
}

/* Skips a byte order mark, EF BB BF, which Windows PowerShell and some editors write before UTF-8. */
static inline const char *api_json_skip_mark(const char *p)
{
    return p[0] == '\xef' && p[1] == '\xbb' && p[2] == '\xbf' ? p + 3 : p;
}

/* Start of the value of a text: skips a byte order mark and white space. */
static inline const char *api_json_start(const char *text)
{
    return api_json_skip_space(api_json_skip_mark(text));
}

/* Ends an error about an object where an array should be: JSON.stringify writes a typed array as one. */
static inline const char *api_json_array_hint(const char *p)
{
    static const char hint[] =
        "; JSON.stringify writes a typed array, such as a Float32Array, as an "
        "object: send Array.from(array)";
    bool typed = *p == '{' && strncmp(api_json_skip_space(p + 1), "\"0\"", 3) == 0;
    return hint + (typed ? 0 : sizeof hint - 1);
}

/* Checks the string whose opening quote is at `p`: UTF-8, escapes. Returns the position after the string; with *what,
 * the position of the error. *has_escapes becomes true if the string has any. api_json_check_rest begins at `p`, the
 * first character that is not plain. */
const char *api_json_check_rest(const char *p, bool *has_escapes, const char **what);
static inline const char *api_json_check_string(const char *p, bool *has_escapes, const char **what)
{
    for (p++; (signed char)*p >= 0x20 && *p != '"' && *p != '\\';)
        p++;
    return *p == '"' ? p + 1 : api_json_check_rest(p, has_escapes, what);
}

/* Writes the characters from `p` to `end` of a checked string; returns the number of bytes, at most those
 * that are read. */
size_t api_json_unescape(char *to, const char *p, const char *end);

/* Skips the value that starts at `p`, valid or not; NULL if the text ends before. Only brackets
 * and strings are checked. */
const char *api_json_skip_value(const char *p);

/* Writes a code point as UTF-8, at most 4 bytes; returns their number. */
size_t api_utf8_write(char *to, long c);

/* Fails with json_malformed: line and column of `at`, then `what`; if `what` begins with "expected", also the
 * character that was found. The text ends at `end`, or with a NUL. A byte order mark takes no column. */
bool api_json_malformed(const char *text, const char *at, const char *end, const char *what,
                        struct api_problem *problem);
