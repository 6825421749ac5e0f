/* Numbers to decimal text. */
#ifndef KLDIV_API_TEXT_DECIMAL_H
#define KLDIV_API_TEXT_DECIMAL_H

#include "lib/kldiv.h"

#include <stdint.h>

/* The room that a number wants, which is more than it takes. */
enum { API_DECIMAL_MAX = 40 };

/* Writes an unsigned integer, at most 20 digits; gives the length; no NUL. A fifth of the time
 * of printf, which matters where every reply and log line has several. */
size_t api_unsigned_write(char *to, uint64_t value);

/* Writes `value`, which is a value of `dtype`, as the shortest decimal that reads back to it in
 * that dtype, and of those the closest; with a point or an exponent, so that it stays a float
 * for readers that tell the two apart. Gives the length, at most 27; no NUL. All of API_DECIMAL_MAX
 * bytes may be written.
 * NaN and the infinities, for which JSON has no numbers, become the strings "NaN", "Infinity"
 * and "-Infinity", quotes included.
 *
 * Giulietti's Schubfach ("The Schubfach way to render doubles", 2020). */
size_t api_decimal_write(char *to, enum kl_dtype dtype, double value);

#endif
