/* A diagnosis beside a call that computes: threads look at rows that they have just read. */
#ifndef KLDIV_LIB_DIAGNOSE_H
#define KLDIV_LIB_DIAGNOSE_H

#include "lib/diagnose/findings.h"

#include <pthread.h>

/* kl_diagnosing: a diagnosis that is being made. */
struct kl_diagnosing {
    struct kl_look look;
    double slack[KL_OPERANDS]; /* what a normalized row's sum may differ from 1 */
    pthread_mutex_t lock;      /* of all */
    struct kl_tallies all;
};

/* Begins a diagnosis, on the heap; NULL if out of memory. */
struct kl_diagnosing *kl_diagnosing_begin(const struct kl_plan *plan);

/* Looks at rows [row, end), on any thread, in any order. `scratch` has room for a struct
 * kl_look_scratch. */
void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch);

/* Reports what was found, and frees the diagnosis; computes the loss if its size is in doubt. Reports
 * nothing if `diagnosis` is NULL. */
void kl_diagnosing_end(struct kl_diagnosing *d, struct kl_pool *pool,
                       struct kl_diagnosis *diagnosis);

#endif
