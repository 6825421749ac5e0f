/* Partial results, which merge over shards: what partial=true answers instead of a loss. */
#ifndef KLDIV_API_PARTIAL_H
#define KLDIV_API_PARTIAL_H

#include "api/call.h"

/* API_PAIR_SIZE: bytes of a number and what rounding left of it. */
enum { API_PAIR_SIZE = 2 * sizeof(double) };

/* Refuses partial results of what does not add up over shards: partial_none, partial_gradient. */
bool api_partial_check(const struct api_call *call, struct api_problem *problem);

/* Runs the call, and its diagnosis, if that is wanted; fills its pairs, which have room. */
bool api_partial_run(struct api_call *call, struct kl_problem *problem);

/* As api_call_output, of API_SUM and API_DIVISOR: NULL if no partial result is wanted. */
struct api_buffer *api_partial_output(struct api_call *call, size_t output, struct kl_tensor *view);

#endif
