/* Formats numbers as decimal text. Has the powers of ten in 128 bits, which number.c reads numbers by. */
#pragma once

#include "lib/kldiv.h"

#include <stdint.h>

/* API_DECIMAL_MAX: bytes of the buffer for a number, more than its text has. */
enum { API_DECIMAL_MAX = 40 };

/* Writes an unsigned integer, at most 20 digits, without a NUL; returns its length. Takes a
 * fifth of printf's time, and every response and log line has several numbers. */
size_t api_unsigned_write(char *to, uint64_t value);

/* Writes `value`, which must be a value of `dtype`, as the shortest decimal that reads back to
 * it in that dtype; among equally short ones, as the closest. Has a point or an exponent, so
 * that readers take it for a float. NaN and infinities, which JSON lacks, become the strings
 * "NaN", "Infinity" and "-Infinity", quotes included.
 *
 * Returns the length, at most 27, without a NUL; may write all API_DECIMAL_MAX bytes.
 *
 * Giulietti's Schubfach ("The Schubfach way to render doubles", 2020). */
size_t api_decimal_write(char *to, enum kl_dtype dtype, double value);

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
