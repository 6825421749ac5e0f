/* Losses of rows of logits, without writing out their softmaxes.
 *
 * With P and Q the exponentials of a row's shifted logits p and q, the sum of P/sum(P)
 * (log(P/sum(P)) - log(Q/sum(Q))) is that of P (p - q) over sum(P), less log sum(P) - log sum(Q);
 * likewise where one operand holds no logits, and has no such sum.
 *
 * Long rows take one pass, by the online softmax (Milakov and Gimelshein, "Online normalizer calculation for
 * softmax", 2018): sums are of exponentials of what a logit is less than the maximum so far, and a tile with
 * a greater maximum first multiplies them by exp(old - new). That reads memory once, where a maximum, a sum and
 * a normalization by themselves read it three times, and costs one exponential an element and operand, and one
 * more a tile that raises the maximum. Sums are compensated, so a rescaling adds a rounding or two for each
 * tile that raises the maximum, to the errors of the exponentials. Rows of few elements take a second pass, which costs
 * nothing, as they are in the cache: of 13 to some 100 logits in both operands several at once (simd/short_rows.h), others of less
 * than KL_MIN_ROWWISE_LENGTH in blocks. */
#include "lib/rows/softmax.h"

static double scale_of(const struct kl_workspace *b, int operand)
{
    return kl_is_logit(b->job, operand) ? 1 / b->job->plan->temperature : 1;
}

static void scale_sum(struct kl_sum *sum, double by)
{
    sum->high *= by;
    sum->low *= by;
}

/* ---- The log-sum-exp of a row, in two numbers: row_max, and the log of the sum of exp(v -
 * row_max). */

static void find_row_max(struct kl_workspace *b, int operand)
{
    kl_fill(b->row_max[operand], -(double)INFINITY, b->group->rows);
    KL_FOR_EACH_TILE (b, tile) {
        kl_load_operand(b, &tile, operand);
        kl_row_maxima(b->job->kernel, &tile, b->v[operand], b->row_max[operand]);
    }
}

/* Loads a tile of logits less their row_max. */
static void load_shifted(struct kl_workspace *b, const struct kl_tile *tile, int operand)
{
    if (b->single && b->stage[operand] == KL_SHIFTED)
        return;
    kl_load_operand(b, tile, operand);
    kl_shift_rows(b, tile, b->v[operand], b->row_max[operand], NULL, scale_of(b, operand));
    b->stage[operand] = KL_SHIFTED;
}

static void find_softmax(struct kl_workspace *b, int operand)
{
    double sums[KL_ROWS];
    size_t rows = b->group->rows;
    find_row_max(b, operand);
    kl_fill(b->high, 0, rows);
    kl_fill(b->low, 0, rows);
    if (rows == 1 && b->row_max[operand][0] == (double)INFINITY)
        b->high[0] = (double)NAN;
    KL_FOR_EACH_TILE (b, tile) {
        if (rows == 1 && isnan(b->high[0]))
            break;
        load_shifted(b, &tile, operand);
        b->job->kernel->exps(b->v[operand], b->scratch, kl_tile_size(&tile));
        kl_add_to_rows(b->job->kernel, &tile, b->scratch, b->high, b->low);
    }
    for (size_t i = 0; i < rows; i++)
        sums[i] = kl_sum_value((struct kl_sum){b->high[i], b->low[i]});
    b->job->kernel->logs(sums, b->log_sum_exp[operand], rows);
}

void kl_find_softmaxes(struct kl_workspace *b)
{
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        if (kl_is_logit(b->job, operand))
            find_softmax(b, operand);
}

static void load_log_softmax(struct kl_workspace *b, const struct kl_tile *tile, int operand)
{
    double *v = b->v[operand];
    if (b->job->layout->single_rows) {
        kl_load_operand(b, tile, operand);
        for (size_t i = 0; i < kl_tile_size(tile); i++)
            v[i] -= v[i]; /* NaN if it is not finite */
    } else {
        bool shifted = b->single && b->stage[operand] == KL_SHIFTED;
        if (!shifted)
            kl_load_operand(b, tile, operand);
        kl_shift_rows(b, tile, v, shifted ? NULL : b->row_max[operand], b->log_sum_exp[operand],
                      shifted ? 1 : scale_of(b, operand));
    }
    b->stage[operand] = KL_LOG_PROBS;
}

/* ---- Both operands */

/* Replaces probabilities of input by their logarithms, and sets what derivatives by them are divided
 * by. */
