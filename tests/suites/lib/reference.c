#include "tests/suites/lib/reference.h"

#include <math.h>
#include <stdlib.h>

size_t reference_count(size_t ndim, const size_t *shape)
{
    size_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

/* Offset in an array of `shape` for an index of the joint shape. */
static size_t element_of(size_t ndim, const size_t *index, const size_t *shape)
{
    size_t element = 0;
    for (size_t i = 0; i < ndim; i++)
        element = element * shape[i] + (shape[i] == 1 ? 0 : index[i]);
    return element;
}

struct place {
    size_t index[REFERENCE_DIMS], left[REFERENCE_DIMS];
    size_t row, loss; /* index of the softmax row; index of the loss */
};

static struct place place_of(const struct reference *r, size_t element)
{
    struct place place = {.row = 0};
    size_t n_left = 0;
    for (size_t i = r->ndim; i-- > 0; element /= r->shape[i])
        place.index[i] = element % r->shape[i];
    for (size_t i = 0; i < r->ndim; i++) {
        bool in_row = r->any_summed ? r->summed[i] : i == r->ndim - 1;
        if (!in_row)
            place.row = place.row * r->shape[i] + place.index[i];
        if (!r->summed[i])
            place.left[n_left++] = place.index[i];
    }
    place.loss = element_of(r->left_ndim, place.left, r->left);
    return place;
}

static bool is_kept(const struct reference *r, const struct place *place)
{
    return !r->mask || r->mask[element_of(r->left_ndim, place->left, r->mask_shape)];
}

/* Log-sum-exp of each row of logits. */
static void find_sums(const struct reference *r, int operand, const long double *v,
                      long double *tops, long double *sums)
{
    size_t n = reference_count(r->ndim, r->shape);
    for (size_t i = 0; i < n; i++)
        tops[i] = -INFINITY, sums[i] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            struct place place = place_of(r, i);
            if (!is_kept(r, &place))
                continue;
            long double z =
                v[element_of(r->ndim, place.index, r->operands[operand])] / r->temperature;
            if (pass == 0)
                tops[place.row] = fmaxl(tops[place.row], z);
            else
                sums[place.row] += expl(z - tops[place.row]);
        }
    for (size_t i = 0; i < n; i++)
        sums[i] = tops[i] + logl(sums[i]);
}

/* Logarithm of an element's probability. */
static long double logarithm(const struct reference *r, int operand, long double v,
                             const long double *sums, size_t row)
{
    enum kl_space space = r->spaces[operand];
    return space == KL_LOGIT ? v / r->temperature - sums[row] : space == KL_PROB ? logl(v) : v;
}

/* An element's loss by the definition of its divergence: x and y are logarithms, and difference is y - x. */
static long double loss_of(const struct reference *r, long double x, long double y,
                           long double difference)
{
    long double q = expl(x), p = expl(y), share = r->share,
                mean = logl(share * p + (1 - share) * q);
    enum kl_divergence divergence = r->divergence >= KL_JS && share == 0   ? KL_FORWARD
                                    : r->divergence == KL_JS && share == 1 ? KL_REVERSE
                                                                           : r->divergence;
    switch (divergence) {
    case KL_REVERSE:
        return q == 0 ? 0 : q * -difference;
    case KL_JS:
        return share * (p == 0 ? 0 : p * (y - mean)) + (1 - share) * (q == 0 ? 0 : q * (x - mean));
    case KL_SKEW:
        return p == 0 ? 0 : p * (y - mean);
    default:
        return p == 0 ? 0 : p * difference;
    }
}

static long double reduce(const struct reference *r, const long double *losses,
                          const long double *weights, const bool *kept, const double *upstream)
{
    size_t n = reference_count(r->left_ndim, r->left), first = r->left_ndim ? r->left[0] : 1;
    long double sum = 0, weight = 0, entries = 0;
    for (size_t entry = 0; entry < first; entry++) {
        bool any = false;
        for (size_t i = entry * (n / first); i < (entry + 1) * (n / first); i++) {
            sum += losses[i] * (upstream ? upstream[i] : 1);
            weight += kept[i] ? weights[i] : 0;
            any |= kept[i];
        }
        entries += any;
    }
    return r->reduction == KL_MEAN        ? sum / weight
           : r->reduction == KL_BATCHMEAN ? sum / entries
                                          : sum;
}

long double reference_loss(const struct reference *r, const long double *x, const long double *t,
                           const double *upstream, long double *losses)
{
    size_t n = reference_count(r->ndim, r->shape), left = reference_count(r->left_ndim, r->left);
    long double *sums[2] = {malloc(n * sizeof **sums), malloc(n * sizeof **sums)};
    long double *tops = malloc(n * sizeof *tops), *mine = calloc(left, sizeof *mine);
    long double *weights = malloc(left * sizeof *weights);
    bool *kept = malloc(left * sizeof *kept);
    for (int i = 0; i < 2; i++)
        if (r->spaces[i] == KL_LOGIT)
            find_sums(r, i, i ? t : x, tops, sums[i]);
    for (size_t i = 0; i < n; i++) {
        struct place place = place_of(r, i);
        weights[place.loss] =
            r->weight ? r->weight[element_of(r->left_ndim, place.left, r->weight_shape)] : 1;
        kept[place.loss] = is_kept(r, &place);
        if (!kept[place.loss])
            continue;
        long double a = x[element_of(r->ndim, place.index, r->operands[0])];
        long double b = t[element_of(r->ndim, place.index, r->operands[1])];
        long double log_p = logarithm(r, 1, b, sums[1], place.row);
        long double log_q = logarithm(r, 0, a, sums[0], place.row), difference = log_p - log_q;
        if (r->spaces[0] == KL_PROB && r->spaces[1] == KL_PROB && fabsl(b / a - 1) < 0.1L)
            difference = log1pl((b - a) / a);
        mine[place.loss] += weights[place.loss] * loss_of(r, log_q, log_p, difference) *
                            (r->is_scaled ? r->temperature * r->temperature : 1);
    }
    for (size_t i = 0; losses && i < left; i++)
        losses[i] = mine[i];
    long double loss = reduce(r, mine, weights, kept, upstream);
    free(sums[0]), free(sums[1]), free(tops), free(mine), free(weights), free(kept);
    return loss;
}
