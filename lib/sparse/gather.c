/* Rows of a sparse target as short rows. */
#include "lib/plan/problem.h"
#include "lib/sparse/call.h"

#include <inttypes.h>
#include <stdlib.h>

void kl_sparse_fail(struct kl_sparse_call *call, size_t row, struct kl_problem problem)
{
    pthread_mutex_lock(&call->lock);
    if (!call->problem.code || row < call->bad_row) {
        call->bad_row = row;
        call->problem = problem;
    }
    pthread_mutex_unlock(&call->lock);
}

static void fail_at(struct kl_sparse_call *call, size_t row, enum kl_operand operand, size_t index,
                    const char *code, const char *detail, double number)
{
    struct kl_problem problem = {.has_index = true, .index = index};
    kl_fail(&problem, operand, code, detail, number);
    kl_sparse_fail(call, row, problem);
}

/* ---- Rows of input */

static int by_index(const void *a, const void *b, void *context)
{
    const struct kl_sparse_call *call = context;
    size_t at = *(const size_t *)a, other = *(const size_t *)b;
    int64_t index = kl_index_at(call, at), next = kl_index_at(call, other);
    return index != next ? (index > next) - (index < next) : (at > other) - (at < other);
}

/* Leaves out of the first n values of a row those of elements that are named again with the same value. The position of the
 * first with another value, or n. Sorts positions in the memory of the row of input, which is gathered later. */
static size_t leave_out_repeated(struct kl_sparse_call *call, size_t row, size_t n)
{
    const struct kl_tensor *target = &call->plan->target;
    size_t *order = (void *)(call->operands[KL_INPUT] + row * call->columns),
           bad = row * call->k + n;
    for (size_t i = 0; i < n; i++)
        order[i] = row * call->k + i;
    qsort_r(order, n, sizeof *order, by_index, call);
    double value = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t index = kl_index_at(call, order[i]);
        if (index == KL_PADDING)
            continue;
        double v = kl_load(target->dtype, target->data, order[i]);
        call->left_out[order[i]] = i > 0 && index == kl_index_at(call, order[i - 1]);
        if (!call->left_out[order[i]])
            value = v;
        else if (v != value && order[i] < bad)
            bad = order[i];
    }
    return bad - row * call->k;
}

/* Fills `named`, a bit for each element of a row, and tells which values are left out; false if an index is wrong. */
static bool mark_named(struct kl_sparse_call *call, size_t row, uint64_t *named)
{
    size_t first = row * call->k, n = 0;
    bool is_outside = false, has_repeated = false;
    int64_t index = 0;
    memset(named, 0, kl_named_size(call));
    for (; n < call->k && !is_outside; n += !is_outside) {
        index = kl_index_at(call, first + n);
        call->left_out[first + n] = index == KL_PADDING;
        if (index == KL_PADDING)
            continue;
        is_outside = index < 0 || (uint64_t)index >= call->length;
        if (is_outside)
            continue;
        uint64_t bit = UINT64_C(1) << (index & 63);
        has_repeated |= (named[index >> 6] & bit) != 0;
        named[index >> 6] |= bit;
    }
    size_t bad = has_repeated ? leave_out_repeated(call, row, n) : n;
    if (bad == call->k)
        return true;
    struct kl_problem problem = {.has_index = true, .index = first + bad};
    kl_fail(&problem, KL_INDICES, "indices_invalid",
            bad == n ? "the index %" PRId64
                       " is not of an element of its row, and that of padding is -1"
                     : "the index %" PRId64 " is twice in its row, with different values",
            kl_index_at(call, first + bad));
    kl_sparse_fail(call, row, problem);
    return false;
}

static const void *element_at(const struct kl_sparse_call *call, size_t row, size_t i)
{
    return kl_row_at(call, row) + i * kl_dtype_size(call->plan->input.dtype);
}

/* Calls `add` for each run of elements of a row that are not named. */
static void for_rest(const struct kl_sparse_call *call, size_t row, const uint64_t *named,
                     void (*add)(const struct kl_sparse_call *call, const void *from, size_t n,
                                 void *to),
                     void *to)
{
    size_t start = 0;
    for (size_t i = 0; i < kl_named_size(call) / sizeof *named; i++)
        for (uint64_t word = named[i]; word; word &= word - 1) {
            size_t end = 64 * i + (size_t)__builtin_ctzll(word);
            if (end > start)
                add(call, element_at(call, row, start), end - start, to);
            start = end + 1;
        }
    if (call->length > start)
        add(call, element_at(call, row, start), call->length - start, to);
}

/* rest: the sum of probabilities and their minimum, or the maximum of elements. */
struct rest {
    struct kl_sum sum;
    double min, max;
};

