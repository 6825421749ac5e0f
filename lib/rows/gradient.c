/* Derivatives of a tile's losses, by what the operands hold.
 *
 * By logits they are the softmax's vector-Jacobian product: of g, the derivatives by log-probabilities, and the
 * softmax y, (g - y sum(g)) / temperature. Of a row whose loss is summed, sum(g) is known from the pass that
 * found the loss, so one more pass over the operands gives the derivatives, without the softmaxes in memory
 * (FlashAttention's backward pass does the same: Dao and others, 2022); and none over the operands where their
 * exponentials were cached. */
#include "lib/rows/gradient.h"
#include "lib/rows/mixture.h"
#include "lib/rows/softmax.h"

/* Sets the factors of a tile's derivatives. */
static void set_factors(struct kl_workspace *b, const struct kl_tile *tile, struct kl_grads *grads)
{
    kl_set_factors(b->job, tile, b->factors, b->weight, grads);
}

/* ---- Where derivatives go */

/* The address of the derivatives of a tile; NULL if they are summed or not contiguous there. */
static void *in_place(const struct kl_workspace *b, const struct kl_tile *tile, int operand)
{
    const struct kl_gradient *gradient = &b->group->gradients[operand];
    struct kl_array_view view = b->job->operands[operand];
    view.data = gradient->data;
    return gradient->high ? NULL : (void *)kl_tile_in_place(b->job->layout, tile, &view);
}

/* Sums derivatives, or stores them in the operand's dtype. */
static void store_grads(struct kl_workspace *b, const struct kl_tile *tile, int operand,
                        const double *grads)
{
    const struct kl_job *job = b->job;
    const struct kl_gradient *gradient = &b->group->gradients[operand];
    const struct kl_array_view *view = &job->operands[operand];
    void *to = in_place(b, tile, operand);
    if (gradient->high) {
        kl_tile_add(job->kernel, job->layout, tile, view->array, grads, gradient->high,
                    gradient->low);
        return;
    }
    job->kernel->narrow[view->dtype](grads, to ? to : b->scratch, kl_tile_size(tile));
    if (!to)
        kl_tile_store(job->layout, tile, view->array, view->dtype, b->scratch, gradient->data);
}

void kl_clear_grads(struct kl_workspace *b, const struct kl_tile *tile)
{
    kl_fill(b->grads, 0, kl_tile_size(tile));
    for (int i = 0; i < KL_OPERANDS; i++)
        if (kl_is_wanted(b->job, i))
            store_grads(b, tile, i, b->grads);
}

/* A block for derivatives as doubles. */
static double *grads_as_doubles(struct kl_workspace *b, int operand)
{
    return operand == KL_INPUT ? b->grads : b->losses;
}

/* Chooses where kernels store derivatives: in place, or else in a block of doubles. */
static void choose_destinations(struct kl_workspace *b, const struct kl_tile *tile,
                                struct kl_grads *grads)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        if (!kl_is_wanted(b->job, i))
            continue;
        bool same_dtype = b->job->operands[i].dtype == b->job->plan->dtype;
        grads->by[i] = same_dtype ? in_place(b, tile, i) : NULL;
        grads->is_f64[i] = !grads->by[i];
        if (grads->is_f64[i])
            grads->by[i] = grads_as_doubles(b, i);
    }
}

/* Stores the derivatives that are in blocks of doubles. */
static void store_chosen(struct kl_workspace *b, const struct kl_tile *tile,
                         const struct kl_grads *grads)
{
    for (int i = 0; i < KL_OPERANDS; i++)
        if (grads->is_f64[i])
            store_grads(b, tile, i, grads_as_doubles(b, i));
}

/* ---- Operands that hold what the formula takes */

void kl_compute_direct_grads(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_job *job = b->job;
    const struct kl_elements e = {kl_operand(b, tile, KL_INPUT), kl_operand(b, tile, KL_TARGET),
                                  kl_unmasked(b, tile), NULL};
    struct kl_grads grads = {.factors = NULL};
    set_factors(b, tile, &grads);
    choose_destinations(b, tile, &grads);
    job->kernel->grads[job->plan->dtype][kl_rule_is_log(job->rule)](job->rule, &e, &grads,
                                                                    kl_tile_size(tile));
    store_chosen(b, tile, &grads);
}

/* ---- Any operands, loaded as log-probabilities */

