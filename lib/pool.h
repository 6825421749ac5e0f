/* Threads shared by all callers. The constructors are in kldiv.h. */
#ifndef KLDIV_LIB_POOL_H
#define KLDIV_LIB_POOL_H

#include "lib/kldiv.h"

/* Calls piece(context, i) once for each i below n, on the calling thread and those of the pool,
 * in no order, and returns when all have returned. Every caller gets its own pieces done on
 * its own thread at least, so it never waits for another caller's. `pool` may be NULL. What
 * the pieces wrote is visible to the caller afterwards. */
void kl_pool_run(struct kl_pool *pool, size_t n, void (*piece)(void *context, size_t i),
                 void *context);

#endif
