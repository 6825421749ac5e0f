/* Converts a tile of operands to log-probabilities of input, and to what the rule takes of
 * target. */
#include "lib/scratch.h"

#include <string.h>

/* Replaces probabilities of input by their logarithms, and sets the factors of their losses and
 * derivatives. */
static void replace_probs(struct kl_scratch *s, size_t n)
{
    const struct kl_kernel *kernel = s->job->kernel;
    if (kl_has_quotients(s->job)) {
        kernel->quotients(s->job->rule, s->v[KL_INPUT], s->v[KL_TARGET], s->times, s->over, n);
        return;
    }
    memcpy(s->over, s->v[KL_INPUT], n * sizeof *s->over);
    kernel->logs(s->v[KL_INPUT], s->v[KL_INPUT], n);
}

/* Marks the job where a probability that counts is negative. */
static void look_for_negative(struct kl_scratch *s, const struct kl_tile *tile)
{
    bool negative = false;
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        if (s->job->plan->spaces[operand] == KL_PROB)
            for (size_t i = 0, n = kl_tile_size(tile); i < n; i++)
                negative |= s->v[operand][i] < 0 && !(s->job->mask.data && s->mask[i] == 0);
    if (negative)
        atomic_store_explicit(&s->job->negative, true, memory_order_relaxed);
}

void kl_load_log_probs(struct kl_scratch *s, const struct kl_tile *tile)
{
    const struct kl_job *job = s->job;
    if (s->single && s->stage[KL_INPUT] == KL_LOG_PROBS)
        return;
    for (int i = 0; i < KL_OPERANDS; i++)
        (kl_is_logit(job, i) ? kl_load_log_softmax : kl_load_operand)(s, tile, i);
    if (job->plan->options.compat == KL_MATH)
        look_for_negative(s, tile);
    if (job->plan->spaces[KL_INPUT] == KL_PROB)
        replace_probs(s, kl_tile_size(tile));
    kl_apply_mask(s, tile, s->v[KL_INPUT], 0);
    kl_apply_mask(s, tile, s->v[KL_TARGET], 0);
    s->stage[KL_INPUT] = s->stage[KL_TARGET] = KL_LOG_PROBS;
}
