#include "lib/kldiv.h"
#include "lib/plan/problem.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    int mantissa_bits; /* the hidden one not counted */
    int min_exponent;  /* of the smallest normal number */
} dtypes[KL_DTYPES] = {
    [KL_FLOAT64] = {"float64", 8, 52, -1022},
    [KL_FLOAT32] = {"float32", 4, 23, -126},
    [KL_FLOAT16] = {"float16", 2, 10, -14},
    [KL_BFLOAT16] = {"bfloat16", 2, 7, -126},
};

static const char *const integral[] = {"bool",   "uint8", "int8",   "uint16", "int16",
                                       "uint32", "int32", "uint64", "int64"};

const char *kl_dtype_name(enum kl_dtype dtype)
{
    return (unsigned)dtype < KL_DTYPES ? dtypes[dtype].name : NULL;
}

size_t kl_dtype_size(enum kl_dtype dtype)
{
    return (unsigned)dtype < KL_DTYPES ? dtypes[dtype].size : 0;
}

bool kl_dtype_parse(const char *name, enum kl_dtype *dtype, struct kl_problem *problem)
{
    for (size_t i = 0; i < KL_DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtype = (enum kl_dtype)i;
            return true;
        }
    if (strncmp(name, "complex", 7) == 0)
        return kl_fail(problem, KL_NO_OPERAND, "dtype_unsupported",
                       "kl_div: Complex inputs not supported.");
    for (size_t i = 0; i < sizeof integral / sizeof *integral; i++)
        if (strcmp(name, integral[i]) == 0)
            return kl_fail(problem, KL_NO_OPERAND, "dtype_unsupported",
                           "kl_div: Integral inputs not supported.");
    return kl_fail(problem, KL_NO_OPERAND, "dtype_invalid", "%.40s is not a dtype", name);
}

enum kl_dtype kl_dtype_promote(enum kl_dtype a, enum kl_dtype b)
{
    return a == b ? a : a == KL_FLOAT64 || b == KL_FLOAT64 ? KL_FLOAT64 : KL_FLOAT32;
}

static double from_float_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static uint32_t to_float_bits(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

static double from_float16(uint16_t half)
{
    unsigned exponent = half >> 10 & 31, mantissa = half & 1023;
    double value;
    if (exponent == 31)
        value = mantissa ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, -24);
    else
        value = ldexp(mantissa + 1024, (int)exponent - 25);
    return half & 0x8000 ? -value : value;
}

/* `value` is a float16 value already, or at least 2^16. */
static uint16_t encode_float16(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (size >= 65536)
        return sign | 0x7c00;
    if (size < 0x1p-14)
        return (uint16_t)(sign | (unsigned)(size * 0x1p24));
    return (uint16_t)(sign | ((to_float_bits(size) >> 13) - (112u << 10)));
}

/* The nearest number of the dtype, ties to even. Numbers past its range stay as they are: the
 * encoders make infinities of them. */
static double round_to(enum kl_dtype dtype, double value)
{
    if (value == 0 || !isfinite(value))
        return value;
    int exponent = ilogb(value);
    if (exponent < dtypes[dtype].min_exponent)
        exponent = dtypes[dtype].min_exponent;
    int ulp = exponent - dtypes[dtype].mantissa_bits;
    return ldexp(rint(ldexp(value, -ulp)), ulp);
}

double kl_load(enum kl_dtype dtype, const void *array, size_t index)
{
    const char *address = (const char *)array + index * dtypes[dtype].size;
    double value;
    uint32_t word;
    uint16_t half;
    switch (dtype) {
    case KL_FLOAT64:
        memcpy(&value, address, sizeof value);
        return value;
    case KL_FLOAT32:
        memcpy(&word, address, sizeof word);
        return from_float_bits(word);
    case KL_FLOAT16:
        memcpy(&half, address, sizeof half);
        return from_float16(half);
    case KL_BFLOAT16:
        break;
    }
    memcpy(&half, address, sizeof half);
    return from_float_bits((uint32_t)half << 16);
}

void kl_store(enum kl_dtype dtype, void *array, size_t index, double value)
{
    char *address = (char *)array + index * dtypes[dtype].size;
    uint32_t word;
    uint16_t half;
    switch (dtype) {
    case KL_FLOAT64:
        memcpy(address, &value, sizeof value);
        return;
    case KL_FLOAT32:
        word = to_float_bits(value);
        memcpy(address, &word, sizeof word);
        return;
    case KL_FLOAT16:
        half = encode_float16(round_to(dtype, value));
        memcpy(address, &half, sizeof half);
        return;
    case KL_BFLOAT16:
        half = isnan(value) ? 0x7fc0 : (uint16_t)(to_float_bits(round_to(dtype, value)) >> 16);
        memcpy(address, &half, sizeof half);
        return;
    }
}
