/* Numbers that are laid out otherwise have the same losses and derivatives: axes in the middle against
 * rows, broadcast operands against repeated ones, mixed dtypes against the wider one; of sizes around
 * those of tiles and chunks. */
#include "lib/simd/kernel.h"
#include "tests/suites/lib/arrays.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 1500, MAX_ELEMENTS = 1 << 16 };

/* sample: operands of (outer, length, inner), as doubles that float16 and bfloat16 hold exactly. */
struct sample {
    size_t outer, length, inner, rows, n;
    enum kl_space spaces[KL_OPERANDS];
    double *operands[KL_OPERANDS], *weight, *upstream;
    unsigned char *mask;
    bool weighted, masked, shared; /* target is the same for all rows */
    struct kl_options options;
};

/* outcome: losses of rows, and derivatives by each element, in the order of the sample. */
struct outcome {
    double *losses, *grads[KL_OPERANDS];
};

static size_t pick(unsigned long long *state, const size_t *from, size_t n)
{
    return from[(size_t)(uniform(state) * (double)n)];
}

/* Element i of row r, at (r / inner, i, r % inner). */
static size_t at(const struct sample *s, size_t r, size_t i)
{
    return (r / s->inner * s->length + i) * s->inner + r % s->inner;
}

static double draw(unsigned long long *state, enum kl_space space)
{
    static const double scales[] = {[KL_LOG_PROB] = -8, [KL_PROB] = 1, [KL_LOGIT] = 16};
    double u = floor(uniform(state) * 127 + 1) / 128; /* seven bits */
    if (uniform(state) < 0.002)
        return space == KL_PROB ? 0 : -(double)INFINITY;
    return space == KL_LOGIT ? scales[space] * u - 8 : scales[space] * u;
}

static void make(struct sample *s, unsigned long long *state)
{
    static const size_t lengths[] = {1,   2,   7,    8,    10,   33,   64,
                                     100, 129, 1000, 1024, 1025, 3000, 20000};
    static const size_t sizes[] = {1, 2, 3, 9, 16, 17, 64, 65, 130, 200, 1030};
    do {
        s->outer = pick(state, sizes, COUNT(sizes)), s->inner = pick(state, sizes, COUNT(sizes));
        s->length = pick(state, lengths, COUNT(lengths));
        s->rows = s->outer * s->inner, s->n = s->rows * s->length;
    } while (s->n > MAX_ELEMENTS);
    s->weighted = uniform(state) < 0.3, s->masked = uniform(state) < 0.3;
    s->shared = uniform(state) < 0.3;
    s->weight = malloc(s->rows * 8), s->upstream = malloc(s->rows * 8), s->mask = malloc(s->rows);
    for (int i = 0; i < KL_OPERANDS; i++) {
        s->spaces[i] = (enum kl_space)(KL_LOG_PROB + (int)(uniform(state) * 3));
        s->operands[i] = malloc(s->n * 8);
        for (size_t r = 0; r < s->rows; r++)
            for (size_t j = 0; j < s->length; j++)
                s->operands[i][at(s, r, j)] = i == KL_TARGET && s->shared && r > 0
                                                  ? s->operands[i][at(s, 0, j)]
                                                  : draw(state, s->spaces[i]);
    }
    for (size_t r = 0; r < s->rows; r++) {
        s->weight[r] = floor(uniform(state) * 16) / 8, s->upstream[r] = uniform(state) - 0.5;
        s->mask[r] = uniform(state) < 0.8;
    }
    s->options = (struct kl_options){.reduction = KL_NONE,
                                     .compat = (enum kl_compat)(uniform(state) * 3),
                                     .base = uniform(state) < 0.3 ? KL_BITS : KL_NATS,
                                     .input_space = s->spaces[KL_INPUT],
                                     .target_space = s->spaces[KL_TARGET]};
    if (s->spaces[KL_INPUT] == KL_LOGIT || s->spaces[KL_TARGET] == KL_LOGIT)
        s->options.temperature = uniform(state) < 0.5 ? 0 : 2;
}

static void end(struct sample *s)
{
    for (int i = 0; i < KL_OPERANDS; i++)
        free(s->operands[i]);
    free(s->weight), free(s->upstream), free(s->mask);
}

/* Computes with operands of (outer, length, inner), or of (rows, length) if `dense`, of these dtypes;
 * a target that all rows share is broadcast unless `dense`. */
