#include "api/text/decimal.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- Powers of five */

/* LIMBS: room for 5^324 (753 bits) and for 2^1023, whose quotients by powers of 5 down to 5^-342
 * keep at least 229 bits. Least significant limb first. */
enum { LIMBS = 32 };
typedef uint32_t big[LIMBS];

static struct api_power table[API_POWER_MAX - API_POWER_MIN + 1];

static void multiply_by_5(big n)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)n[i] * 5;
        n[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* Divides by 5. Repeated division stays exact: floor(floor(a / 5) / 5) = floor(a / 25). */
static void divide_by_5(big n)
{
    uint64_t rest = 0;
    for (size_t i = LIMBS; i-- > 0;) {
        rest = rest << 32 | n[i];
        n[i] = (uint32_t)(rest / 5);
        rest %= 5;
    }
}

static struct api_power first_128_bits(const big n)
{
    size_t top = LIMBS;
    while (n[--top] == 0)
        ;
    int shift = __builtin_clz(n[top]);
    uint32_t word[4];
    for (size_t i = 0; i < 4; i++) {
        uint64_t high = top >= i ? n[top - i] : 0;
        uint64_t low = top >= i + 1 ? n[top - i - 1] : 0;
        word[i] = (uint32_t)((high << 32 | low) >> (32 - shift));
    }
    return (struct api_power){(uint64_t)word[0] << 32 | word[1], (uint64_t)word[2] << 32 | word[3]};
}

static void make_table(void)
{
    big up = {1}, down = {0};
    down[LIMBS - 1] = 1u << 31;
    for (int q = 0; q <= API_POWER_MAX; q++, multiply_by_5(up))
        table[q - API_POWER_MIN] = first_128_bits(up);
    for (int q = -1; q >= API_POWER_MIN; q--) {
        divide_by_5(down);
        table[q - API_POWER_MIN] = first_128_bits(down);
    }
}

struct api_power api_power_of_five(int q)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_table);
    return table[q - API_POWER_MIN];
}

/* ---- Shortest decimals */

/* binary: the value c * 2^q. `min` is true if c is the smallest of its binade, below which the
 * spacing is half. */
struct binary {
    uint64_t c;
    int q;
    bool min;
};

/* shortest: the value digits * 10^exponent. */
struct shortest {
    uint64_t digits;
    int exponent;
};

/* Decomposes a finite number other than 0. */
static struct binary decompose(enum kl_dtype dtype, double value)
{
    static const struct {
        int precision, min_q;
    } formats[KL_DTYPES] = {[KL_FLOAT64] = {53, -1074},
                            [KL_FLOAT32] = {24, -149},
                            [KL_FLOAT16] = {11, -24},
                            [KL_BFLOAT16] = {8, -133}};
    enum { PRECISION = 53, BIAS = 1075 };
    int precision = formats[dtype].precision, min_q = formats[dtype].min_q;
    uint64_t bits, hidden = UINT64_C(1) << (PRECISION - 1);
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> (PRECISION - 1) & 0x7ff);
    uint64_t c = bits & (hidden - 1);
    if (exponent > 0)
        c |= hidden;
    int q = (exponent > 0 ? exponent : 1) - BIAS + (PRECISION - precision);
    c >>= PRECISION - precision;
    if (q < min_q) {
        c >>= min_q - q;
        q = min_q;
    }
    return (struct binary){c, q, c == UINT64_C(1) << (precision - 1) && q > min_q};
}

/* Bits 128 to 191 of g * cp, the last two of which are the fraction; a nonzero rest sets the
 * last bit. */
static uint64_t round_to_odd(struct api_power g, uint64_t cp)
{
    unsigned __int128 low = (unsigned __int128)g.low * cp;
    unsigned __int128 high = (unsigned __int128)g.high * cp + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static struct shortest shorten(struct binary b)
{
    bool odd = b.c & 1;
    uint64_t left = 4 * b.c - 2 + b.min, middle = 4 * b.c, right = 4 * b.c + 2;

    /* k = floor(log10(2^q)), or of 3/4 of it; h = q + floor(log2(10^-k)) + 1 */
    int k = (int)(((int64_t)b.q * 1262611 - (b.min ? 524031 : 0)) >> 22);
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

    /* Prefer one digit less if exactly one such number is in the interval; else take the
     * neighbour that is in it, or the closer one. Compute all candidates: branches on the digits
     * would be mispredicted. */
    uint64_t s = v / 4, less = s / 10;
    bool less_down = lower <= 40 * less, less_up = 40 * less + 40 <= upper;
    bool down = lower <= 4 * s, up = 4 * s + 4 <= upper;
    uint64_t half = 4 * s + 2;
    bool round_up = (v > half) | ((v == half) & s);
    bool use_less = (s >= 10) & (less_down != less_up);
    uint64_t full = s + (down != up ? up : round_up);
    return (struct shortest){use_less ? less + less_up : full, k + use_less};
}

/* Writes the two digits of a number below 100. */
static void write_pair(char *to, uint32_t value)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "6869707172737475767778798081828384858687888990919293949596979899";
    memcpy(to, pairs + (size_t)2 * value, 2);
}

