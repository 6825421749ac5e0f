/* Spaces, axes, weights, masks and broadcasting, combined at random sizes, against a definition
 * in long double: losses, and gradients by finite differences. */
#include "tests/suites/lib/reference.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    struct reference r;
    size_t counts[2], n, left;
    long double *v[2]; /* values of the operands */
    double *weight, *upstream;
    unsigned char *mask;
};

static size_t draw_index(unsigned long long *state, size_t n)
{
    return (size_t)(uniform(state) * (double)n);
}

/* Copies entries of `shape`, some replaced by 1. */
static void shrink(const size_t *shape, size_t n, double chance, size_t *to,
                   unsigned long long *state)
{
    for (size_t i = 0; i < n; i++)
        to[i] = uniform(state) < chance ? 1 : shape[i];
}

static void draw_operand(struct sample *s, int operand, unsigned long long *state)
{
    s->counts[operand] = reference_count(s->r.ndim, s->r.operands[operand]);
    s->v[operand] = malloc(s->counts[operand] * sizeof(long double));
    for (size_t i = 0; i < s->counts[operand]; i++) {
        double u = uniform(state), logit = 8 * u - 4;
        double v = s->r.spaces[operand] == KL_PROB
                       ? u + 1e-3
                       : logit - (s->r.spaces[operand] == KL_LOG_PROB ? 5 : 0);
        s->v[operand][i] = (double)(float)v;
    }
}

static struct sample draw(const size_t *shape, size_t ndim, unsigned long long *state)
{
    struct sample s = {.r = {.ndim = ndim, .temperature = 1}};
    struct reference *r = &s.r;
    double broadcast = uniform(state) < 0.3 ? 0.3 : 0;
    memcpy(r->shape, shape, ndim * sizeof *shape);
    r->temperature = uniform(state) < 0.5 ? 1 : 2.5;
    r->reduction = (enum kl_reduction)draw_index(state, 4);
    for (int i = 0; i < 2; i++) {
        r->spaces[i] = (enum kl_space)(KL_LOG_PROB + draw_index(state, 3));
        shrink(shape, ndim, broadcast, r->operands[i], state);
    }
    for (size_t i = 0; i < ndim; i++) /* axes absent in both are absent in the joint shape */
        if (r->operands[0][i] == 1 && r->operands[1][i] == 1)
            r->shape[i] = 1;
    if (r->spaces[0] != KL_LOGIT && r->spaces[1] != KL_LOGIT)
        r->temperature = 1;
    r->divergence = (enum kl_divergence)draw_index(state, 4);
    r->share = r->divergence >= KL_JS ? (double)draw_index(state, 9) / 8 : 0;
    r->is_scaled = (r->spaces[0] == KL_LOGIT || r->spaces[1] == KL_LOGIT) && uniform(state) < 0.3;
    bool any = uniform(state) < 0.6;
    for (size_t i = 0; i < ndim; i++) {
        r->summed[i] = any && uniform(state) < 0.5;
        r->any_summed |= r->summed[i];
        if (!r->summed[i])
            r->left[r->left_ndim++] = r->shape[i];
    }
    s.n = reference_count(ndim, r->shape);
    s.left = reference_count(r->left_ndim, r->left);
    draw_operand(&s, 0, state);
    draw_operand(&s, 1, state);
    shrink(r->left, r->left_ndim, 0.3, r->weight_shape, state);
    shrink(r->left, r->left_ndim, 0.3, r->mask_shape, state);
    s.weight = malloc(s.left * sizeof *s.weight);
    s.upstream = malloc(s.left * sizeof *s.upstream);
    s.mask = malloc(s.left);
    for (size_t i = 0; i < s.left; i++) {
        s.weight[i] = uniform(state) + 0.1;
        s.upstream[i] = uniform(state) - 0.3;
        s.mask[i] = uniform(state) < 0.7 || i == 0;
    }
    r->weight = uniform(state) < 0.4 ? s.weight : NULL;
    r->mask = uniform(state) < 0.4 ? s.mask : NULL;
    return s;
}

static void end(struct sample *s)
{
    free(s->v[0]), free(s->v[1]), free(s->weight), free(s->upstream), free(s->mask);
}

/* outcome: results of a sample's call in a dtype. */
struct outcome {
    struct kl_plan plan;
    char *operands[2];
    int dim[REFERENCE_DIMS];
    struct kl_tensor weight;
    struct kl_mask mask;
    char *loss, *gradients[2];
};

