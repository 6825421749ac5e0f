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

static bool has_bit(const uint64_t *bits, int64_t index)
{
    return bits[index >> 6] >> (index & 63) & 1;
}

/* Leaves out, of the first n values of a row, those whose element was named before with the same value. Returns the position of the
 * first one with another value, or n. `repeated` has a bit for each element that is named again. Positions are sorted in the memory
 * of the row of input, which is gathered later. */
static size_t leave_out_repeated(struct kl_sparse_call *call, size_t row, size_t n,
                                 const uint64_t *repeated)
{
    const struct kl_tensor *target = &call->plan->target;
    size_t *order = (void *)(call->operands[KL_INPUT] + row * call->columns), count = 0;
    size_t first = row * call->k, bad = first + n;
    for (size_t at = first; at < first + n; at++)
        if (!call->left_out[at] && has_bit(repeated, kl_index_at(call, at)))
            order[count++] = at;
    qsort_r(order, count, sizeof *order, by_index, call);
    double value = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = order[i];
        double v = kl_load(target->dtype, target->data, at);
        call->left_out[at] = i > 0 && kl_index_at(call, at) == kl_index_at(call, order[i - 1]);
        if (!call->left_out[at])
            value = v;
        else if (v != value && !(isnan(v) && isnan(value)) && at < bad)
            bad = at;
    }
    return bad - first;
}

/* Fills `named`, a bit for each element of a row, and behind it as many for those that are named again, and tells which values are
 * left out; false if an index is wrong. */
static bool mark_named(struct kl_sparse_call *call, size_t row, uint64_t *named)
{
    size_t first = row * call->k, n = 0;
    uint64_t *repeated = named + kl_named_size(call) / sizeof *named, any_repeated = 0;
    memset(named, 0, 2 * kl_named_size(call));
    for (; n < call->k; n++) {
        int64_t index = kl_index_at(call, first + n);
        call->left_out[first + n] = index == KL_PADDING;
        if (index == KL_PADDING)
            continue;
        if (index < 0 || (uint64_t)index >= call->length)
            break;
        uint64_t bit = UINT64_C(1) << (index & 63), again = named[index >> 6] & bit;
        named[index >> 6] |= bit;
        repeated[index >> 6] |= again;
        any_repeated |= again;
    }
    size_t bad = any_repeated ? leave_out_repeated(call, row, n, repeated) : n;
    if (bad == call->k)
        return true;
    struct kl_problem problem = {.has_index = true, .index = first + bad};
    kl_fail(&problem, KL_INDICES, "indices_invalid",
            bad == n ? "the index %" PRId64 " is outside of its row; -1 is padding"
                     : "the index %" PRId64 " is twice in its row, with different values",
            kl_index_at(call, first + bad));
    kl_sparse_fail(call, row, problem);
    return false;
}

static const void *element_at(const struct kl_sparse_call *call, size_t row, size_t i)
{
    return kl_row_at(call, row) + i * kl_dtype_size(call->plan->input.dtype);
}

/* PIECE: elements of a row that are looked at together; a multiple of 64, and of SUMMED. */
enum { PIECE = 1024, SUMMED = 128 };

/* piece: n elements of a row from `at` on, without what is named: in place, or if some are named in `copy`. */
struct piece {
    size_t at, n;
    const char *from;
    char copy[PIECE * sizeof(double)];
};

/* Sets `from`, with `none` in the places of what is named. */
static void leave_out_named(const struct kl_sparse_call *call, size_t row, const uint64_t *named,
                            double none, struct piece *piece)
{
    enum kl_dtype dtype = call->plan->input.dtype;
    uint64_t any = 0;
    piece->from = element_at(call, row, piece->at);
    for (size_t i = 0; i < piece->n; i += 64)
        any |= named[(piece->at + i) / 64];
    if (!any)
        return;
    memcpy(piece->copy, piece->from, piece->n * kl_dtype_size(dtype));
    piece->from = piece->copy;
    for (size_t i = 0; i < piece->n; i += 64)
        for (uint64_t word = named[(piece->at + i) / 64]; word; word &= word - 1)
            kl_store(dtype, piece->copy, i + (size_t)__builtin_ctzll(word), none);
}

/* Goes on to the next piece; false behind the last one. The first one follows one with at and n of 0. */
static bool next_piece(const struct kl_sparse_call *call, size_t row, const uint64_t *named,
                       double none, struct piece *piece)
{
    piece->at += piece->n;
    piece->n = kl_min(call->length - piece->at, PIECE);
    if (piece->n > 0)
        leave_out_named(call, row, named, none, piece);
    return piece->n > 0;
}

/* rest: the sum of probabilities and their minimum. */
struct rest {
    struct kl_sum sum;
    double min;
};

