/* Formats numbers as decimal text. */
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
