#include "api/text/number.h"

#include "api/text/decimal.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A decimal, (-1)^negative * digits * 10^exponent. */
struct decimal {
    const char *text; /* its start, for strtod */
    uint64_t digits;
    long exponent;
    bool negative;
    bool cut; /* more than 19 digits: `digits` holds the first 19 */
};

static bool is_digit(char c) { return (unsigned)(c - '0') < 10; }

/* Eight ASCII digits at a time, least significant byte first. */
static bool eight_digits(const char *p, uint64_t *value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t v;
    memcpy(&v, p, sizeof v);
    if ((((v + 0x4646464646464646) | (v - 0x3030303030303030)) & 0x8080808080808080) != 0)
        return false;
    v -= 0x3030303030303030;
    v = v * 10 + (v >> 8);
    *value = ((v & 0x000000ff000000ff) * (100 + (1000000ull << 32)) +
              (v >> 16 & 0x000000ff000000ff) * (1 + (10000ull << 32))) >>
             32;
    return true;
#else
    (void)p, (void)value;
    return false;
#endif
}

static const char *read_digits(const char *p, uint64_t *digits)
{
    uint64_t eight, d = *digits;
    while (eight_digits(p, &eight)) {
        d = d * 100000000 + eight;
        p += 8;
    }
    for (; is_digit(*p); p++)
        d = d * 10 + (uint64_t)(*p - '0');
    *digits = d;
    return p;
}

/* Reads at most 19 digits again, from the first that is not 0. */
static void cut_digits(struct decimal *decimal, const char *p, const char *end)
{
    int n_digits = 0;
    bool fraction = false;
    decimal->digits = 0;
    decimal->exponent = 0;
    for (; p < end; p++) {
        if (*p == '.') {
            fraction = true;
        } else if (n_digits == 19) {
            decimal->exponent += fraction ? 0 : 1;
            decimal->cut = true;
        } else {
            decimal->exponent -= fraction ? 1 : 0;
            decimal->digits = decimal->digits * 10 + (uint64_t)(*p - '0');
            n_digits += decimal->digits != 0;
        }
    }
}

static const char *read_exponent(const char *p, long *exponent)
{
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return NULL;
    long value = 0;
    for (; is_digit(*p); p++)
        if (value < 100000000)
            value = value * 10 + (*p - '0');
    *exponent += negative ? -value : value;
    return p;
}

static const char *read_decimal(const char *p, struct decimal *decimal)
{
    *decimal = (struct decimal){.text = p, .negative = *p == '-'};
    p += decimal->negative;
    const char *first = p;
    if (*p == '0')
        p++;
    else if (is_digit(*p))
        p = read_digits(p, &decimal->digits);
    else
        return NULL;
    if (is_digit(*p))
        return NULL;

    const char *end = p;
    if (*p == '.') {
        const char *fraction = ++p;
        end = p = read_digits(p, &decimal->digits);
        if (p == fraction)
            return NULL;
        decimal->exponent = fraction - p;
    }
    if (end - first > 19)
        cut_digits(decimal, first, end);
    return *p == 'e' || *p == 'E' ? read_exponent(p + 1, &decimal->exponent) : p;
}

static bool clinger(const struct decimal *decimal, double *value)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (decimal->digits >> 53 || decimal->exponent < -22 || decimal->exponent > 22)
        return false;
    double exact = (double)decimal->digits;
    *value =
        decimal->exponent < 0 ? exact / tens[-decimal->exponent] : exact * tens[decimal->exponent];
    return true;
}

/* Rounds the first 54 bits of a product, with its biased exponent, to the nearest double, ties
 * to even. `may_be_halfway` is set if all later bits may be 0. */
