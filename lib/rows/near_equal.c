/* Losses of rows of logits whose two softmaxes nearly agree, where the sums of softmax.c cancel.
 *
 * With w the softmax of target and d = log(p / q), the divergence is sum(w d), and sum(w expm1(-d))
 * is 0. So it is also sum(w (d + expm1(-d))), of terms near d^2 / 2 that are never negative: the k3 estimator
 * (Schulman, "Approximating KL divergence", 2020), here not of samples, but of the whole sum. The terms of
 * sum(w d) are near d and cancel to d^2, which leaves no digit of a divergence below 2^-53; these do not cancel at
 * all. A d that is off by a constant makes E = sum(w expm1(-d)) other than 0, and log1p(E) - E is the
 * difference that it makes. It takes another pass over such rows' tiles, with an exponential or two an element and a
 * series of 14 terms (close_terms of simd/blocks.h). */
#include "lib/rows/softmax.h"

/* CLOSE: the loss, in nats, below which the sums of softmax.c leave fewer than 27 bits. */
static const double CLOSE = 0x1p-20;

/* True if row i of a tile is the same in both operands, bit by bit. */
static bool is_same_row(const struct kl_tile *tile, const char *input, const char *target, size_t i,
                        size_t size)
{
    if (!tile->columns)
        return memcmp(input + i * tile->length * size, target + i * tile->length * size,
                      tile->length * size) == 0;
    for (size_t j = 0; j < tile->length; j++) {
        size_t at = (j * tile->rows + i) * size;
        if (memcmp(input + at, target + at, size) != 0)
            return false;
    }
    return true;
}

/* True for a row whose operands are the same, as in padding: its loss is 0, without another sum. */
static bool is_same(struct kl_workspace *b, size_t row)
{
    size_t size = kl_dtype_size(b->job->plan->dtype);
    KL_FOR_EACH_TILE (b, tile) {
        const char *input = kl_operand(b, &tile, KL_INPUT);
        if (!is_same_row(&tile, input, kl_operand(b, &tile, KL_TARGET), row, size))
            return false;
    }
    return true;
}

/* MAX_ZERO: the exponential of what is below it is 0. */
static const double MAX_ZERO = -746;

/* True for a row of a tile of shifted logits that are 0 at the same elements in both operands, and elsewhere so
 * low that softmaxes are 0: its loss is 0. */
static bool is_one_hot(const struct kl_workspace *b, const struct kl_tile *tile, size_t row)
{
    size_t step = tile->columns ? tile->rows : 1;
    const double *x = b->v[KL_INPUT] + row * (tile->columns ? 1 : tile->length);
    const double *t = b->v[KL_TARGET] + row * (tile->columns ? 1 : tile->length);
    unsigned is_zero = 1; /* without branches, which no CPU predicts here */
    for (size_t i = 0; i < tile->length; i++, x += step, t += step)
        is_zero &= ((*x == 0) & (*t == 0)) | ((*x < MAX_ZERO) & (*t < MAX_ZERO));
    return is_zero;
}

/* close_rows: the rows of a group that are summed again, and of each the maximum and the log-sum-exp of both operands. */
struct close_rows {
    size_t n, rows[KL_ROWS];
    double row_max[KL_OPERANDS][KL_ROWS], log_sum_exp[KL_OPERANDS][KL_ROWS];
};

/* Finds the rows whose losses are too small for the sums of softmax.c, which may find 0 for rows that differ. */
static size_t find_close(struct kl_workspace *b, const double *losses, size_t *rows)
{
    const struct kl_tile first = kl_tile_at(b, b->group->start);
    bool shifted = b->single && b->stage[KL_INPUT] == KL_SHIFTED, is_zero;
    size_t n = 0;
    for (size_t i = 0; i < b->group->rows; i++) {
        is_zero = losses[i] == 0 && ((shifted && is_one_hot(b, &first, i)) || is_same(b, i));
        if (fabs(losses[i]) < CLOSE && !is_zero)
            rows[n++] = i;
    }
    return n;
}

/* log1p(r) - r, which cancels where r is small. */
static double log1p_rest(double r)
{
    return fabs(r) < 0x1p-12 ? -r * r * (0.5 - r * (1 / 3.0 - r * (0.25 - r / 5))) : log1p(r) - r;
}

