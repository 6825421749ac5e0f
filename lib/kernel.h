/* kl_kernel: the functions of one instruction set, and the choice of one. */
#ifndef KLDIV_LIB_KERNEL_H
#define KLDIV_LIB_KERNEL_H

#include "lib/kldiv.h"

/* kl_rule: the pointwise formula with its rules for special values: log_target and compat in one.
 * With log_target, KL_ONEFLOW is KL_PYTORCH. The KL_LOGIT rules take logarithms too, and follow the
 * rules of probabilities at t = 0 where a logarithm is -inf; under KL_MATH log_target's are the
 * same. */
enum kl_rule {
    KL_PROB_PYTORCH,
    KL_PROB_ONEFLOW,
    KL_PROB_MATH,
    KL_LOG_PYTORCH,
    KL_LOG_MATH,
    KL_LOGIT_PYTORCH,
    KL_LOGIT_ONEFLOW,
};
#define KL_RULES 7

/* kl_sum: a sum with its rounding error; its value is high + low. */
struct kl_sum {
    double high, low;
};

/* kl_row_sums: sums over a part of a row: of losses, of probabilities p of target, and of
 * exp(input). */
struct kl_row_sums {
    double losses, sum_p, exps;
};

/* kl_rows_sums: row sums of up to KL_ROWS rows. kl_row_shifts: the shifts of their numbers. */
enum { KL_ROWS = 128 };
struct kl_rows_sums {
    double losses[KL_ROWS], sum_p[KL_ROWS], exps[KL_ROWS];
};
struct kl_row_shifts {
    const double *x, *t; /* a number of each row */
    double x_scale, t_scale;
};

/* kl_shift: an affine map, (v - by) scale, applied to a number v on load. */
struct kl_shift {
    double by, scale;
};

/* kl_row_stats: extremes and sums of a row; `exps` sums exponentials within 2^-16. */
struct kl_row_stats {
    double least, greatest, sum, exps;
};

/* kl_rows_stats: statistics of up to KL_ROWS rows. */
struct kl_rows_stats {
    double least[KL_ROWS], greatest[KL_ROWS], sum[KL_ROWS], exps[KL_ROWS];
};

static inline bool kl_rule_is_log(enum kl_rule rule) { return rule >= KL_LOG_PYTORCH; }

/* kl_kernel: the functions of one instruction set. Arrays need no alignment. Under KL_PROB_MATH a
 * negative target counts as NaN; whoever sees the NaN looks for it. An index [log] is whether the
 * rule is_log; the rule itself does not matter to speed.
 *
 *   sum[dtype][log]   the sum of the losses of n elements, input and target both of `dtype`
 *   map[dtype][log]   the loss of each, rounded to `dtype`; loss must not overlap the operands
 *   grad[log]         the derivatives of n losses by one of two operands of doubles, each times an
 *                     element of `grad_output`
 *   widen[dtype]      n elements to doubles
 *   narrow[dtype]     n doubles, each rounded once to `dtype`
 *
 * Operands of different dtypes are widened block by block. Functions from here on work on rows of
 * doubles. Functions named `each` have a row per element, so that short rows lie across vectors. A
 * `step` of 1 means a number per element, and 0 that the first KL_BROADCAST_LANES numbers, all of
 * them equal, stand for every element.
 *
 *   row_max           the greatest of n, -inf of none; NaN may or may not be seen
 *   each_max          maxima[i] = max(maxima[i], v[i])
 *   total             the compensated sum of n
 *   each_add          (high[i], low[i]) += v[i]
 *   shift             v[i] = (v[i] - by[i]) scale - minus[i]
 *   multiply          v[i] = v[i] by[i]
 *   apply_mask        v[i] = value where mask[i] is 0
 *   exps, logs        of any number, to double's precision
 *   quotients         replaces probabilities q in x and t in t by operands of the KL_PROB rules:
 *                     losses times `times` are those of log q and t, without cancellation where
 *                     the two are close; derivatives by x over `over` are those by q
 *   row_sums[log]     the sums of n elements, shifted; `wide` if these have more than 24 bits,
 *                     `exps` if sums of exp(input) are wanted. Losses are NaN if an element was not
 *                     ordinary, as a target of `refused` is: then no sum is of use
 *   each_row_sums     adds an element to the sums of n rows, a multiple of KL_BROADCAST_LANES
 *   sum_exps          the sum of exp of n elements, shifted, of which none is above 700
 *   widen_bytes       0 of 0 and 1 of other bytes
 *   softmax_backward  grads[i] = (grads[i] - e[i] sums[i]) scale: the softmax's derivative
 *   row_stats[dtype]  the statistics of n elements, with sums of exponentials if `exps`
 *   each_row_stats    adds an element to the statistics of n rows */
