/* Derivatives by the operands of a call with a sparse target. */
#include "lib/sparse/call.h"

/* FILL_MAX: bytes that are copied at once, which stay in the cache. */
enum { FILL_MAX = 4096 };

/* LOW_LOG_REST: the logarithm of a mass below which its inverse may overflow. */
static const double LOW_LOG_REST = -600;

/* Fills an array by copies of its beginning, each as long as all before. */
static void fill(enum kl_dtype dtype, double value, char *to, size_t n)
{
    size_t size = n * kl_dtype_size(dtype), done = kl_dtype_size(dtype);
    kl_store(dtype, to, 0, value);
    for (size_t part; done < size; done += part) {
        part = kl_min(kl_min(done, size - done), FILL_MAX);
        memcpy(to + done, to, part);
    }
}

/* True of an element of a short row that is of no value; the last one may be the rest. */
static bool is_left_out(const struct kl_sparse_call *call, size_t row, size_t i)
{
    return i < call->k && call->left_out[row * call->k + i];
}

/* The derivatives by a row, as if no element were named: that by their mass; of logarithms a part of that by its logarithm, as
 * large as that of the mass, of logits less the softmax's part, of `sum`. */
static void store_rest(const struct kl_sparse_call *call, size_t row, double by_rest, double sum,
                       char *to)
{
    const struct kl_sparse_row *of_row = &call->of_rows[row];
    enum kl_dtype dtype = call->plan->input.dtype;
    const struct kl_shift shift = {of_row->offset, 1 / kl_temperature_of(call, KL_INPUT)};
    enum kl_space space = call->plan->spaces[KL_INPUT];
    double log_rest = of_row->log_rest;
    if (space == KL_PROB || (space != KL_LOGIT && by_rest == 0)) { /* whatever the elements hold */
        fill(dtype, by_rest, to, call->length);
        return;
    }
    if (log_rest >= LOW_LOG_REST && log_rest < (double)INFINITY) {
        double over_mass = by_rest * exp(-log_rest);
        call->kernel->exp_scale[dtype](kl_row_at(call, row), shift,
                                       (over_mass - sum) * shift.scale * exp(-of_row->log_sum_exp),
                                       to, call->length);
        return;
    }
    for (size_t i = 0; i < call->length; i++) {
        double v = kl_load(dtype, kl_row_at(call, row), i);
        double log_q = (v - shift.offset) * shift.scale - of_row->log_sum_exp;
        double part = by_rest == 0 ? 0 : by_rest * exp(log_q - log_rest);
        kl_store(dtype, to, i, (part - exp(log_q) * sum) * shift.scale);
    }
}

/* By input: of the elements that are not named, the rest's in proportion to their probabilities; of logits the softmax's own. */
void kl_scatter_input(const struct kl_sparse_call *call, size_t row)
{
    const struct kl_plan *plan = call->plan;
    const struct kl_sparse_row *of_row = &call->of_rows[row];
    enum kl_dtype dtype = plan->input.dtype;
    enum kl_space space = plan->spaces[KL_INPUT];
    const double *grads = call->grads[KL_INPUT] + row * call->columns;
    double *probs = call->operands[KL_INPUT] + row * call->columns; /* logarithms so far */
    char *to = (char *)call->results->grad[KL_INPUT] + row * call->length * kl_dtype_size(dtype);
    double temperature = kl_temperature_of(call, KL_INPUT), sum = 0;
    for (size_t i = 0; space == KL_LOGIT && i < call->columns; i++)
        sum += is_left_out(call, row, i) ? 0 : grads[i];
    bool has_rest =
        kl_has_rest(call) && (space == KL_PROB || of_row->log_rest != -(double)INFINITY);
    store_rest(call, row, has_rest ? grads[call->k] : 0, sum, to);
    if (space == KL_LOGIT)
        call->kernel->exps(probs, probs, call->k);
    for (size_t i = 0; i < call->k; i++) {
        if (is_left_out(call, row, i))
            continue;
        double grad = grads[i] - (space == KL_LOGIT ? probs[i] * sum : 0);
        kl_store(dtype, to, (size_t)kl_index_at(call, row * call->k + i), grad / temperature);
    }
}

/* By target's values: by what they leave to the rest, or divide by, too. */
void kl_scatter_target(const struct kl_sparse_call *call, size_t row)
{
    const struct kl_plan *plan = call->plan;
    const double *grads = call->grads[KL_TARGET] + row * call->columns,
                 *from = call->operands[KL_TARGET] + row * call->columns;
    const struct kl_tensor *target = &plan->target;
    char *to =
        (char *)call->results->grad[KL_TARGET] + row * call->k * kl_dtype_size(target->dtype);
    bool drops = plan->sparse.tail == KL_TAIL_DROP, is_prob = kl_is_prob(call, KL_TARGET);
    double sum = 0, rest = 0, mass = drops && is_prob ? call->of_rows[row].mass : 1;
    for (size_t i = 0; drops && i < call->columns; i++)
        sum += is_left_out(call, row, i) ? 0
               : !is_prob                ? grads[i]
               : from[i] == 0            ? 0
                                         : grads[i] * from[i];
    if (plan->sparse.tail == KL_TAIL_BIN && from[call->k] != (is_prob ? 0 : -(double)INFINITY))
        rest = is_prob ? grads[call->k] : grads[call->k] * exp(-from[call->k]);
    for (size_t i = 0; i < call->k; i++) {
        double by_others = sum + rest;
        by_others *= is_prob || by_others == 0 ? 1 : exp(from[i]);
        double grad = is_left_out(call, row, i) ? 0 : (grads[i] - by_others) / mass;
        kl_store(target->dtype, to, i, grad / kl_temperature_of(call, KL_TARGET));
    }
}
