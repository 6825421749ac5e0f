/* Losses of rows of logits whose two softmaxes nearly agree, where the sums of softmax.c cancel.
 *
 * With w the softmax of target and d = log(p / q), the divergence is sum(w d), and sum(w expm1(-d))
 * is 0. So it is also sum(w (d + expm1(-d))), of terms near d^2 / 2 that are never negative: the k3 estimator
 * (Schulman, "Approximating KL divergence", 2020), here not of samples, but of the whole sum. The terms of
 * sum(w d) are near d and cancel to d^2, which leaves no digit of a divergence below 2^-53; these do not cancel at
 * all. A d that is off by a constant makes E = sum(w expm1(-d)) other than 0, and log1p(E) - E is the
 * difference that it makes. It takes another pass, with an exponential an element and a series of 9 terms or an
 * expm1, of such rows alone. */
#include "lib/softmax.h"

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

/* True if a loss is too small for the sums of softmax.c. They may find 0 for rows that differ. */
static bool any_close(struct kl_workspace *b, const double *losses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(losses[i]) < CLOSE && (losses[i] != 0 || !is_same(b, i)))
            return true;
    return false;
}

/* MAX_SERIES: |d| up to which the Taylor series of d + expm1(-d) is within 2^-50 of itself. */
static const double MAX_SERIES = 0x1p-4;

static double series(double d)
{
    static const double inverse_factorials[] = {1 / 3628800.0, 1 / 362880.0, 1 / 40320.0,
                                                1 / 5040.0,    1 / 720.0,    1 / 120.0,
                                                1 / 24.0,      1 / 6.0,      1 / 2.0};
    double sum = 0;
    for (size_t i = 0; i < sizeof inverse_factorials / sizeof *inverse_factorials; i++)
        sum = inverse_factorials[i] - d * sum;
    return d * d * sum;
}

/* log1p(r) - r, which cancels where r is small. */
static double log1p_rest(double r)
{
    return fabs(r) < 0x1p-12 ? -r * r * (0.5 - r * (1 / 3.0 - r * (0.25 - r / 5))) : log1p(r) - r;
}

/* FAR: |d| above which q is not computed from w, but from its own logarithm: where w is 0, all of q counts. */
static const double FAR = 30;

static struct kl_sum difference(double a, double b)
{
    struct kl_sum sum = {a, 0};
    kl_sum_add(&sum, -b);
    return sum;
}

/* (t - x) less that of the rows' maxima, both with their rounding errors: logits may be large, and
 * their differences small. */
static void load_differences(struct kl_workspace *b, const struct kl_tile *tile)
{
    double high[KL_ROWS], low[KL_ROWS], scale = 1 / b->job->plan->temperature;
    for (size_t i = 0; i < tile->rows; i++) {
        struct kl_sum of_max = difference(b->row_max[KL_TARGET][i], b->row_max[KL_INPUT][i]);
        high[i] = of_max.high, low[i] = of_max.low;
    }
    kl_broadcast(b->job->kernel, tile, high, b->row_values[0]);
    kl_broadcast(b->job->kernel, tile, low, b->row_values[1]);
    for (size_t i = 0; i < kl_tile_size(tile); i++) {
        struct kl_sum d = difference(b->v[KL_TARGET][i], b->v[KL_INPUT][i]);
        b->grads[i] = ((d.high - b->row_values[0][i]) + (d.low - b->row_values[1][i])) * scale;
    }
}

/* w of a tile to b->scratch, d to b->grads, log q to b->losses. Maxima are subtracted before anything
 * else, for they may be large. */
static void load_terms(struct kl_workspace *b, const struct kl_tile *tile)
{
    double scale = 1 / b->job->plan->temperature;
    size_t n = kl_tile_size(tile);
    double *const logs[KL_OPERANDS] = {b->losses, b->scratch};
    for (int i = 0; i < KL_OPERANDS; i++) {
        memcpy(logs[i], b->v[i], n * sizeof *logs[i]);
        kl_shift_rows(b, tile, logs[i], b->row_max[i], NULL, scale);
    }
    load_differences(b, tile);
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_shift_rows(b, tile, logs[i], NULL, b->log_sum_exp[i], 1);
    b->job->kernel->exps(b->scratch, b->scratch, n);
}

/* w (d + expm1(-d)) of a tile to b->losses, and w expm1(-d), which is q - w, to b->grads. */
static void compute_terms(struct kl_workspace *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double w = b->scratch[i], d = b->grads[i];
        if (fabs(d) <= MAX_SERIES) {
            double e = series(d);
            b->losses[i] = w * e;
            b->grads[i] = w * (e - d);
        } else if (fabs(d) <= FAR) {
            double rest = expm1(-d);
            b->losses[i] = w * (d + rest);
            b->grads[i] = w * rest;
        } else {
            double q = exp(b->losses[i]);
            b->losses[i] = (w > 0 ? w * d : 0) + (q - w);
            b->grads[i] = q - w;
        }
    }
}

/* Out of line, so that other rows do not clear its arrays. */
static __attribute__((noinline)) void sum_again(struct kl_workspace *b, double *losses)
{
    double shift[KL_ROWS] = {0}, high[KL_ROWS] = {0}, low[KL_ROWS] = {0};
    double rest_high[KL_ROWS] = {0}, rest_low[KL_ROWS] = {0};
    size_t n = b->group->rows;
    for (size_t i = 0; i < n; i++)
        shift[i] = b->log_sum_exp[KL_TARGET][i] - b->log_sum_exp[KL_INPUT][i];
    KL_FOR_EACH_TILE (b, tile) {
        kl_load_operand(b, &tile, KL_INPUT);
        kl_load_operand(b, &tile, KL_TARGET);
        load_terms(b, &tile);
        kl_shift_rows(b, &tile, b->grads, NULL, shift, 1);
        compute_terms(b, kl_tile_size(&tile));
        kl_add_to_rows(b->job->kernel, &tile, b->losses, high, low);
        kl_add_to_rows(b->job->kernel, &tile, b->grads, rest_high, rest_low);
    }
    for (size_t i = 0; i < n; i++) {
        double rest = rest_high[i] + rest_low[i];
        double loss = high[i] + low[i] + log1p_rest(rest);
        if (fabs(losses[i]) < CLOSE && isfinite(loss))
            losses[i] = loss;
    }
}

void kl_sum_near_equal(struct kl_workspace *b, double *losses)
{
    bool logits = kl_is_logit(b->job, KL_INPUT) && kl_is_logit(b->job, KL_TARGET);
    bool of_one = b->job->layout->inner.volume == 1; /* of which the sums find 0 */
    if (logits && !of_one && any_close(b, losses, b->group->rows)) {
        sum_again(b, losses);
        b->has_exps = false; /* v holds the operands now */
    }
}
