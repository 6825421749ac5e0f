/* kl_kernel: the functions of one instruction set, and the choice of one. */
#pragma once

#include "lib/kldiv.h"

#include <stdint.h>

/* Requirements on the compiler: IEEE arithmetic, a 64-bit size_t, __int128. */
#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__)
#error                                                                                             \
    "libkldiv cannot be compiled with -ffast-math (or -Ofast): it tells NaN and infinities, and keeps rounding errors"
#endif
#if SIZE_MAX < UINT64_MAX || !defined __SIZEOF_INT128__
/* cppcheck-suppress preprocessorErrorDirective */
#error "libkldiv wants a 64-bit machine: a size_t of 64 bits, and __int128 for exact sums"
#endif

/* kl_sum: a sum with its rounding error; its value is high + low. */
struct kl_sum {
    double high, low;
};

/* Knuth's two-sum (The Art of Computer Programming 2, 4.2.2): a + b rounded, and the error of that, exactly,
 * in six operations and without a comparison. Of a sum that is not finite the error is of no use. */
static inline struct kl_sum kl_two_sum(double a, double b)
{
    double sum = a + b, back = sum - a;
    return (struct kl_sum){sum, (a - (sum - back)) + (b - back)};
}

/* Neumaier's compensated addition ("Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
 * Summen", 1974), s += value: the rounding error of each step is kept in `low`, also where the number added is
 * greater than the sum, which Kahan's algorithm loses. n additions err by 2^-53 of the result and about n^2 2^-106 of
 * the sizes. A sum that is not finite stays so. */
static inline void kl_sum_add(struct kl_sum *s, double value)
{
    double total = s->high + value;
    double big = __builtin_fabs(s->high) >= __builtin_fabs(value) ? s->high : value;
    double small = big == value ? s->high : value;
    double error = (big - total) + small;
    s->high = total;
    s->low += __builtin_isfinite(error) ? error : 0;
}

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

/* kl_form: the formula of a loss, from what the operands hold: log-probabilities of input against
 * probabilities of target (PROB) or log-probabilities (LOG), or probabilities of both (QUOTIENT). An
 * index [log] tells the first two apart. */
enum kl_form { KL_FORM_PROB, KL_FORM_LOG, KL_FORM_QUOTIENT };
#define KL_FORMS 3

/* kl_elements: contiguous elements: operands of one dtype, and the mask and weight of each element, or
 * NULL. The loss and the derivatives of masked elements, whose byte is 0, are 0. */
struct kl_elements {
    const void *input, *target;
    const unsigned char *mask;
    const double *weight; /* multiplies losses */
};

/* kl_grads: destinations of derivatives by each operand, NULL if they are not wanted, of the operands'
 * dtype or, if is_f64, of doubles. Derivatives are multiplied by `factors`, one for each element, or if
 * that is NULL by `factor`. */
struct kl_grads {
    void *by[KL_OPERANDS];
    bool is_f64[KL_OPERANDS];
    const double *factors;
    double factor;
};

/* kl_shift: an affine map, (v - offset) scale, applied to a number v on load. */
struct kl_shift {
    double offset, scale;
};

/* kl_row_sums: sums over a part of a row: of losses, of probabilities p of target, and of
 * exp(input). */
struct kl_row_sums {
    double losses, sum_p, exps;
};

/* kl_short_sums: results for several short rows of logits of both operands: maxima, the sums of kl_row_sums after subtracting
 * them, and, unless NULL, exponentials of target and input. */
struct kl_short_sums {
    double *row_max[KL_OPERANDS], *losses, *sum_p, *exps;
    double *cached_p, *cached_q;
};

/* kl_softmax_row: the constants of the derivatives by a row of logits, with z and s the shifted
 * input and target, p what s is the logarithm of or, without [log], s itself:
 * by input q_factor exp(z) - p_factor p; by target t_factor p (s - z - mean). */
struct kl_softmax_row {
    struct kl_shift shifts[KL_OPERANDS];
    double q_factor, p_factor, t_factor, mean;
};

/* kl_log_ratios: elements of rows of logits, whose log(p / q) is ((target - input) - maxima) scale - shift, where `maxima`
 * are two numbers whose sum is subtracted. */