enum { KL_BROADCAST_LANES = 16 };
_Static_assert(KL_ROWS % KL_BROADCAST_LANES == 0,
               "numbers of rows are stored by whole broadcast vectors");
struct kl_kernel {
    const char *name;
    bool (*supported)(void);
    struct kl_sum (*sum[KL_DTYPES][2])(enum kl_rule rule, const void *input, const void *target,
                                       size_t n);
    void (*map[KL_DTYPES][2])(enum kl_rule rule, const void *input, const void *target, void *loss,
                              size_t n);
    void (*grad[2])(enum kl_rule rule, enum kl_operand by, const double *input,
                    const double *target, const double *grad_output, double *grads, size_t n);
    void (*widen[KL_DTYPES])(const void *from, double *to, size_t n);
    void (*narrow[KL_DTYPES])(const double *from, void *to, size_t n);
    double (*row_max)(const double *v, size_t n);
    void (*each_max)(const double *v, double *maxima, size_t n);
    struct kl_sum (*total)(const double *v, size_t n);
    void (*each_add)(const double *v, double *high, double *low, size_t n);
    void (*shift)(double *v, const double *by, const double *minus, size_t step, double scale,
                  size_t n);
    void (*multiply)(double *v, const double *by, size_t n);
    void (*apply_mask)(double *v, const double *mask, double value, size_t n);
    void (*exps)(const double *v, double *to, size_t n);
    void (*logs)(const double *v, double *to, size_t n);
    void (*quotients)(enum kl_rule rule, double *x, double *t, double *times, double *over,
                      size_t n);
    struct kl_row_sums (*row_sums[2])(bool wide, bool exps, double refused, const double *x,
                                      const double *t, struct kl_shift x_shift,
                                      struct kl_shift t_shift, size_t n);
    void (*each_row_sums[2])(bool wide, bool exps, double refused, const double *x, const double *t,
                             const struct kl_row_shifts *shifts, struct kl_rows_sums *rows,
                             size_t n);
    double (*sum_exps)(bool wide, const double *v, struct kl_shift shift, size_t n);
    void (*widen_bytes)(const unsigned char *from, double *to, size_t n);
    void (*softmax_backward)(double *grads, const double *e, const double *sums, size_t step,
                             double scale, size_t n);
    struct kl_row_stats (*row_stats[KL_DTYPES])(const void *from, size_t n, bool exps);
    void (*each_row_stats)(const double *v, struct kl_rows_stats *rows, size_t n, bool exps);
};

/* The reference for one element's loss, on which every kernel falls back for rare values. */
double kl_term(enum kl_rule rule, double input, double target);

/* The reference for its derivative by one of the operands. */
double kl_grad_term(enum kl_rule rule, enum kl_operand by, double input, double target);

/* The reference for `quotients`, of one pair. */
struct kl_quotient {
    double x, t, times, over;
};
struct kl_quotient kl_quotient(enum kl_rule rule, double q, double t);

/* Neumaier's compensated addition, s += value. A sum that is not finite stays so. */
static inline void kl_sum_add(struct kl_sum *s, double value)
{
    double total = s->high + value;
    double big = __builtin_fabs(s->high) >= __builtin_fabs(value) ? s->high : value;
    double small = big == value ? s->high : value;
    double error = (big - total) + small;
    s->high = total;
    s->low += __builtin_isfinite(error) ? error : 0;
}

/* kl_kernels: all kernels, best first, NULL at the end; also those this CPU lacks. */
extern const struct kl_kernel *const kl_kernels[];

/* The kernel in use. */
const struct kl_kernel *kl_kernel(void);

#endif
