/* The divisor of reduced losses. */
#include "lib/divisor.h"
#include "lib/exact.h"
#include "lib/job.h"

static size_t elements_of(size_t ndim, const size_t *shape)
{
    size_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

/* Entries of the loss's first axis that the mask leaves at least one loss of. */
static double entries_left(const struct kl_plan *plan)
{
    const struct kl_mask *mask = &plan->mask;
    size_t n = elements_of(mask->ndim, mask->shape), left = 0;
    bool has_first = plan->left_ndim > 0 && mask->ndim == plan->left_ndim && mask->shape[0] > 1;
    if (plan->left_ndim == 0) /* a loss without axes is not divided */
        return 1;
    if (!has_first || n == 0)
        return n > 0 && kl_kernel()->count(mask->data, n) > 0 ? (double)plan->batch : 0;
    for (size_t i = 0, entry = n / plan->batch; i < plan->batch; i++)
        left += kl_kernel()->count(mask->data + i * entry, entry) > 0;
    return (double)left;
}

/* The losses that the mask leaves. Broadcasting repeats each byte of it as often. */
static double losses_left(const struct kl_plan *plan)
{
    size_t n = elements_of(plan->mask.ndim, plan->mask.shape);
    size_t times = plan->places / n;
    return (double)(kl_kernel()->count(plan->mask.data, n) * times);
}

/* Adds weight over the losses that the mask leaves. */
static void add_weights(const struct kl_plan *plan, struct kl_exact *to)
{
    const struct kl_kernel *kernel = kl_kernel();
    const struct kl_numbers weight = {KL_OF_WEIGHT, plan->weight.dtype, false, plan->weight.data};
    const struct kl_numbers mask = {KL_OF_MASK, KL_FLOAT64, true, plan->mask.data};
    double weights[KL_BLOCK];
    unsigned char shown[KL_BLOCK];
    struct kl_exact sum = {0};
    struct kl_axes axes;
    size_t times = kl_weight_axes(&axes, plan);
    for (size_t start = 0; start < axes.volume; start += KL_BLOCK) {
        size_t n = axes.volume - start < KL_BLOCK ? axes.volume - start : KL_BLOCK;
        if (axes.n == 1 && axes.axis[0].strides[KL_OF_WEIGHT] == 1)
            kernel->widen[weight.dtype](kl_at(&weight, start), weights, n);
        else
            kl_line_load(kernel, &axes, &weight, start, n, KL_FLOAT64, weights);
        if (mask.data) {
            kl_line_load(kernel, &axes, &mask, start, n, KL_FLOAT64, shown);
            kernel->apply_mask(weights, shown, 0, n);
        }
        kl_exact_add_all(&sum, weights, n);
    }
    kl_exact_times(&sum, times);
    kl_exact_merge(to, &sum);
}

double kl_entries_of(const struct kl_plan *plan)
{
    return plan->mask.data && plan->places > 0 ? entries_left(plan) : (double)plan->batch;
}

void kl_add_places(const struct kl_plan *plan, struct kl_exact *sum)
{
    if (plan->places == 0) /* nothing for a mask to hide */
        return;
    if (plan->weight.data)
        add_weights(plan, sum);
    else
        kl_exact_add(sum, plan->mask.data ? losses_left(plan) : (double)plan->places);
}

double kl_divisor_of(const struct kl_plan *plan)
{
    struct kl_exact weights = {0};
    if (plan->reduction == KL_BATCHMEAN)
        return kl_entries_of(plan);
    if (plan->reduction != KL_MEAN)
        return 1;
    if (!plan->weight.data && (!plan->mask.data || plan->places == 0))
        return (double)plan->places;
    kl_add_places(plan, &weights);
    return kl_exact_round(&weights);
}
