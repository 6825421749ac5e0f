/* Partial results: whatever the shards, their order and the options, they merge to the bits of one call. */
#include "lib/simd/kernel.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Random calls */

enum { MAX_DIMS = 3, MAX_SHARDS = 64, ELEMENTS = 100000 };

static unsigned long long state;
static size_t below(size_t n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (size_t)(state >> 33) % n;
}

static double fraction(void) { return ((double)below(1 << 30) + 1) / (1 << 30); }

/* kind: what an array holds. WIDE numbers have any sign and 60 bits of range. */
enum kind { LOGS, PROBS, SPARSE, LOGITS, WIDE };

static double number_of_kind(enum kind kind)
{
    return kind == LOGS     ? log(fraction())
           : kind == SPARSE ? (below(3) ? fraction() : 0)
           : kind == LOGITS ? 8 * fraction() - 4
           : kind == WIDE   ? (below(2) ? 1 : -1) * exp2(60 * fraction() - 30)
                            : fraction();
}

/* array: a tensor with data of its own, cut along axis 0 unless that is broadcast. */
struct array {
    bool is_given, is_cut;
    enum kl_dtype dtype;
    size_t ndim, shape[MAX_DIMS], entry; /* elements of an entry of axis 0 */
    char *data;
};

static struct array new_array(size_t ndim, const size_t *shape, int one, enum kl_dtype dtype,
                              enum kind kind)
{
    struct array a = {
        .is_given = true, .is_cut = one != 0, .dtype = dtype, .ndim = ndim, .entry = 1};
    for (size_t i = 0; i < ndim; i++) {
        a.shape[i] = (int)i == one ? 1 : shape[i];
        a.entry *= i > 0 ? a.shape[i] : 1;
    }
    size_t n = a.entry * a.shape[0];
    a.data = malloc(n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        kl_store(dtype, a.data, i, number_of_kind(kind));
    return a;
}

/* Entries [from, from + n) of an array, of elements of `size` bytes. */
static struct array part_of(const struct array *whole, size_t from, size_t n, size_t size)
{
    struct array part = *whole;
    if (whole->is_cut && whole->is_given) {
        part.shape[0] = n;
        part.data += from * whole->entry * size;
    }
    return part;
}

struct call {
    struct array arrays[5]; /* by enum kl_operand */
    struct kl_options options;
    int dim;
};

static struct kl_tensor tensor_of(const struct array *a)
{
    return (struct kl_tensor){a->dtype, a->ndim, a->shape, a->data};
}

static bool plan_call(struct kl_plan *plan, struct call *call, struct kl_problem *problem)
{
    static struct kl_tensor weight;
    static struct kl_mask mask;
    struct kl_tensor input = tensor_of(&call->arrays[KL_INPUT]),
                     target = tensor_of(&call->arrays[KL_TARGET]);
    const struct array *kept = &call->arrays[KL_MASK];
    weight = tensor_of(&call->arrays[KL_WEIGHT]);
    mask = (struct kl_mask){kept->ndim, kept->shape, (unsigned char *)kept->data};
    call->options.dim = &call->dim;
    call->options.weight = call->arrays[KL_WEIGHT].is_given ? &weight : NULL;
    call->options.mask = kept->is_given ? &mask : NULL;
    return kl_plan(plan, &input, &target, &call->options, problem);
}

static size_t random_shape(size_t *shape)
{
    static const size_t lengths[] = {1,   2,   3,   7,    8,    10,   16,    37,
                                     100, 300, 600, 1000, 1024, 3000, 16384, 40000};
    size_t ndim = 1 + below(MAX_DIMS), entry = 1;
    for (size_t i = 1; i < ndim; i++)
        entry *= shape[i] = lengths[below(ndim == 3 ? 8 : 16)];
    shape[0] = 1 + below(ELEMENTS / entry + 2);
    return ndim;
}

/* Adds weight and mask of what dim leaves, perhaps broadcast along an axis. */
static void add_extras(struct call *call, size_t ndim, const size_t *shape)
{
    size_t left[MAX_DIMS], n = 0;
    for (size_t i = 0; i < ndim; i++)
        if (!call->options.n_dim || (int)i != call->dim)
            left[n++] = shape[i];
    if (below(3) == 0)
        call->arrays[KL_WEIGHT] = new_array(n, left, below(3) ? -1 : (int)below(n),
                                            (enum kl_dtype)below(KL_DTYPES), PROBS);
    if (below(3) == 0) {
        struct array *mask = &call->arrays[KL_MASK];
        *mask = new_array(n, left, below(3) ? -1 : (int)below(n), KL_FLOAT64, PROBS);
        for (size_t i = 0; i < mask->entry * mask->shape[0]; i++)
            mask->data[i] = below(4) > 0;
    }
}

static struct call random_call(void)
{
    size_t shape[MAX_DIMS], ndim = random_shape(shape);
    enum kind kinds[] = {below(8) ? LOGS : WIDE, below(2) ? PROBS : SPARSE};
    enum kl_dtype dtype = (enum kl_dtype)below(KL_DTYPES);
    struct call call = {.options = {.reduction = (enum kl_reduction)below(3),
                                    .compat = below(2) ? KL_PYTORCH : KL_MATH,
                                    .base = (enum kl_base)below(2)}};
    call.options.n_dim = ndim > 1 && below(2);
    call.dim = ndim > 1 ? (int)(1 + below(ndim - 1)) : 0;
    if (below(3) == 0)
        call.options.target_space = KL_LOG_PROB, kinds[KL_TARGET] = LOGS;
    if (below(3) == 0)
        call.options.input_space = KL_PROB, kinds[KL_INPUT] = PROBS;
    else if (below(2) && ndim > 1) {
        call.options.input_space = KL_LOGIT, kinds[KL_INPUT] = LOGITS;
        if (below(2))
            call.options.target_space = KL_LOGIT, kinds[KL_TARGET] = LOGITS;
    }
    call.options.broadcast = ndim > 1 && below(5) == 0;
    call.arrays[KL_INPUT] = new_array(ndim, shape, -1, dtype, kinds[KL_INPUT]);
    call.arrays[KL_TARGET] =
        new_array(ndim, shape, call.options.broadcast ? (int)below(ndim) : -1,
                  below(3) ? dtype : (enum kl_dtype)below(KL_DTYPES), kinds[KL_TARGET]);
    add_extras(&call, ndim, shape);
    return call;
}

/* sharded: a call's partial results, as they merge, and as their pairs do. */
struct sharded {
    struct kl_partial merged;
    __float128 sum, divisor;
};

static void run_shard(const struct call *whole, size_t from, size_t n, struct kl_pool *pool,
                      struct kl_partial *partial)
{
    struct kl_problem problem = {0};
    struct kl_plan plan;
    struct call shard = *whole;
    for (size_t i = 0; i < 5; i++)
        shard.arrays[i] = part_of(&whole->arrays[i], from, n,
                                  i == KL_MASK ? 1 : kl_dtype_size(whole->arrays[i].dtype));
    cr_assert(plan_call(&plan, &shard, &problem), "%s", problem.detail);
    cr_assert(kl_run_partial(&plan, pool, partial, &problem), "%s", problem.detail);
}

static void merge_shuffled(struct kl_partial *partials, size_t n, struct kl_partial *merged)
{
    *merged = (struct kl_partial){.zero_if_empty = false};
    for (; n > 0; n--) {
        size_t i = below(n);
        kl_partial_merge(merged, &partials[i]);
        partials[i] = partials[n - 1];
    }
}

/* The least entries of a shard. */
static size_t min_step_of(const struct call *call)
{
    for (size_t i = 0; i < COUNT(call->arrays); i++)
        if (call->arrays[i].is_given && !call->arrays[i].is_cut)
            return 2;
    return 1;
}

static struct sharded run_shards(const struct call *call, size_t step, struct kl_pool *pool)
{
    static struct kl_partial partials[MAX_SHARDS];
    struct sharded all = {.sum = 0};
    double sum[2], divisor[2];
    size_t n = 0, end = call->arrays[KL_INPUT].shape[0], max = end / step / (1 + below(6)) + 1;
    size_t min = min_step_of(call);
    for (size_t from = 0, size; from < end; from += size, n++) {
        size = (min + below(max)) * step;
        size = size + min > end - from || n + 1 == MAX_SHARDS ? end - from : size;
        run_shard(call, from, size, below(2) ? pool : NULL, &partials[n]);
        kl_partial_sum(&partials[n], sum);
        kl_partial_divisor(&partials[n], call->options.reduction, divisor);
        all.sum += (__float128)sum[0] + (__float128)sum[1];
        all.divisor += (__float128)divisor[0] + (__float128)divisor[1];
    }
    if (call->options.reduction == KL_SUM)
        all.divisor = 1;
    merge_shuffled(partials, n, &all.merged);
    return all;
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static double rounded_to(enum kl_dtype dtype, double value)
{
    char cell[sizeof(double)];
    kl_store(dtype, cell, 0, value);
    return kl_load(dtype, cell, 0);
}

/* Compares the shards of random calls with the calls themselves. */
static void compare_calls(size_t calls, size_t *cut)
{
    struct kl_pool *pool = kl_pool_new(2);
    for (size_t i = 0; i < calls; i++) {
        struct kl_problem problem = {0};
        struct kl_plan plan;
        struct call call = random_call();
        double cell = 0;
        cr_assert(plan_call(&plan, &call, &problem), "%s", problem.detail);
        size_t step = kl_partial_step(&plan);
        cr_assert(kl_run(&plan, pool, &cell, &problem), "%s", problem.detail);
        double whole = kl_load(plan.dtype, &cell, 0);
        if (step > 0) {
            struct sharded all = run_shards(&call, step, pool);
            double loss = kl_partial_loss(&all.merged, call.options.reduction, plan.dtype);
            double wire = rounded_to(plan.dtype, (double)all.sum / (double)all.divisor);
            cr_expect(same(loss, whole), "call %zu: %a, not %a", i, loss, whole);
            cr_expect(same(wire, whole) || !isfinite(whole), "pairs of call %zu: %a, not %a", i,
                      wire, whole);
            ++*cut;
        }
        for (size_t j = 0; j < COUNT(call.arrays); j++)
            free(call.arrays[j].data);
    }
    kl_pool_free(pool);
}

Test(partial, shards_of_random_calls_merge_in_any_order_to_the_bits_of_one_call)
{
    size_t cut = 0;
    state = 1;
    compare_calls(SOME_OF(300), &cut);
    cr_expect_geq(cut, SOME_OF(250));
}

Test(partial, every_instruction_set_gives_its_own_bits_back)
{
    size_t cut = 0;
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        if ((*k)->supported()) {
            kl_simd_select((*k)->name, NULL);
            state = 2;
            compare_calls(SOME_OF(60), &cut);
        }
}

/* The partial result and the loss of inputs whose targets are 1: the sum of -input. */
static double partial_of(const double *inputs, size_t n, struct kl_partial *partial)
{
    double *targets = malloc(n * sizeof *targets), loss;
    for (size_t i = 0; i < n; i++)
        targets[i] = 1;
    const struct kl_tensor input = {KL_FLOAT64, 1, &n, inputs},
                           target = {KL_FLOAT64, 1, &n, targets};
    const struct kl_options options = {.reduction = KL_SUM};
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run_partial(&plan, NULL, partial, NULL));
    cr_assert(kl_run(&plan, NULL, &loss, NULL));
    free(targets);
    return loss;
}

Test(partial, losses_that_cancel_over_shards_and_range_from_least_to_greatest_merge_exactly)
{
    static const double inputs[][6] = {{-1e300, -1, 1e300},
                                       {-1e200, -1e100, -1, 1e200, 1e100},
                                       {-0x1p-1074, -1, 1},
                                       {-DBL_MAX, -DBL_MAX, DBL_MAX},
                                       {-DBL_MAX, -DBL_MAX, DBL_MAX, DBL_MAX, -3},
                                       {-1, -0x1p-53, -0x1p-105},
                                       {-0x1p60, -1, 0x1p60, 1, 0x1p-1074}};
    static const double sums[] = {1, 1, 0x1p-1074, DBL_MAX, 3, 1 + 0x1p-52, -0x1p-1074};
    for (size_t i = 0; i < COUNT(inputs); i++) {
        struct kl_partial partials[6];
        for (int times = 0; times < 20; times++) {
            struct kl_partial merged;
            for (size_t j = 0; j < 6; j++)
                partial_of(&inputs[i][j], 1, &partials[j]);
            merge_shuffled(partials, 6, &merged);
            cr_expect_eq(kl_partial_loss(&merged, KL_SUM, KL_FLOAT64), sums[i], "case %zu", i);
        }
    }
}

Test(partial, infinities_and_nan_show_as_in_one_call)
{
    const double inputs[][3] = {
        {-INFINITY, 1, 2}, {INFINITY, 1, 2}, {INFINITY, 1, -INFINITY}, {NAN, 1, 2}};
    for (size_t i = 0; i < COUNT(inputs); i++) {
        struct kl_partial partials[3], merged, whole;
        double sum[2], loss = partial_of(inputs[i], 3, &whole);
        for (size_t j = 0; j < 3; j++)
            partial_of(&inputs[i][j], 1, &partials[j]);
        merge_shuffled(partials, 3, &merged);
        kl_partial_sum(&merged, sum);
        cr_expect(same(kl_partial_loss(&merged, KL_SUM, KL_FLOAT64), loss), "case %zu", i);
        cr_expect(same(sum[0], loss) && sum[1] == 0, "case %zu", i);
    }
}

Test(partial, a_sum_is_a_double_and_what_that_leaves)
{
    const double inputs[] = {-1, -0x1p-60, -0x1p-70};
    struct kl_partial merged = {.zero_if_empty = false}, partial;
    double sum[2], divisor[2];
    for (size_t i = 0; i < 3; i++) {
        partial_of(&inputs[i], 1, &partial);
        kl_partial_merge(&merged, &partial);
    }
    kl_partial_sum(&merged, sum);
    kl_partial_divisor(&merged, KL_MEAN, divisor);
    cr_expect(sum[0] == 1 && sum[1] == 0x1p-60 + 0x1p-70);
    cr_expect(divisor[0] == 3 && divisor[1] == 0);
    cr_expect_eq(kl_partial_loss(&merged, KL_ELEMENTWISE_MEAN, KL_FLOAT16),
                 rounded_to(KL_FLOAT16, 1 / 3.0));
    cr_expect(isnan(kl_partial_loss(&merged, KL_NONE, 0)));
}

Test(partial, nothing_merges_as_nothing_and_its_mean_is_that_of_nothing)
{
    struct kl_partial empty = {.zero_if_empty = false}, partial;
    partial_of((const double[]){-2}, 1, &partial);
    kl_partial_merge(&empty, &partial);
    cr_expect_eq(kl_partial_loss(&empty, KL_MEAN, KL_FLOAT64), 2);
    empty = (struct kl_partial){.zero_if_empty = false};
    cr_expect(isnan(kl_partial_loss(&empty, KL_MEAN, KL_FLOAT64)));
    empty.zero_if_empty = true;
    cr_expect_eq(kl_partial_loss(&empty, KL_MEAN, KL_FLOAT64), 0);
}

Test(partial, reduction_none_has_none_and_the_sign_of_probabilities_is_looked_at)
{
    const size_t n = 2;
    const double data[] = {-1, -2};
    const struct kl_tensor tensor = {KL_FLOAT64, 1, &n, data};
    struct kl_options options = {.reduction = KL_NONE, .compat = KL_MATH};
    struct kl_partial partial;
    struct kl_problem problem = {0};
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL));
    cr_expect_not(kl_run_partial(&plan, NULL, &partial, &problem));
    cr_expect_str_eq(problem.code, "partial_none");
    options.reduction = KL_SUM, problem = (struct kl_problem){0};
    cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL));
    cr_expect(!kl_run_partial(&plan, NULL, &partial, &problem));
    cr_expect_str_eq(problem.code, "target_negative");
}

