/* Divides a job into groups of rows, these into chunks, and chunks into shards; adds the sums of
 * chunks in order. */
#include "lib/job.h"
#include "lib/pool.h"

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
    struct kl_sum *grad_sums[KL_OPERANDS]; /* for each shard, one for each broadcast element */
    struct kl_patterns *patterns;          /* if tiles may have any */
    void *scratch;                         /* of the calling thread */
};

static size_t ceiling(size_t a, size_t b) { return a / b + (a % b != 0); }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static bool has_logits(const struct kl_job *job)
{
    return kl_is_logit(job, KL_INPUT) || kl_is_logit(job, KL_TARGET);
}

static void choose_tiles(struct kl_job *job)
{
    size_t length = job->layout->along.volume;
    struct kl_tile *tile = &job->tile;
    kl_choose_tile(job->layout, tile);
    job->split = length;
    bool few = job->layout->across.volume <= FEW_GROUPS * tile->rows;
    if (few && !has_logits(job) && length > (size_t)2 * KL_CHUNK / tile->pitch)
        job->split = KL_CHUNK / tile->pitch / tile->length * tile->length;
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
            shards = least(shards, least(MAX_SHARDS, plan->count / plan->counts[i] / 2 + 1));
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
    return has ? cut->shards * job->plan->counts[operand] : 0;
}

size_t kl_rows_scratch_size(struct kl_job *job)
{
    struct cut cut = {.job = job};
    kl_layout_of(job->layout, job->plan);
    choose_tiles(job);
    choose_chunks(&cut);
    size_t sums = cut.chunks + split_sums_of(&cut) + grad_sums_of(&cut, KL_INPUT) +
                  grad_sums_of(&cut, KL_TARGET);
    return KL_THREAD_SCRATCH + (job->tile.pitch > 1 ? sizeof(struct kl_patterns) : 0) +
           sums * sizeof(struct kl_sum);
}

/* ---- Rows whose losses are known */

/* Multiplies the sums of some rows' losses by their weights; stores them, or adds them to
 * `total`. */
static void finish_rows(const struct kl_job *job, size_t row, size_t n, const struct kl_sum *sums,
                        struct kl_sum *total)
{
    const struct kl_axes *across = &job->layout->across;
    double losses[KL_ROWS], weights[KL_ROWS], mask[KL_ROWS];
    for (size_t i = 0; i < n; i++) {
        losses[i] = kl_sum_value(sums[i]);
        weights[i] = mask[i] = 1;
    }
    if (job->weight.data)
        kl_line_load(job->kernel, across, &job->weight, row, n, weights);
    if (job->mask.data)
        kl_line_load(job->kernel, across, &job->mask, row, n, mask);
    for (size_t i = 0; i < n; i++) {
        losses[i] = mask[i] == 0 ? 0 : losses[i] * weights[i];
        if (job->losses)
            losses[i] *= job->unit;
        else
            kl_sum_add(total, losses[i]);
    }
    if (job->losses)
        kl_line_store(job->kernel, across, KL_OF_LOSS, job->plan->dtype, job->losses, row, n,
                      losses);
}

static void run_group(const struct cut *cut, size_t index, size_t split,
                      const struct kl_sink *sinks, struct kl_sum *total, void *scratch)
{
    struct kl_job *job = cut->job;
    struct kl_sum sums[KL_ROWS];
    size_t row = index * job->tile.rows, start = split * job->split;
    struct kl_group group = {.row = row,
                             .rows = least(job->tile.rows, job->layout->across.volume - row),
                             .start = start,
                             .end = least(start + job->split, job->layout->along.volume),
                             .sum = total,
                             .sums = sums,
                             .sinks = sinks};
    for (size_t i = 0; i < group.rows; i++)
        sums[i] = (struct kl_sum){0, 0};
    kl_run_group(job, &group, scratch);
    if (job->layout->each)
        return;
    if (cut->splits == 1)
        finish_rows(job, row, group.rows, sums, total);
    else
        for (size_t i = 0; i < group.rows; i++)
            cut->split_sums[(row + i) * cut->splits + split] = sums[i];
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
    for (size_t i = first; i < least(first + cut->at_once, cut->groups); i++)
        run_group(cut, i, chunk / chunks_across, sinks, &total, scratch);
    cut->sums[chunk] = total;
}

static void run_shard(void *context, size_t shard, void *scratch)
{
    const struct cut *cut = context;
    const struct kl_plan *plan = cut->job->plan;
    struct kl_sink sinks[KL_OPERANDS] = {cut->job->sinks[KL_INPUT], cut->job->sinks[KL_TARGET]};
    for (int i = 0; i < KL_OPERANDS; i++)
        if (cut->grad_sums[i])
            sinks[i].sums = cut->grad_sums[i] + shard * plan->counts[i];
    size_t from = cut->chunks / cut->shards * shard + least(shard, cut->chunks % cut->shards);
    size_t n = cut->chunks / cut->shards + (shard < cut->chunks % cut->shards);
    for (size_t i = 0; i < n; i++)
        run_chunk(cut, from + i, sinks, scratch);
}

/* ---- What chunks gave, in their order */

static void join_splits(const struct cut *cut, struct kl_sum *total)
{
    struct kl_sum sum;
    for (size_t row = 0; row < cut->job->layout->across.volume; row++) {
        sum = (struct kl_sum){0, 0};
        for (size_t i = 0; i < cut->splits; i++)
            kl_sum_merge(&sum, cut->split_sums[row * cut->splits + i]);
        finish_rows(cut->job, row, 1, &sum, total);
    }
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
        size_t n = least(KL_BLOCK, count - start);
        for (size_t i = 0; i < n; i++) {
            struct kl_sum sum = {0, 0};
            for (size_t shard = 0; shard < cut->shards; shard++)
                kl_sum_merge(&sum, cut->grad_sums[operand][shard * count + start + i]);
            grads[i] = kl_sum_value(sum);
        }
        cut->job->kernel->narrow[dtype](
            grads, cut->job->sinks[operand].gradient + start * kl_dtype_size(dtype), n);
    }
}

static bool allocate(struct cut *cut)
{
    bool good = (cut->sums = calloc(cut->chunks, sizeof *cut->sums)) != NULL;
    good &= (cut->scratch = malloc(KL_THREAD_SCRATCH)) != NULL;
    if (cut->job->tile.pitch > 1)
        good &= (cut->patterns = malloc(sizeof *cut->patterns)) != NULL;
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
    choose_tiles(job);
    choose_chunks(&cut);
    size_t most = job->plan->counts[KL_INPUT] > job->plan->counts[KL_TARGET]
                      ? job->plan->counts[KL_INPUT]
                      : job->plan->counts[KL_TARGET];
    bool good = allocate(&cut);
    if (good) {
        kl_find_patterns(cut.patterns, job->layout, &job->tile);
        kl_pool_run(pool, cut.shards, run_shard, &cut, cut.scratch);
        if (cut.split_sums)
            join_splits(&cut, &cut.sums[0]);
        if (cut.grad_sums[KL_INPUT] || cut.grad_sums[KL_TARGET])
            kl_pool_run(pool, ceiling(most, KL_BLOCK), join_grads, &cut, cut.scratch);
        for (size_t i = 0; i < cut.chunks; i++)
            kl_sum_merge(total, cut.sums[i]);
    }
    free(cut.sums);
    free(cut.split_sums);
    free(cut.grad_sums[KL_INPUT]);
    free(cut.grad_sums[KL_TARGET]);
    free(cut.patterns);
    free(cut.scratch);
    return good;
}
