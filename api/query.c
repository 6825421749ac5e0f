#include "api/options.h"

#include <string.h>

enum { MAX_PARAMETER = 1024 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes `size` characters of a query into `to`, with room for MAX_PARAMETER and a NUL. */
static bool decode(const char *from, size_t size, char *to, struct api_problem *problem)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++, n++) {
        if (n == MAX_PARAMETER)
            return api_fail(problem, "query_malformed", "a query parameter is too long");
        if (from[i] != '%') {
            to[n] = (char)(from[i] == '+' ? ' ' : from[i]);
            continue;
        }
        int high = i + 2 < size ? hex_digit(from[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(from[i + 2]) : -1;
        if (low < 0 || (high == 0 && low == 0))
            return api_fail(problem, "query_malformed",
                            "the query has a %% without two hexadecimal digits, or %%00");
        to[n] = (char)(high << 4 | low);
        i += 2;
    }
    to[n] = '\0';
    return true;
}

bool api_options_from_query(struct api_options *options, const char *query,
                            struct api_problem *problem)
{
    char name[MAX_PARAMETER + 1], value[MAX_PARAMETER + 1];
    for (const char *p = query ? query : ""; *p; p += *p == '&') {
        size_t size = strcspn(p, "&");
        size_t name_size = strcspn(p, "=&");
        size_t skip = name_size < size ? name_size + 1 : size;
        if (size > 0 &&
            (!decode(p, name_size, name, problem) ||
             !decode(p + skip, size - skip, value, problem) ||
             !api_option_set_text(options, (struct api_origin){NULL, name}, value, NULL, problem)))
            return false;
        p += size;
    }
    return true;
}
