/* The upper tail of the binomial distribution. */
#pragma once

/* Probability that of n trials at least k succeed, each with this probability, in (0, 1); 1 if as many are expected: so
 * much tells nothing. Terms from k on, which fall, until no more is added; the first by Stirling's formula. Within a
 * relative 1e-9 for n to 1e6. */
double api_binomial_tail(double k, double n, double probability);