/* Adds probabilities, or exponentials, in pieces of which few are added without compensation. */
static void add_probs(const struct kl_sparse_call *call, const void *from, size_t n, void *to)
{
    struct rest *rest = to;
    bool is_prob = kl_is_prob(call, KL_INPUT);
    enum kl_dtype dtype = call->plan->input.dtype;
    double exps[128];
    for (size_t i = 0, part; i < n; i += part) {
        const char *piece = (const char *)from + i * kl_dtype_size(dtype);
        part = kl_min(n - i, sizeof exps / sizeof *exps);
        if (!is_prob) {
            call->kernel->widen[dtype](piece, exps, part);
            call->kernel->exps(exps, exps, part);
        }
        struct kl_row_stats stats = call->kernel->row_stats[is_prob ? dtype : KL_FLOAT64](
            is_prob ? piece : (const char *)exps, part, false);
        kl_sum_add(&rest->sum, stats.sum);
        rest->min = stats.min < rest->min ? stats.min : rest->min;
    }
}

static void find_max(const struct kl_sparse_call *call, const void *from, size_t n, void *to)
{
    struct rest *rest = to;
    double max = call->kernel->row_max[call->plan->input.dtype](from, n);
    rest->max = max > rest->max ? max : rest->max;
}

/* LOW_REST: a sum of exponentials in which those below exp(-700), which count as 0, may show. */
static const double LOW_REST = 0x1p-960;

/* The logarithm of the mass of a row's elements that are not named, over exp(offset scale) of logarithms and logits. The mass is
 * in rest->sum, or 0 if it is too low for that. */
static double log_rest(const struct kl_sparse_call *call, size_t row, const uint64_t *named,
                       struct kl_shift shift, struct rest *rest)
{
    enum kl_dtype dtype = call->plan->input.dtype;
    const char *from = kl_row_at(call, row);
    bool is_prob = kl_is_prob(call, KL_INPUT);
    if (is_prob || (call->plan->spaces[KL_INPUT] == KL_LOG_PROB && shift.offset == 0))
        for_rest(call, row, named, add_probs, rest); /* perhaps infinite */
    else
        rest->sum = call->kernel->exp_sum[dtype](from, shift, call->length, named);
    double mass = kl_sum_value(rest->sum), offset = shift.offset;
    if (is_prob || !(mass < LOW_REST))
        return log(mass);
    for_rest(call, row, named, find_max, rest);
    rest->sum = (struct kl_sum){0, 0};
    if (rest->max == -(double)INFINITY) /* or there is no such element */
        return rest->max;
    shift.offset = rest->max;
    struct kl_sum low = call->kernel->exp_sum[dtype](from, shift, call->length, named);
    return (rest->max - offset) * shift.scale + log(kl_sum_value(low));
}

/* Fails with the first probability of input that is negative, of those that count. */
static void fail_negative(struct kl_sparse_call *call, size_t row)
{
    size_t index = 0, n = kl_has_rest(call) ? call->length : call->k;
    double v = 0;
    for (size_t i = 0; i < n && !(v < 0); i++) {
        index = kl_has_rest(call) ? i : (size_t)kl_index_at(call, row * call->k + i);
        if (!kl_has_rest(call) && call->left_out[row * call->k + i])
            continue;
        v = kl_load(call->plan->input.dtype, kl_row_at(call, row), index);
    }
    fail_at(call, row, KL_INPUT, row * call->length + index, "input_negative",
            "input holds %g, but a probability is never negative", v);
}

/* Gathers input's probabilities if that is what it holds, or else their logarithms. */
static void gather_input(struct kl_sparse_call *call, size_t row, const uint64_t *named)
{
    enum kl_dtype dtype = call->plan->input.dtype;
    struct kl_sparse_row *of_row = &call->of_rows[row];
    double *to = call->operands[KL_INPUT] + row * call->columns, log_of_rest = -(double)INFINITY;
    bool is_prob = kl_is_prob(call, KL_INPUT), is_logit = call->plan->spaces[KL_INPUT] == KL_LOGIT;
    double max = is_prob ? 0 : call->kernel->row_max[dtype](kl_row_at(call, row), call->length);
    struct kl_shift shift = {isfinite(max)                         ? max
                             : max == (double)INFINITY && is_logit ? (double)NAN
                                                                   : 0,
                             1 / kl_temperature_of(call, KL_INPUT)};
    struct rest rest = {{0, 0}, 0, -(double)INFINITY};
    if (is_logit || kl_has_rest(call))
        log_of_rest = log_rest(call, row, named, shift, &rest);
    if (is_prob && kl_has_rest(call))
        to[call->k] = isnan(log_of_rest) ? (double)NAN : kl_sum_value(rest.sum);
    for (size_t i = 0; i < call->k; i++) {
        if (call->left_out[row * call->k + i]) {
            to[i] = is_prob ? 0 : -(double)INFINITY;
            continue;
        }
        size_t index = (size_t)kl_index_at(call, row * call->k + i);
        double v = kl_load(dtype, element_at(call, row, index), 0);
        to[i] = is_logit ? (v - shift.offset) * shift.scale : v;
        rest.min = v < rest.min ? v : rest.min;
    }
    if (is_logit)
        kl_sum_merge(&rest.sum,
                     call->kernel->exp_sum[KL_FLOAT64](to, (struct kl_shift){0, 1}, call->k, NULL));
    of_row->offset = shift.offset;
    of_row->log_sum_exp = is_logit ? log(kl_sum_value(rest.sum)) : is_prob ? 0 : -shift.offset;
    of_row->log_rest = log_of_rest - of_row->log_sum_exp;
    for (size_t i = 0; is_logit && i < call->k; i++)
        to[i] -= of_row->log_sum_exp;
    if (!is_prob && kl_has_rest(call))
        to[call->k] = of_row->log_rest;
    if (is_prob && rest.min < 0)
        fail_negative(call, row);
}

