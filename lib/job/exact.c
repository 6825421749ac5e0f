/* A superaccumulator: a fixed-point number wide enough for any sum of doubles.
 *
 * Kulisch's long accumulator ("Computer Arithmetic and Validity") has a bit for each power of 2 that a double
 * may hold. Here it is divided into digits of 32 bits in signed words of 64, as in Neal's small superaccumulator
 * ("Fast exact summation using small and large superaccumulators", 2015): a double touches three digits, and
 * carries wait until a digit could overflow. The sum has no error and does not depend on the order of what is added,
 * so threads, shards and machines agree to the bit; one rounding makes a double of it. An addition takes some 20
 * operations without a branch on the value, and is done once for each chunk of 2^14 elements or each row; merging
 * and rounding visit the digits in use, which lie side by side. */
#include "lib/job/exact.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { DIGIT = 32, DIGITS = sizeof((struct kl_exact *)NULL)->digits / sizeof(long long) };
#define DIGIT_MASK 0xffffffffULL

/* enum special: the numbers added that are not finite, as bits. */
enum special { PLUS_INFINITY = 1, MINUS_INFINITY = 2, NOT_A_NUMBER = 4 };

_Static_assert((DIGITS - 3) * DIGIT >= 1074 + 1024 + 64, "2^64 of the greatest doubles have room");

/* ---- Additions. Digits outside of [first, end) are 0. */

/* Makes room for digits [first, end). */
static inline void extend(struct kl_exact *exact, unsigned first, unsigned end)
{
    if (exact->end == 0 || first < exact->first)
        exact->first = first;
    if (end > exact->end)
        exact->end = end;
}

void kl_exact_add(struct kl_exact *exact, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned exponent = bits >> 52 & 0x7ff;
    uint64_t mantissa = (bits & ((1ULL << 52) - 1)) | (exponent ? 1ULL << 52 : 0);
    if (exponent == 0x7ff)
        exact->specials |= isnan(value) ? NOT_A_NUMBER : value > 0 ? PLUS_INFINITY : MINUS_INFINITY;
    if (exact->specials || mantissa == 0) /* digits are of no use any more */
        return;
    unsigned shift = exponent - (exponent > 0);
    unsigned __int128 shifted = (unsigned __int128)mantissa << shift % DIGIT;
    long long *to = &exact->digits[shift / DIGIT];
    long long sign = bits >> 63 ? -1 : 1;
    extend(exact, shift / DIGIT, shift / DIGIT + 3);
    to[0] += sign * (long long)((uint64_t)shifted & DIGIT_MASK);
    to[1] += sign * (long long)((uint64_t)(shifted >> DIGIT) & DIGIT_MASK);
    to[2] += sign * (long long)(shifted >> 2 * DIGIT);
}

