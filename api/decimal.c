#include "api/decimal.h"

#include "api/powers.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* c * 2^q, and whether c is the least of its binade, where the neighbour below is half as far. */
struct binary {
    uint64_t c;
    int q;
    bool least;
};

/* digits * 10^exponent. */
struct shortest {
    uint64_t digits;
    int exponent;
};

static struct binary take_apart(enum kl_dtype dtype, double size)
{
    static const struct {
        int precision, min_q;
    } formats[KL_DTYPES] = {[KL_FLOAT64] = {53, -1074},
                            [KL_FLOAT32] = {24, -149},
                            [KL_FLOAT16] = {11, -24},
                            [KL_BFLOAT16] = {8, -133}};
    int exponent;
    frexp(size, &exponent);
    int q = exponent - formats[dtype].precision;
    if (q < formats[dtype].min_q)
        q = formats[dtype].min_q;
    uint64_t c = (uint64_t)ldexp(size, -q);
    uint64_t least = UINT64_C(1) << (formats[dtype].precision - 1);
    return (struct binary){c, q, c == least && q > formats[dtype].min_q};
}

/* The first 64 bits after the point's 2 of g * cp, the rest folded into the last bit. */
static uint64_t round_to_odd(struct api_power g, uint64_t cp)
{
    unsigned __int128 low = (unsigned __int128)g.low * cp;
    unsigned __int128 high = (unsigned __int128)g.high * cp + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static struct shortest shorten(struct binary b)
{
    bool odd = b.c & 1;
    uint64_t left = 4 * b.c - 2 + b.least, middle = 4 * b.c, right = 4 * b.c + 2;

    /* k = floor(log10(2^q)), or of 3/4 of it; h = q + floor(log2(10^-k)) + 1 */
    int k = (int)(((int64_t)b.q * 1262611 - (b.least ? 524031 : 0)) >> 22);
    int h = b.q + (int)(((int64_t)-k * 1741647) >> 19) + 1;
    struct api_power g = api_power_of_five(-k);
    if (!api_power_exact(-k)) {
        g.low++;
        g.high += g.low == 0;
    }
    uint64_t vl = round_to_odd(g, left << h);
    uint64_t v = round_to_odd(g, middle << h);
    uint64_t vr = round_to_odd(g, right << h);
    uint64_t lower = vl + odd, upper = vr - odd;

    uint64_t s = v / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool down = lower <= 40 * tens, up = 40 * tens + 40 <= upper;
        if (down != up)
            return (struct shortest){tens + up, k + 1};
    }
    bool down = lower <= 4 * s, up = 4 * s + 4 <= upper;
    if (down != up)
        return (struct shortest){s + up, k};
    uint64_t half = 4 * s + 2;
    return (struct shortest){s + (v > half || (v == half && (s & 1))), k};
}

size_t api_unsigned_write(char *to, uint64_t digits)
{
    char reversed[20];
    size_t n = 0;
    do
        reversed[n++] = (char)('0' + digits % 10);
    while (digits /= 10);
    for (size_t i = 0; i < n; i++)
        to[i] = reversed[n - 1 - i];
    return n;
}

/* As Python and JavaScript choose: with an exponent below 1e-4 and from 1e16 on. */
static size_t lay_out(char *to, const char *digits, size_t n, int exponent)
{
    int point = (int)n + exponent; /* digits before the decimal point */
    char *p = to;
    if (point > 16 || point < -3) {
        *p++ = digits[0];
        if (n > 1) {
            *p++ = '.';
            memcpy(p, digits + 1, n - 1);
            p += n - 1;
        }
        *p++ = 'e';
        if (point < 1)
            *p++ = '-';
        return (size_t)(p - to) +
               api_unsigned_write(p, (uint64_t)(point < 1 ? 1 - point : point - 1));
    }
    if (point <= 0) {
        memcpy(p, "0.000", 5);
        p += 2 - point;
        memcpy(p, digits, n);
        return (size_t)(p - to) + n;
    }
    size_t whole = (size_t)point < n ? (size_t)point : n;
    memcpy(p, digits, whole);
    memset(p + whole, '0', (size_t)point - whole);
    p += point;
    *p++ = '.';
    if (whole == n)
        *p++ = '0';
    memcpy(p, digits + whole, n - whole);
    return (size_t)(p - to) + n - whole;
}

size_t api_decimal_write(char *to, enum kl_dtype dtype, double value)
{
    const char *word = isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    if (!isfinite(value)) {
        size_t size = strlen(word);
        memcpy(to, word, size);
        return size;
    }
    size_t sign = signbit(value) ? 1 : 0;
    if (sign)
        *to++ = '-';
    if (value == 0) {
        memcpy(to, "0.0", 3);
        return sign + 3;
    }
    struct shortest shortest = shorten(take_apart(dtype, fabs(value)));
    while (shortest.digits % 10 == 0) {
        shortest.digits /= 10;
        shortest.exponent++;
    }
    char digits[20];
    size_t n = api_unsigned_write(digits, shortest.digits);
    return sign + lay_out(to, digits, n, shortest.exponent);
}