/* Adds probabilities, or exponentials, of which few are added without compensation. */
static void add_probs(const struct kl_sparse_call *call, const char *from, size_t n,
                      struct rest *rest)
{
    bool is_prob = kl_is_prob(call, KL_INPUT);
    enum kl_dtype dtype = call->plan->input.dtype;
    double exps[SUMMED];
    for (size_t i = 0, part; i < n; i += part) {
        const char *piece = from + i * kl_dtype_size(dtype);
        part = kl_min(n - i, SUMMED);
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

static void sum_probs(const struct kl_sparse_call *call, size_t row, const uint64_t *named,
                      struct rest *rest)
{
    struct piece piece;
    piece.at = piece.n = 0;
    while (next_piece(call, row, named, kl_is_prob(call, KL_INPUT) ? 0 : -(double)INFINITY, &piece))
        add_probs(call, piece.from, piece.n, rest);
}

static struct kl_sum sum_exps(const struct kl_sparse_call *call, size_t row, const uint64_t *named,
                              struct kl_shift shift)
{
    enum kl_dtype dtype = call->plan->input.dtype;
    struct kl_sum sum = {0, 0};
    struct piece piece;
    piece.at = piece.n = 0;
    while (next_piece(call, row, named, -(double)INFINITY, &piece))
        kl_sum_merge(&sum, call->kernel->exp_sum[dtype](piece.from, shift, piece.n));
    return sum;
}

static double max_of_rest(const struct kl_sparse_call *call, size_t row, const uint64_t *named)
{
    enum kl_dtype dtype = call->plan->input.dtype;
    double max = -(double)INFINITY;
    struct piece piece;
    piece.at = piece.n = 0;
    while (next_piece(call, row, named, -(double)INFINITY, &piece)) {
        double of_piece = call->kernel->row_max[dtype](piece.from, piece.n);
        max = of_piece > max ? of_piece : max;
    }
    return max;
}

/* LOW_REST: a sum of exponentials in which those below exp(-700), which count as 0, may show. */
static const double LOW_REST = 0x1p-960;

/* The logarithm of the mass of a row's elements that are not named, over exp(offset scale) of logarithms and logits. The mass is
 * in rest->sum, or 0 if it is too low for that. */
static double log_rest(const struct kl_sparse_call *call, size_t row, const uint64_t *named,
                       struct kl_shift shift, struct rest *rest)
{
    bool is_prob = kl_is_prob(call, KL_INPUT);
    if (is_prob || (call->plan->spaces[KL_INPUT] == KL_LOG_PROB && shift.offset == 0))
        sum_probs(call, row, named, rest); /* perhaps infinite */
    else
        rest->sum = sum_exps(call, row, named, shift);
    double mass = kl_sum_value(rest->sum), offset = shift.offset;
    if (is_prob || !(mass < LOW_REST))
        return log(mass);
    rest->sum = (struct kl_sum){0, 0};
    shift.offset = max_of_rest(call, row, named);
    if (shift.offset == -(double)INFINITY) /* or there is no such element */
        return shift.offset;
    return (shift.offset - offset) * shift.scale +
           log(kl_sum_value(sum_exps(call, row, named, shift)));
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
    struct rest rest = {{0, 0}, 0};
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
                     call->kernel->exp_sum[KL_FLOAT64](to, (struct kl_shift){0, 1}, call->k));
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

/* Reads a row's values: probabilities, or their logarithms, and 0 or -inf for those that are left out; false if one is negative. */
static bool read_values(struct kl_sparse_call *call, size_t row, double *to)
{
    const struct kl_plan *plan = call->plan;
    const struct kl_tensor *target = &plan->target, *normalizer = plan->sparse.log_normalizer;
    bool is_prob = kl_is_prob(call, KL_TARGET);
    double temperature = kl_temperature_of(call, KL_TARGET), minus = 0;
    size_t first = row * call->k;
    if (normalizer && plan->sparse.tail != KL_TAIL_DROP)
        minus = kl_load(normalizer->dtype, normalizer->data, row);
    call->kernel->widen[target->dtype](
        (const char *)target->data + first * kl_dtype_size(target->dtype), to, call->k);
    for (size_t i = 0; i < call->k; i++) {
        if (call->left_out[first + i])
            to[i] = is_prob ? 0 : -(double)INFINITY;
        else if (!is_prob)
            to[i] = to[i] / temperature - minus;
        if (is_prob && to[i] < 0) {
            fail_at(call, row, KL_TARGET, first + i, "target_negative",
                    "target holds %g, but a probability is never negative", to[i]);
            return false;
        }
    }
    return true;
}

/* The maximum of logarithms that are dropped, for they may be logits; 0 of others, and where there is none but -inf. */
static double max_of_values(const struct kl_sparse_call *call, const double *values)
{
    if (call->plan->sparse.tail != KL_TAIL_DROP || kl_is_prob(call, KL_TARGET))
        return 0;
    double max = call->kernel->row_max[KL_FLOAT64](values, call->k);
    return isfinite(max) ? max : max > 0 ? (double)NAN : 0;
}

/* The sum of values' probabilities over exp(max). Exponentials go to the memory of the row of input, which is gathered later. */
static struct kl_sum sum_values(const struct kl_sparse_call *call, size_t row, const double *values,
                                double max)
{
    double *exps = call->operands[KL_INPUT] + row * call->columns;
    if (kl_is_prob(call, KL_TARGET))
        return call->kernel->total(values, call->k);
    for (size_t i = 0; i < call->k; i++)
        exps[i] = values[i] - max;
    call->kernel->exps(exps, exps, call->k);
    return call->kernel->total(exps, call->k);
}

/* Gathers target's probabilities or their logarithms. */
static bool gather_target(struct kl_sparse_call *call, size_t row)
{
    const struct kl_plan *plan = call->plan;
    bool drops = plan->sparse.tail == KL_TAIL_DROP, is_prob = kl_is_prob(call, KL_TARGET);
    double *to = call->operands[KL_TARGET] + row * call->columns;
    if (!read_values(call, row, to))
        return false;
    double max = max_of_values(call, to);
    struct kl_sum sum = sum_values(call, row, to, max);
    double mass = kl_sum_value(sum), rest = 1 - sum.high - sum.low;
    call->of_rows[row].mass = max == 0 ? mass : mass * exp(max);
    if (drops && !is_prob) {
        double log_mass = max + log(mass), error = max - log_mass + log(mass); /* of its rounding */
        for (size_t i = 0; i < call->k; i++)
            to[i] = to[i] - log_mass - error;
    }
    for (size_t i = 0; drops && is_prob && i < call->k; i++)
        to[i] /= mass;
    if (drops ? is_prob && isinf(mass) : rest < -excesses[plan->target.dtype]) {
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
