/* Divides a job into groups of rows, these into chunks, and chunks into shards; adds the sums of
 * chunks in order. */
#include "lib/parallel.h"
#include "lib/row_block.h"

#include <stdlib.h>

/* MAX_SHARDS: the most shards with sums of broadcast derivatives of their own. */
enum { MAX_SHARDS = 16 };

/* FEW_GROUPS: rows are divided into splits where there are fewer groups, too few for threads. */
enum { FEW_GROUPS = 64 };

struct cut {
    struct kl_job *job;
    size_t groups, at_once; /* in a chunk */
    size_t splits;          /* of each row; at_once is 1 where there are several */
    size_t chunks;
    size_t shards;             /* of chunks, each done in order */
    struct kl_sum *sums;       /* one for each chunk: of losses, weighted, if they are reduced */
    struct kl_sum *split_sums; /* one for each split of each row, if there are several */
    double *grad_sums[KL_OPERANDS]; /* for each shard, (high, low) of each broadcast element */
    void *scratch;                  /* of the calling thread */
};

static size_t ceiling(size_t a, size_t b) { return a / b + (a % b != 0); }

static void choose_tiles(struct kl_job *job)
{
    size_t length = job->layout->along.volume;
    struct kl_tile *tile = &job->tile;
    *tile = kl_choose_tile(job->layout);
    job->split = length;
    bool few = job->layout->across.volume <= FEW_GROUPS * tile->rows;
    if (few && !kl_has_logits(job) && length > (size_t)2 * KL_CHUNK / tile->rows)
        job->split = KL_CHUNK / tile->rows / tile->length * tile->length;
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
    return KL_THREAD_SCRATCH + (cut.chunks + split_sums_of(&cut)) * sizeof(struct kl_sum) +
           (grad_sums_of(&cut, KL_INPUT) + grad_sums_of(&cut, KL_TARGET)) * sizeof(double);
}

/* ---- Rows whose losses are known */

/* Multiplies the losses of some rows by their weights; stores them, or adds them to `total`. */
static void finish_rows(const struct kl_job *job, size_t row, size_t n, double *losses,
                        struct kl_sum *total)
{
    double numbers[KL_ROWS];
    char narrow[KL_ROWS * sizeof(double)];
    unsigned char mask[KL_ROWS];
    enum kl_dtype dtype = job->plan->dtype;
    if (job->weight.data) {
        kl_line_load(job->kernel, &job->layout->across, &job->weight, row, n, KL_FLOAT64, numbers);
        job->kernel->multiply(losses, numbers, n);
    }
    if (job->mask.data) {
        kl_line_load(job->kernel, &job->layout->across, &job->mask, row, n, KL_FLOAT64, mask);
        job->kernel->apply_mask(losses, mask, 0, n);
    }
    if (!job->losses) {
        kl_sum_merge(total, job->kernel->total(losses, n));
        return;
    }
    if (job->unit != 1)
        job->kernel->scale(losses, job->unit, n);
    job->kernel->narrow[dtype](losses, narrow, n);
    kl_line_store(&job->layout->across, KL_OF_LOSS, dtype, narrow, row, n, job->losses);
}

static void run_group(const struct cut *cut, size_t index, size_t split,
                      const struct kl_sink *sinks, struct kl_sum *total, void *scratch)
{
    struct kl_job *job = cut->job;
    double high[KL_ROWS], low[KL_ROWS];
    size_t row = index * job->tile.rows, start = split * job->split;
    struct kl_group group = {.row = row,
                             .rows = kl_smaller(job->tile.rows, job->layout->across.volume - row),
                             .start = start,
                             .end = kl_smaller(start + job->split, job->layout->along.volume),
                             .sum = total,
                             .high = high,
                             .low = low,
                             .sinks = sinks};
    kl_fill(high, 0, group.rows);
    kl_fill(low, 0, group.rows);
    kl_run_group(&group, scratch);
    if (job->layout->each || !job->wants_loss)
        return;
    for (size_t i = 0; i < group.rows; i++) {
        struct kl_sum sum = {high[i], low[i]};
        if (cut->splits == 1)
            high[i] = kl_sum_value(sum);
        else
            cut->split_sums[(row + i) * cut->splits + split] = sum;
    }
    if (cut->splits == 1)
        finish_rows(job, row, group.rows, high, total);
}

/* Runs a chunk: one split of some rows. All rows of a split come before the next split, for
 * neighbouring rows may share cache lines. */
static void run_chunk(const struct cut *cut, size_t chunk, const struct kl_sink *sinks,
                      void *scratch)
{
    struct kl_sum total = {0, 0};
    size_t chunks_across = ceiling(cut->groups, cut->at_once);
    size_t first = chunk % chunks_across * cut->at_once;
    if (kl_is_stopped(cut->job->plan))
        return;
    kl_start_chunk(cut->job, scratch);
    for (size_t i = first; i < kl_smaller(first + cut->at_once, cut->groups); i++)
        run_group(cut, i, chunk / chunks_across, sinks, &total, scratch);
    cut->sums[chunk] = total;
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

static void join_splits(const struct cut *cut, struct kl_sum *total)
{
    for (size_t row = 0; row < cut->job->layout->across.volume; row++) {
        struct kl_sum sum = {0, 0};
        for (size_t i = 0; i < cut->splits; i++)
            kl_sum_merge(&sum, cut->split_sums[row * cut->splits + i]);
        finish_rows(cut->job, row, 1, &(double){kl_sum_value(sum)}, total);
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
    bool good = (cut->sums = calloc(cut->chunks, sizeof *cut->sums)) != NULL;
    good &= (cut->scratch = malloc(KL_THREAD_SCRATCH)) != NULL;
    size_t n = split_sums_of(cut);
    if (n > 0)
        good &= (cut->split_sums = calloc(n, sizeof *cut->split_sums)) != NULL;
    for (int i = 0; i < KL_OPERANDS; i++)
        if ((n = grad_sums_of(cut, i)) > 0)
            good &= (cut->grad_sums[i] = calloc(n, sizeof *cut->grad_sums[i])) != NULL;
    return good;
}

bool kl_run_rows(struct kl_job *job, struct kl_pool *pool, struct kl_sum *total)
{
    struct cut cut = {.job = job};
    kl_layout_of(job->layout, job->plan);
    choose_tiles(job);
    choose_chunks(&cut);
    bool good = allocate(&cut);
    if (good) {
        kl_pool_run(pool, cut.shards, run_shard, &cut, cut.scratch);
        if (cut.split_sums)
            join_splits(&cut, &cut.sums[0]);
        if (cut.grad_sums[KL_INPUT] || cut.grad_sums[KL_TARGET])
            kl_pool_run(pool, ceiling(most_summed(&cut), KL_BLOCK), join_grads, &cut, cut.scratch);
        for (size_t i = 0; i < cut.chunks; i++)
            kl_sum_merge(total, cut.sums[i]);
    }
    free(cut.sums);
    free(cut.split_sums);
    free(cut.grad_sums[KL_INPUT]);
    free(cut.grad_sums[KL_TARGET]);
    free(cut.scratch);
    return good;
}