/* Writes the eight digits of a number below 10^8, leading zeros included. */
static void write_eight(char *to, uint32_t value)
{
    uint32_t high = value / 10000, low = value % 10000;
    write_pair(to, high / 100);
    write_pair(to + 2, high % 100);
    write_pair(to + 4, low / 100);
    write_pair(to + 6, low % 100);
}

static const uint64_t tens[] = {1,
                                10,
                                100,
                                1000,
                                10000,
                                100000,
                                1000000,
                                10000000,
                                100000000,
                                1000000000,
                                10000000000,
                                100000000000,
                                1000000000000,
                                10000000000000,
                                100000000000000,
                                1000000000000000,
                                10000000000000000,
                                100000000000000000,
                                1000000000000000000,
                                UINT64_C(10000000000000000000)};

/* Number of decimal digits; 1 for 0. */
static size_t count_digits(uint64_t value)
{
    size_t bits = 64 - (size_t)__builtin_clzll(value | 1);
    size_t n = bits * 1233 >> 12; /* bits times log10(2), rounded down */
    return n + (value >= tens[n] || n == 0);
}

/* Writes the n digits of `value` and up to 15 zeros after them. Works in place, eight at a time:
 * a later move in smaller pieces would stall on store forwarding. */
static void write_digits(char *to, uint64_t value, size_t n)
{
    enum { EIGHT = 100000000 };
    if (n > 16) {
        uint32_t head = (uint32_t)(value / tens[16]);
        for (size_t i = n - 16; i-- > 0; head /= 10)
            to[i] = (char)('0' + head % 10);
        value %= tens[16];
        to += n - 16;
        n = 16;
    }
    value *= tens[16 - n];
    write_eight(to, (uint32_t)(value / EIGHT));
    write_eight(to + 8, (uint32_t)(value % EIGHT));
}

size_t api_unsigned_write(char *to, uint64_t value)
{
    enum { SHORT = 4 };
    char digits[API_DECIMAL_MAX];
    size_t n = count_digits(value);
    if (n <= SHORT) {
        for (size_t i = n; i-- > 0; value /= 10)
            to[i] = (char)('0' + value % 10);
        return n;
    }
    write_digits(digits, value, n);
    memcpy(to, digits, n);
    return n;
}

/* Formats as Python and JavaScript do: with an exponent below 1e-4 and from 1e16 on. */
static size_t format_shortest(char *to, struct shortest number)
{
    size_t n = count_digits(number.digits);
    int point = (int)n + number.exponent; /* number of digits before the decimal point */
    if (point > 16 || point < -3) {
        char *p = to + (n > 1 ? n + 1 : 1);
        write_digits(to + 1, number.digits, n);
        to[0] = to[1];
        to[1] = '.';
        *p++ = 'e';
        if (point < 1)
            *p++ = '-';
        return (size_t)(p - to) +
               api_unsigned_write(p, (uint64_t)(point < 1 ? 1 - point : point - 1));
    }
    if (point <= 0) {
        size_t before = 2 + (size_t)-point;
        memcpy(to, "0.000", 5);
        write_digits(to + before, number.digits, n);
        return before + n;
    }
    size_t whole = (size_t)point;
    if (whole >= n) {
        write_digits(to, number.digits, n);
        memset(to + n, '0', whole - n);
        memcpy(to + whole, ".0", 2);
        return whole + 2;
    }
    write_digits(to + 1, number.digits, n);
    for (size_t i = 0; i < whole; i++)
        to[i] = to[i + 1];
    to[whole] = '.';
    return n + 1;
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
    struct shortest shortest = shorten(decompose(dtype, value));
    while (shortest.digits % 10 == 0) {
        shortest.digits /= 10;
        shortest.exponent++;
    }
    return sign + format_shortest(to, shortest);
}
