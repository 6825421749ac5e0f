#include "api/monitors/model/weights.h"

#include "api/json/format.h"
#include "api/json/json_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double max_count = 0x1p53, tolerance = 1e-6;

const char *const api_weights_members[] = {
    "values", "counts",  "probabilities", "n",    "underflow", "overflow",
    "other",  "missing", "choosing",      "mean", "sd",        NULL};

/* OUTER: index of the first name of an outer bin. */
enum { OUTER = 4 };

void api_weights_free(struct api_weights *weights)
{
    free(weights->values);
    *weights = (struct api_weights){.form = API_NO_WEIGHTS};
}

/* reader: the members of one object. */
struct reader {
    struct api_weights *weights;
    const struct api_bins *bins;
    const char *where;
    struct api_problem *problem;
};

static bool fail(const struct reader *r, const char *member, const char *what)
{
    char pointer[100];
    snprintf(pointer, sizeof pointer, "%s/%s", r->where, member);
    return api_fail_at(r->problem, API_BODY, pointer, "counts_invalid", "%s %s", member, what);
}

/* Reads the weight of a bin, which is a member, or an item of one whose index is not NONE. */
enum { NONE = -1 };
static bool take_weight(const struct reader *r, const json_t *value, size_t bin, const char *member,
                        int item)
{
    bool counts = r->weights->form == API_COUNTS;
    double weight = json_number_value(value);
    char name[60];
    r->weights->values[bin] = weight;
    if (json_is_number(value) && weight >= 0 && weight <= (counts ? max_count : 1 + tolerance) &&
        (!counts || weight == floor(weight)))
        return true;
    snprintf(name, sizeof name, "%s/%d", member, item);
    return fail(r, item == NONE ? member : name,
                counts ? "must be whole numbers from 0 to 2^53" : "must be from 0 to 1");
}

static bool read_array(const struct reader *r, const char *member, const json_t *array)
{
    char expected[100];
    size_t first = api_bins_first(r->bins);
    if (!json_is_array(array) || json_array_size(array) != r->bins->n) {
        snprintf(expected, sizeof expected, "must be an array of %zu numbers, one for each %s",
                 r->bins->n, r->bins->labelled ? "label" : "interval");
        return fail(r, member, expected);
    }
    for (size_t i = 0; i < r->bins->n; i++)
        if (!take_weight(r, json_array_get(array, i), first + i, member, (int)i))
            return false;
    return true;
}

/* Reads the members of outer bins, which are those of this kind of bins. */
static bool read_outer(const struct reader *r, const json_t *object)
{
    for (const char *const *name = api_weights_members + OUTER;
         name < api_weights_members + API_WEIGHTS_MEMBERS; name++) {
        const json_t *value = api_json_unboxed(json_object_get(object, *name));
        size_t bin = api_bins_outer(r->bins, *name);
        if (value && bin == r->bins->n_bins)
            return fail(r, *name,
                        r->bins->labelled ? "is for edges: labels have other and missing"
                                          : "is for labels: edges have underflow, overflow and "
                                            "missing");
        if (value && !take_weight(r, value, bin, *name, NONE))
            return false;
    }
    return true;
}

static bool read_n(const struct reader *r, const json_t *n)
{
    struct api_weights *weights = r->weights;
    double sum = 0;
    bool exceeds = false; /* before the sum is rounded */
    for (size_t i = 0; i < r->bins->n_bins; i++) {
        exceeds |= weights->values[i] > max_count - sum;
        sum += weights->values[i];
    }
    if (weights->form == API_COUNTS) {
        weights->n = sum;
        if (exceeds)
            return fail(r, "counts", "must sum to at most 2^53");
        if (n && json_number_value(n) != sum)
            return fail(r, "n", "is not the sum of the counts");
        return true;
    }
    if (!(fabs(sum - 1) <= tolerance))
        return fail(r, "probabilities", "must sum to 1 within 1e-6, including the outer bins");
    weights->n = n ? json_number_value(n) : (double)INFINITY;
    if (!n)
        return true;
    weights->form = API_SAMPLE;
    return (json_is_number(n) && weights->n > 0 && weights->n <= max_count) ||
           fail(r, "n", "must be a number above 0, at most 2^53");
}

/* Reads how many rows chose the labels. */
static bool read_choosing(const struct reader *r, const json_t *choosing)
{
    double rows = json_number_value(choosing);
    r->weights->choosing = rows;
    return !choosing || json_is_null(choosing) ||
           (json_is_number(choosing) && rows >= 0 && rows <= max_count && rows == floor(rows) &&
            r->bins->labelled && r->weights->form == API_COUNTS) ||
           fail(r, "choosing", "is for counts of labels, and a whole number from 0 to 2^53");
}

