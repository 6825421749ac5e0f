/* Memory for bodies, tensors and replies, bounded for the whole process. Large blocks are pages
 * of their own, and are kept for a while when they are given back: the kernel takes longer to
 * clear and map fresh ones than the kernels here take to read them. */
#ifndef KLDIV_API_MEMORY_BUDGET_H
#define KLDIV_API_MEMORY_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks that wait to be used again, at most. */
#define API_IDLE_BLOCKS 16

struct api_block {
    void *data;
    size_t size;
    int64_t since; /* when it was given back, in ns */
};

/* Zeroed but for `limit` it is empty; 0 there is no limit. Any thread may use it. */
struct api_budget {
    size_t limit;
    atomic_size_t used; /* bytes of blocks in use */
    atomic_size_t idle; /* bytes of blocks kept; they make room when it is needed */
    pthread_mutex_t lock;
    struct api_block blocks[API_IDLE_BLOCKS]; /* those kept, `size` 0 where there is none */
};

/* Makes a block of *size bytes at least, or resizes one of `old_size`, whose contents stay as far
 * as they fit; *size becomes what it has. NULL, and nothing changed, if the budget or the memory
 * is exhausted. `budget` may be NULL. */
void *api_block_resize(struct api_budget *budget, void *old, size_t old_size, size_t *size);

/* What a block asked for with `size` has at least. */
size_t api_block_size(size_t size);

/* Takes back a block of the size that api_block_resize gave. NULL is fine. */
void api_block_free(struct api_budget *budget, void *block, size_t size);

/* Counts `size` bytes that somebody else allocates, and counts them no more. False, and nothing
 * counted, if the budget is exhausted; kept blocks are freed as the limit demands. */
bool api_budget_reserve(struct api_budget *budget, size_t size);
void api_budget_release(struct api_budget *budget, size_t size);

/* Gives blocks back to the system that were kept for longer than `ns`; 0 for all. */
void api_budget_trim(struct api_budget *budget, int64_t ns);

#endif
