/* The options of a request, from query parameters and from members of a body alike. */
#pragma once

#include "api/loss_options.h"
#include "api/problem.h"

/* Row of an option by its name, which for a list may end in "[]"; or -1. */
int api_option_find(const char *name);

/* api_origin: the location of an option. `within` is the JSON Pointer of its parent in the body,
 * with a slash at its end ("#/"), of static lifetime; NULL for the query. */
struct api_origin {
    const char *within, *name;
};

/* api_option_input: one option while it is read: begin, add for each value of a list or for the only
 * one, end. */
struct api_option_input {
    struct api_options *options;
    struct api_origin origin;
    struct api_problem *problem;
    int option;
    union api_option_value value;
};

/* Begins to set the option `name`. Fails for unknown names with the nearest known one and the
 * list of all; `also` lists other names, NULL at the end, that are valid there. */
bool api_option_begin(struct api_option_input *setting, struct api_options *options,
                      struct api_origin origin, const char *const *also,
                      struct api_problem *problem);
bool api_option_add(struct api_option_input *setting, const struct api_value *value);

/* Ends the setting. Succeeds for a repeated option if the values are equal; a list repeated in
 * the query is extended. */
bool api_option_end(struct api_option_input *setting);

/* Sets an option from text: begin, add, end. */
bool api_option_set_text(struct api_options *options, struct api_origin origin, const char *text,
                         const char *const *also, struct api_problem *problem);

/* True if an option is a list. */
bool api_option_is_list(int option);

/* Fails at the origin of an option; with no place if the option was not given. */
bool api_option_fail(const struct api_options *options, enum api_option option,
                     struct api_problem *problem, const char *code, const char *detail);

/* Sets options from all parameters of a raw query string, percent-decoded; NULL is empty. Names
 * may end in "[]". With `known_alone`, parameters of other names are passed over. */
bool api_options_from_query(struct api_options *options, const char *query, bool known_alone,
                            struct api_problem *problem);
