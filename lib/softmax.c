/* The softmax of rows of logits, without writing it out. */
#include "lib/softmax.h"

static double scale_of(const struct kl_row_block *b, int operand)
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

static void find_row_max(struct kl_row_block *b, int operand)
{
    kl_fill(b->row_max[operand], -(double)INFINITY, b->group->rows);
    KL_FOR_EACH_TILE (b, tile) {
        kl_load_operand(b, &tile, operand);
        kl_find_maxima(b, &tile, b->v[operand], b->row_max[operand]);
    }
}

/* Loads a tile of logits less their row_max. */
static void load_shifted(struct kl_row_block *b, const struct kl_tile *tile, int operand)
{
    if (b->single && b->stage[operand] == KL_SHIFTED)
        return;
    kl_load_operand(b, tile, operand);
    kl_shift_rows(b, tile, b->v[operand], b->row_max[operand], NULL, scale_of(b, operand));
    b->stage[operand] = KL_SHIFTED;
}

void kl_find_softmax(struct kl_row_block *b, int operand)
{
    double sums[KL_ROWS];
    size_t rows = b->group->rows;
    find_row_max(b, operand);
    kl_fill(b->high, 0, rows);
    kl_fill(b->low, 0, rows);
    KL_FOR_EACH_TILE (b, tile) {
        load_shifted(b, &tile, operand);
        b->job->kernel->exps(b->v[operand], b->spare, kl_tile_size(&tile));
        kl_add_to_rows(b, &tile, b->spare, b->high, b->low);
    }
    for (size_t i = 0; i < rows; i++)
        sums[i] = kl_sum_value((struct kl_sum){b->high[i], b->low[i]});
    b->job->kernel->logs(sums, b->log_sum_exp[operand], rows);
}

void kl_load_log_softmax(struct kl_row_block *b, const struct kl_tile *tile, int operand)
{
    load_shifted(b, tile, operand);
    kl_shift_rows(b, tile, b->v[operand], NULL, b->log_sum_exp[operand], 1);
    b->stage[operand] = KL_LOG_PROBS;
}

/* ---- Parts. With P and Q the exponentials of a row's shifted logits p and q, the sum of P/sum(P)
 * (log(P/sum(P)) - log(Q/sum(Q))) is that of P (p - q) over sum(P), less log sum(P) - log sum(Q);
 * likewise where one operand is no logits, and its logarithm is not taken of a sum. */

/* row_sums: of rows, sums of losses, of probabilities of target and of exponentials of input, not yet
 * divided by those of exponentials. */
struct row_sums {
    double losses[KL_ROWS], sum_p[KL_ROWS], exps[KL_ROWS];
};

/* Divides the sums of rows by those of their exponentials. */
static bool normalize_sums(struct kl_row_block *b, const struct row_sums *sums, double *losses,
                           double *sum_p)
{
    bool logits[KL_OPERANDS] = {kl_is_logit(b->job, KL_INPUT), kl_is_logit(b->job, KL_TARGET)},
         good = true;
    const double *const exps[] = {sums->exps, sums->sum_p};
    size_t n = b->group->rows;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (!logits[i])
            kl_fill(b->log_sum_exp[i], 0, n);
        else
            b->job->kernel->logs(exps[i], b->log_sum_exp[i], n);
    for (size_t i = 0; i < n; i++) {
        double total = logits[KL_TARGET] ? sums->sum_p[i] : 1;
        sum_p[i] = sums->sum_p[i] / total;
        losses[i] = sums->losses[i] / total -
                    sum_p[i] * (b->log_sum_exp[KL_TARGET][i] - b->log_sum_exp[KL_INPUT][i]);
        good &= isfinite(losses[i]) || kl_is_hidden(b, i);
    }
    return good;
}

/* ---- One row, straight from the operands: a tile with a new maximum scales the sums down. */

struct running_sums {
    struct kl_shift shifts[KL_OPERANDS];
    struct kl_sum losses, sum_p, exps;
};

/* Moves to a new maximum. */
static void raise_shift(struct running_sums *running, int operand, double most)
{
    struct kl_shift *shift = &running->shifts[operand];
    double before = shift->by;
    if (!(most > before))
        return;
    shift->by = most;
    if (!isfinite(before))
        return;
    double less = (before - most) * shift->scale, factor = exp(less);
    kl_sum_add(&running->losses,
               (operand == KL_TARGET ? less : -less) * kl_sum_value(running->sum_p));
    if (operand == KL_INPUT) {
        scale_sum(&running->exps, factor);
    } else {
        scale_sum(&running->losses, factor);
        scale_sum(&running->sum_p, factor);
    }
}

/* True if both operands are logits, of which none is refused. */
static bool are_logits(const struct kl_row_block *b)
{
    return kl_is_logit(b->job, KL_INPUT) && kl_is_logit(b->job, KL_TARGET) && isnan(b->refused);
}

/* Adds elements that lie side by side. Their exponentials are kept in a group that is a single tile,
 * from `at` on, where derivatives by input alone want them. */