/* Reads what is known of the values beside their counts. */
static bool read_spread(const struct reader *r, const json_t *mean, const json_t *sd)
{
    bool has_mean = mean && !json_is_null(mean), has_sd = sd && !json_is_null(sd);
    r->weights->has_spread = has_mean && has_sd;
    r->weights->spread = (struct api_spread){json_number_value(mean), json_number_value(sd)};
    return (!has_mean && !has_sd) ||
           (json_is_number(mean) && json_is_number(sd) && json_number_value(sd) >= 0 &&
            !r->bins->labelled) ||
           fail(r, has_mean ? "mean" : "sd",
                "is for edges: mean and sd are numbers, both or none, sd not below 0");
}

bool api_weights_from_json(struct api_weights *weights, const struct api_bins *bins,
                           const json_t *object, const char *where, struct api_problem *problem)
{
    const json_t *counts = json_object_get(object, "counts"),
                 *probabilities = json_object_get(object, "probabilities");
    const json_t *n = api_json_unboxed(json_object_get(object, "n"));
    struct reader r = {.weights = weights, .bins = bins, .where = where, .problem = problem};
    n = json_is_null(n) ? NULL : n;
    *weights = (struct api_weights){.form = counts ? API_COUNTS : API_PROBABILITIES};
    if (!counts == !probabilities)
        return api_fail_at(problem, API_BODY, where, "counts_invalid",
                           "give exactly one of values, counts or probabilities");
    weights->values = calloc(bins->n_bins, sizeof *weights->values);
    if (!weights->values)
        return api_fail_oom(problem);
    return (counts ? read_array(&r, "counts", counts)
                   : read_array(&r, "probabilities", probabilities)) &&
           read_outer(&r, object) && read_n(&r, n) &&
           read_choosing(&r, api_json_unboxed(json_object_get(object, "choosing"))) &&
           read_spread(&r, api_json_unboxed(json_object_get(object, "mean")),
                       api_json_unboxed(json_object_get(object, "sd")));
}

void api_weights_set_spread(struct api_weights *weights, struct api_spread spread)
{
    weights->has_spread = isfinite(spread.mean) && isfinite(spread.sd);
    weights->spread = spread;
}

bool api_weights_of_counts(struct api_weights *weights, const uint64_t *counts, size_t n_bins)
{
    *weights = (struct api_weights){.form = API_COUNTS,
                                    .values = malloc(n_bins * sizeof *weights->values)};
    if (weights->values)
        for (size_t i = 0; i < n_bins; i++) {
            weights->values[i] = (double)counts[i];
            weights->n += weights->values[i];
        }
    return weights->values != NULL;
}

bool api_weights_to_counts(struct api_weights *weights, const struct api_bins *bins,
                           struct api_problem *problem)
{
    if (weights->form == API_PROBABILITIES)
        return api_fail_at(problem, API_BODY, "#/n", "counts_invalid",
                           "probabilities of observations need n, the number of observations");
    double sum = 0;
    for (size_t i = 0; weights->form == API_SAMPLE && i < bins->n_bins; i++) {
        double count = weights->n * weights->values[i];
        if (fabs(count - round(count)) > tolerance)
            return api_fail_at(problem, API_BODY, "#/probabilities", "counts_invalid",
                               "n times each probability must be whole within 1e-6; one is %.17g",
                               count);
        weights->values[i] = round(count);
        sum += weights->values[i];
    }
    if (weights->form == API_SAMPLE)
        weights->n = sum;
    weights->form = API_COUNTS;
    return true;
}

/* Bounds of the mean of a Poisson variable that is at most 4, the times that a text without a bin was seen in the rows
 * that chose, and of one that is 0, in all rows: with more it is so once in a million. */
static const double rare = 23.431523423392214, never = 13.815510557964274;

double api_weights_unseen_share(const struct api_weights *weights, const struct api_bins *bins)
{
    if (!bins->labelled || (weights->form != API_COUNTS && weights->form != API_SAMPLE))
        return 1;
    if (weights->choosing > 0)
        return rare / weights->choosing;
    return weights->values[api_bins_other(bins)] == 0 ? never / weights->n : 1;
}

void api_weights_score(const struct api_weights *weights, size_t n_bins, double *to)
{
    for (size_t i = 0; i < n_bins; i++)
        to[i] = weights->form == API_SAMPLE ? weights->values[i] * weights->n : weights->values[i];
}

void api_weights_write(const struct api_weights *weights, const struct api_bins *bins,
                       struct api_buffer *out)
{
    if (weights->form == API_NO_WEIGHTS) {
        api_append_text(out, "null");
        return;
    }
    api_append_text(out, weights->form == API_COUNTS ? "{\"counts\":" : "{\"probabilities\":");
    api_write_numbers(out, weights->values + api_bins_first(bins), bins->n);
    for (size_t i = 0; i < bins->n_bins; i++)
        if (api_bins_outer_name(bins, i))
            api_write_member(out, api_bins_outer_name(bins, i), weights->values[i]);
    if (weights->form == API_SAMPLE)
        api_write_member(out, "n", weights->n);
    if (weights->choosing > 0)
        api_write_member(out, "choosing", weights->choosing);
    if (weights->has_spread)
        api_write_json(out, ",'mean':%g,'sd':%g", weights->spread.mean, weights->spread.sd);
    api_append(out, "}", 1);
}
