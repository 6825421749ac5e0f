#include "lib/pool.h"
#include "lib/run.h"

#include <math.h>

/* Adjacent axes of one kind, as one; without those of size 1. */
struct axis {
    size_t size, stride; /* in elements of the operands */
};

struct rows {
    struct kl_work work;
    struct axis kept[KL_MAX_DIMS], summed[KL_MAX_DIMS]; /* but for the inner one */
    size_t n_kept, n_summed;
    size_t inner; /* the size of the last axis, whose elements lie side by side */
    bool inner_summed;
    size_t at_once; /* places in a piece of work */
    char *losses;
};

/* Rows shorter than this are summed out of blocks of mapped losses: the kernels' sums take longer
 * to begin than such rows take. */
enum { SHORT_ROW = 128 };

static void add_axis(struct axis *axes, size_t *n, bool merges, size_t size, size_t stride)
{
    if (merges)
        size *= axes[--*n].size;
    axes[(*n)++] = (struct axis){size, stride};
}

static void settle(struct rows *rows)
{
    const struct kl_plan *plan = rows->work.plan;
    size_t stride = plan->count;
    int before = -1; /* the kind of the axis before */
    for (size_t i = 0; i < plan->input.ndim; i++) {
        size_t size = plan->input.shape[i];
        bool summed = plan->summed[i];
        stride /= size;
        if (size == 1)
            continue;
        add_axis(summed ? rows->summed : rows->kept, summed ? &rows->n_summed : &rows->n_kept,
                 before == (int)summed, size, stride);
        before = summed;
    }
    rows->inner_summed = before == 1;
    rows->inner =
        rows->inner_summed ? rows->summed[--rows->n_summed].size : rows->kept[--rows->n_kept].size;
}

/* Where place `index` of the axes, counted in row-major order, lies. */
static size_t offset_of(const struct axis *axes, size_t n, size_t index)
{
    size_t offset = 0;
    for (; n-- > 0; index /= axes[n].size)
        offset += index % axes[n].size * axes[n].stride;
    return offset;
}

static size_t volume(const struct axis *axes, size_t n)
{
    size_t product = 1;
    while (n-- > 0)
        product *= axes[n].size;
    return product;
}

static void store(const struct rows *rows, size_t place, struct kl_sum *sums, size_t n)
{
    const struct kl_plan *plan = rows->work.plan;
    double unit = kl_unit_of(&plan->options), values[KL_BLOCK];
    for (size_t i = 0; i < n; i++)
        values[i] = (sums[i].high + (isfinite(sums[i].high) ? sums[i].low : 0)) * unit;
    rows->work.kernel->narrow[plan->dtype](values,
                                           rows->losses + place * kl_dtype_size(plan->dtype), n);
}

/* Places [place, place + n) where each is a row of its own: their elements lie side by side. */
static void sum_rows(const struct rows *rows, size_t place, size_t n)
{
    struct kl_sum sums[KL_BLOCK];
    size_t turns = volume(rows->summed, rows->n_summed);
    for (size_t i = 0; i < n; i++) {
        size_t start = offset_of(rows->kept, rows->n_kept, place + i);
        sums[i] = (struct kl_sum){0, 0};
        for (size_t turn = 0; turn < turns; turn++)
            kl_sum_merge(&sums[i],
                         kl_sum_elements(&rows->work,
                                         start + offset_of(rows->summed, rows->n_summed, turn),
                                         rows->inner));
    }
    store(rows, place, sums, n);
}

/* The same of short rows one behind the other. */
static void sum_short_rows(const struct rows *rows, size_t place, size_t n)
{
    struct kl_sum sums[KL_BLOCK];
    double losses[KL_BLOCK];
    size_t at_once = KL_BLOCK / rows->inner;
    for (size_t i = 0; i < n; i += at_once) {
        size_t left = n - i < at_once ? n - i : at_once;
        kl_map_elements(&rows->work, (place + i) * rows->inner, left * rows->inner, losses);
        for (size_t row = 0; row < left; row++) {
            sums[i + row] = (struct kl_sum){0, 0};
            for (size_t j = 0; j < rows->inner; j++)
                kl_sum_add(&sums[i + row], losses[row * rows->inner + j]);
        }
    }
    store(rows, place, sums, n);
}

/* Places [place, place + n) of one run along an inner axis that is kept. */
static void sum_columns(const struct rows *rows, size_t place, size_t n)
{
    struct kl_sum sums[KL_BLOCK] = {{0, 0}};
    double losses[KL_BLOCK];
    size_t start = offset_of(rows->kept, rows->n_kept, place / rows->inner) + place % rows->inner;
    size_t turns = volume(rows->summed, rows->n_summed);
    for (size_t turn = 0; turn < turns; turn++) {
        kl_map_elements(&rows->work, start + offset_of(rows->summed, rows->n_summed, turn), n,
                        losses);
        for (size_t i = 0; i < n; i++)
            kl_sum_add(&sums[i], losses[i]);
    }
    store(rows, place, sums, n);
}

static void run_piece(void *context, size_t i)
{
    const struct rows *rows = context;
    if (rows->inner_summed) {
        size_t place = i * rows->at_once, left = rows->work.plan->places - place;
        size_t n = left < rows->at_once ? left : rows->at_once;
        bool side_by_side = rows->n_summed == 0 && rows->inner < SHORT_ROW;
        (side_by_side ? sum_short_rows : sum_rows)(rows, place, n);
        return;
    }
    size_t pieces = (rows->inner + KL_BLOCK - 1) / KL_BLOCK; /* of each run */
    size_t from = i % pieces * KL_BLOCK, left = rows->inner - from;
    sum_columns(rows, i / pieces * rows->inner + from, left < KL_BLOCK ? left : KL_BLOCK);
}

void kl_run_rows(const struct kl_work *work, struct kl_pool *pool, char *losses)
{
    const struct kl_plan *plan = work->plan;
    struct rows rows = {.work = *work, .losses = losses};
    if (plan->count == 0) {
        for (size_t i = 0; i < plan->places; i++)
            kl_store(plan->dtype, losses, i, 0);
        return;
    }
    settle(&rows);
    if (!rows.inner_summed) {
        size_t runs = volume(rows.kept, rows.n_kept);
        kl_pool_run(pool, runs * ((rows.inner + KL_BLOCK - 1) / KL_BLOCK), run_piece, &rows);
        return;
    }
    size_t elements = plan->count / plan->places; /* of each place */
    rows.at_once = elements < KL_PIECE ? KL_PIECE / elements : 1;
    if (rows.at_once > KL_BLOCK)
        rows.at_once = KL_BLOCK;
    kl_pool_run(pool, (plan->places + rows.at_once - 1) / rows.at_once, run_piece, &rows);
}
