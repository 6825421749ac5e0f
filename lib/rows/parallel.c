/* Divides a job into groups of rows, these into chunks, and chunks into shards.
 *
 * Results must not depend on the number of threads, so the division depends on shapes alone (Demmel and
 * Nguyen, "Fast Reproducible Floating-Point Summation", 2013, name the aim): a chunk is summed by one
 * thread in a fixed order, and the sums of chunks and rows are added exactly, in any order (exact.c). Sums of
 * derivatives by a broadcast operand are too many for that: there each shard, a run of chunks, has sums of
 * its own, and these are added in the shards' order. */
#include "lib/rows/parallel.h"

#include "lib/rows/mixture.h"
#include "lib/rows/softmax.h"
#include "lib/rows/workspace.h"
#include "lib/threads/pool.h"

#include <stdlib.h>

/* MAX_SHARDS: the maximum of shards with sums of broadcast derivatives of their own. */
enum { MAX_SHARDS = 16 };

/* FEW_GROUPS: rows are divided into segments where there are fewer groups, too few for threads. */
enum { FEW_GROUPS = 64 };

/* COLUMN_RUN: elements that are summed in order, of adjacent rows in a tile of columns. */
enum { COLUMN_RUN = 512 };

struct schedule {
    struct kl_job *job;
    size_t groups, groups_per_chunk;
    size_t segments; /* of each row; groups_per_chunk is 1 where there are several */
    size_t chunks;
    size_t shards;                  /* of chunks, each done in order */
    struct kl_sum *segment_sums;    /* for each segment of each row, if there are several */
    double *grad_sums[KL_OPERANDS]; /* for each shard, (high, low) of each element of the operand */
    void *scratch;                  /* of the calling thread */
    size_t row_cache_size;
    void **row_caches; /* that no thread uses, each with the address of the next one */
    pthread_mutex_t lock;
};

static size_t ceiling(size_t a, size_t b) { return a / b + (a % b != 0); }

/* The greatest power of 2 that is not above n. */
static size_t power_below(size_t n)
{
    while (n & (n - 1))
        n &= n - 1;
    return n;
}

/* True if reduced losses are summed by chunks, and not by rows. Then chunks end at multiples of
 * KL_CHUNK elements, if rows do, whatever is after: tiles and chunks are powers of 2 of rows. */
static bool sums_chunks(const struct kl_job *job)
{
    return job->layout->elementwise && !kl_has_logits(job) && !job->layout->single_rows;
}

static void choose_tiles(struct kl_job *job)
{
    size_t length = job->layout->inner.volume, rows = job->layout->outer.volume;
    struct kl_tile *tile = &job->tile;
    bool softmaxes = kl_has_logits(job) && !job->layout->single_rows;
    *tile = kl_choose_tile(job->layout, softmaxes);
    if (sums_chunks(job))
        tile->rows = kl_min(tile->rows, power_below(KL_BLOCK / tile->length));
    bool few = rows <= FEW_GROUPS * tile->rows && length > (size_t)2 * KL_CHUNK / tile->rows;
    job->run_length = softmaxes ? length : tile->columns ? COLUMN_RUN : KL_CHUNK;
    job->segment_length = few || sums_chunks(job) ? kl_min(job->run_length, length) : length;
}

static bool is_broadcast(const struct kl_plan *plan, int operand)
{
    return plan->counts[operand] < plan->count;
}

static size_t shards_of(const struct kl_plan *plan, const struct kl_gradient *gradients,
                        size_t chunks)
{
    size_t shards = chunks;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (gradients[i].data && is_broadcast(plan, i))
            shards = kl_min(shards, kl_min(MAX_SHARDS, plan->count / plan->counts[i] / 2 + 1));
    return shards;
}

/* Has rows of logits summed before their weight and mask, if these are broadcast along them. */
static void sum_weighed_rows(struct kl_job *job)
{
    struct kl_layout *layout = job->layout;
    const struct kl_plan *plan = job->plan;
    bool weighs = plan->weight.data || plan->mask.data;
    bool masks = kl_is_constant_along_rows(layout, KL_OF_MASK);
    job->masks_rows = plan->mask.data && masks;
    if (kl_has_logits(job) && !layout->single_rows && weighs && masks &&
        kl_is_constant_along_rows(layout, KL_OF_WEIGHT) && plan->reduction != KL_NONE)
        layout->elementwise = false;
}

