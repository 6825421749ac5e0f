/* What one instruction set offers, and which one is in use. */
#ifndef KLDIV_LIB_KERNEL_H
#define KLDIV_LIB_KERNEL_H

#include "lib/kldiv.h"

/* The pointwise formula with its rules for special values: log_target and compat in one. With
 * log_target, KL_ONEFLOW is KL_PYTORCH. */
enum kl_rule { KL_PROB_PYTORCH, KL_PROB_ONEFLOW, KL_PROB_MATH, KL_LOG_PYTORCH, KL_LOG_MATH };
#define KL_RULES 5

/* A sum that carries its rounding error along: its value is high + low. */
struct kl_sum {
    double high, low;
};

static inline bool kl_rule_is_log(enum kl_rule rule) { return rule >= KL_LOG_PYTORCH; }

/* The kernels of one instruction set. Arrays need no alignment. Under KL_PROB_MATH a negative
 * target counts as NaN; whoever sees the NaN looks for it. The second index is whether the rule
 * is_log, for nothing else of it matters to speed.
 *
 *   sum[dtype][log]   the losses of n elements, input and target both of `dtype`
 *   map[dtype][log]   the loss of each, rounded to `dtype`; loss must not overlap the operands
 *   slope[log]        of n operands widened to doubles, the derivatives of their losses by one of
 *                     the two, each times an element of `upstream`
 *   widen[dtype]      n elements to doubles
 *   narrow[dtype]     n doubles, each rounded once to `dtype`
 *
 * Operands of different dtypes are widened block by block. */
struct kl_kernel {
    const char *name;
    bool (*supported)(void);
    struct kl_sum (*sum[KL_DTYPES][2])(enum kl_rule rule, const void *input, const void *target,
                                       size_t n);
    void (*map[KL_DTYPES][2])(enum kl_rule rule, const void *input, const void *target, void *loss,
                              size_t n);
    void (*slope[2])(enum kl_rule rule, enum kl_operand by, const double *input,
                     const double *target, const double *upstream, double *slopes, size_t n);
    void (*widen[KL_DTYPES])(const void *from, double *to, size_t n);
    void (*narrow[KL_DTYPES])(const double *from, void *to, size_t n);
};

/* The definition of one element's loss, on which every kernel falls back for rare values. */
double kl_term(enum kl_rule rule, double input, double target);

/* The definition of its derivative by one of the operands. */
double kl_slope(enum kl_rule rule, enum kl_operand by, double input, double target);

/* Adds without losing: s += value, Neumaier's way. A sum that is not finite stays so. */
static inline void kl_sum_add(struct kl_sum *s, double value)
{
    double total = s->high + value;
    double big = __builtin_fabs(s->high) >= __builtin_fabs(value) ? s->high : value;
    double small = big == value ? s->high : value;
    double error = (big - total) + small;
    s->high = total;
    s->low += __builtin_isfinite(error) ? error : 0;
}

/* Best first, NULL at the end; those this CPU lacks included. */
extern const struct kl_kernel *const kl_kernels[];

/* The one in use. */
const struct kl_kernel *kl_kernel(void);

#endif
