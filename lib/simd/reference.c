/* The reference: losses, derivatives and quotients of single elements, in the libm's long double.
 * Slow and plain; every kernel is tested against it, and falls back on it for special values. Where
 * long double is no wider than double, values are right to double's precision. */
#include "lib/simd/reference.h"

#include <math.h>

#ifdef __x86_64__
typedef __float128 quad; /* of libgcc */
#else
typedef long double quad;
#endif

/* log t - x where it is close to 0, as log1p(t e^-x - 1): the quotient's error of 2^-100 takes no
 * more digits from it than float32 leaves. */
static long double small_difference(long double x, long double t)
{
    enum { TERMS = 14, SQUARINGS = 8 };
    const quad ln2 =
        (quad)0x1.62e42fefa39efp-1 + (quad)0x1.abc9e3b39803fp-56 + (quad)0x1.7b57a079a1934p-111;
    long double k = roundl(x / (long double)ln2);
    quad r = ((quad)k * ln2 - (quad)x) / (1 << SQUARINGS), exponential = 1;
    for (int i = TERMS; i > 0; i--)
        exponential = 1 + exponential * r / i;
    for (int i = 0; i < SQUARINGS; i++)
        exponential *= exponential;
    quad u = exponential * (quad)ldexpl(t, (int)-k) - 1;
    return (long double)(u * (1 - u * ((quad)1 / 2 - u * ((quad)1 / 3 - u / 4))));
}

/* logl is good to 2^-64 of its value. */
static long double log_difference(long double t, long double x)
{
    long double difference = t == 1 ? 0 - x : logl(t) - x;
    bool close = fabsl(difference) < 0x1p-30L * fmaxl(1, fabsl(x)) && t != 1;
    return close ? small_difference(x, t) : difference;
}

/* exp(t) of a finite t is neither 0 nor infinite, even where expl says so. */
static double log_term(double x, double t)
{
    long double difference = (long double)t - x;
    return (double)(difference == 0 || isinf(difference) ? difference : expl(t) * difference);
}

/* The loss of a target's probability of 0: what a rule makes of 0 times a number. */
static double zero_term(enum kl_rule rule, double x)
{
    if (rule == KL_PROB_PYTORCH || rule == KL_LOGIT_PYTORCH)
        return isfinite(x) ? 0 : (double)NAN;
    if (rule == KL_PROB_MATH || rule == KL_LOG_MATH)
        return isnan(x) ? x : 0;
    return rule == KL_LOG_PYTORCH ? (double)NAN : 0;
}

double kl_term(enum kl_rule rule, double input, double target)
{
    bool is_log = kl_rule_is_log(rule);
    double zero = is_log ? -(double)INFINITY : 0;
    if (target == zero)
        return zero_term(rule, input);
    if ((rule == KL_PROB_ONEFLOW || rule == KL_LOGIT_ONEFLOW) && !(target > zero))
        return 0;
    if (rule == KL_PROB_PYTORCH && isinf(target) && input >= 0)
        return (double)NAN;
    return is_log ? log_term(input, target) : (double)(target * log_difference(target, input));
}

static double prob_grad(enum kl_rule rule, enum kl_operand by, double x, double t)
{
    if (by == KL_INPUT)
        return rule == KL_PROB_ONEFLOW && !(t > 0) ? -0.0 : -t;
    if (rule == KL_PROB_PYTORCH && (t == 0 || isinf(t)))
        return (double)NAN;
    if (t == 0)
        return -(double)INFINITY;
    return t < 0 ? (double)NAN : (double)(log_difference(t, x) + 1);
}

static double log_grad(enum kl_rule rule, enum kl_operand by, double x, double t)
{
    if (by == KL_INPUT)
        return (double)-expl(t);
    if (isinf(t) && t < 0)
        return rule == KL_LOG_MATH || rule == KL_LOGIT_ONEFLOW ? 0 : (double)NAN;
    long double sum = (long double)t - x + 1;
    return (double)(sum == 0 || isinf(sum) ? sum : expl(t) * sum);
}

double kl_grad_term(enum kl_rule rule, enum kl_operand by, double input, double target)
{
    return kl_rule_is_log(rule) ? log_grad(rule, by, input, target)
                                : prob_grad(rule, by, input, target);
}

/* kl_quotient: an unusual quotient is computed from the logarithm itself. With t = 0 the loss does not depend on q,
 * and yet autograd divides by q. */
struct kl_quotient kl_quotient(enum kl_rule rule, double q, double t)
{
    const double min = KL_MIN_QUOTIENT, max = KL_MAX_QUOTIENT;
    double r = t / q;
    if (q > min && q <= max && (t == 0 || (t > min && r > min && r <= max)))
        return (struct kl_quotient){t == 0 ? 0 : fma(r, q, -t) / t, r, q, 1};
    bool flat = t == 0 && rule != KL_PROB_PYTORCH;
    return (struct kl_quotient){log(q), t, 1, flat ? 1 : q};
}

/* a log b, where 0 times an infinite logarithm is 0. */
static long double times_log(long double a, long double log_b) { return a == 0 ? 0 : a * log_b; }

struct kl_mixture_element kl_mixture_element(const struct kl_mixture *mixture, double input,
                                             double target)
{
    const double v[KL_OPERANDS] = {input, target};
    long double share = mixture->share, probs[KL_OPERANDS], logs[KL_OPERANDS], to_mean[KL_OPERANDS];
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (isnan(v[i]) ||
            (mixture->are_probs[i] && !(v[i] >= 0))) /* at once, for there may be many */
            return (struct kl_mixture_element){NAN, {NAN, NAN}, {NAN, NAN}};
        probs[i] = mixture->are_probs[i] ? v[i] : expl(v[i]);
        logs[i] = mixture->are_probs[i] ? logl(v[i]) : v[i];
    }
    long double q = probs[KL_INPUT], p = probs[KL_TARGET];
    if (!(q >= 0 && p >= 0 && isfinite((double)q) && isfinite((double)p)))
        return (struct kl_mixture_element){NAN, {NAN, NAN}, {NAN, NAN}};
    long double mean = share * p + (1 - share) * q;
    for (int i = 0; i < KL_OPERANDS; i++)
        to_mean[i] = logs[i] - logl(mean);
    long double of_p = times_log(p, to_mean[KL_TARGET]), of_q = times_log(q, to_mean[KL_INPUT]);
    struct kl_mixture_element term = {.probs = {(double)q, (double)p}};
    if (mixture->is_js) {
        term.loss = (double)(share * of_p + (1 - share) * of_q);
        term.grads[KL_INPUT] =
            (double)((1 - share) * (mixture->are_probs[KL_INPUT] ? to_mean[KL_INPUT] : of_q));
        term.grads[KL_TARGET] =
            (double)(share * (mixture->are_probs[KL_TARGET] ? to_mean[KL_TARGET] : of_p));
        return term;
    }
    long double rest = 1 - share, by_q = rest == 0 ? 0 : rest * (p / mean);
    long double by_p = rest == 0 ? 0 : rest * (q / mean);
    if (rest == 0) /* the mixture is p */
        to_mean[KL_TARGET] = of_p = 0;
    term.loss = (double)(of_p + (mixture->are_whole ? rest * (q - p) : 0));
    term.grads[KL_INPUT] = (double)-(mixture->are_probs[KL_INPUT] ? by_q : times_log(q, by_q));
    term.grads[KL_TARGET] = (double)(mixture->are_probs[KL_TARGET] ? to_mean[KL_TARGET] + by_p
                                                                   : of_p + times_log(p, by_p));
    return term;
}
