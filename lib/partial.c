/* Partial results: sums and divisors of parts of a call, their merge, and the loss that they give. */
#include "lib/partial.h"
#include "lib/divisor.h"
#include "lib/exact.h"
#include "lib/job.h"

#include <math.h>

bool kl_is_zero_if_empty(const struct kl_plan *plan) { return plan->options.compat == KL_ONEFLOW; }

double kl_reduced(double sum, double divisor, enum kl_reduction reduction, bool zero_if_empty)
{
    bool zero = reduction == KL_MEAN && zero_if_empty && divisor == 0 && sum == 0;
    return zero ? 0 : sum / divisor;
}

void kl_fill_partial(const struct kl_plan *plan, const struct kl_exact *sum,
                     struct kl_partial *partial)
{
    *partial = (struct kl_partial){.sum = *sum, .zero_if_empty = kl_is_zero_if_empty(plan)};
    kl_add_places(plan, &partial->places);
    kl_exact_add(&partial->entries, kl_entries_of(plan));
}

void kl_partial_merge(struct kl_partial *partial, const struct kl_partial *more)
{
    kl_exact_merge(&partial->sum, &more->sum);
    kl_exact_merge(&partial->places, &more->places);
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
        kl_exact_pair(&partial->places, pair);
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
    if (reduction == KL_NONE)
        return (double)NAN;
    kl_partial_divisor(partial, reduction, divisor);
    kl_store(
        dtype, &cell, 0,
        kl_reduced(kl_exact_value(&partial->sum), divisor[0], reduction, partial->zero_if_empty));
    return kl_load(dtype, &cell, 0);
}

size_t kl_chunk(void) { return KL_CHUNK; }

static size_t divisor_common(size_t a, size_t b)
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
    bool has_rows = plan->options.n_dim > 0 || plan->spaces[KL_INPUT] == KL_LOGIT ||
                    plan->spaces[KL_TARGET] == KL_LOGIT;
    bool is_along = plan->options.n_dim > 0 ? plan->summed[0] : ndim < 2;
    if (ndim == 0 || (has_rows && is_along))
        return 0;
    if (has_rows || plan->count == 0)
        return 1;
    return KL_CHUNK / divisor_common(KL_CHUNK, plan->count / plan->joint_shape[0]);
}

size_t kl_sizeof(enum kl_struct name)
{
    static const size_t sizes[] = {
        [KL_SIZEOF_PROBLEM] = sizeof(struct kl_problem),
        [KL_SIZEOF_TENSOR] = sizeof(struct kl_tensor),
        [KL_SIZEOF_MASK] = sizeof(struct kl_mask),
        [KL_SIZEOF_OPTIONS] = sizeof(struct kl_options),
        [KL_SIZEOF_PLAN] = sizeof(struct kl_plan),
        [KL_SIZEOF_PARTIAL] = sizeof(struct kl_partial),
        [KL_SIZEOF_RESULTS] = sizeof(struct kl_results),
        [KL_SIZEOF_DIAGNOSIS] = sizeof(struct kl_diagnosis),
    };
    return (unsigned)name < sizeof sizes / sizeof *sizes ? sizes[name] : 0;
}
