/* A call on its way, and what the files that compute it shard. */
#ifndef KLDIV_LIB_JOB_H
#define KLDIV_LIB_JOB_H

#include "lib/kernel.h"
#include "lib/layout.h"

#include <stdatomic.h>

/* Elements in a chunk of work. Pieces are summed each in order and added in their order, so the
 * bits of a sum depend on this number and on nothing else that varies. 2^14 pairs of float32
 * are 128 KiB, within a core's second-level cache, and take some 10 us, against which the
 * 0.2 us of taking a chunk from the pool vanishes: 2^24 elements on two threads take 0.315 ns
 * each, and 0.335 in chunks of 2^13. */
enum { KL_CHUNK = 1 << 14 };
_Static_assert(KL_CHUNK % KL_BLOCK == 0, "chunks of a row are whole tiles");

/* Where derivatives by an operand go. */
struct kl_sink {
    char *gradient;      /* NULL if they are not wanted */
    struct kl_sum *sums; /* of an operand that is broadcast: one for each of its elements */
};

/* A call on its way. */
struct kl_job {
    const struct kl_plan *plan;
    const struct kl_kernel *kernel;
    enum kl_rule rule;
    struct kl_layout *layout;
    struct kl_numbers operands[KL_OPERANDS], weight, mask,
        grad_output; /* `data` NULL where there is none */
    double unit;     /* what a loss in nats is multiplied by */
    double divisor;  /* of the reduction */
    double factor;   /* of every derivative */
    bool wants_loss; /* and not derivatives alone */
    char *losses;    /* under KL_NONE, if they are wanted */
    struct kl_sink sinks[KL_OPERANDS];
    struct kl_tile tile;  /* the most that one has */
    size_t split;         /* elements of a row in a chunk of work */
    atomic_bool negative; /* KL_MATH has seen a negative probability */
};

static inline bool kl_is_logit(const struct kl_job *job, int operand)
{
    return job->plan->spaces[operand] == KL_LOGIT;
}

/* Whether derivatives by an operand are wanted; by any. */
static inline bool kl_is_wanted(const struct kl_job *job, int operand)
{
    return job->sinks[operand].gradient != NULL;
}

static inline bool kl_any_wanted(const struct kl_job *job)
{
    return kl_is_wanted(job, KL_INPUT) || kl_is_wanted(job, KL_TARGET);
}

/* The operands of a call. */
struct kl_numbers kl_input_of(const struct kl_plan *plan);
struct kl_numbers kl_target_of(const struct kl_plan *plan);

/* The rule that a call's losses follow. */
enum kl_rule kl_rule_of(const struct kl_plan *plan);

/* Whether losses are the formula's of what the operands hold, as it stands there. */
bool kl_is_plain(const struct kl_plan *plan);

/* Where element `index` lies. */
const void *kl_at(const struct kl_numbers *numbers, size_t index);

/* Plain losses of n elements from these on: their sum. */
struct kl_sum kl_sum_elements(const struct kl_job *job, size_t input_at, size_t target_at,
                              size_t n);

/* Adds a sum to another. */
static inline void kl_sum_merge(struct kl_sum *total, struct kl_sum part)
{
    kl_sum_add(total, part.high);
    total->low += part.low;
}

static inline double kl_sum_value(struct kl_sum sum)
{
    return sum.high + (__builtin_isfinite(sum.high) ? sum.low : 0);
}

/* What a reduced sum is divided by. */
double kl_divisor_of(const struct kl_plan *plan);

/* Runs a job of any kind; its sum, if losses are reduced. False if memory is out, before anything
 * is written. */
bool kl_run_rows(struct kl_job *job, struct kl_pool *pool, struct kl_sum *total);

/* The bytes that kl_run_rows allocates, of a job of which plan, sinks and an empty layout are
 * set. */
size_t kl_rows_scratch_size(struct kl_job *job);

/* Some rows, of which a job says what to compute: the losses of split [start, end) of each
 * are summed, or where each element has its own stored or summed; derivatives go to the sinks. */
struct kl_group {
    size_t row, rows, start, end;
    struct kl_sum *sum;  /* of losses where each element has its own, and these are reduced */
    struct kl_sum *sums; /* one for each row otherwise */
    const struct kl_sink *sinks;
};
/* `scratch` has KL_THREAD_SCRATCH bytes. */
void kl_run_group(struct kl_job *job, const struct kl_group *group, void *scratch);

/* Fails with input_negative or target_negative, as KL_MATH asks, at the first negative one. */
bool kl_check_negative(const struct kl_plan *plan, struct kl_problem *problem);

#endif
