#include "api/text/powers.h"

#include <pthread.h>
#include <stddef.h>

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