/* The derivatives of a mixture's losses. */
static void compute_mixture_grads(struct kl_workspace *b, const struct kl_tile *tile, int operand,
                                  const struct kl_grads *grads)
{
    const struct kl_kernel *kernel = b->job->kernel;
    size_t n = kl_tile_size(tile);
    kl_compute_mixture(b, tile);
    memcpy(b->grads, b->mixture_grads[operand], n * sizeof *b->grads);
    if (grads->factors)
        kernel->multiply(b->grads, grads->factors, n);
    else
        kernel->scale(b->grads, grads->factor, n);
}

/* Computes derivatives by a log-probability, or by a target's probability. For a probability of input, the derivative
 * by its logarithm is divided by the probability. The derivatives of masked elements hold nothing of use. */
static void compute_grads(struct kl_workspace *b, const struct kl_tile *tile, int operand)
{
    const struct kl_job *job = b->job;
    size_t n = kl_tile_size(tile);
    const struct kl_elements e = {.input = b->v[KL_INPUT], .target = b->v[KL_TARGET]};
    struct kl_grads grads = {.factors = NULL};
    if (b->in_grads == operand)
        return;
    b->in_grads = b->single ? operand : -1;
    set_factors(b, tile, &grads);
    if (kl_is_mixture(job->plan)) {
        compute_mixture_grads(b, tile, operand, &grads);
        return;
    }
    grads.by[operand] = b->grads;
    grads.is_f64[operand] = true;
    job->kernel->grads[KL_FLOAT64][kl_rule_is_log(job->rule)](job->rule, &e, &grads, n);
    if (operand == KL_INPUT && job->plan->spaces[KL_INPUT] == KL_PROB) {
        bool keeps_zero = job->plan->options.compat != KL_PYTORCH;
        for (size_t i = 0; i < n; i++)
            b->grads[i] /= keeps_zero && b->grads[i] == 0 ? 1 : b->divisor[i];
    }
}

/* True if the group is a row all of whose sums are NaN, which more elements do not change. */
static bool are_sums_nan(const struct kl_workspace *b)
{
    bool all = b->group->rows == 1;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (kl_is_wanted(b->job, i) && kl_is_logit(b->job, i))
            all &= isnan(b->grad_sums[i][0]) != 0;
    return all;
}

void kl_sum_grads(struct kl_workspace *b)
{
    double low[KL_OPERANDS][KL_ROWS] = {{0}};
    for (int i = 0; i < KL_OPERANDS; i++)
        kl_fill(b->grad_sums[i], 0, b->group->rows);
    KL_FOR_EACH_TILE (b, tile) {
        if (!kl_is_mixture(b->job->plan))
            kl_load_log_probs(b, &tile);
        for (int i = 0; i < KL_OPERANDS; i++)
            if (kl_is_wanted(b->job, i) && kl_is_logit(b->job, i)) {
                compute_grads(b, &tile, i);
                kl_apply_mask(b, &tile, b->grads, 0);
                kl_add_to_rows(b->job->kernel, &tile, b->grads, b->grad_sums[i], low[i]);
            }
        if (are_sums_nan(b))
            break;
    }
    for (int i = 0; i < KL_OPERANDS; i++)
        for (size_t j = 0; j < b->group->rows; j++)
            b->grad_sums[i][j] = kl_sum_value((struct kl_sum){b->grad_sums[i][j], low[i][j]});
}

void kl_compute_grads(struct kl_workspace *b, const struct kl_tile *tile)
{
    const struct kl_kernel *kernel = b->job->kernel;
    size_t n = kl_tile_size(tile);
    for (int i = KL_OPERANDS; i-- > 0;) { /* the last one that was summed first */
        if (!kl_is_wanted(b->job, i))
            continue;
        compute_grads(b, tile, i);
        b->in_grads = -1;
        if (kl_is_logit(b->job, i) && b->job->layout->single_rows) {
            /* 0, or NaN if the logit or the derivative is not finite */
            for (size_t j = 0; j < n; j++)
                b->grads[j] = (b->grads[j] - b->grads[j]) + (b->v[i][j] - b->v[i][j]);
        } else if (kl_is_logit(b->job, i)) {
            const double *probs = b->v[i];
            if (!kl_is_mixture(b->job->plan)) {
                kernel->exps(b->v[i], b->scratch, n);
                probs = b->scratch;
            }
            kl_broadcast(b->job->kernel, tile, b->grad_sums[i], b->row_values[0]);
            kernel->softmax_backward(b->grads, probs, b->row_values[0],
                                     1 / b->job->plan->temperature, n);
        }
        kl_apply_mask(b, tile, b->grads, 0);
        store_grads(b, tile, i, b->grads);
    }
}