static struct outcome compute(const struct sample *s, bool dense, const enum kl_dtype *dtypes,
                              struct kl_pool *pool)
{
    const size_t shape[] = {s->outer, s->length, s->inner}, rows[] = {s->rows, s->length};
    const size_t left[] = {s->outer, s->inner}, repeated[] = {s->length, 1};
    bool broadcast = s->shared && !dense;
    size_t counts[] = {s->n, broadcast ? s->length : s->n};
    struct kl_tensor tensors[KL_OPERANDS];
    struct kl_options options = s->options;
    char *data[KL_OPERANDS], *grads[KL_OPERANDS], *losses = malloc(s->rows * 8);
    for (int i = 0; i < KL_OPERANDS; i++) {
        data[i] = malloc(counts[i] * 8), grads[i] = malloc(counts[i] * 8);
        for (size_t r = 0; r < s->rows; r++)
            for (size_t j = 0; j < s->length; j++) {
                size_t to = dense                         ? r * s->length + j
                            : i == KL_TARGET && broadcast ? j
                                                          : at(s, r, j);
                kl_store(dtypes[i], data[i], to, s->operands[i][at(s, r, j)]);
            }
        tensors[i] = dense ? (struct kl_tensor){dtypes[i], 2, rows, data[i]}
                           : (struct kl_tensor){dtypes[i], 3, shape, data[i]};
    }
    if (broadcast)
        tensors[KL_TARGET].ndim = 2, tensors[KL_TARGET].shape = repeated;
    const struct kl_tensor weight = {KL_FLOAT64, dense ? 1 : 2, dense ? rows : left, s->weight};
    const struct kl_tensor upstream = {KL_FLOAT64, weight.ndim, weight.shape, s->upstream};
    const struct kl_mask mask = {weight.ndim, weight.shape, s->mask};
    const int dim = 1;
    options.dim = &dim, options.n_dim = 1, options.broadcast = broadcast;
    options.weight = s->weighted ? &weight : NULL;
    options.mask = s->masked ? &mask : NULL;
    struct kl_plan plan;
    struct kl_problem problem = {0};
    const struct kl_results results = {losses, {grads[KL_INPUT], grads[KL_TARGET]}, NULL};
    cr_assert(kl_plan(&plan, &tensors[KL_INPUT], &tensors[KL_TARGET], &options, &problem), "%s",
              problem.detail);
    cr_assert(kl_run_gradients(&plan, &upstream, pool, &results, &problem), "%s", problem.detail);
    struct outcome o = {malloc(s->rows * 8), {malloc(s->n * 8), malloc(s->n * 8)}};
    for (size_t r = 0; r < s->rows; r++) {
        o.losses[r] = kl_load(plan.dtype, losses, r);
        for (size_t j = 0; j < s->length; j++)
            for (int i = 0; i < KL_OPERANDS; i++) {
                size_t from = dense                         ? r * s->length + j
                              : i == KL_TARGET && broadcast ? j
                                                            : at(s, r, j);
                o.grads[i][at(s, r, j)] = kl_load(dtypes[i], grads[i], from);
            }
    }
    for (int i = 0; i < KL_OPERANDS; i++)
        free(data[i]), free(grads[i]);
    free(losses);
    return o;
}

static void free_outcome(struct outcome *o)
{
    free(o->losses), free(o->grads[KL_INPUT]), free(o->grads[KL_TARGET]);
}

static bool near(double a, double b, double size, double unit)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= unit * (fabs(b) + size);
}

/* Sums the derivatives by what rows share, as those of a broadcast target are. */
static void share(const struct sample *s, double *grads)
{
    for (size_t j = 0; j < s->length; j++) {
        long double sum = 0;
        for (size_t r = 0; r < s->rows; r++)
            sum += grads[at(s, r, j)];
        for (size_t r = 0; r < s->rows; r++)
            grads[at(s, r, j)] = (double)sum;
    }
}

static void compare(const struct sample *s, const struct outcome *a, const struct outcome *b,
                    double unit, const char *what, int round)
{
    size_t wrong = 0;
    for (size_t r = 0; r < s->rows; r++)
        wrong += !near(a->losses[r], b->losses[r], 1, unit);
    cr_expect_eq(wrong, 0, "round %d, %s: %zu losses", round, what, wrong);
    for (int i = 0; i < KL_OPERANDS; i++) {
        wrong = 0;
        for (size_t j = 0; j < s->n; j++)
            wrong += !near(a->grads[i][j], b->grads[i][j],
                           s->shared && i == KL_TARGET ? (double)s->rows * 9 : 1, unit);
        cr_expect_eq(wrong, 0,
                     "round %d, %s: %zu derivatives by %d of (%zu, %zu, %zu), spaces %d %d", round,
                     what, wrong, i, s->outer, s->length, s->inner, s->spaces[0], s->spaces[1]);
    }
}

