/* Divides a job into groups of rows, these into chunks, and chunks into shards. */
#include "lib/parallel.h"
#include "lib/row_block.h"

#include <stdlib.h>

/* MAX_SHARDS: the most shards with sums of broadcast derivatives of their own. */
enum { MAX_SHARDS = 16 };

/* FEW_GROUPS: rows are divided into splits where there are fewer groups, too few for threads. */
enum { FEW_GROUPS = 64 };

/* COLUMN_PIECE: elements of rows that lie side by side which are summed in order. */
enum { COLUMN_PIECE = 512 };

struct cut {
    struct kl_job *job;
    size_t groups, at_once; /* in a chunk */
    size_t splits;          /* of each row; at_once is 1 where there are several */
    size_t chunks;
    size_t shards;                  /* of chunks, each done in order */
    struct kl_sum *split_sums;      /* one for each split of each row, if there are several */
    double *grad_sums[KL_OPERANDS]; /* for each shard, (high, low) of each broadcast element */
    void *scratch;                  /* of the calling thread */
};

static size_t ceiling(size_t a, size_t b) { return a / b + (a % b != 0); }

/* The greatest power of 2 that is not above n. */
static size_t power_below(size_t n)
{
    while (n & (n - 1))
        n &= n - 1;
    return n;
}

/* True if sums of chunks are all that is known of reduced losses. Then chunks end at multiples of
 * KL_CHUNK elements, if rows do, whatever is after: tiles and chunks are powers of 2 of rows. */
static bool sums_chunks(const struct kl_job *job)
{
    return job->layout->each && !kl_has_logits(job);
}

static void choose_tiles(struct kl_job *job)
{
    size_t length = job->layout->along.volume, rows = job->layout->across.volume;
    struct kl_tile *tile = &job->tile;
    *tile = kl_choose_tile(job->layout);
    if (sums_chunks(job))
        tile->rows = kl_smaller(tile->rows, power_below(KL_BLOCK / tile->length));
    bool few = rows <= FEW_GROUPS * tile->rows && length > (size_t)2 * KL_CHUNK / tile->rows;
    job->piece = kl_has_logits(job) ? length : tile->columns ? COLUMN_PIECE : KL_CHUNK;
    job->split = few || sums_chunks(job) ? kl_smaller(job->piece, length) : length;
}

static bool sums_back(const struct kl_plan *plan, int operand)
{
    return plan->counts[operand] < plan->count;
}

static size_t shards_of(const struct kl_plan *plan, const struct kl_sink *sinks, size_t chunks)
{
    size_t shards = chunks;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (sinks[i].gradient && sums_back(plan, i))
            shards =
                kl_smaller(shards, kl_smaller(MAX_SHARDS, plan->count / plan->counts[i] / 2 + 1));
    return shards;
}

static void choose_chunks(struct cut *cut)
{
    struct kl_job *job = cut->job;
    size_t length = job->layout->along.volume, in_group = job->tile.rows * length;
    cut->groups = ceiling(job->layout->across.volume, job->tile.rows);
    cut->splits = ceiling(length, job->split);
    cut->at_once = cut->splits > 1 || in_group >= KL_CHUNK ? 1 : KL_CHUNK / in_group;
    if (sums_chunks(job))
        cut->at_once = power_below(cut->at_once);
    cut->chunks = ceiling(cut->groups, cut->at_once) * cut->splits;
    cut->shards = shards_of(job->plan, job->sinks, cut->chunks);
}

static size_t split_sums_of(const struct cut *cut)
{
    const struct kl_layout *layout = cut->job->layout;
    return cut->splits > 1 && !layout->each ? layout->across.volume * cut->splits : 0;
}

static size_t grad_sums_of(const struct cut *cut, int operand)
{
    const struct kl_job *job = cut->job;
    bool has = job->sinks[operand].gradient && sums_back(job->plan, operand);
    return has ? cut->shards * 2 * job->plan->counts[operand] : 0;
}

size_t kl_rows_scratch_size(struct kl_job *job)
{
    struct cut cut = {.job = job};
    kl_layout_of(job->layout, job->plan);
    choose_tiles(job);
    choose_chunks(&cut);
    return KL_THREAD_SCRATCH + split_sums_of(&cut) * sizeof(struct kl_sum) +
           (grad_sums_of(&cut, KL_INPUT) + grad_sums_of(&cut, KL_TARGET)) * sizeof(double);
}

/* ---- Rows whose losses are known */

