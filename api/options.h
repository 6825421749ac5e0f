/* The options of a request, from query parameters and from members of a body alike. */
#ifndef KLDIV_API_OPTIONS_H
#define KLDIV_API_OPTIONS_H

#include "api/problem.h"
#include "lib/kldiv.h"

#include <jansson.h>
#include <stdint.h>

enum api_option {
    API_REDUCTION,
    API_LOG_TARGET,
    API_SIZE_AVERAGE,
    API_REDUCE,
    API_DTYPE,
    API_COMPAT,
    API_GRADIENT, /* bits: 1 << KL_INPUT, 1 << KL_TARGET */
    API_BASE,
    API_DIM, /* bits: 0 to 31 of axes counted from the first, 32 to 63 from the last */
    API_INPUT_SPACE,
    API_TARGET_SPACE,
    API_TEMPERATURE, /* the bits of a double; 0 is absent */
    API_BROADCAST,
    API_DIAGNOSE,
};
#define API_OPTIONS 14

/* Zeroed, all have their defaults. Values are those of the library's enums. */
struct api_options {
    int64_t value[API_OPTIONS];
    bool given[API_OPTIONS];
    const char *within[API_OPTIONS]; /* of the origin; NULL for the query */
};

/* Their form for the library, but for tensors; `dim` has room for API_MAX_AXES, and must outlive
 * what is given. */
#define API_MAX_AXES 64
struct kl_options api_options_for_loss(const struct api_options *options, int *dim);
enum kl_dtype api_options_dtype(const struct api_options *options);

/* The row of that name, or -1. */
int api_option_find(const char *name);

/* Where an option was given: `within` is the JSON Pointer of what holds it in the body, with a
 * slash at its end ("#/"), of static lifetime, or NULL for the query. */
struct api_origin {
    const char *within, *name;
};

/* Sets one option from text, or from a JSON value. Giving an option again is fine if the value
 * is the same. Unknown names fail with the nearest known one; `also` lists further names (NULL
 * at the end) that may stand beside options there. */
bool api_option_set_text(struct api_options *options, struct api_origin origin, const char *text,
                         const char *const *also, struct api_problem *problem);
bool api_option_set_json(struct api_options *options, struct api_origin origin, const json_t *value,
                         const char *const *also, struct api_problem *problem);

/* Fails at the place where an option was given, if it was. */
bool api_option_fail(const struct api_options *options, enum api_option option,
                     struct api_problem *problem, const char *code, const char *detail);

/* Every parameter of a raw query string (NULL is none), percent-decoded. */
bool api_options_from_query(struct api_options *options, const char *query,
                            struct api_problem *problem);

/* `within` and the name, escaped as a JSON Pointer in a URI fragment; cut if `size` is too
 * small. */
void api_pointer_to_member(char *to, size_t size, const char *within, const char *name);

#endif
