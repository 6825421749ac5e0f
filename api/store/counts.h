/* The counts of a window as bytes: each in groups of 7 bits, the lowest first, all but its last with the high bit (LEB128).
 * Zeros at the end are left out. Counts are whole numbers up to 2^53; what is greater is written as that, what is none as 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* API_COUNT_BYTES: the most bytes of a count. */
enum { API_COUNT_BYTES = 8 };

/* Writes n counts, to at most n API_COUNT_BYTES; the size. */
size_t api_counts_write(const double *counts, size_t n, char *bytes);

/* Adds counts that were written to n others; false, and nothing is added, if they are more, or none that were written. */
bool api_counts_add(const char *bytes, size_t size, double *counts, size_t n);