/* ---- Rows of target */

/* excesses: how far rounded probabilities may sum to more than 1. */
static const double excesses[KL_DTYPES] = {
    [KL_FLOAT64] = 1e-9, [KL_FLOAT32] = 1e-4, [KL_FLOAT16] = 1e-2, [KL_BFLOAT16] = 5e-2};

/* The logarithm of a value's probability, if it is not the probability itself. */
static double target_log(const struct kl_sparse_call *call, size_t row, double v)
{
    const struct kl_plan *plan = call->plan;
    const struct kl_tensor *normalizer = plan->sparse.log_normalizer;
    v /= kl_temperature_of(call, KL_TARGET);
    return normalizer && plan->sparse.tail != KL_TAIL_DROP
               ? v - kl_load(normalizer->dtype, normalizer->data, row)
               : v;
}

/* Gathers target's probabilities or their logarithms. Of logarithms that are dropped a maximum is taken first, for they may be
 * logits. */
static bool gather_target(struct kl_sparse_call *call, size_t row)
{
    const struct kl_plan *plan = call->plan;
    const struct kl_tensor *target = &plan->target;
    bool drops = plan->sparse.tail == KL_TAIL_DROP, is_prob = kl_is_prob(call, KL_TARGET);
    bool has_max = drops && !is_prob;
    double *to = call->operands[KL_TARGET] + row * call->columns,
           max = has_max ? -(double)INFINITY : 0;
    struct kl_sum sum = {0, 0};
    for (size_t i = 0; i < call->k; i++) {
        if (call->left_out[row * call->k + i]) {
            to[i] = is_prob ? 0 : -(double)INFINITY;
            continue;
        }
        double v = kl_load(target->dtype, target->data, row * call->k + i);
        if (is_prob && v < 0) {
            fail_at(call, row, KL_TARGET, row * call->k + i, "target_negative",
                    "target holds %g, but a probability is never negative", v);
            return false;
        }
        to[i] = is_prob ? v : target_log(call, row, v);
        max = has_max && to[i] > max ? to[i] : max;
    }
    max = isfinite(max) ? max : max > 0 ? (double)NAN : 0;
    for (size_t i = 0; i < call->k; i++)
        kl_sum_add(&sum, is_prob ? to[i] : exp(to[i] - max));
    double mass = kl_sum_value(sum), rest = 1 - sum.high - sum.low;
    double log_mass = max + log(mass), error = max - log_mass + log(mass); /* of its rounding */
    call->of_rows[row].mass = mass * exp(max);
    for (size_t i = 0; drops && i < call->k; i++)
        to[i] = is_prob ? to[i] / mass : to[i] - log_mass - error;
    if (drops ? is_prob && isinf(mass) : rest < -excesses[target->dtype]) {
        fail_at(call, row, KL_TARGET, row * call->k, "mass_invalid",
                plan->spaces[KL_TARGET] == KL_LOGIT
                    ? "the probabilities of a row sum to %.12g, more than 1: log_normalizer must "
                      "be logsumexp(logits / temperature) of all logits of the row"
                    : "the probabilities of a row sum to %.12g, more than 1: does target hold "
                      "something else?",
                call->of_rows[row].mass);
        return false;
    }
    rest = drops ? 0 / mass : rest < 0 ? 0 : rest; /* NaN if the mass is, or 0 / 0 */
    if (kl_has_rest(call))
        to[call->k] = is_prob ? rest : log(rest);
    return true;
}

/* Drops what rounding leaves to the rest of target, if the rest of input has no probability. */
static void drop_rounding(struct kl_sparse_call *call, size_t row)
{
    double *rest = &call->operands[KL_TARGET][row * call->columns + call->k];
    double excess = excesses[call->plan->target.dtype];
    bool is_prob = kl_is_prob(call, KL_TARGET);
    bool is_empty = call->of_rows[row].log_rest == -(double)INFINITY;
    if (is_empty && *rest <= (is_prob ? excess : log(excess)))
        *rest = is_prob ? 0 : -(double)INFINITY;
}

void kl_gather_row(struct kl_sparse_call *call, size_t row, uint64_t *named)
{
    if (!mark_named(call, row, named) || !gather_target(call, row))
        return;
    gather_input(call, row, named);
    if (kl_has_rest(call))
        drop_rounding(call, row);
}
