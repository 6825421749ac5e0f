/* A call with a sparse target while it is computed. */
#pragma once

#include "lib/job/job.h"

#include <math.h>
#include <string.h>

/* kl_sparse_row: of a row of input, what gives a probability: exp((v - offset) scale - log_sum_exp); and the log of the rest. */
struct kl_sparse_row {
    double offset, log_sum_exp, log_rest;
    double mass; /* of target's values */
};

/* kl_sparse_call: short rows of `columns` elements of each operand, probabilities if that is what the operand holds and else
 * their logarithms, and derivatives by them. */
struct kl_sparse_call {
    const struct kl_plan *plan;
    const struct kl_results *results;
    const struct kl_kernel *kernel;
    struct kl_layout layout; /* of the short rows, whose mask masks rows */
    struct kl_plan inner;
    size_t inner_shape[KL_MAX_DIMS];
    size_t rows, length, k, columns;
    struct kl_sparse_row *of_rows;
    bool *left_out; /* of each value, if it is of no element: as padding, and what is named again */
    double *operands[KL_OPERANDS], *grads[KL_OPERANDS], *losses;
    pthread_mutex_t lock; /* of the first problem */
    size_t bad_row;
    struct kl_problem problem;
};

/* KL_PADDING: the index of a value that is of no element. */
enum { KL_PADDING = -1 };

static inline bool kl_has_rest(const struct kl_sparse_call *call)
{
    return call->columns > call->k;
}

/* The position in its row of the element that value `at` of target is of. */
static inline int64_t kl_index_at(const struct kl_sparse_call *call, size_t at)
{
    const struct kl_sparse *sparse = &call->plan->sparse;
    if (sparse->is_int64) {
        int64_t index;
        memcpy(&index, (const char *)sparse->indices + at * sizeof index, sizeof index);
        return index;
    }
    int32_t index;
    memcpy(&index, (const char *)sparse->indices + at * sizeof index, sizeof index);
    return index;
}

static inline bool kl_is_prob(const struct kl_sparse_call *call, int operand)
{
    return call->plan->spaces[operand] == KL_PROB;
}

static inline double kl_temperature_of(const struct kl_sparse_call *call, int operand)
{
    return call->plan->spaces[operand] == KL_LOGIT ? call->plan->temperature : 1;
}

static inline const char *kl_row_at(const struct kl_sparse_call *call, size_t row)
{
    const struct kl_tensor *input = &call->plan->input;
    return (const char *)input->data + row * call->length * kl_dtype_size(input->dtype);
}

/* The bytes of a bit for each element of a row. */
static inline size_t kl_named_size(const struct kl_sparse_call *call)
{
    return (call->length / 64 + 1) * sizeof(uint64_t);
}

/* ---- gather.c: fills call->of_rows and call->operands of a row. `named` has twice kl_named_size bytes. */
void kl_gather_row(struct kl_sparse_call *call, size_t row, uint64_t *named);

/* Notes a problem: that of the first row is reported, whichever thread finds it. */
void kl_sparse_fail(struct kl_sparse_call *call, size_t row, struct kl_problem problem);

/* ---- scatter.c: stores the derivatives by all of an operand's row, from those in call->grads */
void kl_scatter_input(const struct kl_sparse_call *call, size_t row);
void kl_scatter_target(const struct kl_sparse_call *call, size_t row);
