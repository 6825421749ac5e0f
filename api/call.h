/* One loss asked for and computed, whatever wire format it came in and goes out by. */
#ifndef KLDIV_API_CALL_H
#define KLDIV_API_CALL_H

#include "api/api.h"
#include "api/options.h"
#include "api/problem.h"
#include "api/warnings.h"
#include "lib/kldiv.h"

#define API_TENSORS 5 /* enum kl_operand's; the operands must be there */

/* What formats call bool or uint8, beside the library's dtypes: a byte, 0 or 1. A mask is of it and
 * nothing else is. */
#define API_BYTE ((enum kl_dtype)KL_DTYPES)
size_t api_dtype_size(enum kl_dtype dtype);

/* `view` borrows the shape here and, once `present`, the elements: from the request's body where
 * they lie there ready to be read, or else from `data`. */
struct api_tensor {
    bool present;
    bool flat;     /* came as one array, whatever its shape */
    bool is_input; /* came as number `input` of an inference request's inputs */
    size_t input;
    struct kl_tensor view; /* of bytes if it is a mask's, whatever its dtype says */
    size_t shape[KL_MAX_DIMS];
    struct api_buffer data;
};

extern const char *const api_tensor_names[API_TENSORS + 1]; /* NULL at the end */

struct api_call {
    const struct api_service *service;
    struct api_options options;
    struct api_tensor tensors[API_TENSORS];
    struct kl_plan plan;
    struct kl_diagnosis diagnosis; /* nothing found if none was asked for */
    struct api_buffer inflated;    /* the body without its coding */
    struct api_buffer loss;
    struct api_buffer gradients[KL_OPERANDS]; /* empty but for those asked for */
    struct {
        struct api_buffer id;    /* NUL-terminated, to be given back */
        unsigned binary, wanted; /* outputs, as bits: after the JSON; at all */
    } oip;                       /* what an inference request says of its answer */
};

/* Output 0 is the loss, 1 + operand its gradient by that. */
#define API_OUTPUTS (1 + KL_OPERANDS)
extern const char *const api_output_names[API_OUTPUTS];

/* An output of a call that was run, its buffer and its shape and dtype; NULL if it was not asked
 * for. */
struct api_buffer *api_call_output(struct api_call *call, size_t output, struct kl_tensor *view);

/* Empty, its buffers on the service's budget. */
void api_call_init(struct api_call *call, const struct api_service *service);
void api_call_free(struct api_call *call);

/* Whether a tensor may have this name. */
bool api_tensor_known(const char *name);

/* The tensor of that name, which is about to be read: NULL, with a problem, if there is none or
 * it was read before. `place` is the JSON Pointer of the name, NULL for a member of the body. */
struct api_tensor *api_call_tensor(struct api_call *call, const char *name, const char *place,
                                   struct api_problem *problem);

/* True for the mask, which is of API_BYTE. */
bool api_tensor_is_mask(const struct api_call *call, const struct api_tensor *tensor);

/* Gives the tensor its elements; its shape is there already. */
void api_tensor_set(struct api_tensor *tensor, enum kl_dtype dtype, size_t ndim, const void *data);

/* Fails with a place inside a tensor: `field` of it, or the tensor itself if that is NULL. */
bool api_tensor_fail(const struct api_call *call, const struct api_tensor *tensor,
                     const char *field, struct api_problem *problem, const char *code,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
const char *api_tensor_name(const struct api_call *call, const struct api_tensor *tensor);

/* The JSON Pointer of a tensor: "#/input", or of an input of an inference request, "#/inputs/0". */
void api_tensor_place(const struct api_call *call, const struct api_tensor *tensor, char *to,
                      size_t size);

/* Checks that all tensors are there that must be, in the dtype that the options ask for, and plans the
 * call. Reads no operand's data. */
bool api_call_plan(struct api_call *call, struct api_problem *problem);

/* Nanoseconds that running a planned call takes one thread, an estimate; and writing each element of
 * its answer. */
double api_call_cost(const struct api_call *call, double ns_per_element);

/* Computes what a planned call asks for. */
bool api_call_run(struct api_call *call, struct api_problem *problem);

/* Afterwards, also where it failed. */
struct api_warnings api_call_warnings(const struct api_call *call);

#endif
