/* api_weights: how many values, or what part of them, are in each bin. */
#pragma once

#include "api/monitors/model/moments.h"
#include "api/tables/field.h"

/* api_form: counts; probabilities that are known exactly; or those of a sample of n. */
enum api_form { API_NO_WEIGHTS, API_COUNTS, API_PROBABILITIES, API_SAMPLE };

struct api_weights {
    enum api_form form;
    double *values; /* as given, one for each bin, outer ones included */
    double n;       /* of API_SAMPLE; infinite for API_PROBABILITIES; else the sum */
    double
        choosing; /* rows, of which these are none, that chose the labels; 0 if nothing was chosen */
    bool has_spread;
    struct api_spread spread; /* of the values, if they are known */
    enum api_style
        style; /* of the fields that the values were, if these tell more than API_PLAIN */
};

/* Reads the members counts or probabilities, n, and those of outer bins. `where` is the JSON Pointer
 * of the object, "#" for the body. Other members are ignored. Fails if there are neither. */
bool api_weights_from_json(struct api_weights *weights, const struct api_bins *bins,
                           const json_t *object, const char *where, struct api_problem *problem);

/* Sets what is known of the values, unless that is nothing. */
void api_weights_set_spread(struct api_weights *weights, struct api_spread spread);

/* Makes weights of copied counts. False if memory is exhausted. */
bool api_weights_of_counts(struct api_weights *weights, const uint64_t *counts, size_t n_bins);
void api_weights_free(struct api_weights *weights);

/* Names of members of a reference: values, of which weights are made, and those that weights have, as many as
 * observations may have; then those of references alone. NULL at the end. */
enum { API_WEIGHTS_MEMBERS = 8, API_REFERENCE_MEMBERS = 11 };
extern const char *const api_weights_members[];

/* Turns the weights of observations into counts: those of a sample are n p, which must be whole
 * within 1e-6. */
bool api_weights_to_counts(struct api_weights *weights, const struct api_bins *bins,
                           struct api_problem *problem);

/* The largest share of all values, but for one reference in a million, that a text which is no label may have had; 1
 * if nothing is known of it. */
double api_weights_unseen_share(const struct api_weights *weights, const struct api_bins *bins);

/* Fills what scores are made of: counts, or exact probabilities. */
void api_weights_score(const struct api_weights *weights, size_t n_bins, double *to);

/* Appends the object that api_weights_from_json reads; null if there are none. */
void api_weights_write(const struct api_weights *weights, const struct api_bins *bins,
                       struct api_buffer *out);