struct kl_log_ratios {
    const double *target, *input, *maxima[2], *shift;
    double scale;
};

/* kl_close_rows: rows of logits whose softmaxes nearly agree: probabilities p of target, and logarithms of those of input. */
struct kl_close_rows {
    struct kl_log_ratios ratios;
    const double *p, *log_q;
};

/* kl_mixture: the divergence of an operand from a mixture of both. With p and q the probabilities of target and input, and
 * m = share p + (1 - share) q, losses are p log(p / m), plus (1 - share) / share q log(q / m) and all of it times share if
 * is_js. */
struct kl_mixture {
    bool is_js;
    bool is_f64; /* operands have more than 24 bits */
    bool
        are_whole; /* p and q of a row both sum to 1, and so m - p to 0: it is added to each loss, so that none is negative */
    bool are_probs[KL_OPERANDS]; /* an operand holds probabilities, or else logarithms */
    double share;
};

/* kl_mixture_results: what is computed of each element: losses, and derivatives by what each operand holds; NULL for what is not wanted.
 * `log_ratio` is log(p / q), more exactly than from the rounded logarithms, or NULL. */
struct kl_mixture_results {
    const double *log_ratio;
    double *losses, *grads[KL_OPERANDS];
};

/* kl_mixture_row: a row of logits of both operands, whose softmaxes are known: the logarithm of a probability is (v - offset)
 * scale - log_sum_exp. */
struct kl_mixture_row {
    const struct kl_mixture *mixture;
    struct kl_shift shifts[KL_OPERANDS];
    double log_sum_exp[KL_OPERANDS];
    bool
        has_exps; /* `probs` hold exponentials of (v - offset) scale, so that they are not computed again */
};

/* kl_mixture_sums: of losses, and of derivatives by the logarithms of each operand. */
struct kl_mixture_sums {
    double losses, grads[KL_OPERANDS];
};

/* kl_row_stats: extremes and sums of a row; `exps` sums exponentials within 2^-16. */
struct kl_row_stats {
    double min, max, sum, exps;
};

/* KL_ROWS: the maximum of rows of a block. */
enum { KL_ROWS = 128 };

/* kl_thresholds: edges of bins as kernels compare them: `n` doubles in ascending order, such that a value's
 * bin is the number of those it is above; then infinity. More than KL_FEW_THRESHOLDS are searched from
 * a first guess: v is in cell (v - origin) scale, rounded to nearest, of 0 to KL_CELLS - 1. As that
 * never falls where v rises, a value is above the first[cell] thresholds of the cells before its own,
 * and not above those of the cells after it. A cell has less than 2^steps thresholds. */
enum { KL_MAX_THRESHOLDS = 1001, KL_FEW_THRESHOLDS = 12, KL_CELLS = 1024 };
struct kl_thresholds {
    size_t n, steps;
    double origin, scale;
    double above[KL_MAX_THRESHOLDS + 1024];
    uint16_t first[KL_CELLS];
};

static inline bool kl_rule_is_log(enum kl_rule rule) { return rule >= KL_LOG_PYTORCH; }

