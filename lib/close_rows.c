/* Losses of rows of logits whose two softmaxes nearly agree, where the sums of logits.c cancel.
 *
 * With w a softmax of target and d = log(p / q), the divergence is sum(w d), and sum(w expm1(-d))
 * is 0. So it is also sum(w (d + expm1(-d))), of terms near d^2 / 2 that are never negative. A d
 * that is off by a constant makes E = sum(w expm1(-d)) other than 0, and log1p(E) - E is the
 * difference that it makes. */
#include "lib/scratch.h"

#include <math.h>
#include <string.h>

/* CLOSE: the loss, in nats, below which the sums of logits.c leave fewer than 27 bits. */
static const double CLOSE = 0x1p-20;

static bool any_close(const double *losses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (losses[i] != 0 && fabs(losses[i]) < CLOSE)
            return true;
    return false;
}

/* SERIES_MOST: |d| up to which the series of d + expm1(-d) is within 2^-50 of itself. */
static const double SERIES_MOST = 0x1p-4;

static double series(double d)
{
    double sum = 1 / 3628800.0;
    sum = 1 / 362880.0 - d * sum;
    sum = 1 / 40320.0 - d * sum;
    sum = 1 / 5040.0 - d * sum;
    sum = 1 / 720.0 - d * sum;
    sum = 1 / 120.0 - d * sum;
    sum = 1 / 24.0 - d * sum;
    sum = 1 / 6.0 - d * sum;
    return d * d * (0.5 - d * sum);
}

/* log1p(r) - r, which cancels where r is small. */
static double log1p_rest(double r)
{
    return fabs(r) < 0x1p-12 ? -r * r * (0.5 - r * (1 / 3.0 - r * (0.25 - r / 5))) : log1p(r) - r;
}

/* w of a tile to s->spare, d to s->grads. */
static void load_terms(struct kl_scratch *s, const struct kl_tile *tile, const double *shift)
{
    double scale = 1 / s->job->plan->temperature;
    size_t n = kl_tile_size(tile);
    memcpy(s->spare, s->v[KL_TARGET], n * sizeof *s->spare);
    kl_shift_rows(s, tile, s->spare, s->row_max[KL_TARGET], s->log_sum_exp[KL_TARGET], scale);
    s->job->kernel->exps(s->spare, s->spare, n);
    for (size_t i = 0; i < n; i++)
        s->grads[i] = (s->v[KL_TARGET][i] - s->v[KL_INPUT][i]) * scale;
    kl_shift_rows(s, tile, s->grads, kl_zeros, shift, 1);
}

/* w (d + expm1(-d)) of a tile to s->losses, and w expm1(-d) to s->grads. */
static void compute_terms(struct kl_scratch *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double w = s->spare[i], d = s->grads[i], e = 0;
        if (fabs(d) <= SERIES_MOST)
            e = series(d);
        else if (w > 0)
            e = d + expm1(-d);
        s->losses[i] = w * e;
        s->grads[i] = w > 0 ? w * (e - d) : 0;
    }
}

/* Out of line, so that other rows do not clear its arrays. */
static __attribute__((noinline)) void sum_again(struct kl_scratch *s, double *losses)
{
    double shift[KL_ROWS] = {0}, high[KL_ROWS] = {0}, low[KL_ROWS] = {0};
    double rest_high[KL_ROWS] = {0}, rest_low[KL_ROWS] = {0};
    size_t n = s->group->rows;
    for (size_t i = 0; i < s->rows; i++)
        shift[i] =
            (s->row_max[KL_TARGET][i] - s->row_max[KL_INPUT][i]) / s->job->plan->temperature +
            s->log_sum_exp[KL_TARGET][i] - s->log_sum_exp[KL_INPUT][i];
    KL_FOR_EACH_TILE (s, tile) {
        kl_load_operand(s, &tile, KL_INPUT);
        kl_load_operand(s, &tile, KL_TARGET);
        load_terms(s, &tile, shift);
        compute_terms(s, kl_tile_size(&tile));
        kl_add_to_rows(s, &tile, s->losses, high, low);
        kl_add_to_rows(s, &tile, s->grads, rest_high, rest_low);
    }
    for (size_t i = 0; i < n; i++) {
        double rest = rest_high[i] + rest_low[i];
        double loss = high[i] + low[i] + log1p_rest(rest);
        if (losses[i] != 0 && fabs(losses[i]) < CLOSE && isfinite(loss))
            losses[i] = loss;
    }
}

void kl_sum_close_rows(struct kl_scratch *s, double *losses)
{
    bool logits = kl_is_logit(s->job, KL_INPUT) && kl_is_logit(s->job, KL_TARGET);
    if (logits && any_close(losses, s->group->rows))
        sum_again(s, losses);
}
