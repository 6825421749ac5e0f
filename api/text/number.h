/* Numbers from decimal text. */
#ifndef KLDIV_API_TEXT_NUMBER_H
#define KLDIV_API_TEXT_NUMBER_H

#include "lib/kldiv.h"

/* Readers may look this many bytes past the text, which must be readable there. */
enum { API_PADDING = 8 };

/* Reads one number by JSON's grammar (no leading zeros, no +, no bare point) from text that
 * ends with a NUL and API_PADDING bytes more, in any locale. Gives the place after it, or NULL
 * where the text is not a number. *value is such that storing it as `dtype` (kl_store) gives
 * the text rounded once, to nearest, ties to even; for KL_FLOAT64 it is that itself. A literal
 * past the largest double gives an infinity, which no other text does.
 *
 * Clinger's fast path ("How to read floating point numbers accurately", PLDI 1990), then Eisel
 * and Lemire's (Lemire, "Number parsing at a gigabyte per second", 2021), then strtod. */
const char *api_number_read(const char *text, enum kl_dtype dtype, double *value);

#endif