static void replace_probs(struct kl_workspace *b, size_t n)
{
    const struct kl_kernel *kernel = b->job->kernel;
    if (kl_has_quotients(b->job->plan)) {
        kernel->quotients(b->job->rule, b->v[KL_INPUT], b->v[KL_TARGET], b->divisor, n);
        return;
    }
    memcpy(b->divisor, b->v[KL_INPUT], n * sizeof *b->divisor);
    kernel->logs(b->v[KL_INPUT], b->v[KL_INPUT], n);
}

static void load_operands(struct kl_workspace *b, const struct kl_tile *tile)
{
    for (int i = 0; i < KL_OPERANDS; i++)
        (kl_is_logit(b->job, i) ? load_log_softmax : kl_load_operand)(b, tile, i);
}

void kl_load_spaces(struct kl_workspace *b, const struct kl_tile *tile)
{
    load_operands(b, tile);
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_apply_mask(b, tile, b->v[i], b->job->plan->spaces[i] == KL_PROB);
}

void kl_load_log_probs(struct kl_workspace *b, const struct kl_tile *tile)
{
    if (b->single && b->stage[KL_INPUT] == KL_LOG_PROBS)
        return;
    load_operands(b, tile);
    if (b->job->plan->spaces[KL_INPUT] == KL_PROB) {
        kl_apply_mask(b, tile, b->v[KL_INPUT], 1);
        kl_apply_mask(b, tile, b->v[KL_TARGET], 1);
        replace_probs(b, kl_tile_size(tile));
    }
    kl_apply_mask(b, tile, b->v[KL_INPUT], 0);
    kl_apply_mask(b, tile, b->v[KL_TARGET], 0);
    b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_LOG_PROBS;
}

/* ---- Sums of rows */

/* row_sums: of each row, sums of losses, of probabilities of target and of exponentials of input, not yet
 * divided by those of exponentials. */
struct row_sums {
    double losses[KL_ROWS], sum_p[KL_ROWS], exps[KL_ROWS];
};

/* True if a loss that is not finite is what the rule says. Without a softmax of input or target each loss of the
 * row is NaN, or 0 by oneflow where it is target's; otherwise an infinite sum has infinite terms and no NaN,
 * unless it is a finite one of float64 that overflowed. */
static bool is_known(struct kl_workspace *b, size_t i, double *loss)
{
    const struct kl_job *job = b->job;
    bool nan_input = isnan(b->log_sum_exp[KL_INPUT][i]);
    bool nan_target = isnan(b->log_sum_exp[KL_TARGET][i]);
    if (kl_is_row_masked(b, i))
        return true;
    if ((nan_input || nan_target) && job->rule != KL_PROB_ONEFLOW) {
        *loss = nan_target && job->rule == KL_LOGIT_ONEFLOW ? 0 : (double)NAN;
        return true;
    }
    return *loss == (double)INFINITY && job->plan->dtype != KL_FLOAT64;
}

/* Looks at a row whose loss is not finite. Derivatives by logits of input do not depend on it. The probability of a
 * logit beside which all others have none is 1: a target of infinity has a rule of its own there. The exponential of 0 is
 * exactly 1 for float64; that of 24 bits is 2^-47 from it. */
static __attribute__((noinline)) bool check_row(struct kl_workspace *b, size_t i,
                                                struct kl_summed_rows *rows)
{
    for (int operand = 0; operand < KL_OPERANDS; operand++) {
        double *log_sum = &b->log_sum_exp[operand][i];
        if (!isfinite(*log_sum))
            *log_sum = (double)NAN;
        else if (b->job->plan->dtype != KL_FLOAT64 && fabs(*log_sum) < 0x1p-46)
            *log_sum = 0;
    }
    rows->known[i] = is_known(b, i, &rows->losses[i]);
    rows->has_grads[i] =
        rows->known[i] || (kl_is_logit(b->job, KL_TARGET) && !kl_is_wanted(b->job, KL_TARGET));
    return rows->known[i] && rows->has_grads[i];
}

/* Finds the logarithms of sums of exponentials. A row of -inf alone has no softmax: the sums are not 0, as
 * exponentials of 24 bits are at least exp(-700). */
static void find_log_sums(struct kl_workspace *b, int operand, const double *sums)
{
    double *logs = b->log_sum_exp[operand];
    b->job->kernel->logs(sums, logs, b->group->rows);
    for (size_t i = 0; i < b->group->rows; i++)
        if (b->row_max[operand][i] == -(double)INFINITY)
            logs[i] = (double)NAN;
}

