/* Arithmetic of 113 bits. */
#pragma once

#include <math.h>

#ifdef __x86_64__
#include <quadmath.h>
typedef __float128 quad;
#else
typedef long double quad; /* 113 bits of precision */
#define logq logl
#define expq expl
#define expm1q expm1l
#define log1pq log1pl
#define fabsq fabsl
#endif
