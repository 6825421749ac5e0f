/* Rows beside other rows: their bits are those of the row alone, whatever values the others hold, and a weight
 * or mask of rows gives the same bits in each way to write it. */
#include "lib/simd/kernel.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { ROWS = 150, LENGTHS = 10, MAX = ROWS * 300 };

static const size_t lengths[LENGTHS] = {1, 2, 3, 4, 8, 20, 63, 64, 130, 300};
static double data[KL_OPERANDS][MAX], grads[2][KL_OPERANDS][MAX], losses[2][MAX];
static unsigned char mask[ROWS];
static unsigned long long state;

/* Fills arrays of `dtype`; one element in `rarity` is special. */
static void fill(enum kl_dtype dtype, const enum kl_space *spaces, size_t n, unsigned rarity)
{
    static const double special[] = {-INFINITY, -INFINITY, INFINITY, NAN, 0};
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        for (size_t i = 0; i < n; i++) {
            double v = 8 * uniform(&state) - 4;
            if (spaces[operand] == KL_PROB)
                v = exp(v);
            if (uniform(&state) * rarity < 1)
                v = special[(size_t)(uniform(&state) * 5)];
            if (spaces[operand] == KL_PROB && v < 0) /* an error under KL_MATH */
                v = 0;
            kl_store(dtype, data[operand], i, v);
        }
}

static bool is_same(enum kl_dtype dtype, const void *a, size_t i, const void *b, size_t j)
{
    double x = kl_load(dtype, a, i), y = kl_load(dtype, b, j);
    return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
}

/* Computes rows [row, row + n), into results `to`; with `is_masked`, some of them are. */
static void run(enum kl_dtype dtype, const struct kl_options *options, size_t row, size_t n,
                size_t length, bool is_masked, int to)
{
    size_t shape[] = {n, length}, of_rows[] = {n, 1}, offset = row * length * kl_dtype_size(dtype);
    struct kl_tensor operands[KL_OPERANDS];
    struct kl_results results = {losses[to], {grads[to][KL_INPUT], grads[to][KL_TARGET]}, NULL};
    struct kl_plan plan;
    struct kl_options masked = *options;
    struct kl_mask of_row = {options->n_dim ? 1 : 2, of_rows, mask + row};
    if (is_masked)
        masked.mask = &of_row;
    for (int i = 0; i < KL_OPERANDS; i++)
        operands[i] = (struct kl_tensor){dtype, 2, shape, (char *)data[i] + offset};
    cr_assert(kl_plan(&plan, &operands[KL_INPUT], &operands[KL_TARGET], &masked, NULL));
    cr_assert(kl_run_gradients(&plan, NULL, NULL, &results, NULL));
}

static void check_rows(const char *kernel, enum kl_dtype dtype, const struct kl_options *options,
                       size_t length)
{
    size_t different = 0, of_row = options->n_dim ? 1 : length;
    bool is_masked = uniform(&state) < 0.3;
    for (size_t i = 0; i < ROWS; i++)
        mask[i] = uniform(&state) < 0.8;
    run(dtype, options, 0, ROWS, length, is_masked, 0);
    for (size_t row = 0; row < ROWS; row++) {
        run(dtype, options, row, 1, length, is_masked, 1);
        for (size_t i = 0; i < of_row; i++)
            different += !is_same(dtype, losses[0], row * of_row + i, losses[1], i);
        for (int operand = 0; operand < KL_OPERANDS; operand++)
            for (size_t i = 0; i < length; i++)
                different +=
                    !is_same(dtype, grads[0][operand], row * length + i, grads[1][operand], i);
    }
    cr_expect_eq(different, 0,
                 "%s, %s, rows of %zu, spaces %d, %d, compat %d, %zu axes: %zu differ", kernel,
                 kl_dtype_name(dtype), length, options->input_space, options->target_space,
                 options->compat, options->n_dim, different);
}

static const int last[] = {-1};