/* Multiplies the losses of some rows by their weights, if rows have any. */
static void weigh_rows(const struct kl_job *job, size_t row, size_t n, double *losses)
{
    double numbers[KL_ROWS];
    unsigned char mask[KL_ROWS];
    if (job->weight.data) {
        kl_line_load(job->kernel, &job->layout->across, &job->weight, row, n, KL_FLOAT64, numbers);
        job->kernel->multiply(losses, numbers, n);
    }
    if (job->mask.data) {
        kl_line_load(job->kernel, &job->layout->across, &job->mask, row, n, KL_FLOAT64, mask);
        job->kernel->apply_mask(losses, mask, 0, n);
    }
}

/* Stores the losses of some rows, or adds them to `sum`. */
static void finish_rows(const struct kl_job *job, size_t row, size_t n, double *losses,
                        struct kl_exact *sum)
{
    char narrow[KL_ROWS * sizeof(double)];
    enum kl_dtype dtype = job->plan->dtype;
    if (!job->layout->each)
        weigh_rows(job, row, n, losses);
    if (job->unit != 1)
        job->kernel->scale(losses, job->unit, n);
    if (!job->losses) {
        kl_exact_add_all(sum, losses, n);
        return;
    }
    job->kernel->narrow[dtype](losses, narrow, n);
    kl_line_store(&job->layout->across, KL_OF_LOSS, dtype, narrow, row, n, job->losses);
}

/* chunk_sums: reduced losses of a chunk, of rows or of elements. */
struct chunk_sums {
    struct kl_exact of_rows;
    struct kl_sum of_elements;
};

/* Runs a group of several pieces, whose sums are 0 so far, one after the other. Out of line, so that
 * other groups do not have its arrays on their stack. */
