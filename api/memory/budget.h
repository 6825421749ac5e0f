/* api_budget: memory for bodies, tensors and responses, bounded for the whole process. Large
 * blocks are mapped pages, which are kept for a while after they are freed: the kernel takes
 * longer to clear and map new pages than the kernels of lib/ take to read them. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* API_IDLE_BLOCKS: maximum number of blocks that are kept for reuse. */
#define API_IDLE_BLOCKS 16

/* API_LARGE: the least size, in bytes, of blocks that are mapped as pages. Blocks of at least API_HUGE
 * bytes are whole huge pages: 512 times fewer page faults, and faster reads of huge operands. */
enum {
    API_LARGE = 256 << 10,
    API_LARGE_UNIT = 64 << 10,
    API_HUGE = 4 << 20,
    API_HUGE_UNIT = 2 << 20
};

/* API_SMALL: bytes up to which memory is small. The last 5 % of the limit are for small blocks, so
 * that small requests are served while large ones hold the rest. */
enum { API_SMALL = 65 << 10 };

/* api_block: a block that is kept, or a reservation whose pages were kept and count as used up to
 * `used`. */
struct api_block {
    void *data;
    size_t size;
    size_t used;
    int64_t since; /* time of its release, in ns */
};

/* Empty if zeroed; a `limit` of 0 bytes is no limit. Any thread may use it.
 *
 * The count alone does not bound the process: malloc keeps fragments, libraries and stacks have memory of their own. So
 * where `resident` is set, the process is also measured as memory is claimed. What it has beyond what is counted is
 * `uncounted`; counted bytes may then have what that leaves of `max_resident`, and at most `limit`. */
struct api_budget {
    size_t limit;
    size_t max_resident;      /* bytes that the process may have in memory */
    size_t (*resident)(void); /* bytes that it has; NULL: it is not measured */
    atomic_size_t uncounted;  /* as it was measured last */
    atomic_size_t claimed;    /* bytes that were ever claimed; until the last measurement */
    atomic_size_t measured;
    atomic_size_t used;     /* bytes of blocks in use */
    atomic_size_t retained; /* of these, bytes that outlive requests */
    atomic_size_t idle;     /* bytes of kept blocks; freed if the limit demands it */
    pthread_mutex_t lock;
    struct api_block blocks[API_IDLE_BLOCKS]; /* kept blocks; `size` 0 is a free entry */
};

/* Allocates a block of at least *size bytes, or resizes one of `old_size` bytes and keeps its
 * contents up to the smaller size; *size becomes the actual size. Returns NULL and changes
 * nothing if the budget or the memory is exhausted. `budget` may be NULL. */
void *api_block_resize(struct api_budget *budget, void *old, size_t old_size, size_t *size);

/* Notes that bytes which are used outlive requests, or not any more. */
void api_budget_keep(struct api_budget *budget, size_t size);
void api_budget_keep_no_more(struct api_budget *budget, size_t size);

/* Minimal actual size, in bytes, of a block requested with `size`. */
static inline size_t api_block_size(size_t size)
{
    size_t unit = size >= API_HUGE ? API_HUGE_UNIT : size >= API_LARGE ? API_LARGE_UNIT : 1;
    return size > SIZE_MAX - unit ? SIZE_MAX : (size + unit - 1) / unit * unit;
}

/* Takes back a block of the size that api_block_resize returned. The block may be NULL. */
void api_block_free(struct api_budget *budget, void *block, size_t size);

/* api_budget_limit: how many bytes blocks of `size` bytes may bring the count to, by the limit alone. api_budget_max: how
 * many they may bring it to now. */
size_t api_budget_limit(const struct api_budget *budget, size_t size);
size_t api_budget_max(const struct api_budget *budget, size_t size);

/* Measures the process; returns the bytes that are not counted, 0 if it is not measured. Claims measure by themselves:
 * once for each MiB, and before they fail. */
size_t api_budget_measure(struct api_budget *budget);

/* A reservation is a mapping for bytes that arrive over time: only its first `used` bytes count, and grow
 * with them. Maps one of at least *size bytes and counts `used`, of which `counted` are counted
 * already; *size becomes the actual size. NULL if the budget or the memory is exhausted. */
size_t api_reservation_size(size_t used); /* what is counted for `used` bytes: whole units */
void *api_reservation_new(struct api_budget *budget, size_t counted, size_t used, size_t *size);

/* Counts `wanted` bytes of a reservation instead of `used`; false if the budget is exhausted. */
bool api_reservation_grow(struct api_budget *budget, void *reservation, size_t used, size_t wanted);
void api_reservation_free(struct api_budget *budget, void *reservation, size_t used, size_t size);

/* Adds `size` bytes that other code allocates to the count, and removes them. Returns false and
 * counts nothing if the budget is exhausted; frees kept blocks if the limit demands it. */
bool api_budget_reserve(struct api_budget *budget, size_t size);
void api_budget_release(struct api_budget *budget, size_t size);

/* Adds `size` bytes of monitors, which outlive requests, to the count, and removes them. New monitors may take half
 * of the limit together, so that requests have the rest; stored ones (`is_stored`) may take all of it. Returns false
 * and counts nothing beyond. */
bool api_budget_retain(struct api_budget *budget, size_t size, bool is_stored);
void api_budget_forget(struct api_budget *budget, size_t size);

/* Frees blocks that were kept for more than `ns`; 0 frees all. True if there were any. */
bool api_budget_trim(struct api_budget *budget, int64_t ns);