/* Calls `check` with each kernel, length and two dtypes, for calls of which one operand or both hold logits. */
static void for_each(void (*check)(const char *, enum kl_dtype, const struct kl_options *, size_t),
                     size_t n_dim, unsigned rarity)
{
    static const enum kl_space spaces[][KL_OPERANDS] = {{KL_LOGIT, KL_LOGIT},
                                                        {KL_LOGIT, KL_PROB},
                                                        {KL_LOGIT, KL_LOG_PROB},
                                                        {KL_LOG_PROB, KL_LOGIT},
                                                        {KL_PROB, KL_LOGIT}};
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t i = 0; (*k)->supported() && i < 5 * LENGTHS * 2 * 3; i++) {
            enum kl_dtype dtype = i % 2 ? KL_FLOAT32 : KL_FLOAT64;
            size_t length = lengths[i / 6 % LENGTHS];
            const enum kl_space *of = spaces[i / 6 / LENGTHS];
            struct kl_options options = {.reduction = KL_NONE,
                                         .compat = (enum kl_compat)(i / 2 % 3),
                                         .input_space = of[KL_INPUT],
                                         .target_space = of[KL_TARGET],
                                         .dim = last,
                                         .n_dim = n_dim};
            cr_assert(kl_simd_select((*k)->name, NULL));
            fill(dtype, of, ROWS * length, rarity);
            check((*k)->name, dtype, &options, length);
        }
}

Test(neighbours, do_not_change_the_bits_of_a_row) { for_each(check_rows, 1, 300); }

Test(neighbours, do_not_change_the_bits_of_its_elements) { for_each(check_rows, 0, 300); }

Test(neighbours, that_are_special_as_often_as_not_do_not_either)
{
    for_each(check_rows, 1, 20);
    for_each(check_rows, 0, 20);
}

/* Makes some rows of both operands the same, some nearly, and some so large that most of their softmaxes are 1 and
 * 0. */
static void make_close(enum kl_dtype dtype, size_t length)
{
    for (size_t row = 0; row < ROWS; row++) {
        double kind = uniform(&state);
        for (size_t i = row * length; i < (row + 1) * length; i++) {
            double x = kl_load(dtype, data[KL_INPUT], i), t = kl_load(dtype, data[KL_TARGET], i);
            if (kind < 0.4)
                t = kind < 0.2 ? x : x + 1e-4 * uniform(&state);
            else if (kind < 0.8)
                x *= 300, t *= 300;
            kl_store(dtype, data[KL_INPUT], i, x);
            kl_store(dtype, data[KL_TARGET], i, t);
        }
    }
}

static void check_close_rows(const char *kernel, enum kl_dtype dtype,
                             const struct kl_options *options, size_t length)
{
    if (options->input_space != KL_LOGIT || options->target_space != KL_LOGIT)
        return;
    make_close(dtype, length);
    check_rows(kernel, dtype, options, length);
}

Test(neighbours, whose_softmaxes_nearly_agree_do_not_either)
{
    for_each(check_close_rows, 1, 1000);
}

/* ---- Weights and masks of rows */

static void check_spellings(const char *kernel, enum kl_dtype dtype,
                            const struct kl_options *options, size_t length)
{
    size_t shape[] = {ROWS, 1}, different = 0;
    float weights[ROWS];
    unsigned char unmasked[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        weights[i] = (float)uniform(&state), unmasked[i] = uniform(&state) < 0.7;
    for (int to = 0; to < 2; to++) {
        struct kl_options written = *options;
        struct kl_tensor weight = {KL_FLOAT32, to ? 2 : 1, shape, weights};
        struct kl_mask of_rows = {to ? 2 : 1, shape, unmasked};
        written.reduction = KL_SUM;
        written.n_dim = to ? 0 : 1;
        written.weight = &weight;
        written.mask = &of_rows;
        run(dtype, &written, 0, ROWS, length, false, to);
    }
    different += !is_same(dtype, losses[0], 0, losses[1], 0);
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        for (size_t i = 0; i < ROWS * length; i++)
            different += !is_same(dtype, grads[0][operand], i, grads[1][operand], i);
    cr_expect_eq(different, 0, "%s, %s, rows of %zu, spaces %d, %d: %zu differ", kernel,
                 kl_dtype_name(dtype), length, options->input_space, options->target_space,
                 different);
}

Test(neighbours, weights_and_masks_of_rows_have_the_bits_of_those_of_summed_rows)
{
    for_each(check_spellings, 1, 1u << 31);
}
