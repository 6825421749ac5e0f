/* What computing the loss and its gradients share. */
#ifndef KLDIV_LIB_RUN_H
#define KLDIV_LIB_RUN_H

#include "lib/kernel.h"

/* Elements in a piece of work. Pieces are summed each in order and added in their order, so the
 * bits of a sum depend on this number and on nothing else that varies. 2^14 pairs of float32
 * are 128 KiB, within a core's second-level cache, and take some 10 us, against which the
 * 0.2 us of taking a piece from the pool vanishes: 2^24 elements on two threads take 0.315 ns
 * each, and 0.335 in pieces of 2^13. */
enum { KL_PIECE = 1 << 14 };

enum kl_rule kl_rule_of(const struct kl_options *options);

/* What a loss in nats is multiplied by. */
double kl_unit_of(const struct kl_options *options);

/* The losses of elements [start, start + n) of a call by a kernel: their sum, and, of at most
 * KL_BLOCK, each as a double. */
enum { KL_BLOCK = 512 };
struct kl_work {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    enum kl_rule rule;
};
struct kl_sum kl_sum_elements(const struct kl_work *work, size_t start, size_t n);
void kl_map_elements(const struct kl_work *work, size_t start, size_t n, double *losses);

/* Adds a sum to another. */
static inline void kl_sum_merge(struct kl_sum *total, struct kl_sum part)
{
    kl_sum_add(total, part.high);
    total->low += part.low;
}

/* KL_NONE where plan->options.dim leaves more than one place: writes the sum of each. */
void kl_run_rows(const struct kl_work *work, struct kl_pool *pool, char *losses);

/* What a reduced sum is divided by. */
double kl_divisor_of(const struct kl_plan *plan);

/* Where element `index` lies. */
const void *kl_at(const struct kl_tensor *tensor, size_t index);

/* Fails with target_negative, which KL_MATH asks for, at the first negative target. */
bool kl_refuse_negative(const struct kl_plan *plan, struct kl_problem *problem);

#endif
