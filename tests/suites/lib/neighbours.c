/* A row of logits has the same bits whatever rows are beside it: of special ones, of equal ones and
 * of those without a softmax, also the signs of zeros. */
#include "tests/suites/lib/arrays.h"

#include "lib/kldiv.h"

#include <math.h>
#include <string.h>

enum { ROWS = 6, MOST = 600 };

/* call: some rows of logits and their losses and derivatives, of which those of `wanted`'s bits are taken. */
struct call {
    enum kl_dtype dtype;
    struct kl_options options;
    int wanted;
    size_t rows, length;
    double x[ROWS * MOST], t[ROWS * MOST], upstream[ROWS], losses[ROWS],
        grads[KL_OPERANDS][ROWS * MOST];
};

/* Fills a row: plain, with -inf, of -inf alone but for one, with a NaN, with
 * probabilities that round to 0, or input without a softmax; or operands that are equal. */
static void fill_row(struct call *call, size_t row, unsigned long long *state)
{
    int kind = (int)(uniform(state) * 8);
    size_t n = call->length, odd = (size_t)(uniform(state) * (double)n);
    for (size_t i = 0; i < n; i++) {
        double q = 8 * uniform(state) - 4, p = kind == 1 ? q : 8 * uniform(state) - 4;
        if ((kind == 2 && i % 3 == 0) || (kind == 3 && i != odd))
            q = p = -(double)INFINITY;
        if (kind == 4 && i == odd)
            p = (double)NAN;
        if (kind == 5)
            q = -(double)INFINITY;
        if (kind == 6 && i % 4 == 0)
            q -= 800, p -= 800;
        kl_store(call->dtype, (char *)call->x, row * n + i, q);
        kl_store(call->dtype, (char *)call->t, row * n + i, p);
    }
    kl_store(call->dtype, (char *)call->upstream, row, uniform(state) - 0.5);
}

static void fill(struct call *call, unsigned long long *state)
{
    static const size_t lengths[] = {1, 2, 7, 12, 13, 16, 64, 65, 100, 512, MOST};
    static const struct kl_options options[] = {{.divergence = KL_FORWARD},
                                                {.divergence = KL_REVERSE},
                                                {.divergence = KL_JS, .beta = 0.3},
                                                {.divergence = KL_SKEW, .alpha = 0.3}};
    static const int last[] = {-1};
    call->rows = ROWS;
    call->length = lengths[(size_t)(uniform(state) * COUNT(lengths))];
    call->wanted = 1 + (int)(uniform(state) * 3);
    call->options = options[(size_t)(uniform(state) * COUNT(options))];
    call->options.reduction = KL_NONE;
    call->options.input_space = call->options.target_space = KL_LOGIT;
    call->options.dim = last, call->options.n_dim = 1;
    call->options.compat = (enum kl_compat)(uniform(state) * 3);
    for (size_t row = 0; row < ROWS; row++)
        fill_row(call, row, state);
}

static void compute(struct call *call)
{
    const size_t shape[] = {call->rows, call->length};
    const struct kl_tensor input = {call->dtype, 2, shape, call->x},
                           target = {call->dtype, 2, shape, call->t},
                           upstream = {call->dtype, 1, shape, call->upstream};
    struct kl_results results = {call->losses, {NULL, NULL}, NULL};
    struct kl_plan plan;
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        if (call->wanted >> operand & 1)
            results.grad[operand] = call->grads[operand];
    cr_assert(kl_plan(&plan, &input, &target, &call->options, NULL) &&
              kl_run_gradients(&plan, &upstream, NULL, &results, NULL));
}

/* Copies n elements from the place `first` on. */
static void cut(enum kl_dtype dtype, void *to, const void *from, size_t first, size_t n)
{
    size_t size = kl_dtype_size(dtype);
    memcpy(to, (const char *)from + first * size, n * size);
}

/* Two NaN are the same, a zero and its negative are not. */
static bool are_same(enum kl_dtype dtype, const void *a, const void *b, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = kl_load(dtype, a, i), other = kl_load(dtype, b, first + i);
        if (!(isnan(v) && isnan(other)) && (v != other || signbit(v) != signbit(other)))
            return false;
    }
    return true;
}

static void check_row(const struct call *whole, size_t row)
{
    static struct call alone;
    enum kl_dtype dtype = whole->dtype;
    size_t n = whole->length;
    alone.dtype = dtype, alone.options = whole->options;
    alone.wanted = whole->wanted, alone.rows = 1, alone.length = n;
    cut(dtype, alone.x, whole->x, row * n, n);
    cut(dtype, alone.t, whole->t, row * n, n);
    cut(dtype, alone.upstream, whole->upstream, row, 1);
    compute(&alone);
    cr_expect(are_same(dtype, alone.losses, whole->losses, row, 1),
              "%s, divergence %d: the loss of row %zu of %zu logits is not %.17g",
              kl_dtype_name(dtype), (int)whole->options.divergence, row, n,
              kl_load(dtype, (const char *)alone.losses, 0));
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        cr_expect(!(whole->wanted >> operand & 1) ||
                      are_same(dtype, alone.grads[operand], whole->grads[operand], row * n, n),
                  "%s, divergence %d, derivatives %d of %d: row %zu of %zu logits, first %.17g",
                  kl_dtype_name(dtype), (int)whole->options.divergence, operand, whole->wanted, row,
                  n, kl_load(dtype, (const char *)alone.grads[operand], 0));
}

Test(neighbours, of_logits_do_not_change_bits)
{
    static struct call call;
    unsigned long long state = 11;
    for (int round = 0; round < SOME_OF(6000); round++) {
        call.dtype = (enum kl_dtype)(round % KL_DTYPES);
        fill(&call, &state);
        compute(&call);
        for (size_t row = 0; row < ROWS; row++)
            check_row(&call, row);
    }
}
