/* Losses of rows of logits whose two softmaxes nearly agree, where the sums of softmax.c cancel.
 *
 * With w the softmax of target and d = log(p / q), the divergence is sum(w d), and sum(w expm1(-d))
 * is 0. So it is also sum(w (d + expm1(-d))), of terms near d^2 / 2 that are never negative: the k3 estimator
 * (Schulman, "Approximating KL divergence", 2020), here not of samples, but of the whole sum. The terms of
 * sum(w d) are near d and cancel to d^2, which leaves no digit of a divergence below 2^-53; these do not cancel at
 * all. A d that is off by a constant makes E = sum(w expm1(-d)) other than 0, and log1p(E) - E is the
 * difference that it makes. It takes another pass over such rows' tiles, with an exponential or two an element and a
 * series of 14 terms (close_terms of simd/blocks.h). */
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

/* log1p(r) - r, which cancels where r is small. */
static double log1p_rest(double r)
{
    return fabs(r) < 0x1p-12 ? -r * r * (0.5 - r * (1 / 3.0 - r * (0.25 - r / 5))) : log1p(r) - r;
}

/* w of a tile to b->scratch, and log q to b->losses. Maxima are subtracted before anything else, for they may be
 * large. */
static void load_terms(struct kl_workspace *b, const struct kl_tile *tile)
{
    double scale = 1 / b->job->plan->temperature;
    size_t n = kl_tile_size(tile);
    double *const logs[KL_OPERANDS] = {b->losses, b->scratch};
    for (int i = 0; i < KL_OPERANDS; i++) {
        memcpy(logs[i], b->v[i], n * sizeof *logs[i]);
        kl_shift_rows(b, tile, logs[i], b->row_max[i], b->log_sum_exp[i], scale);
    }
    b->job->kernel->exps(b->scratch, b->scratch, n);
}

/* of_rows: of each row, the difference of the maxima in two numbers, and that of the logarithms of sums. */
struct of_rows {
    double maxima[2][KL_ROWS], shift[KL_ROWS];
};

static void set_rows(const struct kl_workspace *b, struct of_rows *rows)
{
    for (size_t i = 0; i < b->group->rows; i++) {
        struct kl_sum of_max = {b->row_max[KL_TARGET][i], 0};
        kl_sum_add(&of_max, -b->row_max[KL_INPUT][i]);
        rows->maxima[0][i] = of_max.high, rows->maxima[1][i] = of_max.low;
        rows->shift[i] = b->log_sum_exp[KL_TARGET][i] - b->log_sum_exp[KL_INPUT][i];
    }
}

/* w (d + expm1(-d)) of a tile to b->losses, and w expm1(-d), which is q - w, to b->grads. */
static void compute_terms(struct kl_workspace *b, const struct kl_tile *tile,
                          const struct of_rows *rows)
{
    const struct kl_kernel *kernel = b->job->kernel;
    kl_broadcast(kernel, tile, rows->maxima[0], b->row_values[0]);
    kl_broadcast(kernel, tile, rows->maxima[1], b->row_values[1]);
    kl_broadcast(kernel, tile, rows->shift, b->grads);
    const struct kl_close_rows close = {.target = b->v[KL_TARGET],
                                        .input = b->v[KL_INPUT],
                                        .maxima = {b->row_values[0], b->row_values[1]},
                                        .shift = b->grads,
                                        .p = b->scratch,
                                        .log_q = b->losses,
                                        .scale = 1 / b->job->plan->temperature};
    kernel->close_terms(&close, b->losses, b->grads, kl_tile_size(tile));
}

/* Out of line, so that other rows do not clear its arrays. */
static __attribute__((noinline)) void sum_again(struct kl_workspace *b, double *losses)
{
    double high[KL_ROWS] = {0}, low[KL_ROWS] = {0};
    double rest_high[KL_ROWS] = {0}, rest_low[KL_ROWS] = {0};
    struct of_rows rows;
    size_t n = b->group->rows;
    set_rows(b, &rows);
    KL_FOR_EACH_TILE (b, tile) {
        kl_load_operand(b, &tile, KL_INPUT);
        kl_load_operand(b, &tile, KL_TARGET);
        load_terms(b, &tile);
        compute_terms(b, &tile, &rows);
        kl_add_to_rows(b->job->kernel, &tile, b->losses, high, low);
        kl_add_to_rows(b->job->kernel, &tile, b->grads, rest_high, rest_low);
    }
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(losses[i]) < CLOSE))
            continue;
        double rest = rest_high[i] + rest_low[i];
        double loss = high[i] + low[i] + log1p_rest(rest);
        if (isfinite(loss))
            losses[i] = loss;
    }
}

void kl_sum_near_equal(struct kl_workspace *b, double *losses)
{
    bool logits = kl_is_logit(b->job, KL_INPUT) && kl_is_logit(b->job, KL_TARGET);
    if (logits && any_close(b, losses, b->group->rows)) {
        sum_again(b, losses);
        b->has_exps = false; /* v holds the operands now */
    }
}