static void add_elements(struct kl_row_block *b, struct running_sums *running,
                         const void *const operands[KL_OPERANDS], size_t at, size_t n)
{
    const struct kl_job *job = b->job;
    enum kl_dtype dtype = job->plan->dtype;
    struct kl_shift shifts[KL_OPERANDS]; /* of finite numbers: exponentials of -inf are 0 */
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (kl_is_logit(job, i))
            raise_shift(running, i, job->kernel->row_max[dtype](operands[i], n));
        shifts[i] = running->shifts[i];
        shifts[i].by = shifts[i].by == -(double)INFINITY ? 0 : shifts[i].by;
    }
    struct kl_row_sums more =
        are_logits(b)
            ? job->kernel->logit_sums[dtype](operands[KL_INPUT], operands[KL_TARGET], shifts,
                                             b->has_exps ? b->v[KL_TARGET] + at : NULL,
                                             b->has_exps ? b->v[KL_INPUT] + at : NULL, n)
            : job->kernel->row_sums[dtype][kl_rule_is_log(job->rule)](
                  kl_is_logit(job, KL_INPUT), b->refused, operands[KL_INPUT], operands[KL_TARGET],
                  shifts, n);
    kl_sum_add(&running->losses, more.losses);
    kl_sum_add(&running->sum_p, more.sum_p);
    kl_sum_add(&running->exps, more.exps);
}

static void sum_row(struct kl_row_block *b, size_t row, struct row_sums *sums)
{
    struct running_sums running = {.losses = {0, 0}, .sum_p = {0, 0}, .exps = {0, 0}};
    size_t size = kl_dtype_size(b->job->plan->dtype);
    for (int i = 0; i < KL_OPERANDS; i++) {
        double by = kl_is_logit(b->job, i) ? -(double)INFINITY : 0;
        running.shifts[i] = (struct kl_shift){by, scale_of(b, i)};
    }
    KL_FOR_EACH_TILE (b, tile) {
        size_t at = row * tile.length * size;
        const void *const operands[] = {(const char *)kl_operand(b, &tile, KL_INPUT) + at,
                                        (const char *)kl_operand(b, &tile, KL_TARGET) + at};
        add_elements(b, &running, operands, row * tile.length, tile.length);
    }
    sums->losses[row] = kl_sum_value(running.losses);
    sums->sum_p[row] = kl_sum_value(running.sum_p);
    sums->exps[row] = kl_sum_value(running.exps);
    for (int i = 0; i < KL_OPERANDS; i++)
        b->row_max[i][row] = running.shifts[i].by;
}

/* ---- Several rows, as blocks */

/* Elements' shares of the sums go to losses, grads and spare. */
static void add_tile(struct kl_row_block *b, const struct kl_tile *tile, struct row_sums *high,
                     struct row_sums *low)
{
    const struct kl_job *job = b->job;
    for (int i = 0; i < KL_OPERANDS; i++)
        (kl_is_logit(job, i) ? load_shifted : kl_load_operand)(b, tile, i);
    job->kernel->softmax_terms[kl_rule_is_log(job->rule)](
        job->plan->dtype == KL_FLOAT64, b->refused, b->v[KL_INPUT], b->v[KL_TARGET], b->losses,
        b->grads, b->spare, kl_tile_size(tile));
    kl_add_to_rows(b, tile, b->losses, high->losses, low->losses);
    kl_add_to_rows(b, tile, b->grads, high->sum_p, low->sum_p);
    kl_add_to_rows(b, tile, b->spare, high->exps, low->exps);
}

static void sum_rows(struct kl_row_block *b, struct row_sums *sums)
{
    struct row_sums low = {.losses = {0}};
    *sums = low;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (kl_is_logit(b->job, i))
            find_row_max(b, i);
    KL_FOR_EACH_TILE (b, tile)
        add_tile(b, &tile, sums, &low);
    for (size_t i = 0; i < b->group->rows; i++) { /* what is not finite is of no use */
        sums->losses[i] += low.losses[i];
        sums->sum_p[i] += low.sum_p[i];
        sums->exps[i] += low.exps[i];
    }
}

/* True if derivatives want the exponentials, of which float64 keeps none that is below exp(-700). */
static bool wants_exps(const struct kl_row_block *b)
{
    const struct kl_job *job = b->job;
    return b->single && kl_is_wanted(job, KL_INPUT) && !kl_is_wanted(job, KL_TARGET) &&
           job->plan->dtype != KL_FLOAT64 && are_logits(b);
}

bool kl_find_row_sums(struct kl_row_block *b, bool keeps, double *losses, double *sum_p)
{
    struct row_sums sums;
    bool as_block = b->job->tile.columns || b->job->layout->along.volume < KL_ROW_ALONE;
    b->has_exps = keeps && !as_block && wants_exps(b);
    if (as_block)
        sum_rows(b, &sums);
    for (size_t i = 0; i < b->group->rows && !as_block; i++)
        sum_row(b, i, &sums);
    bool good = normalize_sums(b, &sums, losses, sum_p);
    for (int i = 0; i < KL_OPERANDS && b->has_exps; i++)
        b->stage[i] = KL_NOT_LOADED; /* v holds exponentials */
    if (good)
        kl_sum_close_rows(b, losses);
    return good;
}