/* Moves the rows of a tile that are close to its front, and leaves out the others. */
static void compact(double *v, const struct kl_tile *tile, const struct close_rows *close)
{
    if (close->n == tile->rows)
        return;
    for (size_t j = 0; tile->columns && j < tile->length; j++)
        for (size_t i = 0; i < close->n; i++)
            v[j * close->n + i] = v[j * tile->rows + close->rows[i]];
    for (size_t i = 0; !tile->columns && i < close->n; i++)
        memmove(v + i * tile->length, v + close->rows[i] * tile->length, tile->length * sizeof *v);
}

/* Loads a tile's close rows, w of which go to b->scratch, and log q to b->losses. Maxima are subtracted before
 * anything else, for they may be large. */
static struct kl_tile load_terms(struct kl_workspace *b, const struct kl_tile *whole,
                                 const struct close_rows *close)
{
    double scale = 1 / b->job->plan->temperature;
    double *const logs[KL_OPERANDS] = {b->losses, b->scratch};
    struct kl_tile tile = *whole;
    tile.rows = close->n;
    size_t n = kl_tile_size(&tile);
    for (int i = 0; i < KL_OPERANDS; i++) {
        kl_load_operand(b, whole, i);
        compact(b->v[i], whole, close);
        memcpy(logs[i], b->v[i], n * sizeof *logs[i]);
        kl_shift_rows(b, &tile, logs[i], close->row_max[i], close->log_sum_exp[i], scale);
    }
    b->job->kernel->exps(b->scratch, b->scratch, n);
    return tile;
}

static void set_rows(const struct kl_workspace *b, struct close_rows *close)
{
    for (size_t i = 0; i < close->n; i++) {
        size_t row = close->rows[i];
        for (int operand = 0; operand < KL_OPERANDS; operand++) {
            close->row_max[operand][i] = b->row_max[operand][row];
            close->log_sum_exp[operand][i] = b->log_sum_exp[operand][row];
        }
    }
}

/* w (d + expm1(-d)) of a tile to b->losses, and w expm1(-d), which is q - w, to b->grads. */
static void compute_terms(struct kl_workspace *b, const struct kl_tile *tile,
                          struct close_rows *close)
{
    const struct kl_close_rows rows = {
        .ratios = kl_log_ratios_of(b, tile, close->row_max, close->log_sum_exp, b->grads),
        .p = b->scratch,
        .log_q = b->losses};
    b->job->kernel->close_terms(&rows, b->losses, b->grads, kl_tile_size(tile));
}

/* Out of line, so that other rows do not have its arrays on their stack. */
static __attribute__((noinline)) void sum_again(struct kl_workspace *b, double *losses)
{
    double high[KL_ROWS], low[KL_ROWS], rest_high[KL_ROWS], rest_low[KL_ROWS];
    double *const sums[] = {high, low, rest_high, rest_low};
    struct close_rows close;
    close.n = find_close(b, losses, close.rows);
    if (close.n == 0)
        return;
    set_rows(b, &close);
    for (int i = 0; i < 4; i++)
        kl_fill(sums[i], 0, close.n);
    KL_FOR_EACH_TILE (b, whole) {
        struct kl_tile tile = load_terms(b, &whole, &close);
        compute_terms(b, &tile, &close);
        kl_add_to_rows(b->job->kernel, &tile, b->losses, high, low);
        kl_add_to_rows(b->job->kernel, &tile, b->grads, rest_high, rest_low);
        b->stage[KL_INPUT] = b->stage[KL_TARGET] = KL_NOT_LOADED; /* v holds close rows alone */
    }
    for (size_t i = 0; i < close.n; i++) {
        double loss = high[i] + low[i] + log1p_rest(rest_high[i] + rest_low[i]);
        if (isfinite(loss))
            losses[close.rows[i]] = loss;
    }
    b->has_exps = false;
}

void kl_sum_near_equal(struct kl_workspace *b, double *losses)
{
    bool any = false;
    if (!kl_is_logit(b->job, KL_INPUT) || !kl_is_logit(b->job, KL_TARGET))
        return;
    for (size_t i = 0; i < b->group->rows; i++)
        any |= fabs(losses[i]) < CLOSE;
    if (any)
        sum_again(b, losses);
}