/* Chooses the job's layout and tiles, and its chunks. */
static struct schedule schedule_of(struct kl_job *job)
{
    struct schedule s = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER};
    kl_layout_of(job->layout, job->plan, false);
    sum_weighed_rows(job);
    choose_tiles(job);
    size_t length = job->layout->inner.volume, in_group = job->tile.rows * length;
    s.groups = ceiling(job->layout->outer.volume, job->tile.rows);
    s.segments = ceiling(length, job->segment_length);
    s.groups_per_chunk = s.segments > 1 || in_group >= KL_CHUNK ? 1 : KL_CHUNK / in_group;
    if (sums_chunks(job))
        s.groups_per_chunk = power_below(s.groups_per_chunk);
    s.chunks = ceiling(s.groups, s.groups_per_chunk) * s.segments;
    s.shards = shards_of(job->plan, job->gradients, s.chunks);
    s.row_cache_size = kl_mixture_cache_size(job) + kl_exps_cache_size(job); /* one of which is 0 */
    return s;
}

static size_t segment_sums_of(const struct schedule *s)
{
    const struct kl_layout *layout = s->job->layout;
    return s->segments > 1 && !layout->elementwise ? layout->outer.volume * s->segments : 0;
}

static size_t grad_sums_of(const struct schedule *s, int operand)
{
    const struct kl_job *job = s->job;
    bool has = job->gradients[operand].data && is_broadcast(job->plan, operand);
    return has ? s->shards * 2 * job->plan->counts[operand] : 0;
}

size_t kl_rows_scratch_size(struct kl_job *job, size_t threads)
{
    struct schedule s = schedule_of(job);
    return KL_THREAD_SCRATCH + kl_min(threads, s.chunks) * s.row_cache_size +
           segment_sums_of(&s) * sizeof(struct kl_sum) +
           (grad_sums_of(&s, KL_INPUT) + grad_sums_of(&s, KL_TARGET)) * sizeof(double);
}

/* ---- Rows whose losses are known */

/* Multiplies the losses of some rows by their weights, and sets those of masked rows to 0. */
static void scale_rows(const struct kl_job *job, size_t row, size_t n, double *losses)
{
    double weights[KL_ROWS];
    unsigned char mask[KL_ROWS];
    const struct kl_axes *rows = &job->layout->outer;
    if (job->weight.data)
        kl_gather(job->kernel, rows, &job->weight, row, n, weights);
    if (job->mask.data)
        kl_gather(job->kernel, rows, &job->mask, row, n, mask);
    kl_weigh_losses(job, losses, job->weight.data ? weights : NULL, job->mask.data ? mask : NULL,
                    n);
}

/* Stores the losses of some rows, or adds them to `sum`. */
static void store_rows(const struct kl_job *job, size_t row, size_t n, double *losses,
                       struct kl_exact *sum)
{
    char narrow[KL_ROWS * sizeof(double)];
    enum kl_dtype dtype = job->plan->dtype;
    if (!job->layout->elementwise)
        scale_rows(job, row, n, losses);
    if (job->unit != 1)
        job->kernel->scale(losses, job->unit, n);
    if (!job->losses) {
        kl_exact_add_all(sum, losses, n);
        return;
    }
    job->kernel->narrow[dtype](losses, narrow, n);
    kl_scatter(&job->layout->outer, KL_OF_LOSS, dtype, narrow, row, n, job->losses);
}

/* chunk_sums: reduced losses of a chunk, of rows or of elements. */
struct chunk_sums {
    struct kl_exact of_rows;
    struct kl_sum of_elements;
};

/* Computes a group of several runs, whose sums are 0 so far, one after the other. Out of line, so that
 * other groups do not have its arrays on their stack. */
