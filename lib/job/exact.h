/* kl_exact (of kldiv.h): a superaccumulator: the exact sum of doubles, as an integer multiple of 2^-1074 in signed digits
 * of 32 bits. It is the same whatever the order of the additions, and the number of threads. */
#pragma once

#include "lib/simd/kernel.h"

#include <pthread.h>

/* Adds a number. Digits have room for 2^31 additions between two calls of kl_exact_merge. */
void kl_exact_add(struct kl_exact *exact, double value);

/* Adds numbers. */
void kl_exact_add_all(struct kl_exact *exact, const double *values, size_t n);

/* Adds another sum. */
void kl_exact_merge(struct kl_exact *exact, const struct kl_exact *more);

/* Multiplies by a whole number. */
void kl_exact_times(struct kl_exact *exact, size_t times);

/* The sum, rounded once, to nearest, ties to even. Infinities of both signs give NaN, as does one. */
double kl_exact_value(const struct kl_exact *exact);

/* As kl_exact_value, without a copy: brings the digits into order, which does not change the sum. */
double kl_exact_round(struct kl_exact *exact);

/* The sum as a double, and the rounding error of that double, rounded once: 0 where the sum is not finite. */
void kl_exact_pair(const struct kl_exact *exact, double pair[2]);

/* kl_total: a sum that threads add to. */
struct kl_total {
    pthread_mutex_t lock;
    enum kl_base base;
    bool has_first;
    double first[2]; /* the first sum, as a pair: small calls have no other, and need no digits */
    struct kl_exact sum;
};

/* Adds the sum of a chunk: a compensated sum, or an exact one. */
void kl_total_add(struct kl_total *total, struct kl_sum sum);
void kl_total_merge(struct kl_total *total, const struct kl_exact *part);

/* The sum, once no thread adds to it any more: exact; or rounded once. */
const struct kl_exact *kl_total_exact(struct kl_total *total);
double kl_total_value(struct kl_total *total);
