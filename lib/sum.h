/* kl_sum: a compensated sum of doubles. */
#pragma once

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
