/* api_problem: the error of a request, and its form on the wire (RFC 9457). */
#pragma once

#include "api/memory/buffer.h"

/* api_location: the part of the request that a problem is about. */
enum api_location {
    API_NOWHERE,
    API_BODY,  /* `location` is a JSON Pointer into the body, as a URI fragment: "#/target/2/0" */
    API_QUERY, /* `location` is the name of a query parameter */
};

/* The handler of the request owns it and passes it zeroed; only the first problem is recorded. */
struct api_problem {
    const char *code; /* stable, snake_case, static; NULL if there is no problem */
    char detail[512];
    enum api_location where;
    char location[256];
};

/* Records the problem unless one is recorded already. Always returns false, so that a check
 * reads `return api_fail(...)`. Every code is in the table of problem.c, with its status. */
bool api_fail(struct api_problem *problem, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records the problem, as api_fail does, with its location. */
bool api_fail_at(struct api_problem *problem, enum api_location where, const char *location,
                 const char *code, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* api_origin: a member of the body, or a query parameter. `within` is the JSON Pointer of its parent in the body, with
 * a slash at its end ("#/"), of static lifetime; NULL for the query. */
struct api_origin {
    const char *within, *name;
};

/* Records the problem of a member or a parameter. */
bool api_fail_member(struct api_problem *problem, struct api_origin origin, const char *code,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Records the problem of exhausted memory or an exhausted budget. */
bool api_fail_oom(struct api_problem *problem);

/* Prepends words to the detail, which narrow its subject. */
void api_problem_prefix(struct api_problem *problem, const char *words);

/* Formats `within` and the name, escaped, as a JSON Pointer in a URI fragment; truncates to
 * `size` bytes. */
void api_pointer_to_member(char *to, size_t size, const char *within, const char *name);

/* Code in row `i` of the table of problem.c, NULL past its end. */
const char *api_problem_code(size_t i);

/* HTTP status of a problem: 400 to 503. */
int api_problem_status(const struct api_problem *problem);

/* Appends the members of the problem+json object, without its braces. */
void api_problem_write(const struct api_problem *problem, struct api_buffer *out);
