/* Powers of ten in 128 bits, which reading and writing decimals share. */
#ifndef KLDIV_API_TEXT_POWERS_H
#define KLDIV_API_TEXT_POWERS_H

#include <stdbool.h>
#include <stdint.h>

enum { API_POWER_MIN = -342, API_POWER_MAX = 324 };

/* 5^q, or what is the same but for the exponent, 10^q: its first 128 bits, the first of them 1,
 * the rest cut off; api_power_exact tells whether there was any. */
struct api_power {
    uint64_t high, low;
};

/* For q from API_POWER_MIN to API_POWER_MAX. The table is made at the first call, in 0.3 ms. */
struct api_power api_power_of_five(int q);

/* Whether the table holds 5^q without loss. */
static inline bool api_power_exact(int q) { return q >= 0 && q <= 55; }

#endif