/* ---- Rows of logits whose sums are known */

/* The factor of each row's derivatives. */
static void find_row_factors(struct kl_workspace *b, double *factors)
{
    struct kl_tile first = kl_tile_at(b, b->group->start);
    first.length = 1;
    struct kl_grads grads = {.factors = NULL};
    set_factors(b, &first, &grads);
    for (size_t i = 0; i < b->group->rows; i++)
        factors[i] = grads.factors ? grads.factors[i] : grads.factor;
}

/* row_of: with P and Q the exponentials of a row's shifted logits, g its factor, the derivatives by
 * input are g (Q sum(p) / sum(Q) - P / sum(P)), those by target g P / sum(P) (log p - log q - loss), both
 * over the temperature. An operand without logits is P or Q itself, and 1 its sum. */
static struct kl_softmax_row row_of(const struct kl_workspace *b, size_t i, double factor,
                                    double loss, double sum_p, const double inverse[KL_OPERANDS])
{
    const struct kl_job *job = b->job;
    struct kl_softmax_row row;
    double scale = 1 / job->plan->temperature;
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        row.shifts[operand] = kl_is_logit(job, operand)
                                  ? (struct kl_shift){b->row_max[operand][i], scale}
                                  : (struct kl_shift){0, 1};
    double by_input = kl_is_logit(job, KL_INPUT) ? factor * scale : factor;
    row.q_factor = kl_is_logit(job, KL_INPUT) ? by_input * sum_p * inverse[KL_INPUT] : 0;
    row.p_factor = by_input * inverse[KL_TARGET];
    row.t_factor = factor * scale * inverse[KL_TARGET];
    row.mean = loss + (b->log_sum_exp[KL_TARGET][i] - b->log_sum_exp[KL_INPUT][i]);
    return row;
}

/* The kl_softmax_row of a tile whose exponentials are of logits less `offsets`, which are at most the row's maxima. */
static struct kl_softmax_row row_of_tile(const struct kl_softmax_row *row, const double *offsets)
{
    struct kl_softmax_row of_tile = *row;
    double *const factors[] = {&of_tile.q_factor, &of_tile.p_factor};
    for (int i = 0; i < KL_OPERANDS; i++)
        if (offsets[i] != row->shifts[i].offset)
            *factors[i] *= exp((offsets[i] - row->shifts[i].offset) * row->shifts[i].scale);
    return of_tile;
}

static size_t grad_size(const struct kl_job *job, const struct kl_grads *grads, int operand)
{
    return grads->is_f64[operand] ? sizeof(double) : kl_dtype_size(job->plan->dtype);
}

/* The destinations of the elements from n on. */
static struct kl_grads skip_elements(const struct kl_job *job, const struct kl_grads *grads,
                                     size_t n)
{
    struct kl_grads skipped = *grads;
    for (int i = 0; i < KL_OPERANDS; i++)
        if (grads->by[i])
            skipped.by[i] = (char *)grads->by[i] + n * grad_size(job, grads, i);
    return skipped;
}

static void clear_row(const struct kl_job *job, const struct kl_grads *row, size_t length)
{
    for (int i = 0; i < KL_OPERANDS; i++)
        if (row->by[i])
            memset(row->by[i], 0, length * grad_size(job, row, i));
}

/* The derivatives of a row of a mixture, from those by logarithms, g, whose sum is known: (g - p sum(g)) / temperature. */
static void compute_mixture_row(struct kl_workspace *b, const struct kl_tile *tile, size_t row,
                                double factor, const struct kl_grads *to)
{
    const struct kl_job *job = b->job;
    struct kl_mixture_terms terms[KL_OPERANDS];
    kl_find_mixture_terms(b, tile, row, terms);
    for (int i = 0; i < KL_OPERANDS; i++) {
        const struct kl_softmax_row by = {.q_factor = -factor * b->grad_sums[i][row],
                                          .p_factor = -factor};
        const struct kl_grads grads = {.by = {to->by[i]}, .is_f64 = {to->is_f64[i]}};
        if (to->by[i])
            job->kernel->cached_grads[job->plan->dtype](&by, terms[i].grads, terms[i].probs, &grads,
                                                        tile->length);
    }
}

