/* One loss asked for and computed, whatever wire format it came in and goes out by. */
#ifndef KLDIV_API_CALL_H
#define KLDIV_API_CALL_H

#include "api/options.h"
#include "api/problem.h"
#include "lib/kldiv.h"

enum { API_MAX_DIMS = 64 };

enum api_tensor_name { API_INPUT, API_TARGET };
#define API_TENSORS 2

/* Owns its data; `view` borrows shape and data once `present`. */
struct api_tensor {
    bool present;
    bool flat; /* came as one array, whatever its shape */
    struct kl_tensor view;
    size_t shape[API_MAX_DIMS];
    struct api_buffer data;
};

extern const char *const api_tensor_names[API_TENSORS];

struct api_call {
    struct api_options options;
    struct api_tensor tensors[API_TENSORS];
    struct kl_plan plan;
    struct api_buffer loss;
};

/* Empty, its buffers on the budget (which may be NULL). */
void api_call_init(struct api_call *call, struct api_budget *budget);
void api_call_free(struct api_call *call);

/* Checks the call and computes its loss on the pool. call->plan.warnings is right afterwards
 * even where it fails. */
bool api_call_run(struct api_call *call, struct kl_pool *pool, struct api_problem *problem);

#endif
