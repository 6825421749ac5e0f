/* Powers of ten in 128 bits, shared by number.c and decimal.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { API_POWER_MIN = -342, API_POWER_MAX = 324 };

/* api_power: the first 128 significant bits of 5^q, truncated. 10^q has the same bits and
 * another exponent. */
struct api_power {
    uint64_t high, low;
};

/* Returns 5^q for q from API_POWER_MIN to API_POWER_MAX. The first call computes the table, in
 * 0.3 ms. */
struct api_power api_power_of_five(int q);

/* True if the table holds 5^q exactly. */
static inline bool api_power_exact(int q) { return q >= 0 && q <= 55; }