/* Divides the sums of rows by those of their exponentials. */
static bool normalize_sums(struct kl_workspace *b, const struct row_sums *sums,
                           struct kl_summed_rows *rows)
{
    bool logits[KL_OPERANDS] = {kl_is_logit(b->job, KL_INPUT), kl_is_logit(b->job, KL_TARGET)},
         all = true;
    const double *const exps[] = {sums->exps, sums->sum_p};
    size_t n = b->group->rows;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (!logits[i])
            kl_fill(b->log_sum_exp[i], 0, n);
        else
            find_log_sums(b, i, exps[i]);
    for (size_t i = 0; i < n; i++) { /* a softmax's sum is 1 */
        double loss = sums->losses[i];
        rows->sum_p[i] = logits[KL_TARGET] ? 1 : sums->sum_p[i];
        if (logits[KL_TARGET])
            loss /= sums->sum_p[i];
        loss -= rows->sum_p[i] * (b->log_sum_exp[KL_TARGET][i] - b->log_sum_exp[KL_INPUT][i]);
        rows->losses[i] = loss;
        rows->known[i] = rows->has_grads[i] = true;
        if (!isfinite(loss))
            all &= check_row(b, i, rows);
    }
    return all;
}

/* ---- One row, by the online softmax, from the operands as they are */

struct running_sums {
    struct kl_shift shifts[KL_OPERANDS];
    struct kl_sum losses, sum_p, exps;
};

/* Moves the sums to a greater maximum. The losses are sums of P (p - q): they change with q, too. */
static void rescale_sums(struct running_sums *running, int operand, double max)
{
    struct kl_shift *shift = &running->shifts[operand];
    double before = shift->offset;
    if (!(max > before))
        return;
    shift->offset = max;
    if (!isfinite(before))
        return;
    double less = (before - max) * shift->scale, factor = exp(less);
    kl_sum_add(&running->losses,
               (operand == KL_TARGET ? less : -less) * kl_sum_value(running->sum_p));
    if (operand == KL_INPUT) {
        scale_sum(&running->exps, factor);
    } else {
        scale_sum(&running->losses, factor);
        scale_sum(&running->sum_p, factor);
    }
}

/* True if both operands are logits, and no target is a sentinel. */
static bool are_logits(const struct kl_workspace *b)
{
    return kl_is_logit(b->job, KL_INPUT) && kl_is_logit(b->job, KL_TARGET) && isnan(b->sentinel);
}

/* True if a NaN ends the sums of a row: they are found again without the sentinel. */
static bool ends_at_nan(const struct kl_workspace *b)
{
    return b->job->rule == KL_LOGIT_PYTORCH && !isnan(b->sentinel);
}

/* Gives the places of a tile's cached exponentials. p and q are NULL if a row of several tiles has no row_cache. */
static struct kl_cached_exps cached_exps(struct kl_workspace *b, const struct kl_tile *tile,
                                         size_t row)
{
    size_t n = b->group->end - b->group->start, at = tile->start - b->group->start;
    if (b->single)
        return (struct kl_cached_exps){b->v[KL_TARGET] + row * tile->length,
                                       b->v[KL_INPUT] + row * tile->length, NULL};
    return (struct kl_cached_exps){b->row_cache ? b->row_cache + at : NULL,
                                   b->row_cache ? b->row_cache + n + at : NULL,
                                   b->tile_offsets[at / b->job->tile.length]};
}

static struct kl_row_sums sum_logits(struct kl_workspace *b, const struct kl_tile *tile, size_t row,
                                     const struct kl_shift shifts[KL_OPERANDS],
                                     const struct kl_cached_exps *cached)
{
    enum kl_dtype dtype = b->job->plan->dtype;
    size_t at = row * tile->length * kl_dtype_size(dtype);
    return b->job->kernel->logit_sums[dtype]((const char *)kl_operand(b, tile, KL_INPUT) + at,
                                             (const char *)kl_operand(b, tile, KL_TARGET) + at,
                                             shifts, cached->p, cached->q, tile->length);
}

/* The shift of an operand: by 0 for a maximum of -inf, as all exponentials are 0. */
static struct kl_shift finite_shift(double max, double scale)
{
    return (struct kl_shift){max == -(double)INFINITY ? 0 : max, scale};
}

struct kl_cached_exps kl_exps_of(struct kl_workspace *b, const struct kl_tile *tile, size_t row)
{
    struct kl_cached_exps cached = cached_exps(b, tile, row);
    if (cached.p)
        return cached;
    double scale = scale_of(b, KL_INPUT);
    const struct kl_shift shifts[] = {finite_shift(cached.offsets[KL_INPUT], scale),
                                      finite_shift(cached.offsets[KL_TARGET], scale)};
    cached.p = b->v[KL_TARGET], cached.q = b->v[KL_INPUT];
    sum_logits(b, tile, row, shifts, &cached);
    return cached;
}