Test(partial, calls_are_cut_between_rows_or_at_multiples_of_a_chunk)
{
    static const struct {
        size_t ndim, shape[2], n_dim;
        int dim;
        enum kl_space space;
        size_t step;
    } cases[] = {{0, {0}, 0, 0, KL_LOG_PROB, 0},       {1, {9}, 0, 0, KL_LOG_PROB, KL_CHUNK},
                 {1, {9}, 0, 0, KL_LOGIT, 0},          {2, {9, 10}, 0, 0, KL_PROB, 8192},
                 {2, {9, 1 << 15}, 0, 0, KL_PROB, 1},  {2, {9, 7}, 1, 1, KL_PROB, 1},
                 {2, {9, 7}, 1, 0, KL_PROB, 0},        {2, {9, 7}, 0, 0, KL_LOGIT, 1},
                 {2, {9, 0}, 0, 0, KL_LOG_PROB, 1},    {2, {9, 7}, 1, -2, KL_LOGIT, 0},
                 {2, {9, 7}, 0, 0, KL_LOG_PROB, 16384}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const double none[1] = {0};
        const struct kl_tensor tensor = {KL_FLOAT64, cases[i].ndim, cases[i].shape, none};
        const struct kl_options options = {
            .input_space = cases[i].space, .dim = &cases[i].dim, .n_dim = cases[i].n_dim};
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL), "case %zu", i);
        cr_expect_eq(kl_partial_step(&plan), cases[i].step, "case %zu", i);
    }
    cr_expect_eq(kl_chunk(), KL_CHUNK);
}