static void compute(const struct sample *s, enum kl_dtype dtype, struct kl_pool *pool,
                    bool gradients, struct outcome *o)
{
    const struct reference *r = &s->r;
    struct kl_tensor tensors[2];
    size_t n_dim = 0;
    for (int i = 0; i < 2; i++) {
        o->operands[i] = malloc(s->counts[i] * kl_dtype_size(dtype));
        o->gradients[i] = calloc(s->counts[i], kl_dtype_size(dtype));
        for (size_t j = 0; j < s->counts[i]; j++)
            kl_store(dtype, o->operands[i], j, (double)s->v[i][j]);
        tensors[i] = (struct kl_tensor){dtype, r->ndim, r->operands[i], o->operands[i]};
    }
    for (size_t i = 0; i < r->ndim; i++)
        if (r->summed[i])
            o->dim[n_dim++] = i & 1 ? (int)i : (int)i - (int)r->ndim;
    o->weight = (struct kl_tensor){KL_FLOAT64, r->left_ndim, r->weight_shape, r->weight};
    o->mask = (struct kl_mask){r->left_ndim, r->mask_shape, r->mask};
    struct kl_options options = {.reduction = r->reduction,
                                 .input_space = r->spaces[0],
                                 .target_space = r->spaces[1],
                                 .temperature = (double)r->temperature,
                                 .dim = o->dim,
                                 .n_dim = n_dim,
                                 .broadcast = true,
                                 .weight = r->weight ? &o->weight : NULL,
                                 .mask = r->mask ? &o->mask : NULL,
                                 .divergence = r->divergence,
                                 .beta = r->divergence == KL_JS ? (double)r->share : 0,
                                 .alpha = r->divergence == KL_SKEW ? (double)r->share : 0,
                                 .scale = r->is_scaled ? KL_TEMPERATURE_SQUARED : KL_UNSCALED};
    struct kl_problem problem = {0};
    cr_assert(kl_plan(&o->plan, &tensors[0], &tensors[1], &options, &problem), "%s",
              problem.detail);
    cr_assert_eq(o->plan.kept_count, s->left);
    o->loss = malloc(o->plan.loss_size);
    struct kl_tensor upstream = {KL_FLOAT64, r->left_ndim, r->left, s->upstream};
    struct kl_results results = {
        o->loss, {gradients ? o->gradients[0] : NULL, gradients ? o->gradients[1] : NULL}, NULL};
    cr_assert(kl_run_gradients(&o->plan, r->reduction == KL_NONE ? &upstream : NULL, pool, &results,
                               &problem));
}

static void end_outcome(struct outcome *o)
{
    for (int i = 0; i < 2; i++)
        free(o->operands[i]), free(o->gradients[i]);
    free(o->loss);
}

static void describe(const struct sample *s, char *to, size_t size)
{
    const struct reference *r = &s->r;
    int n = snprintf(to, size,
                     "divergence %d, share %Lg, scaled %d, spaces %d %d, reduction %d, T %g, mask "
                     "%d, weight %d, shape",
                     r->divergence, r->share, r->is_scaled, r->spaces[0], r->spaces[1],
                     r->reduction, (double)r->temperature, r->mask != NULL, r->weight != NULL);
    for (size_t i = 0; i < r->ndim; i++)
        n += snprintf(to + n, size - (size_t)n, " %zu(%zu,%zu)%s", r->shape[i], r->operands[0][i],
                      r->operands[1][i], r->summed[i] ? "*" : "");
}

/* True if two numbers are near; an infinity is right if the number exceeds the dtype. */
static bool is_near(double ours, long double exact, double tolerance, long double size,
                    enum kl_dtype dtype)
{
    if (isinf(ours) && dtype == KL_FLOAT16)
        return fabsl(exact) > 65500;
    return fabsl(ours - exact) <= tolerance * (fabsl(exact) + size) + 0x1p-52L;
}

