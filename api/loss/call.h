/* api_call: one loss with its tensors and its results, independent of the wire format. */
#pragma once

#include "api/loss/json_tensor.h"
#include "api/loss/options.h"
#include "api/loss/tensor.h"
#include "api/loss/warnings.h"
#include "api/request/exchange.h"
#include "lib/kldiv.h"

#define API_RESULTS (1 + KL_OPERANDS) /* the loss, and a gradient for each operand */
/* API_CALL_SMALL: bytes of each operand and of the loss that need no allocation. */
enum { API_CALL_SMALL = 4 << 10 };

struct api_call {
    const struct api_service *service;
    const atomic_bool *stop; /* of the exchange; may be NULL */
    struct api_options options;
    struct api_tensor tensors[API_TENSORS];
    bool is_shared;     /* true if a tensor or an output is in shared memory */
    double computed_ms; /* when it was computed, of api_seconds */
    struct kl_plan plan;
    struct kl_diagnosis diagnosis; /* empty if not requested */
    struct api_buffer loss;
    struct api_buffer gradients[KL_OPERANDS]; /* empty if not requested */
    struct api_buffer pairs[2];               /* sum and divisor, instead of the loss */
    struct {
        struct api_buffer id;         /* NUL-terminated, copied to the response */
        unsigned binary, wanted;      /* outputs, as bits: in the binary part; in the response */
        enum api_nonfinite nonfinite; /* of data in JSON */
        struct api_slice slices[API_RESULTS]; /* shared memory that outputs are written to */
    } oip;                                    /* the response that an inference request asks for */
    struct {
        char operands[KL_OPERANDS][API_CALL_SMALL], loss[API_CALL_SMALL];
    } small; /* borrowed by the buffers of tensors and loss */
};

/* Outputs: number 0 is the loss, number 1 + operand the gradient with respect to that operand; then the
 * sum and the divisor of a partial result, which has no loss. */
enum { API_LOSS, API_GRADIENTS, API_SUM = API_RESULTS, API_DIVISOR, API_OUTPUTS };
extern const char *const api_output_names[API_OUTPUTS];

/* Buffer of an output of a completed call, with its shape and dtype in *view; NULL if the output
 * was not requested. The buffer of one that is in shared memory is empty. */
struct api_buffer *api_call_output(struct api_call *call, size_t output, struct kl_tensor *view);

static inline bool api_call_has_gradient(const struct api_call *call, size_t operand)
{
    return call->options.gradient >> operand & 1;
}

/* True if the loss or a gradient was requested, by its number; its size in bytes. */
static inline bool api_call_has_output(const struct api_call *call, size_t output)
{
    return output == API_LOSS || api_call_has_gradient(call, output - API_GRADIENTS);
}

static inline size_t api_call_output_size(const struct api_call *call, size_t output)
{
    size_t operand = output - API_GRADIENTS;
    return output == API_LOSS
               ? call->plan.loss_size
               : call->plan.counts[operand] * kl_dtype_size(call->tensors[operand].view.dtype);
}

/* Initializes an empty call, whose buffers count toward the service's budget. */
void api_call_init(struct api_call *call, const struct api_service *service);
void api_call_free(struct api_call *call);

/* Checks that all required tensors are present in the dtype that the options ask for, then plans
 * the call. Reads no element of an operand. */
bool api_call_plan(struct api_call *call, struct api_problem *problem);

/* Runs a planned call: the loss, the gradients and the diagnosis that it asks for. */
bool api_call_run(struct api_call *call, struct api_problem *problem);

/* True if the call writes to shared memory. */
static inline bool api_call_writes(const struct api_call *call)
{
    for (size_t i = 0; call->is_shared && i < API_RESULTS; i++)
        if (call->oip.slices[i].in)
            return true;
    return false;
}

/* Warnings of a call that was run or that failed. */
static inline struct api_warnings api_call_warnings(const struct api_call *call)
{
    const struct kl_plan *plan = &call->plan;
    struct api_warnings warnings = {plan->warnings, plan->reduction, plan, &call->diagnosis};
    for (unsigned i = 0; i < KL_FINDINGS; i++)
        if (call->diagnosis.findings[i].count > 0)
            warnings.bits |= 1u << (KL_WARNINGS + i);
    return warnings;
}

/* ---- call_slices.c: tensors and outputs in shared memory, which other processes may change or take away. A planned call
 * checks the ranges of its outputs; a run begins and ends with them. */

bool api_call_check_slices(const struct api_call *call, struct api_problem *problem);

/* Touches all pages, and copies indices. */
bool api_call_begin_slices(struct api_call *call, struct api_problem *problem);

/* True if memory was lost: the call has read zeros instead. api_call_end_slices fails then. */
bool api_call_has_lost_slices(const struct api_call *call);
bool api_call_end_slices(struct api_call *call, struct api_problem *problem);
