/* The one box for what is wrong with a request, and its form on the wire (RFC 9457). */
#ifndef KLDIV_API_PROBLEM_H
#define KLDIV_API_PROBLEM_H

#include "api/memory/buffer.h"

/* Where in the request the trouble is. */
enum api_place {
    API_NOWHERE,
    API_BODY,  /* `place` is a JSON Pointer into the body, as a URI fragment: "#/target/2/0" */
    API_QUERY, /* `place` is the name of a query parameter */
};

/* Owned by whoever handles the request, who passes it zeroed; the first problem wins and later
 * ones leave it alone. */
struct api_problem {
    const char *code; /* stable, snake_case, static; NULL while all is well */
    char detail[512];
    enum api_place where;
    char place[256];
};

/* Records the problem unless one is there already. Always returns false, so that a check reads
 * `return api_fail(...)`. Every code stands in the table of problem.c, with its status. */
bool api_fail(struct api_problem *problem, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with its place. */
bool api_fail_at(struct api_problem *problem, enum api_place where, const char *place,
                 const char *code, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Records that memory, or the budget for it, is out. */
bool api_fail_for_memory(struct api_problem *problem);

/* Puts words before the detail, which say more exactly what it speaks of. */
void api_problem_prefix(struct api_problem *problem, const char *words);

/* The code in row `i` of that table, NULL at its end. */
const char *api_problem_code(size_t i);

/* The HTTP status of a problem: 400 to 503. */
int api_problem_status(const struct api_problem *problem);

/* Appends the members of its problem+json object, without the braces around. */
void api_problem_write(const struct api_problem *problem, struct api_buffer *out);

#endif
