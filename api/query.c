#include "api/query.h"

#include "api/options.h"
#include "api/text/percent.h"

#include <string.h>

/* Decodes `size` characters of a query into `to`, with room for API_PARAMETER and a NUL. */
static bool decode(const char *from, size_t size, char *to, struct api_problem *problem)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++, n++) {
        if (n == API_PARAMETER)
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

bool api_query_next(const char **query, struct api_parameter *parameter,
                    struct api_problem *problem)
{
    const char *p = *query + strspn(*query, "&");
    size_t size = strcspn(p, "&");
    const char *equals = memchr(p, '=', size);
    size_t name_size = equals ? (size_t)(equals - p) : size;
    size_t skip = equals ? name_size + 1 : size;
    *query = p + size;
    return size > 0 && decode(p, name_size, parameter->name, problem) &&
           decode(p + skip, size - skip, parameter->value, problem);
}

bool api_options_from_query(struct api_options *options, const char *query,
                            struct api_problem *problem)
{
    struct api_parameter parameter;
    const char *rest = query ? query : "";
    while (api_query_next(&rest, &parameter, problem))
        if (!api_option_set_text(options, (struct api_origin){NULL, parameter.name},
                                 parameter.value, NULL, problem))
            return false;
    return !problem->code;
}