static __attribute__((noinline)) void run_in_runs(size_t run_length, struct kl_group group,
                                                  void *scratch)
{
    double high[KL_ROWS], low[KL_ROWS], *const highs = group.high, *const lows = group.low;
    size_t end = group.end;
    group.high = high, group.low = low;
    for (; group.start < end; group.start = group.end) {
        group.end = kl_min(end, group.start + run_length);
        kl_fill(high, 0, group.rows);
        kl_fill(low, 0, group.rows);
        kl_run_group(&group, scratch);
        for (size_t i = 0; i < group.rows; i++) {
            struct kl_sum sum = {highs[i], lows[i]};
            kl_sum_merge(&sum, (struct kl_sum){high[i], low[i]});
            highs[i] = sum.high, lows[i] = sum.low;
        }
    }
}

static void run_group(const struct schedule *s, size_t index, size_t segment,
                      const struct kl_gradient *gradients, struct chunk_sums *sums, void *scratch)
{
    struct kl_job *job = s->job;
    double high[KL_ROWS], low[KL_ROWS];
    size_t row = index * job->tile.rows, start = segment * job->segment_length;
    struct kl_group group = {.row = row,
                             .rows = kl_min(job->tile.rows, job->layout->outer.volume - row),
                             .start = start,
                             .end = kl_min(start + job->segment_length, job->layout->inner.volume),
                             .sum = &sums->of_elements,
                             .high = high,
                             .low = low,
                             .exact = &sums->of_rows,
                             .gradients = gradients};
    kl_fill(high, 0, group.rows);
    kl_fill(low, 0, group.rows);
    if (group.end - start > job->run_length)
        run_in_runs(job->run_length, group, scratch);
    else
        kl_run_group(&group, scratch);
    if (!kl_sums_rows(job) || !job->wants_loss)
        return;
    for (size_t i = 0; i < group.rows; i++) {
        struct kl_sum sum = {high[i], low[i]};
        if (s->segments == 1)
            high[i] = kl_sum_value(sum);
        else
            s->segment_sums[(row + i) * s->segments + segment] = sum;
    }
    if (s->segments == 1)
        store_rows(job, row, group.rows, high, &sums->of_rows);
}

/* Computes a chunk: one segment of some rows. All rows' first segments come before their second ones, for
 * neighbouring rows may share cache lines. */
static void run_chunk(const struct schedule *s, size_t chunk, const struct kl_gradient *gradients,
                      void *scratch)
{
    struct kl_job *job = s->job;
    struct chunk_sums sums = {.of_elements = {0, 0}};
    size_t chunks_across = ceiling(s->groups, s->groups_per_chunk);
    size_t first = chunk % chunks_across * s->groups_per_chunk;
    if (kl_is_stopped(job->plan))
        return;
    kl_start_chunk(s->job, scratch);
    for (size_t i = first; i < kl_min(first + s->groups_per_chunk, s->groups); i++)
        run_group(s, i, chunk / chunks_across, gradients, &sums, scratch);
    if (job->losses || !job->wants_loss)
        return;
    if (sums_chunks(job))
        kl_total_add(&job->total, sums.of_elements);
    else if (!s->segment_sums)
        kl_total_merge(&job->total, &sums.of_rows);
}

/* A row_cache, or NULL if there is no memory for it: the call then takes more time. */
static void *take_row_cache(struct schedule *s)
{
    if (s->row_cache_size == 0)
        return NULL;
    pthread_mutex_lock(&s->lock);
    void **cache = s->row_caches;
    s->row_caches = cache ? *cache : NULL;
    pthread_mutex_unlock(&s->lock);
    return cache ? cache : malloc(s->row_cache_size);
}

static void return_row_cache(struct schedule *s, void **cache)
{
    if (!cache)
        return;
    pthread_mutex_lock(&s->lock);
    *cache = s->row_caches;
    s->row_caches = cache;
    pthread_mutex_unlock(&s->lock);
}

