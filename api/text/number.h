/* Parses decimal numbers. */
#pragma once

#include "lib/kldiv.h"

/* API_PADDING: bytes past the end of a text that readers may read. */
enum { API_PADDING = 8 };

/* Parses one number of JSON's grammar (no leading zeros, no +, no bare point) in any locale. The
 * text ends with a NUL and API_PADDING more bytes. Returns the position after it, or NULL if it
 * is not a number.
 *
 * *value is such that kl_store rounds it to `dtype` exactly as the text would round once, to
 * nearest, ties to even; for KL_FLOAT64 it is the result itself. Only a number past the largest
 * double gives an infinity.
 *
 * Clinger's fast path ("How to read floating point numbers accurately", PLDI 1990), then Eisel
 * and Lemire's (Lemire, "Number parsing at a gigabyte per second", 2021), then strtod. */
const char *api_number_read(const char *text, enum kl_dtype dtype, double *value);

/* The position that api_number_read returns, in half its time. */
const char *api_number_end(const char *text);

/* strtod of the C locale. */
double api_strtod(const char *text, char **end);