Test(layouts, do_not_matter)
{
    static const enum kl_dtype doubles[] = {KL_FLOAT64, KL_FLOAT64};
    unsigned long long state = 23;
    struct kl_pool *pool = kl_pool_new(3);
    const struct kl_kernel *const *kernel = kl_kernels;
    for (int round = 0; round < ROUNDS; round++) {
        struct sample s;
        kernel = *kernel ? kernel : kl_kernels; /* each in its turn */
        cr_assert(!(*kernel)->supported() || kl_simd_select((*kernel)->name, NULL));
        kernel++;
        make(&s, &state);
        struct outcome dense = compute(&s, true, doubles, NULL);
        if (s.shared)
            share(&s, dense.grads[KL_TARGET]);
        struct outcome strided = compute(&s, false, doubles, pool);
        compare(&s, &strided, &dense, 0x1p-40, "strided", round);
        free_outcome(&strided);
        enum kl_dtype mixed[] = {(enum kl_dtype)(uniform(&state) * KL_DTYPES),
                                 (enum kl_dtype)(uniform(&state) * KL_DTYPES)};
        struct outcome narrow = compute(&s, false, mixed, pool),
                       rows = compute(&s, true, mixed, NULL);
        if (s.shared)
            share(&s, rows.grads[KL_TARGET]);
        compare(&s, &narrow, &dense, 0x1p-7, "narrow", round);
        compare(&s, &narrow, &rows, 0x1p-7, "narrow rows", round);
        free_outcome(&narrow), free_outcome(&rows), free_outcome(&dense);
        end(&s);
    }
    kl_pool_free(pool);
}

/* Rows that are equal have losses of the same bits, wherever they lie. */
Test(layouts, nor_does_the_place_of_a_row)
{
    enum { ROWS = 129, LONGEST = 100 };
    static double x[ROWS * LONGEST], t[ROWS * LONGEST], losses[ROWS], grads[ROWS * LONGEST];
    unsigned long long state = 6;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t length = 1; (*k)->supported() && length <= LONGEST; length++)
            for (int space = KL_LOG_PROB; space <= KL_LOGIT; space++) {
                const size_t shape[] = {ROWS, length};
                const int dim = 1;
                const struct kl_options options = {
                    .reduction = KL_NONE,
                    .dim = &dim,
                    .n_dim = 1,
                    .input_space = (enum kl_space)space,
                    .target_space = space == KL_LOG_PROB ? KL_PROB : (enum kl_space)space};
                const struct kl_tensor input = {KL_FLOAT64, 2, shape, x};
                const struct kl_tensor target = {KL_FLOAT64, 2, shape, t};
                const struct kl_results results = {losses, {grads, NULL}, NULL};
                struct kl_plan plan;
                for (size_t i = 0; i < ROWS * length; i++) {
                    x[i] = i < length ? uniform(&state) : x[i - length];
                    t[i] = i < length ? uniform(&state) : t[i - length];
                }
                kl_simd_select((*k)->name, NULL);
                cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                          kl_run_gradients(&plan, NULL, NULL, &results, NULL));
                for (size_t r = 1; r < ROWS; r++) {
                    cr_expect_eq(losses[r], losses[0], "%s, space %d: row %zu of %zu", (*k)->name,
                                 space, r, length);
                    cr_expect_arr_eq(grads + r * length, grads, length * sizeof *grads,
                                     "%s, space %d: row %zu of %zu", (*k)->name, space, r, length);
                }
            }
}

/* Weights and upstream derivatives of any dtype lie at any address. */
Test(layouts, nor_does_alignment)
{
    enum { N = 300 };
    static char weights[N * 8 + 8], upstream[N * 8 + 8];
    static double grads[2][N], losses[2][N], x[N], t[N];
    const size_t shape[] = {N};
    unsigned long long state = 2;
    for (size_t i = 0; i < N; i++)
        x[i] = -uniform(&state), t[i] = uniform(&state);
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t offset = 0; (*k)->supported() && offset < 2; offset++) {
            for (size_t i = 0; i < N; i++) {
                kl_store(KL_FLOAT64, weights + offset, i, (double)i / 7);
                kl_store(KL_FLOAT64, upstream + offset, i, (double)i - 9);
            }
            const struct kl_tensor input = {KL_FLOAT64, 1, shape, x};
            const struct kl_tensor target = {KL_FLOAT64, 1, shape, t};
            const struct kl_tensor weight = {KL_FLOAT64, 1, shape, weights + offset};
            const struct kl_tensor given = {KL_FLOAT64, 1, shape, upstream + offset};
            const struct kl_options options = {.reduction = KL_NONE, .weight = &weight};
            const struct kl_results results = {losses[offset], {grads[offset], NULL}, NULL};
            struct kl_plan plan;
            kl_simd_select((*k)->name, NULL);
            cr_assert(kl_plan(&plan, &input, &target, &options, NULL) &&
                      kl_run_gradients(&plan, &given, NULL, &results, NULL));
            cr_expect_arr_eq(losses[offset], losses[0], sizeof losses[0]);
            cr_expect_arr_eq(grads[offset], grads[0], sizeof grads[0]);
        }
}
