#include "api/text/json_text.h"

#include <stdio.h>
#include <string.h>

const char *api_json_skip_string(const char *p)
{
    for (p++; *p != '"'; p++) {
        if (*p == '\0')
            return NULL;
        if (*p == '\\' && *++p == '\0')
            return NULL;
    }
    return p + 1;
}

const char *api_json_skip_value(const char *p)
{
    /* Table lookup: strcspn has a start-up cost above the length of most values. */
    static const bool structure[256] = {['\0'] = true, ['"'] = true, ['['] = true, [']'] = true,
                                        ['{'] = true,  ['}'] = true, [','] = true};
    size_t depth = 0;
    for (;;) {
        while (!structure[(unsigned char)*p])
            p++;
        switch (*p) {
        case '"':
            p = api_json_skip_string(p);
            if (!p)
                return NULL;
            continue;
        case '[':
        case '{':
            depth++;
            break;
        case ',':
            if (depth == 0)
                return p;
            break;
        case '\0':
            return NULL;
        default:
            if (depth == 0)
                return p;
            depth--;
        }
        p++;
    }
}

bool api_json_malformed(const char *text, const char *at, const char *what,
                        struct api_problem *problem)
{
    size_t line = 1, column = 1;
    for (const char *p = text; p < at; p++) {
        bool continuation = (*p & 0xc0) == 0x80;
        column += !continuation;
        if (*p == '\n') {
            line++;
            column = 1;
        }
    }
    return api_fail(problem, "json_malformed", "line %zu, column %zu: %s", line, column, what);
}

bool api_json_expected(const char *text, const char *at, const char *expected,
                       struct api_problem *problem)
{
    char what[200];
    if (*at == '\0')
        snprintf(what, sizeof what, "expected %s, found the end", expected);
    else if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
        snprintf(what, sizeof what, "expected %s, found byte 0x%02x", expected, (unsigned char)*at);
    else
        snprintf(what, sizeof what, "expected %s, found '%c'", expected, *at);
    return api_json_malformed(text, at, what, problem);
}
