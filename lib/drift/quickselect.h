/* Selection of order statistics. */
#pragma once

#include <stddef.h>

/* Reorders n finite values so that each index in `ranks`, n_ranks of them in ascending order, holds the value that it
 * has in the sorted array. Takes time n log n_ranks as a rule and never more than n log n. */
void kl_select(double *values, size_t n, const size_t *ranks, size_t n_ranks);
