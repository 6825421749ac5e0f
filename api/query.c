#include "api/options.h"
#include "api/text/percent.h"

#include <string.h>

enum { MAX_PARAMETER = 1024 };

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
        int byte = i + 2 < size ? api_percent_decode(from + i) : -1;
        if (byte <= 0)
            return api_fail(problem, "query_malformed",
                            "the query has a %% without two hexadecimal digits, or %%00");
        to[n] = (char)byte;
        i += 2;
    }
    to[n] = '\0';
    return true;
}

static bool read_parameter(struct api_options *options, const char *p, size_t size,
                           struct api_problem *problem)
{
    char name[MAX_PARAMETER + 1], value[MAX_PARAMETER + 1];
    const char *equals = memchr(p, '=', size);
    size_t name_size = equals ? (size_t)(equals - p) : size;
    size_t skip = equals ? name_size + 1 : size;
    if (!decode(p, name_size, name, problem) || !decode(p + skip, size - skip, value, problem))
        return false;
    return api_option_set_text(options, (struct api_origin){NULL, name}, value, NULL, problem);
}

bool api_options_from_query(struct api_options *options, const char *query,
                            struct api_problem *problem)
{
    for (const char *p = query ? query : ""; *p; p += *p == '&') {
        size_t size = strcspn(p, "&");
        if (size > 0 && !read_parameter(options, p, size, problem))
            return false;
        p += size;
    }
    return true;
}
