/* The options of a request, from query parameters and from members of a body alike: the table of their names,
 * values and readers, and how they are set. */
#pragma once

#include "api/json/fields.h"
#include "lib/kldiv.h"

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
    API_PARTIAL,
    API_DIVERGENCE,
    API_BETA,
    API_ALPHA,
    API_SCALE,
    API_TAIL,
};
#define API_OPTIONS 20

/* api_axes: a set of axes as bits, counted from the first and from the last. */
struct api_axes {
    uint64_t from_first, from_last;
};
#define API_MAX_AXES (2 * KL_MAX_DIMS)

/* api_options: the options of a request. Zeroed, all have their defaults. */
struct api_options {
    struct kl_options loss; /* without `dim`, weight and mask */
    bool diagnose, partial;
    enum kl_dtype dtype; /* of numbers in JSON */
    unsigned gradient;   /* bits: 1 << KL_INPUT, 1 << KL_TARGET */
    struct api_axes dim;
    bool given[API_OPTIONS];
    const char *within[API_OPTIONS]; /* as in api_origin; NULL for the query */
    enum kl_tail tail;               /* of a sparse target */
    const char *const *tensors;      /* names of tensors, NULL at the end, for errors; or NULL */
};

/* The tensors of a request, for messages. */
#define API_TENSOR_LIST "input, target, grad_output, weight, mask, indices and log_normalizer"

extern const struct api_field api_loss_options[API_OPTIONS + 1];

/* Row of an option by its name, which for a list may end in "[]"; or -1. */
int api_option_find(const char *name);

/* api_option_input: one option while it is read: begin, add for each value of a list or for the only
 * one, end. */
struct api_option_input {
    struct api_options *options;
    struct api_origin origin;
    struct api_problem *problem;
    const struct api_field *row;
    union api_field_value value;
};

/* Begins to set the option `name`. Fails for unknown names with the nearest known one and the
 * list of all; `also` lists other names, NULL at the end, that are valid there. */
bool api_option_begin(struct api_option_input *setting, struct api_options *options,
                      struct api_origin origin, const char *const *also,
                      struct api_problem *problem);

/* True if the object that is read had a member of this name before; `read` holds the options that it had, as bits. */
bool api_option_is_repeated(const struct api_option_input *setting, uint64_t *read);
bool api_option_add(struct api_option_input *setting, const struct api_value *value);

/* Ends the setting. Succeeds for a repeated option if the values are equal; a list repeated in
 * the query is extended. */
bool api_option_end(struct api_option_input *setting);

/* Sets an option from text: begin, add, end. */
bool api_option_set_text(struct api_options *options, struct api_origin origin, const char *text,
                         const char *const *also, struct api_problem *problem);

/* Fails at the origin of an option; without a location if the option was not given. */
bool api_option_fail(const struct api_options *options, enum api_option option,
                     struct api_problem *problem, const char *code, const char *detail);

/* Sets options from all parameters of a raw query string, percent-decoded; NULL is empty. Names
 * may end in "[]". With `only_known`, parameters of other names are passed over. */
bool api_options_from_query(struct api_options *options, const char *query, bool only_known,
                            struct api_problem *problem);