static void run_shard(void *context, size_t shard, void *scratch)
{
    struct schedule *s = context;
    struct kl_workspace *b = kl_workspace_of(scratch);
    const struct kl_plan *plan = s->job->plan;
    struct kl_gradient gradients[KL_OPERANDS] = {s->job->gradients[KL_INPUT],
                                                 s->job->gradients[KL_TARGET]};
    for (int i = 0; i < KL_OPERANDS; i++)
        if (s->grad_sums[i]) {
            gradients[i].high = s->grad_sums[i] + shard * 2 * plan->counts[i];
            gradients[i].low = gradients[i].high + plan->counts[i];
        }
    size_t from = s->chunks / s->shards * shard + kl_min(shard, s->chunks % s->shards);
    size_t n = s->chunks / s->shards + (shard < s->chunks % s->shards);
    b->row_cache = take_row_cache(s);
    for (size_t i = 0; i < n; i++)
        run_chunk(s, from + i, gradients, scratch);
    return_row_cache(s, (void *)b->row_cache);
}

/* ---- Sums of segments and shards, in their order */

static void combine_segments(const struct schedule *s)
{
    for (size_t row = 0; row < s->job->layout->outer.volume; row++) {
        struct kl_sum sum = {0, 0};
        for (size_t i = 0; i < s->segments; i++)
            kl_sum_merge(&sum, s->segment_sums[row * s->segments + i]);
        double loss = kl_sum_value(sum);
        store_rows(s->job, row, 1, &loss, &s->job->total.sum);
    }
}

/* The sums of some derivatives by a broadcast operand, over the shards. */
static void combine_shards(const struct schedule *s, int operand, size_t start, size_t n,
                           double *grads)
{
    size_t count = s->job->plan->counts[operand];
    double low[KL_BLOCK];
    kl_fill(grads, 0, n);
    kl_fill(low, 0, n);
    for (size_t shard = 0; shard < s->shards; shard++) {
        const double *high = s->grad_sums[operand] + shard * 2 * count + start;
        s->job->kernel->add(high, 1, grads, low, n);
        for (size_t i = 0; i < n; i++)
            low[i] += high[count + i];
    }
    for (size_t i = 0; i < n; i++)
        grads[i] = kl_sum_value((struct kl_sum){grads[i], low[i]});
}

static void combine_grads(void *context, size_t chunk, void *scratch)
{
    const struct schedule *s = context;
    double *grads = scratch;
    if (kl_is_stopped(s->job->plan))
        return;
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        size_t count = s->job->plan->counts[operand], start = chunk * KL_BLOCK;
        enum kl_dtype dtype = s->job->operands[operand].dtype;
        if (!s->grad_sums[operand] || start >= count)
            continue;
        size_t n = kl_min(KL_BLOCK, count - start);
        combine_shards(s, operand, start, n, grads);
        s->job->kernel->narrow[dtype](
            grads, s->job->gradients[operand].data + start * kl_dtype_size(dtype), n);
    }
}

static bool allocate(struct schedule *s)
{
    bool good = (s->scratch = malloc(KL_THREAD_SCRATCH)) != NULL;
    size_t n = segment_sums_of(s);
    if (n > 0)
        good &= (s->segment_sums = calloc(n, sizeof *s->segment_sums)) != NULL;
    for (int i = 0; i < KL_OPERANDS; i++)
        if ((n = grad_sums_of(s, i)) > 0)
            good &= (s->grad_sums[i] = calloc(n, sizeof *s->grad_sums[i])) != NULL;
    return good;
}

bool kl_run_rows(struct kl_job *job, struct kl_pool *pool)
{
    struct schedule s = schedule_of(job);
    size_t max_summed = 0; /* elements of an operand whose derivatives are summed */
    bool good = allocate(&s);
    if (good) {
        kl_pool_run(pool, s.shards, run_shard, &s, s.scratch);
        if (s.segment_sums)
            combine_segments(&s);
        for (int i = 0; i < KL_OPERANDS; i++)
            if (s.grad_sums[i] && job->plan->counts[i] > max_summed)
                max_summed = job->plan->counts[i];
        kl_pool_run(pool, ceiling(max_summed, KL_BLOCK), combine_grads, &s, s.scratch);
    }
    while (s.row_caches) {
        void **cache = s.row_caches;
        s.row_caches = *cache;
        free(cache);
    }
    free(s.segment_sums);
    free(s.grad_sums[KL_INPUT]);
    free(s.grad_sums[KL_TARGET]);
    free(s.scratch);
    return good;
}