static double round_product(uint64_t high, int shift, long power, bool may_be_halfway)
{
    uint64_t mantissa = high >> shift;
    if (power <= -63)
        return 0;
    if (power <= 0) {
        mantissa >>= 1 - power;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        power = mantissa >> 52 ? 1 : 0;
    } else {
        bool halfway = may_be_halfway && (mantissa & 3) == 1 && mantissa << shift == high;
        mantissa &= ~(uint64_t)halfway;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        if (mantissa >> 53) {
            mantissa >>= 1;
            power++;
        }
    }
    uint64_t bits =
        power >= 2047 ? 0x7ff0000000000000 : (mantissa & 0xfffffffffffff) | (uint64_t)power << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds digits * 10^q to double; false if 128 bits of 5^q do not determine the result. */
static bool eisel_lemire(uint64_t digits, long q, double *value)
{
    if (digits == 0 || q < API_POWER_MIN) {
        *value = 0;
        return true;
    }
    if (q > 308) {
        *value = (double)INFINITY;
        return true;
    }
    struct api_power five = api_power_of_five((int)q);
    if (q < 0 && q >= -27) { /* the algorithm needs the reciprocal rounded up */
        five.low++;
        five.high += five.low == 0;
    }
    int leading = __builtin_clzll(digits);
    uint64_t w = digits << leading;
    unsigned __int128 product = (unsigned __int128)w * five.high;
    if (((uint64_t)(product >> 64) & 0x1ff) == 0x1ff)
        product += (uint64_t)((unsigned __int128)w * five.low >> 64);
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if (low == UINT64_MAX && (q < -27 || q > 55))
        return false;

    int upper = (int)(high >> 63);
    long power = ((217706 * q) >> 16) + 63 + upper - leading + 1023;
    bool halfway = low <= 1 && q >= -4 && q <= 23;
    *value = round_product(high, upper + 9, power, halfway);
    return true;
}

static locale_t c_locale;

static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double api_strtod(const char *text, char **end)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return c_locale ? strtod_l(text, end, c_locale) : strtod(text, end);
}

static double magnitude(const struct decimal *decimal)
{
    double value, next;
    if (!decimal->cut && clinger(decimal, &value))
        return value;
    if (eisel_lemire(decimal->digits, decimal->exponent, &value) &&
        (!decimal->cut ||
         (eisel_lemire(decimal->digits + 1, decimal->exponent, &next) && next == value)))
        return value;
    return fabs(api_strtod(decimal->text, NULL));
}

/* Rounds to odd: rounding to nearest twice, to double and then to a narrower dtype, could create
 * a tie that the text does not have. */
static double magnitude_to_odd(const struct decimal *decimal)
{
    int rounding = fegetround();
    fesetround(FE_TOWARDZERO);
    double down = fabs(api_strtod(decimal->text, NULL));
    fesetround(decimal->negative ? FE_DOWNWARD : FE_UPWARD);
    double up = fabs(api_strtod(decimal->text, NULL));
    fesetround(rounding);
    uint64_t bits;
    memcpy(&bits, &down, sizeof bits);
    return bits & 1 ? down : up;
}

/* True if `value` is halfway between two neighbours in `dtype`. */
static bool is_tie(enum kl_dtype dtype, double value)
{
    static const struct {
        int dropped_bits;
        double min_normal, halves; /* halves: half-steps of subnormal numbers in 1 */
    } formats[KL_DTYPES] = {[KL_FLOAT64] = {0, 0, 0},
                            [KL_FLOAT32] = {29, 0x1p-126, 0x1p150},
                            [KL_FLOAT16] = {42, 0x1p-14, 0x1p25},
                            [KL_BFLOAT16] = {45, 0x1p-126, 0x1p134}};
    if (dtype == KL_FLOAT64)
        return false;
    if (value < formats[dtype].min_normal) {
        double halves = value * formats[dtype].halves;
        return ((uint64_t)halves & 1) && (double)(uint64_t)halves == halves;
    }
    uint64_t bits, dropped = (UINT64_C(1) << formats[dtype].dropped_bits) - 1;
    memcpy(&bits, &value, sizeof bits);
    return (bits & dropped) == dropped / 2 + 1;
}

const char *api_number_read(const char *text, enum kl_dtype dtype, double *value)
{
    struct decimal decimal;
    const char *end = read_decimal(text, &decimal);
    if (!end)
        return NULL;
    double size = magnitude(&decimal);
    if (is_tie(dtype, size))
        size = magnitude_to_odd(&decimal);
    *value = decimal.negative ? -size : size;
    return end;
}

const char *api_number_end(const char *text)
{
    struct decimal decimal;
    return read_decimal(text, &decimal);
}
