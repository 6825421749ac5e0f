#include "api/request/query.h"

#include "api/text/percent.h"

#include <string.h>

/* Decodes `size` characters of a query into `to`, with room for API_PARAMETER and a NUL; to "" if it
 * fails. */
static bool decode(const char *from, size_t size, char *to, struct api_problem *problem)
{
    const char *wrong = NULL;
    size_t n = 0;
    for (size_t i = 0; i < size && !wrong; i++) {
        int byte = from[i] == '+' ? ' ' : from[i];
        if (n == API_PARAMETER)
            wrong = "a query parameter is too long";
        if (from[i] == '%') {
            byte = i + 2 < size ? api_percent_decode(from + i) : -1;
            i += 2;
            if (byte <= 0)
                wrong = "the query has a % without two hexadecimal digits, or %00";
        }
        to[n] = (char)byte;
        n += !wrong;
    }
    to[wrong ? 0 : n] = '\0';
    return !wrong || api_fail(problem, "query_malformed", "%s", wrong);
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
