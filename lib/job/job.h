/* kl_job: one call being computed. */
#pragma once

#include "lib/job/exact.h"
#include "lib/layout/tile.h"

/* KL_CHUNK, the unit of work: chunks are summed each in order and added exactly, so the bits of a sum
 * depend on this number alone. 2^14 pairs of float32 take 128 KiB, within a core's second-level cache,
 * and some 10 us, against which the 0.2 us of taking a task from the pool vanish: 2^24 elements on two
 * threads take 0.315 ns each, and 0.335 in chunks of 2^13. */
_Static_assert(KL_CHUNK % KL_BLOCK == 0, "chunks of a row are whole tiles");

/* kl_gradient: the destination of derivatives by one operand. */
struct kl_gradient {
    char *data;         /* NULL if they are not wanted */
    double *high, *low; /* of an operand that is broadcast: a sum for each of its elements */
};

/* kl_job: one call being computed. */
struct kl_job {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    enum kl_rule rule;
    struct kl_layout *layout;
    struct kl_array_view operands[KL_OPERANDS], weight, mask, grad_output;
    double unit;     /* what a loss in nats is multiplied by */
    double divisor;  /* of the reduction */
    double factor;   /* of every derivative */
    bool wants_loss; /* and not derivatives alone */
    char *losses;    /* under KL_NONE, if they are wanted */
    struct kl_gradient gradients[KL_OPERANDS];
    struct kl_total total;      /* of reduced losses */
    struct kl_partial *partial; /* filled from that; NULL if it is not wanted */
    struct kl_tile tile;        /* with the maximum of rows and length */
    bool masks_rows;            /* the mask is the same for all elements of a row */
    size_t run_length;     /* elements of a row that are summed in order, before their sums are */
    size_t segment_length; /* elements of a row in a chunk of work */

    /* Diagnoses the rows that begin in a chunk of elements; NULL if the call has no diagnosis, or a later one. */
    struct kl_diagnosing *diagnosing;
};

static inline bool kl_is_logit(const struct kl_job *job, int operand)
{
    return job->plan->spaces[operand] == KL_LOGIT;
}

static inline bool kl_has_logits(const struct kl_job *job)
{
    return kl_is_logit(job, KL_INPUT) || kl_is_logit(job, KL_TARGET);
}

/* True if the losses of a row are summed first: of rows whose sum is wanted, and of logits whose losses are reduced,
 * so that reductions of parts of the rows merge to the reduction of all rows. */
static inline bool kl_sums_rows(const struct kl_job *job)
{
    const struct kl_layout *layout = job->layout;
    return !layout->elementwise || (kl_has_logits(job) && !job->losses && !layout->single_rows);
}

/* True if derivatives by an operand are wanted; by any operand. */
static inline bool kl_is_wanted(const struct kl_job *job, int operand)
{
    return job->gradients[operand].data != NULL;
}

static inline bool kl_any_wanted(const struct kl_job *job)
{
    return kl_is_wanted(job, KL_INPUT) || kl_is_wanted(job, KL_TARGET);
}

/* An array of a call; its data are NULL if there is none. */
struct kl_array_view kl_array_of(const struct kl_plan *plan, enum kl_array array);

/* Sets the factors of the derivatives of a tile, job->factor times grad_output and weight: one for each
 * element, loaded to `factors`, or one for all where there is neither, or one row whose elements have the
 * same. `block` is scratch. */
void kl_set_factors(const struct kl_job *job, const struct kl_tile *tile, double *factors,
                    double *block, struct kl_grads *grads);

/* Multiplies n losses by their weights, and sets masked ones to 0; either may be NULL. */
void kl_weigh_losses(const struct kl_job *job, double *losses, const double *weights,
                     const unsigned char *mask, size_t n);

/* The job of a call whose layout is not filled yet, without a divisor, results and tiles. */
struct kl_job kl_job_of(const struct kl_plan *plan, struct kl_layout *layout);

/* True if the formula of KL_FORWARD applies to the operands as they are: log-probabilities against
 * probabilities or log-probabilities. */
bool kl_is_direct(const struct kl_plan *plan);

/* True if losses are of a mixture of both operands. */
static inline bool kl_is_mixture(const struct kl_plan *plan) { return plan->divergence >= KL_JS; }

/* True if the losses are quotients' of two probabilities. */
static inline bool kl_has_quotients(const struct kl_plan *plan)
{
    return plan->divergence == KL_FORWARD && plan->spaces[KL_INPUT] == KL_PROB &&
           plan->spaces[KL_TARGET] == KL_PROB;
}

/* True if the caller has stopped the call. The call then fails before it ends, so results computed meanwhile may be
 * anything. */
static inline bool kl_is_stopped(const struct kl_plan *plan)
{
    return plan->stopped && plan->stopped(plan->stop_context);
}

/* True unless the caller has stopped the call, which then fails with `stopped`. */
bool kl_check_stopped(const struct kl_plan *plan, struct kl_problem *problem);

/* As kl_is_stopped, asked once in KL_CHUNK elements. A tile of `tile` elements ends at element `start` of each of `rows`
 * rows. */
static inline bool kl_is_stopped_at(const struct kl_plan *plan, size_t start, size_t rows,
                                    size_t tile)
{
    return plan->stopped && start * rows % KL_CHUNK < tile && kl_is_stopped(plan);
}