static __attribute__((noinline)) void run_pieces(size_t piece, struct kl_group group, void *scratch)
{
    double high[KL_ROWS], low[KL_ROWS], *const highs = group.high, *const lows = group.low;
    size_t end = group.end;
    group.high = high, group.low = low;
    for (; group.start < end; group.start = group.end) {
        group.end = kl_smaller(end, group.start + piece);
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

static void run_group(const struct cut *cut, size_t index, size_t split,
                      const struct kl_sink *sinks, struct chunk_sums *sums, void *scratch)
{
    struct kl_job *job = cut->job;
    double high[KL_ROWS], low[KL_ROWS];
    size_t row = index * job->tile.rows, start = split * job->split;
    struct kl_group group = {.row = row,
                             .rows = kl_smaller(job->tile.rows, job->layout->across.volume - row),
                             .start = start,
                             .end = kl_smaller(start + job->split, job->layout->along.volume),
                             .sum = &sums->of_elements,
                             .high = high,
                             .low = low,
                             .sinks = sinks};
    kl_fill(high, 0, group.rows);
    kl_fill(low, 0, group.rows);
    if (group.end - start > job->piece)
        run_pieces(job->piece, group, scratch);
    else
        kl_run_group(&group, scratch);
    if (!kl_sums_rows(job) || !job->wants_loss)
        return;
    for (size_t i = 0; i < group.rows; i++) {
        struct kl_sum sum = {high[i], low[i]};
        if (cut->splits == 1)
            high[i] = kl_sum_value(sum);
        else
            cut->split_sums[(row + i) * cut->splits + split] = sum;
    }
    if (cut->splits == 1)
        finish_rows(job, row, group.rows, high, &sums->of_rows);
}

/* Runs a chunk: one split of some rows. All rows of a split come before the next split, for
 * neighbouring rows may share cache lines. */
static void run_chunk(const struct cut *cut, size_t chunk, const struct kl_sink *sinks,
                      void *scratch)
{
    struct kl_job *job = cut->job;
    struct chunk_sums sums = {.of_elements = {0, 0}};
    size_t chunks_across = ceiling(cut->groups, cut->at_once);
    size_t first = chunk % chunks_across * cut->at_once;
    if (kl_is_stopped(job->plan))
        return;
    kl_start_chunk(cut->job, scratch);
    for (size_t i = first; i < kl_smaller(first + cut->at_once, cut->groups); i++)
        run_group(cut, i, chunk / chunks_across, sinks, &sums, scratch);
    if (job->losses || !job->wants_loss)
        return;
    if (sums_chunks(job))
        kl_total_add(&job->total, sums.of_elements);
    else if (cut->splits == 1)
        kl_total_merge(&job->total, &sums.of_rows);
}

static void run_shard(void *context, size_t shard, void *scratch)
{
    const struct cut *cut = context;
    const struct kl_plan *plan = cut->job->plan;
    struct kl_sink sinks[KL_OPERANDS] = {cut->job->sinks[KL_INPUT], cut->job->sinks[KL_TARGET]};
    for (int i = 0; i < KL_OPERANDS; i++)
        if (cut->grad_sums[i]) {
            sinks[i].high = cut->grad_sums[i] + shard * 2 * plan->counts[i];
            sinks[i].low = sinks[i].high + plan->counts[i];
        }
    size_t from = cut->chunks / cut->shards * shard + kl_smaller(shard, cut->chunks % cut->shards);
    size_t n = cut->chunks / cut->shards + (shard < cut->chunks % cut->shards);
    for (size_t i = 0; i < n; i++)
        run_chunk(cut, from + i, sinks, scratch);
}

/* ---- What chunks gave, in their order */

static void join_splits(const struct cut *cut)
{
    for (size_t row = 0; row < cut->job->layout->across.volume; row++) {
        struct kl_sum sum = {0, 0};
        for (size_t i = 0; i < cut->splits; i++)
            kl_sum_merge(&sum, cut->split_sums[row * cut->splits + i]);
        double loss = kl_sum_value(sum);
        finish_rows(cut->job, row, 1, &loss, &cut->job->total.sum);
    }
}

/* The sums of some derivatives by a broadcast operand, over the shards. */
static void join_shards(const struct cut *cut, int operand, size_t start, size_t n, double *grads)
{
    size_t count = cut->job->plan->counts[operand];
    double low[KL_BLOCK];
    kl_fill(grads, 0, n);
    kl_fill(low, 0, n);
    for (size_t shard = 0; shard < cut->shards; shard++) {
        const double *high = cut->grad_sums[operand] + shard * 2 * count + start;
        cut->job->kernel->add(high, grads, low, n);
        for (size_t i = 0; i < n; i++)
            low[i] += high[count + i];
    }
    for (size_t i = 0; i < n; i++)
        grads[i] = kl_sum_value((struct kl_sum){grads[i], low[i]});
}

static void join_grads(void *context, size_t chunk, void *scratch)
{
    const struct cut *cut = context;
    double *grads = scratch;
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        size_t count = cut->job->plan->counts[operand], start = chunk * KL_BLOCK;
        enum kl_dtype dtype = cut->job->operands[operand].dtype;
        if (!cut->grad_sums[operand] || start >= count)
            continue;
        size_t n = kl_smaller(KL_BLOCK, count - start);
        join_shards(cut, operand, start, n, grads);
        cut->job->kernel->narrow[dtype](
            grads, cut->job->sinks[operand].gradient + start * kl_dtype_size(dtype), n);
    }
}

/* The most elements of an operand whose derivatives are summed. */
static size_t most_summed(const struct cut *cut)
{
    size_t most = 0;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (cut->grad_sums[i] && cut->job->plan->counts[i] > most)
            most = cut->job->plan->counts[i];
    return most;
}

static bool allocate(struct cut *cut)
{
    bool good = (cut->scratch = malloc(KL_THREAD_SCRATCH)) != NULL;
    size_t n = split_sums_of(cut);
    if (n > 0)
        good &= (cut->split_sums = calloc(n, sizeof *cut->split_sums)) != NULL;
    for (int i = 0; i < KL_OPERANDS; i++)
        if ((n = grad_sums_of(cut, i)) > 0)
            good &= (cut->grad_sums[i] = calloc(n, sizeof *cut->grad_sums[i])) != NULL;
    return good;
}

bool kl_run_rows(struct kl_job *job, struct kl_pool *pool)
{
    struct cut cut = {.job = job};
    kl_layout_of(job->layout, job->plan);
    choose_tiles(job);
    choose_chunks(&cut);
    bool good = allocate(&cut);
    if (good) {
        kl_pool_run(pool, cut.shards, run_shard, &cut, cut.scratch);
        if (cut.split_sums)
            join_splits(&cut);
        if (cut.grad_sums[KL_INPUT] || cut.grad_sums[KL_TARGET])
            kl_pool_run(pool, ceiling(most_summed(&cut), KL_BLOCK), join_grads, &cut, cut.scratch);
    }
    free(cut.split_sums);
    free(cut.grad_sums[KL_INPUT]);
    free(cut.grad_sums[KL_TARGET]);
    free(cut.scratch);
    return good;
}
