#include "api/memory/budget.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* True if a kept block fits `size` with at most a quarter to spare. */
static bool serves(const struct api_block *block, size_t size)
{
    return block->used == 0 && block->size >= size && block->size - size <= size / 4;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Maps pages, aligned to huge pages if the block has room for them. */
static void *map_pages(size_t size, int flags)
{
    size_t more = size >= API_HUGE ? API_HUGE_UNIT : 0;
    if (size > SIZE_MAX - more)
        return NULL;
    char *data =
        mmap(NULL, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    if (more) {
        size_t before = (API_HUGE_UNIT - (uintptr_t)data % API_HUGE_UNIT) % API_HUGE_UNIT;
        if (before > 0)
            munmap(data, before);
        munmap(data + before + size, more - before);
        data += before;
    }
    return data;
}

static void *map(size_t size)
{
    void *data = map_pages(size, 0);
    if (data && size >= API_HUGE)
        madvise(data, size, MADV_HUGEPAGE);
    return data;
}

/* Moves the pages of a block to a larger mapping. */
static void *remap(void *old, size_t old_size, size_t size)
{
    void *reservation = map(size);
    if (!reservation)
        return NULL;
    void *moved = mremap(old, old_size, old_size, MREMAP_MAYMOVE | MREMAP_FIXED, reservation);
    if (moved == MAP_FAILED) {
        munmap(reservation, size);
        return NULL;
    }
    return moved;
}

/* Too small while counted pages are untouched. What is counted is read before and after, so that memory which is claimed
 * or freed meanwhile is not taken for uncounted. */
size_t api_budget_measure(struct api_budget *budget)
{
    if (!budget->resident)
        return 0;
    atomic_store(&budget->measured, atomic_load(&budget->claimed));
    size_t before = atomic_load(&budget->used) + atomic_load(&budget->idle);
    size_t resident = budget->resident();
    size_t after = atomic_load(&budget->used) + atomic_load(&budget->idle);
    size_t counted = before > after ? before : after,
           n = resident > counted ? resident - counted : 0;
    atomic_store(&budget->uncounted, n);
    return n;
}

/* The part of a limit that is open to blocks of `size` bytes. */
static size_t share(size_t limit, size_t size)
{
    enum { KEPT = 20 }; /* the part of the limit, 1 in so many, for small blocks */
    return size > API_SMALL ? limit - limit / KEPT : limit;
}

size_t api_budget_limit(const struct api_budget *budget, size_t size)
{
    return share(budget->limit, size);
}

size_t api_budget_max(const struct api_budget *budget, size_t size)
{
    size_t n = atomic_load(&budget->uncounted);
    if (!budget->resident)
        return share(budget->limit, size);
    size_t left = budget->max_resident > n ? budget->max_resident - n : 1; /* 0 is no limit */
    return share(budget->limit && budget->limit < left ? budget->limit : left, size);
}

static bool try_claim(struct api_budget *budget, size_t size)
{
    size_t used = atomic_load(&budget->used), max = api_budget_max(budget, size);
    do
        if (max && (used > max || size > max - used))
            return false;
    while (!atomic_compare_exchange_weak(&budget->used, &used, used + size));
    return true;
}

static bool claim(struct api_budget *budget, size_t size)
{
    enum { MEASURE_EVERY = 1 << 20 };
    size_t claimed = atomic_fetch_add(&budget->claimed, size) + size;
    if (budget->resident && claimed - atomic_load(&budget->measured) >= MEASURE_EVERY)
        api_budget_measure(budget);
    return try_claim(budget, size) ||
           (budget->resident && (api_budget_measure(budget), try_claim(budget, size)));
}

static void trim_beyond_limit(struct api_budget *budget)
{
    size_t max = api_budget_max(budget, 0);
    if (max && atomic_load(&budget->used) + atomic_load(&budget->idle) > max)
        api_budget_trim(budget, 0);
}

bool api_budget_reserve(struct api_budget *budget, size_t size)
{
    if (!budget)
        return true;
    if (!claim(budget, size))
        return false;
    trim_beyond_limit(budget);
    return true;
}

void api_budget_release(struct api_budget *budget, size_t size)
{
    if (budget)
        atomic_fetch_sub(&budget->used, size);
}

bool api_budget_retain(struct api_budget *budget, size_t size, bool is_stored)
{
    if (!budget)
        return true;
    size_t limit = budget->limit, retained = atomic_load(&budget->retained);
    size_t max = is_stored ? limit : limit / 2;
    do
        if (limit && (retained > max || size > max - retained))
            return false;
    while (!atomic_compare_exchange_weak(&budget->retained, &retained, retained + size));
    if (api_budget_reserve(budget, size))
        return true;
    atomic_fetch_sub(&budget->retained, size);
    return false;
}

void api_budget_keep(struct api_budget *budget, size_t size)
{
    if (budget)
        atomic_fetch_add(&budget->retained, size);
}

void api_budget_keep_no_more(struct api_budget *budget, size_t size)
{
    if (budget)
        atomic_fetch_sub(&budget->retained, size);
}

void api_budget_forget(struct api_budget *budget, size_t size)
{
    if (!budget)
        return;
    atomic_fetch_sub(&budget->retained, size);
    api_budget_release(budget, size);
}

/* With the lock held: the smallest kept block that fits, or NULL. */
static struct api_block *find_kept(struct api_budget *budget, size_t size)
{
    struct api_block *best = NULL;
    for (struct api_block *b = budget->blocks; b < budget->blocks + API_IDLE_BLOCKS; b++)
        if (serves(b, size) && (!best || b->size < best->size))
            best = b;
    return best;
}

/* Takes the smallest kept block that fits; counts it as used. */
static void *reuse(struct api_budget *budget, size_t *size)
{
    void *data = NULL;
    if (!budget || atomic_load(&budget->idle) < *size)
        return NULL;
    pthread_mutex_lock(&budget->lock);
    struct api_block *best = find_kept(budget, *size);
    if (best && claim(budget, best->size)) {
        data = best->data;
        *size = best->size;
        atomic_fetch_sub(&budget->idle, best->size);
        *best = (struct api_block){0};
    }
    pthread_mutex_unlock(&budget->lock);
    return data;
}

/* Keeps a block; evicts the oldest kept one if all entries are taken. */
static void keep(struct api_budget *budget, void *data, size_t size)
{
    struct api_block block = {.data = data, .size = size, .since = now_ns()}, evicted;
    pthread_mutex_lock(&budget->lock);
    struct api_block *oldest =
        budget->blocks; /* of those that are no reservations, half at least */
    for (struct api_block *b = budget->blocks; b < budget->blocks + API_IDLE_BLOCKS; b++)
        if (b->used == 0 && (oldest->used > 0 || b->since < oldest->since))
            oldest = b;
    evicted = *oldest;
    *oldest = block;
    atomic_fetch_add(&budget->idle, size);
    pthread_mutex_unlock(&budget->lock);
    if (evicted.size)
        munmap(evicted.data, evicted.size);
    atomic_fetch_sub(&budget->idle, evicted.size);
    api_budget_release(budget, size);
}

static void *make(struct api_budget *budget, size_t *size)
{
    void *block = *size >= API_LARGE ? reuse(budget, size) : NULL;
    if (block)
        return block;
    if (!api_budget_reserve(budget, *size))
        return NULL;
    block = *size >= API_LARGE ? map(*size) : malloc(*size);
    if (!block && budget && atomic_load(&budget->idle) > 0) {
        api_budget_trim(budget, 0);
        block = *size >= API_LARGE ? map(*size) : malloc(*size);
    }
    if (!block)
        api_budget_release(budget, *size);
    return block;
}

static void *move(struct api_budget *budget, void *old, size_t old_size, size_t *size)
{
    void *block = make(budget, size);
    if (!block)
        return NULL;
    memcpy(block, old, old_size < *size ? old_size : *size);
    api_block_free(budget, old, old_size);
    return block;
}

void *api_block_resize(struct api_budget *budget, void *old, size_t old_size, size_t *size)
{
    *size = api_block_size(*size);
    if (!old)
        return make(budget, size);
    bool was_large = old_size >= API_LARGE, is_large = *size >= API_LARGE;
    if (was_large != is_large)
        return move(budget, old, old_size, size);
    if (*size > old_size && !api_budget_reserve(budget, *size - old_size))
        return NULL;
    void *block;
    if (!is_large) {
        block = realloc(old, *size);
    } else if (*size <= old_size) {
        block = old;
        if (*size < old_size)
            munmap((char *)old + *size, old_size - *size);
    } else {
        block = remap(old, old_size, *size);
    }
    if (*size > old_size && !block)
        api_budget_release(budget, *size - old_size);
    if (*size < old_size && block)
        api_budget_release(budget, old_size - *size);
    return block;
}

void api_block_free(struct api_budget *budget, void *block, size_t size)
{
    if (!block)
        return;
    if (size >= API_LARGE && budget) {
        keep(budget, block, size);
        return;
    }
    if (size >= API_LARGE)
        munmap(block, size);
    else
        free(block);
    api_budget_release(budget, size);
}

/* ---- Reservations */

/* MAX_RESERVATIONS: reservations at once whose pages were kept; more of the entries are for kept blocks. */
enum { MAX_RESERVATIONS = API_IDLE_BLOCKS / 2 };

/* With the lock held: the entry of a reservation whose pages were kept, or NULL. */
static struct api_block *find_reservation(struct api_budget *budget, const void *reservation)
{
    for (struct api_block *b = budget->blocks; b < budget->blocks + API_IDLE_BLOCKS; b++)
        if (b->used > 0 && b->data == reservation)
            return b;
    return NULL;
}

/* Makes a kept block a reservation, of which `used` bytes are counted already. */
static void *reuse_as_reservation(struct api_budget *budget, size_t used, size_t *size)
{
    size_t reservations = 0;
    if (atomic_load(&budget->idle) < *size)
        return NULL;
    pthread_mutex_lock(&budget->lock);
    for (size_t i = 0; i < API_IDLE_BLOCKS; i++)
        reservations += budget->blocks[i].used > 0;
    struct api_block *best = reservations < MAX_RESERVATIONS ? find_kept(budget, *size) : NULL;
    void *data = best ? best->data : NULL;
    if (best) {
        *size = best->size;
        best->used = used;
        best->since = now_ns();
        atomic_fetch_sub(&budget->idle, used);
    }
    pthread_mutex_unlock(&budget->lock);
    return data;
}

/* Makes huge pages of a reservation's pages, as far as bytes have arrived. Bytes that were only announced would take
 * memory 2 MiB at a time. */
static void use_huge_pages(char *reservation, size_t from, size_t to)
{
    from = (from + API_HUGE_UNIT - 1) / API_HUGE_UNIT * API_HUGE_UNIT;
    to = to / API_HUGE_UNIT * API_HUGE_UNIT;
    if (to > from)
        madvise(reservation + from, to - from, MADV_HUGEPAGE);
}

size_t api_reservation_size(size_t used)
{
    return used >= API_LARGE ? api_block_size(used)
                             : (used + API_LARGE_UNIT - 1) / API_LARGE_UNIT * API_LARGE_UNIT;
}

void *api_reservation_new(struct api_budget *budget, size_t counted, size_t used, size_t *size)
{
    *size = api_block_size(*size);
    if (!api_budget_reserve(budget, used - counted))
        return NULL;
    void *reservation = budget ? reuse_as_reservation(budget, used, size) : NULL;
    if (!reservation) {
        reservation = map_pages(*size, MAP_NORESERVE);
        if (reservation)
            madvise(reservation, *size, MADV_NOHUGEPAGE);
    }
    if (!reservation)
        api_budget_release(budget, used - counted);
    return reservation;
}

bool api_reservation_grow(struct api_budget *budget, void *reservation, size_t used, size_t wanted)
{
    struct api_block *entry = NULL;
    if (budget) {
        if (!claim(budget, wanted - used))
            return false;
        pthread_mutex_lock(&budget->lock);
        entry = find_reservation(budget, reservation);
        if (entry) {
            atomic_fetch_sub(&budget->idle, wanted - used);
            entry->used = wanted;
        }
        pthread_mutex_unlock(&budget->lock);
        trim_beyond_limit(budget);
    }
    if (!entry)
        use_huge_pages(reservation, used, wanted);
    return true;
}

void api_reservation_free(struct api_budget *budget, void *reservation, size_t used, size_t size)
{
    if (budget) {
        pthread_mutex_lock(&budget->lock);
        struct api_block *entry = find_reservation(budget, reservation);
        if (entry) {
            entry->used = 0;
            entry->since = now_ns();
            atomic_fetch_add(&budget->idle, used);
        }
        pthread_mutex_unlock(&budget->lock);
        if (entry) {
            api_budget_release(budget, used);
            return;
        }
    }
    bool is_kept = used >= API_LARGE;
    size_t rest = is_kept ? size - used : size;
    if (rest > 0)
        munmap((char *)reservation + size - rest, rest);
    if (is_kept)
        api_block_free(budget, reservation, used);
    else
        api_budget_release(budget, used);
}

/* ---- Kept memory that is given back */

/* With the lock held: empties an entry whose pages go, all or those that were not counted. */
static struct api_block empty(struct api_budget *budget, struct api_block *entry)
{
    struct api_block dropped = *entry;
    if (entry->used > 0 && entry->size > entry->used)
        madvise((char *)entry->data + entry->used, entry->size - entry->used, MADV_DONTNEED);
    if (entry->used > 0)
        atomic_fetch_sub(&budget->idle, entry->size - entry->used);
    *entry = (struct api_block){0};
    return dropped;
}

bool api_budget_trim(struct api_budget *budget, int64_t ns)
{
    struct api_block dropped[API_IDLE_BLOCKS];
    size_t n = 0;
    if (atomic_load(&budget->idle) == 0)
        return false;
    int64_t now = now_ns();
    pthread_mutex_lock(&budget->lock);
    for (struct api_block *b = budget->blocks; b < budget->blocks + API_IDLE_BLOCKS; b++)
        if (b->size > 0 && now - b->since >= ns) {
            dropped[n] = empty(budget, b);
            n += dropped[n].used == 0;
        }
    pthread_mutex_unlock(&budget->lock);
    for (size_t i = 0; i < n; i++) {
        munmap(dropped[i].data, dropped[i].size);
        atomic_fetch_sub(&budget->idle, dropped[i].size);
    }
    return n > 0;
}