/* Adds the elements of a row of a tile. Their exponentials are cached if b->has_exps. */
static void add_elements(struct kl_workspace *b, struct running_sums *running,
                         const struct kl_tile *tile, size_t row)
{
    const struct kl_job *job = b->job;
    enum kl_dtype dtype = job->plan->dtype;
    size_t n = tile->length, at = row * n * kl_dtype_size(dtype);
    const void *const operands[] = {(const char *)kl_operand(b, tile, KL_INPUT) + at,
                                    (const char *)kl_operand(b, tile, KL_TARGET) + at};
    struct kl_cached_exps cached = {NULL, NULL, NULL};
    struct kl_shift shifts[KL_OPERANDS];
    if (b->has_exps)
        cached = cached_exps(b, tile, row);
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (kl_is_logit(job, i))
            rescale_sums(running, i, job->kernel->row_max[dtype](operands[i], n));
        if (cached.offsets)
            cached.offsets[i] = running->shifts[i].offset;
        shifts[i] = finite_shift(running->shifts[i].offset, running->shifts[i].scale);
    }
    struct kl_row_sums more = are_logits(b)
                                  ? sum_logits(b, tile, row, shifts, &cached)
                                  : job->kernel->row_sums[dtype][kl_rule_is_log(job->rule)](
                                        kl_is_logit(job, KL_INPUT), b->sentinel, operands[KL_INPUT],
                                        operands[KL_TARGET], shifts, n);
    kl_sum_add(&running->losses, more.losses);
    kl_sum_add(&running->sum_p, more.sum_p);
    kl_sum_add(&running->exps, more.exps);
}

static void sum_row(struct kl_workspace *b, size_t row, struct row_sums *sums)
{
    struct running_sums running = {.losses = {0, 0}, .sum_p = {0, 0}, .exps = {0, 0}};
    for (int i = 0; i < KL_OPERANDS; i++) {
        double by = kl_is_logit(b->job, i) ? -(double)INFINITY : 0;
        running.shifts[i] = (struct kl_shift){by, scale_of(b, i)};
    }
    KL_FOR_EACH_TILE (b, tile) {
        add_elements(b, &running, &tile, row);
        if (ends_at_nan(b) && isnan(running.losses.high)) {
            running.sum_p = running.exps = (struct kl_sum){1, 0};
            running.shifts[KL_INPUT].offset = running.shifts[KL_TARGET].offset = 0;
            break;
        }
    }
    sums->losses[row] = kl_sum_value(running.losses);
    sums->sum_p[row] = kl_sum_value(running.sum_p);
    sums->exps[row] = kl_sum_value(running.exps);
    for (int i = 0; i < KL_OPERANDS; i++)
        b->row_max[i][row] = running.shifts[i].offset;
}

/* Gives a masked row sums that are finite: its loss is 1 until it is masked. */
static void skip_row(struct kl_workspace *b, size_t row, struct row_sums *sums)
{
    b->row_max[KL_INPUT][row] = b->row_max[KL_TARGET][row] = 0;
    sums->losses[row] = sums->sum_p[row] = sums->exps[row] = 1;
}

/* ---- Several rows of few logits of both operands */

/* MIN_SHORT: rows of so many logits of both operands take less time several at once than as a block. */
enum { MIN_SHORT = 13 };

static bool are_short(const struct kl_job *job)
{
    size_t length = job->layout->inner.volume;
    return length >= MIN_SHORT && length <= job->kernel->max_short && kl_is_logit(job, KL_INPUT) &&
           kl_is_logit(job, KL_TARGET) && !kl_is_mixture(job->plan) && !job->tile.columns;
}

static void sum_short_rows(struct kl_workspace *b, struct row_sums *sums)
{
    const struct kl_tile tile = kl_tile_at(b, b->group->start);
    const struct kl_short_sums to = {.row_max = {b->row_max[KL_INPUT], b->row_max[KL_TARGET]},
                                     .losses = sums->losses,
                                     .sum_p = sums->sum_p,
                                     .exps = sums->exps,
                                     .cached_p = b->has_exps ? b->v[KL_TARGET] : NULL,
                                     .cached_q = b->has_exps ? b->v[KL_INPUT] : NULL};
    b->job->kernel->short_sums[b->job->plan->dtype](
        kl_operand(b, &tile, KL_INPUT), kl_operand(b, &tile, KL_TARGET), scale_of(b, KL_INPUT),
        b->sentinel, &to, tile.rows, tile.length);
    for (size_t i = 0; i < tile.rows; i++)
        if (kl_is_row_masked(b, i)) {
            skip_row(b, i, sums);
        } else if (ends_at_nan(b) && isnan(sums->losses[i])) {
            sums->sum_p[i] = sums->exps[i] = 1;
            b->row_max[KL_INPUT][i] = b->row_max[KL_TARGET][i] = 0;
        }
}

