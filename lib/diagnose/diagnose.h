/* The diagnosis of a call, alone or while it computes, when threads check rows that they have just read. */
#pragma once

#include "lib/diagnose/findings.h"
#include "lib/pool.h"

#include <pthread.h>

/* kl_diagnosing: a diagnosis that is being made. */
struct kl_diagnosing {
    struct kl_diagnosis_context context;
    double tolerance[KL_OPERANDS]; /* what a normalized row's sum may differ from 1 */
    pthread_mutex_t lock;          /* of all */
    struct kl_finding_counts all;
};

/* A diagnosis that has seen no rows yet, on the heap; NULL if out of memory. */
struct kl_diagnosing *kl_diagnosing_new(const struct kl_plan *plan);

/* Checks rows [row, end), on any thread, in any order. `scratch` has room for a struct
 * kl_diagnosis_scratch. */
void kl_diagnose_rows(struct kl_diagnosing *d, size_t row, size_t end, void *scratch);

/* Checks all rows, on the threads of the pool. False if out of memory. */
bool kl_diagnose_all(struct kl_diagnosing *d, struct kl_pool *pool);

/* True if the diagnosis depends on whether the reduced loss is finite. */
bool kl_diagnosing_needs_loss(const struct kl_diagnosing *d);

/* Reports the findings, if `diagnosis` is not NULL, and frees `d`. `loss` is any finite number if it is not
 * needed. */
void kl_diagnosing_end(struct kl_diagnosing *d, double loss, struct kl_diagnosis *diagnosis);