/* Sizes that programs were compiled against, on machines of 64 bits. */
Test(partial, structs_grow_only_with_the_soname)
{
    static const size_t sizes[] = {
        [KL_SIZEOF_PROBLEM] = 280, [KL_SIZEOF_TENSOR] = 32,      [KL_SIZEOF_MASK] = 24,
        [KL_SIZEOF_OPTIONS] = 120, [KL_SIZEOF_PLAN] = 2008,      [KL_SIZEOF_PARTIAL] = 1784,
        [KL_SIZEOF_RESULTS] = 32,  [KL_SIZEOF_DIAGNOSIS] = 2304, [KL_SIZEOF_DRIFT_OPTIONS] = 24,
        [KL_SIZEOF_DRIFT] = 96,    [KL_SIZEOF_DRIFT_BIN] = 32};
    for (enum kl_struct name = 0; name < COUNT(sizes); name++)
        cr_expect_eq(
            kl_sizeof(name), sizes[name],
            "struct %d has %zu bytes, not %zu: libkldiv.so.1 and lib/kldiv.map need a new number",
            name, kl_sizeof(name), sizes[name]);
    cr_expect_eq(kl_sizeof((enum kl_struct)COUNT(sizes)), 0);
    cr_expect_str_eq(kl_version(), KLDIV_VERSION);
}