static void compute_tile_of_rows(struct kl_workspace *b, const struct kl_tile *tile,
                                 const struct kl_softmax_row *rows)
{
    const struct kl_job *job = b->job;
    enum kl_dtype dtype = job->plan->dtype;
    const char *x = b->has_exps ? NULL : kl_operand(b, tile, KL_INPUT);
    const char *t = b->has_exps ? NULL : kl_operand(b, tile, KL_TARGET);
    struct kl_grads grads = {.factor = 0};
    choose_destinations(b, tile, &grads);
    for (size_t i = 0; i < tile->rows; i++) {
        size_t at = i * tile->length;
        struct kl_grads to = skip_elements(job, &grads, at);
        if (kl_is_row_masked(b, i)) {
            clear_row(job, &to, tile->length);
            continue;
        }
        if (b->has_exps) {
            struct kl_cached_exps cached = kl_exps_of(b, tile, i);
            const struct kl_softmax_row row =
                cached.offsets ? row_of_tile(&rows[i], cached.offsets) : rows[i];
            job->kernel->cached_grads[dtype](&row, cached.p, cached.q, &to, tile->length);
            continue;
        }
        job->kernel->row_grads[dtype][kl_rule_is_log(job->rule)](
            &rows[i], x + at * kl_dtype_size(dtype), t + at * kl_dtype_size(dtype), &to,
            tile->length);
    }
    store_chosen(b, tile, &grads);
}

/* Finds the factor of each row's exponentials: 1 over their sum; 1 if the operand holds no logits. */
static void find_inverses(const struct kl_workspace *b, int operand, double *inverses)
{
    size_t n = b->group->rows;
    bool is_logit = kl_is_logit(b->job, operand);
    for (size_t i = 0; i < n; i++)
        inverses[i] = is_logit ? -b->log_sum_exp[operand][i] : 0;
    b->job->kernel->exps(inverses, inverses, n);
}

/* Out of line, so that other groups do not have its array on their stack. */
static __attribute__((noinline)) void compute_rows(struct kl_workspace *b,
                                                   const struct kl_summed_rows *sums)
{
    struct kl_softmax_row rows[KL_ROWS];
    double factors[KL_ROWS], inverses[KL_OPERANDS][KL_ROWS];
    find_row_factors(b, factors);
    for (int operand = 0; operand < KL_OPERANDS; operand++)
        find_inverses(b, operand, inverses[operand]);
    for (size_t i = 0; i < b->group->rows; i++) {
        const double inverse[] = {inverses[KL_INPUT][i], inverses[KL_TARGET][i]};
        rows[i] = row_of(b, i, factors[i], sums->losses[i], sums->sum_p[i], inverse);
    }
    KL_FOR_EACH_TILE (b, tile)
        compute_tile_of_rows(b, &tile, rows);
}

/* Out of line likewise. */
static __attribute__((noinline)) void compute_mixture_rows(struct kl_workspace *b)
{
    double factors[KL_ROWS] = {0};
    find_row_factors(b, factors);
    KL_FOR_EACH_TILE (b, tile) {
        struct kl_grads grads = {.factor = 0};
        choose_destinations(b, &tile, &grads);
        for (size_t i = 0; i < tile.rows; i++) {
            struct kl_grads to = skip_elements(b->job, &grads, i * tile.length);
            if (kl_is_row_masked(b, i))
                clear_row(b->job, &to, tile.length);
            else
                compute_mixture_row(b, &tile, i, factors[i] / b->job->plan->temperature, &to);
        }
        store_chosen(b, &tile, &grads);
    }
}

bool kl_compute_row_grads(struct kl_workspace *b, const struct kl_summed_rows *rows)
{
    const struct kl_job *job = b->job;
    bool covered = !kl_is_wanted(job, KL_TARGET) || kl_is_logit(job, KL_TARGET);
    bool by_rows = covered && !kl_sums_blocks(job);
    if (by_rows && kl_is_mixture(job->plan))
        compute_mixture_rows(b);
    else if (by_rows)
        compute_rows(b, rows);
    else
        kl_set_grad_sums(b, rows);
    return by_rows;
}

void kl_set_grad_sums(struct kl_workspace *b, const struct kl_summed_rows *rows)
{
    double factors[KL_ROWS];
    find_row_factors(b, factors);
    for (size_t i = 0; i < b->group->rows; i++)
        if (rows->has_grads[i]) {
            b->grad_sums[KL_INPUT][i] = -factors[i] * rows->sum_p[i];
            b->grad_sums[KL_TARGET][i] = factors[i] * (rows->losses[i] + 1);
        }
}