/* ---- Several rows, as blocks: a pass for the maxima, and one for the sums */

/* The terms of the sums go to losses, grads and scratch. */
static void add_tile(struct kl_workspace *b, const struct kl_tile *tile, struct row_sums *high,
                     struct row_sums *low)
{
    const struct kl_job *job = b->job;
    for (int i = 0; i < KL_OPERANDS; i++)
        (kl_is_logit(job, i) ? load_shifted : kl_load_operand)(b, tile, i);
    job->kernel->softmax_terms[kl_rule_is_log(job->rule)](
        job->plan->dtype == KL_FLOAT64, b->sentinel, b->v[KL_INPUT], b->v[KL_TARGET], b->losses,
        b->grads, b->scratch, kl_tile_size(tile));
    kl_add_to_rows(b->job->kernel, tile, b->losses, high->losses, low->losses);
    kl_add_to_rows(b->job->kernel, tile, b->grads, high->sum_p, low->sum_p);
    kl_add_to_rows(b->job->kernel, tile, b->scratch, high->exps, low->exps);
}

static void clear_sums(struct row_sums *sums, size_t rows)
{
    kl_fill(sums->losses, 0, rows);
    kl_fill(sums->sum_p, 0, rows);
    kl_fill(sums->exps, 0, rows);
}

static void sum_rows(struct kl_workspace *b, struct row_sums *sums)
{
    struct row_sums low;
    const size_t rows = b->group->rows;
    clear_sums(sums, rows);
    clear_sums(&low, rows);
    for (int i = 0; i < KL_OPERANDS; i++)
        if (kl_is_logit(b->job, i))
            find_row_max(b, i);
    KL_FOR_EACH_TILE (b, tile)
        add_tile(b, &tile, sums, &low);
    for (size_t i = 0; i < rows; i++) { /* losses alone may be infinite */
        sums->losses[i] = kl_sum_value((struct kl_sum){sums->losses[i], low.losses[i]});
        sums->sum_p[i] += low.sum_p[i];
        sums->exps[i] += low.exps[i];
        if (kl_is_row_masked(b, i))
            skip_row(b, i, sums);
    }
}

/* True if derivatives are by input alone, and exponentials are of use for them; those of float64 need exponentials below
 * exp(-700), too. */
static bool grads_take_exps(const struct kl_job *job)
{
    return kl_is_wanted(job, KL_INPUT) && !kl_is_wanted(job, KL_TARGET) &&
           job->plan->dtype != KL_FLOAT64 && !kl_is_mixture(job->plan);
}

/* True if the workspace has room for the offsets of a row's tiles. */
static bool has_few_tiles(const struct kl_job *job)
{
    return job->layout->inner.volume <= KL_MAX_CACHED / KL_BLOCK * job->tile.length;
}

static bool wants_exps(const struct kl_workspace *b)
{
    const struct kl_job *job = b->job;
    return are_logits(b) &&
           (grads_take_exps(job) ? has_few_tiles(job) : b->single && kl_is_mixture(job->plan));
}

size_t kl_exps_cache_size(const struct kl_job *job)
{
    size_t n = job->layout->inner.volume;
    bool caches = grads_take_exps(job) && kl_is_logit(job, KL_INPUT) &&
                  kl_is_logit(job, KL_TARGET) && n > job->tile.length && has_few_tiles(job) &&
                  !kl_sums_blocks(job) && kl_are_losses_alike(job);
    return caches ? KL_OPERANDS * n * sizeof(double) : 0;
}

bool kl_sums_blocks(const struct kl_job *job)
{
    return job->tile.columns ||
           (job->layout->inner.volume < KL_MIN_ROWWISE_LENGTH && !are_short(job));
}

bool kl_find_row_sums(struct kl_workspace *b, bool caches, struct kl_summed_rows *rows)
{
    struct row_sums sums;
    bool as_block = kl_sums_blocks(b->job);
    b->has_exps = caches && !as_block && wants_exps(b);
    if (as_block)
        sum_rows(b, &sums);
    else if (are_short(b->job))
        sum_short_rows(b, &sums);
    else
        for (size_t i = 0; i < b->group->rows; i++)
            if (kl_is_row_masked(b, i))
                skip_row(b, i, &sums);
            else
                sum_row(b, i, &sums);
    bool all = normalize_sums(b, &sums, rows);
    if (b->has_exps)
        b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED; /* v holds exponentials */
    return all;
}
