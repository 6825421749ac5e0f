/* Edges of bins that lie between values, for numbers that come as float32 here and as float64 there. */
#pragma once

#include <stddef.h>

/* Moves edges that lie so near to a value that the float32 of it, or the decimal that float32 is written as, is on their
 * other side: 0.1 is 0.100000001490116 as float32, and both belong into one bin. They go into the middle between the
 * two values beside them, as a short decimal; the outer ones a little outwards. The n finite values lie within the
 * edges of `bins` intervals, and stay in the intervals that they are in. */
void api_edges_move(double *edges, size_t bins, const double *values, size_t n);
