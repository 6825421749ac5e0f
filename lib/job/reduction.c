#include "lib/job/reduction.h"
#include "lib/job/job.h"

#include <math.h>

/* ---- Divisors */

static size_t elements_of(size_t ndim, const size_t *shape)
{
    size_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

/* COUNTED: bytes that are counted in some 10 us, and of which a call asks whether it is stopped. */
enum { COUNTED = 1 << 16 };

/* How many of n bytes of the mask are not 0. */
static size_t count_unmasked(const struct kl_plan *plan, const unsigned char *mask, size_t n)
{
    size_t unmasked = 0;
    for (size_t i = 0; i < n && !kl_is_stopped(plan); i += COUNTED)
        unmasked += kl_kernel()->count(mask + i, kl_min(n - i, COUNTED));
    return unmasked;
}

/* True if one of n bytes is not 0. Mostly one of the first bytes is not, so the search ends soon. */
static bool any_left(const struct kl_plan *plan, const unsigned char *mask, size_t n)
{
    enum { FIRST = 8 };
    for (size_t i = 0; i < kl_min(n, FIRST); i++)
        if (mask[i])
            return true;
    return n > FIRST && count_unmasked(plan, mask, n) > 0;
}

/* Entries of the loss's first axis that the mask leaves at least one loss of. */
static double entries_left(const struct kl_plan *plan)
{
    const struct kl_mask *mask = &plan->mask;
    size_t n = elements_of(mask->ndim, mask->shape), left = 0;
    bool has_first = plan->kept_ndim > 0 && mask->ndim == plan->kept_ndim && mask->shape[0] > 1;
    if (plan->kept_ndim == 0) /* a loss without axes is not divided */
        return 1;
    if (!has_first || n == 0)
        return n > 0 && count_unmasked(plan, mask->data, n) > 0 ? (double)plan->batch : 0;
    if (n == plan->batch)
        return (double)count_unmasked(plan, mask->data, n);
    for (size_t i = 0, entry = n / plan->batch; i < plan->batch; i++) {
        if (i % KL_CHUNK == 0 && kl_is_stopped(plan))
            break;
        left += any_left(plan, mask->data + i * entry, entry);
    }
    return (double)left;
}

/* The losses that the mask leaves. Broadcasting repeats each byte of it as often. */
static double losses_left(const struct kl_plan *plan)
{
    size_t n = elements_of(plan->mask.ndim, plan->mask.shape);
    size_t times = plan->kept_count / n;
    return (double)(count_unmasked(plan, plan->mask.data, n) * times);
}

/* Adds weight over the losses that the mask leaves. */
static void add_weights(const struct kl_plan *plan, struct kl_exact *to)
{
    const struct kl_kernel *kernel = kl_kernel();
    const struct kl_array_view weight = kl_array_of(plan, KL_OF_WEIGHT);
    const struct kl_array_view mask = kl_array_of(plan, KL_OF_MASK);
    double weights[KL_BLOCK];
    unsigned char unmasked[KL_BLOCK];
    struct kl_exact sum = {0};
    struct kl_axes axes;
    size_t times = kl_weight_axes(&axes, plan);
    for (size_t start = 0; start < axes.volume && !kl_is_stopped(plan); start += KL_BLOCK) {
        size_t n = axes.volume - start < KL_BLOCK ? axes.volume - start : KL_BLOCK;
        if (axes.n == 1 && axes.axis[0].strides[KL_OF_WEIGHT] == 1)
            kernel->widen[weight.dtype](kl_at(&weight, start), weights, n);
        else
            kl_gather(kernel, &axes, &weight, start, n, weights);
        if (mask.data) {
            kl_gather(kernel, &axes, &mask, start, n, unmasked);
            kernel->apply_mask(weights, unmasked, 0, n);
        }
        kl_exact_add_all(&sum, weights, n);
    }
    kl_exact_times(&sum, times);
    kl_exact_merge(to, &sum);
}

static double entries_of(const struct kl_plan *plan)
{
    return plan->mask.data && plan->kept_count > 0 ? entries_left(plan) : (double)plan->batch;
}

static void add_mean_divisor(const struct kl_plan *plan, struct kl_exact *sum)
{
    if (plan->kept_count == 0) /* nothing to mask */
        return;
    if (plan->weight.data)
        add_weights(plan, sum);
    else
        kl_exact_add(sum, plan->mask.data ? losses_left(plan) : (double)plan->kept_count);
}

double kl_divisor_of(const struct kl_plan *plan)
{
    struct kl_exact weights = {0};
    if (plan->reduction == KL_BATCHMEAN)
        return entries_of(plan);
    if (plan->reduction != KL_MEAN)
        return 1;
    if (!plan->weight.data && (!plan->mask.data || plan->kept_count == 0))
        return (double)plan->kept_count;
    add_mean_divisor(plan, &weights);
    return kl_exact_round(&weights);
}

/* ---- Partial results */

double kl_reduced(double sum, double divisor, enum kl_reduction reduction, bool zero_if_empty)
{
    bool zero = reduction == KL_MEAN && zero_if_empty && divisor == 0 && sum == 0;
    return zero ? 0 : sum / divisor;
}

void kl_fill_partial(const struct kl_plan *plan, const struct kl_exact *sum,
                     struct kl_partial *partial)
{
    *partial = (struct kl_partial){.sum = *sum, .zero_if_empty = plan->zero_if_empty};
    add_mean_divisor(plan, &partial->weights);
    kl_exact_add(&partial->entries, entries_of(plan));
}

void kl_partial_merge(struct kl_partial *partial, const struct kl_partial *more)
{
    kl_exact_merge(&partial->sum, &more->sum);
    kl_exact_merge(&partial->weights, &more->weights);
    kl_exact_merge(&partial->entries, &more->entries);
    partial->zero_if_empty |= more->zero_if_empty;
}

void kl_partial_sum(const struct kl_partial *partial, double pair[2])
{
    kl_exact_pair(&partial->sum, pair);
}

void kl_partial_divisor(const struct kl_partial *partial, enum kl_reduction reduction,
                        double pair[2])
{
    if (reduction == KL_MEAN || reduction == KL_ELEMENTWISE_MEAN)
        kl_exact_pair(&partial->weights, pair);
    else if (reduction == KL_BATCHMEAN)
        kl_exact_pair(&partial->entries, pair);
    else
        pair[0] = 1, pair[1] = 0;
}

double kl_partial_loss(const struct kl_partial *partial, enum kl_reduction reduction,
                       enum kl_dtype dtype)
{
    double divisor[2], cell;
    if (reduction == KL_ELEMENTWISE_MEAN)
        reduction = KL_MEAN;
    if (reduction == KL_NONE || kl_dtype_size(dtype) == 0)
        return (double)NAN;
    kl_partial_divisor(partial, reduction, divisor);
    kl_store(
        dtype, &cell, 0,
        kl_reduced(kl_exact_value(&partial->sum), divisor[0], reduction, partial->zero_if_empty));
    return kl_load(dtype, &cell, 0);
}

static size_t greatest_common_divisor(size_t a, size_t b)
{
    while (b > 0) {
        size_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

size_t kl_partial_step(const struct kl_plan *plan)
{
    size_t ndim = plan->joint_ndim;
    bool has_rows = plan->options.n_dim > 0 || plan->options.sparse ||
                    plan->spaces[KL_INPUT] == KL_LOGIT || plan->spaces[KL_TARGET] == KL_LOGIT;
    bool is_inner = plan->options.n_dim > 0 || plan->options.sparse ? plan->summed[0] : ndim < 2;
    if (ndim == 0 || (has_rows && is_inner))
        return 0;
    if (has_rows || plan->count == 0)
        return 1;
    return KL_CHUNK / greatest_common_divisor(KL_CHUNK, plan->count / plan->joint_shape[0]);
}
