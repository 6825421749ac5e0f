/* The options of a request, from query parameters and from members of a body alike. */
#ifndef KLDIV_API_OPTIONS_H
#define KLDIV_API_OPTIONS_H

#include "api/problem.h"
#include "lib/kldiv.h"

#include <stdint.h>

enum api_option {
    API_REDUCTION,
    API_LOG_TARGET,
    API_SIZE_AVERAGE,
    API_REDUCE,
    API_DTYPE,
    API_COMPAT,
    API_GRADIENT,
    API_BASE,
    API_DIM,
    API_INPUT_SPACE,
    API_TARGET_SPACE,
    API_TEMPERATURE,
    API_BROADCAST,
    API_DIAGNOSE,
};
#define API_OPTIONS 14

/* A set of axes, as bits: counted from the first, and from the last. */
struct api_axes {
    uint64_t from_first, from_last;
};
#define API_MAX_AXES (2 * KL_MAX_DIMS)

/* Zeroed, all have their defaults. */
struct api_options {
    enum kl_reduction reduction;
    enum kl_flag size_average, reduce;
    bool log_target, broadcast, diagnose;
    enum kl_dtype dtype; /* of numbers in JSON */
    enum kl_compat compat;
    enum kl_base base;
    enum kl_space input_space, target_space;
    double temperature; /* 0 is absent */
    unsigned gradient;  /* bits: 1 << KL_INPUT, 1 << KL_TARGET */
    struct api_axes dim;
    bool given[API_OPTIONS];
    const char *within[API_OPTIONS]; /* of the origin; NULL for the query */
};

/* Their form for the library, but for tensors; `dim` has room for API_MAX_AXES, and must outlive the
 * result. */
struct kl_options api_options_for_loss(const struct api_options *options, int *dim);

/* The row of that name, or -1; and the name of a row. */
int api_option_find(const char *name);
const char *api_option_name(enum api_option option);

/* Where an option was given: `within` is the JSON Pointer of what holds it in the body, with a
 * slash at its end ("#/"), of static lifetime, or NULL for the query. */
struct api_origin {
    const char *within, *name;
};

/* A value as it was given. API_TEXT has no type of its own, as in a query, a form or metadata: it
 * also stands for truth values, numbers, and lists with commas between. API_STRING is JSON's. */
enum api_kind { API_TEXT, API_STRING, API_NUMBER, API_TRUTH, API_NULL, API_OTHER };
struct api_value {
    enum api_kind kind;
    const char *text; /* of the first two */
    double number;
    bool truth;
};

/* One option on its way from values to api_options: begin, add each value of a list or the only one,
 * end. */
struct api_setting {
    struct api_options *options;
    struct api_origin origin;
    struct api_problem *problem;
    int option;
    union {
        int word;
        bool truth;
        unsigned bits;
        double number;
        struct api_axes axes;
        char bytes[sizeof(struct api_axes)];
    } value;
};

/* Unknown names fail with the nearest known one and the list of all; `also` lists further names (NULL
 * at the end) that may stand beside options there. */
bool api_setting_begin(struct api_setting *setting, struct api_options *options,
                       struct api_origin origin, const char *const *also,
                       struct api_problem *problem);
bool api_setting_add(struct api_setting *setting, const struct api_value *value);

/* Giving an option again is fine if the value is the same; a list given again in the query goes on. */
bool api_setting_end(struct api_setting *setting);

/* All three, for text. */
bool api_option_set_text(struct api_options *options, struct api_origin origin, const char *text,
                         const char *const *also, struct api_problem *problem);

/* Whether an option takes a list. */
bool api_option_is_list(int option);

/* Fails at the place where an option was given, if it was. */
bool api_option_fail(const struct api_options *options, enum api_option option,
                     struct api_problem *problem, const char *code, const char *detail);

/* Every parameter of a raw query string (NULL is none), percent-decoded. Names may end in "[]". */
bool api_options_from_query(struct api_options *options, const char *query,
                            struct api_problem *problem);

/* `within` and the name, escaped as a JSON Pointer in a URI fragment; cut if `size` is too
 * small. */
void api_pointer_to_member(char *to, size_t size, const char *within, const char *name);

#endif