/* kl_kernel: the functions of one instruction set. Arrays need no alignment and are read and
 * written nowhere but in their elements. Under KL_PROB_MATH the loss of a negative target is NaN; the
 * caller that sees a NaN searches for it. An index [log] is whether the rule is_log; the rule itself does not
 * matter to speed.
 *
 * Functions of elements in their dtype:
 *   sum[dtype][log]      the sum of the losses of n elements, times their weights
 *   map[dtype][log]      the loss of each, rounded to `dtype`; loss must not overlap the operands
 *   losses[dtype][form]  the same as doubles
 *   grads[dtype][log]    the derivatives of n losses
 *   scan[dtype]          n elements to doubles, as they are or, if `exps`, their exponentials within
 *                        2^-16; the extremes of the elements go to min and max
 *   widen[dtype]         n elements to doubles
 *   narrow[dtype]        n doubles, each rounded once to `dtype`
 *
 * Functions of a row, or a part of one:
 *   row_max[dtype]       the maximum of n, -inf of none; NaN may or may not be seen
 *   exp_sum[dtype]       the sum of exp(v) of n elements, shifted to at most 700; 0 below exp(-700)
 *   exp_scale[dtype]     to[i] = factor exp(v[i]) likewise, in their dtype
 *   row_sums[dtype][log] the sums of n elements, shifted; `exps` if sums of exp(input) are wanted.
 *                        Losses are NaN if an element was special, as is a target that equals
 *                        `sentinel`: then no sum is of use
 *   row_grads[dtype][log]  the derivatives of n elements by logits, in `grads` as for grads; those
 *                        by target want [log]
 *   logit_sums[dtype]    the sums of n elements of which both operands are logits, less their row's
 *                        maximum, both by the scale of input's shift; not finite if an element was
 *                        special. Where row_sums finds sums, they have the same bits. The
 *                        exponentials of target and input are cached in `cached_p` and `cached_q` unless
 *                        these are NULL
 *   short_sums[dtype]    the same of several rows of few elements, one after another, with their maxima; a row with a target, less
 *                        its maximum, that equals `sentinel` has a loss of NaN, and then nothing is cached
 *   cached_grads[dtype]  the derivatives by input of n elements whose exponentials were cached
 *   mixture_row[dtype]   the sums of n elements; stores derivatives in `grads` and probabilities in `probs` where these are not
 *                        NULL. A logarithm below -700 counts as -700
 *   row_stats[dtype]     the statistics of n elements, with sums of exponentials if `exps`
 *
 * Functions of blocks of doubles, which hold `rows` rows of `length` elements each, row after row:
 *   broadcast            each row's number to each of its elements
 *   row_totals           (high[i], low[i]) += the compensated sum of row i
 *   row_maxima           maxima[i] = the maximum of row i and of itself
 *   softmax_terms[log]   of n elements p, the loss and exp(x), likewise NaN; x and t are shifted
 * and of n doubles:
 *   total                their compensated sum
 *   exact_total          their sum, exactly, as the sum of two parts; false if it could not: of
 *                        numbers that are not finite, differ by more than 30 bits or are more than 1,024
 *   add                  (high[i], low[i]) += v[i] + v[n + i] + ..., `length` of them
 *   max                  maxima[i] = max(maxima[i], v[i], v[n + i], ...)
 *   shift                v[i] = (v[i] - by[i]) scale - minus[i]
 *   multiply             v[i] = v[i] by[i]
 *   scale                v[i] = v[i] by
 *   apply_mask           v[i] = value where mask[i] is 0
 *   count                how many bytes are not 0
 *   exps, logs           of any number, to double's precision
 *   quotients            replaces probabilities q in x and t in t by operands of the KL_PROB rules,
 *                        without cancellation where the two are close: derivatives by x over
 *                        `divisor` are those by q
 *   softmax_backward     grads[i] = (grads[i] - e[i] sums[i]) scale: the softmax's derivative
 *   log_ratios           of n elements log(p / q), also to `shift`
 *   close_terms          of n elements p (d + expm1(-d)), and p expm1(-d)
 *   mixture              of n elements the losses and derivatives; replaces q in x and p in t by probabilities
 *   bin_counts           adds n doubles, fewer than 2^32, not aligned, to counts of t->n + 1 bins, and
 *                        of NaN */
