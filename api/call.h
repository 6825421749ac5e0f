/* api_call: one loss with its tensors and its results, independent of the wire format. */
#ifndef KLDIV_API_CALL_H
#define KLDIV_API_CALL_H

#include "api/api.h"
#include "api/options.h"
#include "api/problem.h"
#include "api/regions/regions.h"
#include "api/warnings.h"
#include "lib/kldiv.h"

#define API_TENSORS 5 /* those of enum kl_operand; the operands are required */

/* API_BYTE: dtype of a mask, one byte of 0 or 1, which formats call bool or uint8. No other
 * tensor has it. */
#define API_BYTE ((enum kl_dtype)KL_DTYPES)
size_t api_dtype_size(enum kl_dtype dtype);

/* api_tensor: a tensor of the request. `view` borrows `shape` and, once `present`, the elements:
 * those of the request's body or of shared memory if they can be read in place, else those of
 * `data`. */
struct api_tensor {
    bool present;
    bool flat;     /* true if read from one array, at any shape */
    bool is_input; /* true if read from number `input` of an inference request's inputs */
    size_t input;
    struct kl_tensor view; /* of bytes for a mask, whatever its dtype says */
    size_t shape[KL_MAX_DIMS];
    struct api_buffer data;
    struct api_slice slice; /* the elements, if they are in shared memory */
};

extern const char *const api_tensor_names[API_TENSORS + 1]; /* NULL at the end */

#define API_RESULTS (1 + KL_OPERANDS) /* the loss, and a gradient for each operand */
/* API_CALL_SMALL: bytes of each operand and of the loss that need no allocation. */
enum { API_CALL_SMALL = 4 << 10 };

/* api_nonfinite: the form of NaN and infinities, which JSON lacks: the strings "NaN", "Infinity" and
 * "-Infinity", the same as bare words, which many programs accept, or null. */
enum api_nonfinite { API_QUOTED, API_BARE, API_NULL_WORD };

struct api_call {
    const struct api_service *service;
    const atomic_bool *stop; /* of the exchange; may be NULL */
    struct api_options options;
    struct api_tensor tensors[API_TENSORS];
    bool is_shared; /* true if a tensor or an output is in shared memory */
    bool is_planned;
    struct kl_plan plan;
    struct kl_diagnosis diagnosis; /* empty if not requested */
    struct api_buffer inflated;    /* body after its coding is undone */
    struct api_buffer loss;
    struct api_buffer gradients[KL_OPERANDS]; /* empty if not requested */
    struct api_buffer pairs[2];               /* sum and divisor, instead of the loss */
    struct {
        struct api_buffer id;         /* NUL-terminated, copied to the answer */
        unsigned binary, wanted;      /* outputs, as bits: in the binary part; in the answer */
        enum api_nonfinite nonfinite; /* of data in JSON */
        struct api_slice slices[API_RESULTS]; /* shared memory that outputs are written to */
    } oip;                                    /* the answer that an inference request asks for */
    struct {
        char operands[KL_OPERANDS][API_CALL_SMALL], loss[API_CALL_SMALL];
    } small; /* lent to the buffers of tensors and loss */
};

/* Outputs: number 0 is the loss, number 1 + operand the gradient with respect to that operand; then the
 * sum and the divisor of a partial result, which has no loss. */
enum { API_LOSS, API_GRADIENTS, API_SUM = API_RESULTS, API_DIVISOR, API_OUTPUTS };
extern const char *const api_output_names[API_OUTPUTS];

/* Buffer of an output of a completed call, with its shape and dtype in *view; NULL if the output
 * was not requested. The buffer of one that is in shared memory is empty. */
struct api_buffer *api_call_output(struct api_call *call, size_t output, struct kl_tensor *view);

/* Initializes an empty call, whose buffers count toward the service's budget. */
void api_call_init(struct api_call *call, const struct api_service *service);
void api_call_free(struct api_call *call);

/* True if `name` is the name of a tensor; and if it is of one that is not there yet. */
bool api_tensor_is_known(const char *name);
bool api_tensor_is_free(const struct api_call *call, const char *name);

/* Returns the tensor of that name for reading. NULL, with a problem, if there is none or if it
 * was read before. `place` is the JSON Pointer of the name, NULL for a member of the body. */
struct api_tensor *api_call_tensor(struct api_call *call, const char *name, const char *place,
                                   struct api_problem *problem);

/* True for the mask, whose dtype is API_BYTE. */
bool api_tensor_is_mask(const struct api_call *call, const struct api_tensor *tensor);

/* Sets dtype, dimensions and elements of a tensor whose shape is set already. */
void api_tensor_set(struct api_tensor *tensor, enum kl_dtype dtype, size_t ndim, const void *data);

/* Fails at a tensor, or at its field `field` unless that is NULL. */
bool api_tensor_fail(const struct api_call *call, const struct api_tensor *tensor,
                     const char *field, struct api_problem *problem, const char *code,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
const char *api_tensor_name(const struct api_call *call, const struct api_tensor *tensor);

/* Formats the JSON Pointer of a tensor: "#/input", or "#/inputs/0" for an input of an inference
 * request. */
void api_tensor_place(const struct api_call *call, const struct api_tensor *tensor, char *to,
                      size_t size);

/* Checks that all required tensors are present in the dtype that the options ask for, then plans
 * the call. Reads no element of an operand. */
bool api_call_plan(struct api_call *call, struct api_problem *problem);

/* Estimated time, in ns on one thread, to run a planned call and to write its answer at
 * `ns_per_element`. */
double api_call_cost(const struct api_call *call, double ns_per_element);

/* Runs a planned call: the loss, the gradients and the diagnosis that it asks for. */
bool api_call_run(struct api_call *call, struct api_problem *problem);

/* True if the call writes to shared memory. */
bool api_call_writes(const struct api_call *call);

/* Warnings of a call that was run or that failed. */
struct api_warnings api_call_warnings(const struct api_call *call);

#endif
