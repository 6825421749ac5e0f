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

/* Where element `index` lies. */
const void *kl_at(const struct kl_tensor *tensor, size_t index);

/* Fails with target_negative, which KL_MATH asks for, at the first negative target. */
bool kl_refuse_negative(const struct kl_plan *plan, struct kl_problem *problem);

#endif