struct kl_kernel {
    const char *name;
    bool (*supported)(void);
    /* The length of rows up to which short_sums takes less time than logit_sums. */
    size_t max_short;
    struct kl_sum (*sum[KL_DTYPES][2])(enum kl_rule rule, const struct kl_elements *elements,
                                       size_t n);
    void (*map[KL_DTYPES][2])(enum kl_rule rule, const void *input, const void *target, void *loss,
                              size_t n);
    void (*losses[KL_DTYPES][KL_FORMS])(enum kl_rule rule, const void *input, const void *target,
                                        double *losses, size_t n);
    void (*grads[KL_DTYPES][2])(enum kl_rule rule, const struct kl_elements *elements,
                                const struct kl_grads *grads, size_t n);
    void (*scan[KL_DTYPES])(const void *from, bool exps, double *to, size_t n, double *min,
                            double *max);
    void (*widen[KL_DTYPES])(const void *from, double *to, size_t n);
    void (*narrow[KL_DTYPES])(const double *from, void *to, size_t n);
    double (*row_max[KL_DTYPES])(const void *v, size_t n);
    struct kl_sum (*exp_sum[KL_DTYPES])(const void *v, struct kl_shift shift, size_t n);
    void (*exp_scale[KL_DTYPES])(const void *v, struct kl_shift shift, double factor, void *to,
                                 size_t n);
    struct kl_row_sums (*row_sums[KL_DTYPES][2])(bool exps, double sentinel, const void *input,
                                                 const void *target,
                                                 const struct kl_shift shifts[KL_OPERANDS],
                                                 size_t n);
    void (*row_grads[KL_DTYPES][2])(const struct kl_softmax_row *row, const void *input,
                                    const void *target, const struct kl_grads *grads, size_t n);
    struct kl_row_sums (*logit_sums[KL_DTYPES])(const void *input, const void *target,
                                                const struct kl_shift shifts[KL_OPERANDS],
                                                double *cached_p, double *cached_q, size_t n);
    void (*short_sums[KL_DTYPES])(const void *input, const void *target, double scale,
                                  double sentinel, const struct kl_short_sums *to, size_t rows,
                                  size_t length);
    void (*cached_grads[KL_DTYPES])(const struct kl_softmax_row *row, const double *p,
                                    const double *q, const struct kl_grads *grads, size_t n);
    struct kl_mixture_sums (*mixture_row[KL_DTYPES])(const struct kl_mixture_row *row,
                                                     const void *input, const void *target,
                                                     double *const grads[KL_OPERANDS],
                                                     double *const probs[KL_OPERANDS], size_t n);
    struct kl_row_stats (*row_stats[KL_DTYPES])(const void *from, size_t n, bool exps);
    void (*broadcast)(const double *row_values, size_t rows, size_t length, double *to);
    void (*row_totals)(const double *v, size_t rows, size_t length, double *high, double *low);
    void (*row_maxima)(const double *v, size_t rows, size_t length, double *maxima);
    void (*softmax_terms[2])(bool is_f64, double sentinel, const double *x, const double *t,
                             double *losses, double *ps, double *exps, size_t n);
    struct kl_sum (*total)(const double *v, size_t n);
    bool (*exact_total)(const double *v, size_t n, double parts[2]);
    void (*add)(const double *v, size_t length, double *high, double *low, size_t n);
    void (*max)(const double *v, size_t length, double *maxima, size_t n);
    void (*shift)(double *v, const double *by, const double *minus, double scale, size_t n);
    void (*multiply)(double *v, const double *by, size_t n);
    void (*scale)(double *v, double by, size_t n);
    void (*apply_mask)(double *v, const unsigned char *mask, double value, size_t n);
    size_t (*count)(const unsigned char *mask, size_t n);
    void (*exps)(const double *v, double *to, size_t n);
    void (*logs)(const double *v, double *to, size_t n);
    void (*quotients)(enum kl_rule rule, double *x, double *t, double *divisor, size_t n);
    void (*softmax_backward)(double *grads, const double *e, const double *sums, double scale,
                             size_t n);
    void (*log_ratios)(const struct kl_log_ratios *ratios, double *to, size_t n);
    void (*close_terms)(const struct kl_close_rows *rows, double *losses, double *rests, size_t n);
    void (*mixture)(const struct kl_mixture *mixture, double *x, double *t,
                    const struct kl_mixture_results *to, size_t n);
    void (*bin_counts)(const struct kl_thresholds *t, const void *values, size_t n,
                       uint64_t *counts);
};

/* KL_MIN_QUOTIENT, KL_MAX_QUOTIENT: bounds of probabilities and of their quotients, beyond which
 * losses go by logarithms. */
#define KL_MIN_QUOTIENT 0x1p-900
#define KL_MAX_QUOTIENT 0x1p900

/* kl_kernels: all kernels, best first, NULL at the end; also those this CPU lacks. */
extern const struct kl_kernel *const kl_kernels[];

/* The kernel in use. */
const struct kl_kernel *kl_kernel(void);