static void check_losses(const struct sample *s, const struct outcome *o, double tolerance)
{
    char what[300];
    long double *losses = malloc(s->left * sizeof *losses), size = 0;
    long double exact = reference_loss(&s->r, s->v[0], s->v[1], NULL, losses);
    describe(s, what, sizeof what);
    for (size_t i = 0; i < s->left; i++)
        size = fmaxl(size, fabsl(losses[i]));
    if (s->r.reduction != KL_NONE) {
        double ours = kl_load(o->plan.dtype, o->loss, 0);
        cr_expect(is_near(ours, exact, tolerance, size, o->plan.dtype), "%s: %.17g, not %.17Lg",
                  what, ours, exact);
    }
    for (size_t i = 0; s->r.reduction == KL_NONE && i < s->left; i++) {
        double ours = kl_load(o->plan.dtype, o->loss, i);
        cr_expect(is_near(ours, losses[i], tolerance, size, o->plan.dtype),
                  "%s, loss %zu: %.17g, not %.17Lg", what, i, ours, losses[i]);
    }
    free(losses);
}

static void check_slopes(const struct sample *s, const struct outcome *o)
{
    const long double step = 1e-7L;
    const double *upstream = s->r.reduction == KL_NONE ? s->upstream : NULL;
    char what[300];
    describe(s, what, sizeof what);
    for (int operand = 0; operand < 2; operand++)
        for (size_t i = 0; i < s->counts[operand]; i++) {
            long double value = s->v[operand][i], ends[2];
            for (int side = 0; side < 2; side++) {
                s->v[operand][i] = value + (side ? step : -step) * fmaxl(fabsl(value), 1e-3L);
                ends[side] = reference_loss(&s->r, s->v[0], s->v[1], upstream, NULL);
            }
            s->v[operand][i] = value;
            long double slope = (ends[1] - ends[0]) / (2 * step * fmaxl(fabsl(value), 1e-3L));
            double ours = kl_load(KL_FLOAT64, o->gradients[operand], i);
            cr_expect(fabsl(ours - slope) <= 1e-8L * (1 + fabsl(slope)),
                      "%s, by %d at %zu: %.12g, not %.12Lg", what, operand, i, ours, slope);
        }
}

Test(spaces, gradients_are_those_of_finite_differences)
{
    unsigned long long state = 77;
    for (int round = 0; round < 800; round++) {
        size_t shape[3], ndim = 1 + draw_index(&state, 3);
        for (size_t i = 0; i < ndim; i++)
            shape[i] = 1 + draw_index(&state, 4);
        struct sample s = draw(shape, ndim, &state);
        struct outcome o;
        compute(&s, KL_FLOAT64, NULL, true, &o);
        check_losses(&s, &o, 1e-14);
        check_slopes(&s, &o);
        end_outcome(&o);
        end(&s);
    }
}

/* Checks rows longer than any tile, segment, piece or share, and many of them. Results have the
 * same bits for any number of threads. */
static void check_large(const size_t *shape, size_t ndim, unsigned long long *state,
                        struct kl_pool *pool)
{
    static const double tolerances[] = {2e-14, 1e-6, 1e-3, 1e-2};
    struct sample s = draw(shape, ndim, state);
    enum kl_dtype dtype = (enum kl_dtype)draw_index(state, KL_DTYPES);
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < s.counts[i]; j++) {
            char cell[8];
            kl_store(dtype, cell, 0, (double)s.v[i][j]);
            s.v[i][j] = kl_load(dtype, cell, 0);
        }
    struct outcome alone, together;
    compute(&s, dtype, NULL, true, &alone);
    compute(&s, dtype, pool, true, &together);
    check_losses(&s, &alone, tolerances[dtype]);
    cr_expect_arr_eq(alone.loss, together.loss, alone.plan.loss_size);
    for (int i = 0; i < 2; i++)
        cr_expect_arr_eq(alone.gradients[i], together.gradients[i],
                         s.counts[i] * kl_dtype_size(dtype));
    end_outcome(&alone);
    end_outcome(&together);
    end(&s);
}

Test(spaces, of_any_size_agree_with_the_definition)
{
    static const struct {
        size_t ndim, shape[4];
    } shapes[] = {{1, {40000}},      {2, {3, 20000}},     {2, {20000, 3}},     {2, {1000, 40}},
                  {2, {40, 1000}},   {2, {600, 10}},      {3, {5, 700, 3}},    {3, {5, 7, 300}},
                  {3, {20, 33, 17}}, {4, {3, 21, 9, 70}}, {4, {2, 600, 3, 5}}, {2, {17, 2000}}};
    struct kl_pool *pool = kl_pool_new(3);
    unsigned long long state = 5;
    for (int round = 0; round < 24; round++)
        for (size_t i = 0; i < COUNT(shapes); i++)
            check_large(shapes[i].shape, shapes[i].ndim, &state, pool);
    kl_pool_free(pool);
}