void kl_exact_add_all(struct kl_exact *exact, const double *values, size_t n)
{
    double parts[2];
    if (kl_kernel()->exact_total(values, n, parts)) {
        kl_exact_add(exact, parts[0]);
        kl_exact_add(exact, parts[1]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        kl_exact_add(exact, values[i]);
}

/* BITS_HIGH + BITS_LOW: 1 / ln 2. */
static const double BITS_HIGH = 0x1.71547652b82fep+0, BITS_LOW = 0x1.777d0ffda0d24p-56;

static struct kl_sum to_bits(struct kl_sum sum)
{
    double high = sum.high * BITS_HIGH;
    double low = fma(sum.high, BITS_HIGH, -high) + (sum.high * BITS_LOW + sum.low * BITS_HIGH);
    return (struct kl_sum){high, low};
}

/* The greatest power of 2 that is not above a number's size; 0 of subnormal ones. */
static double power_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0x7ffULL << 52;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Rounds a compensated sum to 73 bits, as two doubles, in the unit of `base`. 73 bits are more than the sum's error
 * leaves right, and few enough for a pair of doubles (106 bits) to hold a sum of many such numbers. */
static void round_sum(struct kl_sum sum, enum kl_base base, double pair[2])
{
    if (base == KL_BITS && isfinite(sum.high))
        sum = to_bits(sum);
    struct kl_sum exact = kl_two_sum(sum.high, sum.low);
    double high = exact.high, low = exact.low;
    double grid = power_of(high) * 0x1.8p-20;      /* whose last bit is 20 below that of high */
    bool finite = isfinite(high) && isfinite(low); /* of a sum that overflowed, low is of no use */
    pair[0] = finite ? high : sum.high;
    pair[1] = finite ? (low + grid) - grid : 0;
}

/* ---- Carries */

/* Brings all digits but the last, which has the sign, to 0 .. 2^32 - 1, and the last to 31 bits. */
static void carry(struct kl_exact *exact)
{
    long long over = 0;
    for (unsigned i = exact->first; i < exact->end; i++) {
        long long digit = exact->digits[i] + over;
        bool is_last = i + 1 == exact->end;
        if (is_last && digit == (int32_t)digit) {
            exact->digits[i] = digit;
            return;
        }
        exact->digits[i] = digit & (long long)DIGIT_MASK;
        over = digit >> DIGIT;
        exact->end += is_last;
    }
}

void kl_exact_merge(struct kl_exact *exact, const struct kl_exact *more)
{
    struct kl_exact part = *more;
    exact->specials |= part.specials;
    if (part.end == 0)
        return;
    carry(&part);
    carry(exact);
    extend(exact, part.first, part.end);
    for (unsigned i = part.first; i < part.end; i++)
        exact->digits[i] += part.digits[i];
}

void kl_exact_times(struct kl_exact *exact, size_t times)
{
    __int128 over = 0;
    carry(exact);
    for (unsigned i = exact->first; i < exact->end; i++) {
        over += (__int128)exact->digits[i] * (__int128)times;
        bool is_last = i + 1 == exact->end;
        if (is_last && over == (long long)over) {
            exact->digits[i] = (long long)over;
            return;
        }
        exact->digits[i] = (long long)((uint64_t)over & DIGIT_MASK);
        over >>= DIGIT;
        exact->end += is_last;
    }
}

/* ---- Rounding */

/* The value of digits 0 .. 2^32 - 1, `top` of which is the greatest that is not 0: their first 64 bits,
 * the last one set if anything is below, which conversion to double then rounds as it should. */
static double rounded(const struct kl_exact *exact, int top)
{
    unsigned __int128 first = 0;
    uint64_t below = 0;
    int shift = 0;
    for (int i = top; i > top - 3; i--)
        first = first << DIGIT | (i < 0 ? 0 : (uint64_t)exact->digits[i]);
    for (int i = (int)exact->first; i < top - 2; i++)
        below |= (uint64_t)exact->digits[i];
    for (; first >> 64; first >>= 1, shift++)
        below |= (uint64_t)first & 1;
    return ldexp((double)((uint64_t)first | (below != 0)), (top - 2) * DIGIT + shift - 1074);
}

static void negate(struct kl_exact *exact)
{
    for (unsigned i = exact->first; i < exact->end; i++)
        exact->digits[i] = -exact->digits[i];
    carry(exact);
}

static double finite_value(struct kl_exact *exact)
{
    carry(exact);
    int top = (int)exact->end - 1;
    bool negative = top >= 0 && exact->digits[top] < 0;
    if (negative)
        negate(exact);
    for (top = (int)exact->end - 1; top >= 0 && exact->digits[top] == 0;)
        top--;
    double value = top < 0 ? 0 : rounded(exact, top);
    if (negative)
        negate(exact);
    return negative ? -value : value;
}

double kl_exact_round(struct kl_exact *exact)
{
    if (exact->specials == 0)
        return finite_value(exact);
    return exact->specials == PLUS_INFINITY    ? (double)INFINITY
           : exact->specials == MINUS_INFINITY ? -(double)INFINITY
                                               : (double)NAN;
}

double kl_exact_value(const struct kl_exact *exact)
{
    struct kl_exact copy = *exact;
    return kl_exact_round(&copy);
}

void kl_exact_pair(const struct kl_exact *exact, double pair[2])
{
    struct kl_exact left = *exact;
    pair[0] = kl_exact_value(exact);
    kl_exact_add(&left, -pair[0]);
    pair[1] = isfinite(pair[0]) ? kl_exact_value(&left) : 0;
}

/* ---- Threads */

static bool is_empty(const struct kl_exact *exact)
{
    return exact->end == 0 && exact->specials == 0;
}

static void add_pair(struct kl_exact *exact, const double pair[2])
{
    kl_exact_add(exact, pair[0]);
    kl_exact_add(exact, pair[1]);
}

const struct kl_exact *kl_total_exact(struct kl_total *total)
{
    if (total->has_first)
        add_pair(&total->sum, total->first);
    total->has_first = false;
    return &total->sum;
}

void kl_total_add(struct kl_total *total, struct kl_sum sum)
{
    double pair[2];
    round_sum(sum, total->base, pair);
    pthread_mutex_lock(&total->lock);
    if (!total->has_first && is_empty(&total->sum)) {
        total->has_first = true;
        memcpy(total->first, pair, sizeof pair);
    } else {
        kl_total_exact(total);
        add_pair(&total->sum, pair);
    }
    pthread_mutex_unlock(&total->lock);
}

/* An addition of doubles rounds as digits do: once, to nearest, ties to even. */
double kl_total_value(struct kl_total *total)
{
    if (!total->has_first || !is_empty(&total->sum)) {
        kl_total_exact(total);
        return kl_exact_round(&total->sum);
    }
    double value = total->first[0] + total->first[1];
    return isnan(value) ? (double)NAN : value;
}

void kl_total_merge(struct kl_total *total, const struct kl_exact *part)
{
    pthread_mutex_lock(&total->lock);
    kl_exact_merge(&total->sum, part);
    pthread_mutex_unlock(&total->lock);
}
