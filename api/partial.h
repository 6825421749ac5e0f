/* Partial results, which merge over shards: what partial=true gives instead of a loss. */
#pragma once

#include "api/options.h"

/* API_PAIR_SIZE: bytes of a number and what rounding left of it. */
enum { API_PAIR_SIZE = 2 * sizeof(double) };

/* Refuses partial results of what does not add up over shards: partial_none, partial_gradient. */
bool api_partial_check(const struct api_options *options, enum kl_reduction reduction,
                       struct api_problem *problem);

/* Runs a plan, and its diagnosis unless that is NULL; writes sum and divisor, each a pair, to buffers of
 * API_PAIR_SIZE bytes. */
bool api_partial_run(const struct kl_plan *plan, struct kl_pool *pool,
                     struct kl_diagnosis *diagnosis, struct api_buffer pairs[2],
                     struct kl_problem *problem);
