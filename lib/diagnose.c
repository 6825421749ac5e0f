#include "lib/pool.h"
#include "lib/problem.h"
#include "lib/survey.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { X, T };

/* Of one kind of finding: rows it was made in, and the sums of their probabilities. */
struct tally {
    size_t count, first; /* row */
    size_t hints;        /* rows among them that look like probabilities */
    double least, greatest;
};

struct tallies {
    size_t rows; /* looked at */
    struct tally of[KL_FINDINGS];
};

struct diagnosis {
    struct kl_look look;
    double slack[2]; /* what a normalized row's sum may differ from 1 */
    size_t at_once;  /* rows in a piece */
    struct tallies *pieces;
};

static const char *const codes[KL_FINDINGS] = {
    [KL_INPUT_NOT_LOG_PROBABILITIES] = "input_not_log_probabilities",
    [KL_INPUT_NOT_NORMALIZED] = "input_not_normalized",
    [KL_TARGET_NOT_NORMALIZED] = "target_not_normalized",
    [KL_TARGET_NEGATIVE] = "target_negative",
    [KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES] = "target_looks_like_log_probabilities",
    [KL_ARGUMENTS_LOOK_SWAPPED] = "arguments_look_swapped",
};

const char *kl_finding_code(enum kl_finding finding) { return codes[finding]; }

/* ---- One row */

static void note(struct tallies *tallies, enum kl_finding finding, size_t row, double sum,
                 bool hint)
{
    struct tally *tally = &tallies->of[finding];
    if (tally->count++ == 0) {
        tally->first = row;
        tally->least = tally->greatest = sum;
    }
    tally->hints += hint;
    tally->least = fmin(tally->least, sum);
    tally->greatest = fmax(tally->greatest, sum);
}

static bool is_one(const struct diagnosis *d, int operand, double sum)
{
    return fabs(sum - 1) <= d->slack[operand];
}

/* Whether a row's numbers would do as probabilities. */
static bool looks_like_probabilities(const struct diagnosis *d, int operand,
                                     const struct kl_surveys *s, size_t i)
{
    return s->least[i] >= 0 && is_one(d, operand, s->sum[i]);
}

/* The sum of a row's probabilities where it is wrong, else 1. What is hidden of a row may be what is
 * missing. NaN is none of our business. */
static double wrong_sum(const struct diagnosis *d, int operand, const struct kl_surveys *s,
                        size_t i)
{
    enum kl_space space = d->look.plan->spaces[operand];
    double sum = space == KL_PROB ? s->sum[i] : space == KL_LOG_PROB ? s->exps[i] : 1;
    bool partly_hidden = d->look.mask.data && d->look.layout.each;
    bool fine = isnan(sum) || is_one(d, operand, sum) || (partly_hidden && sum < 1);
    return fine ? 1 : sum;
}

/* Most rows are: then there is nothing more to ask. */
static bool is_sound(const struct diagnosis *d, int operand, const struct kl_surveys *s, size_t i)
{
    switch (d->look.plan->spaces[operand]) {
    case KL_LOG_PROB:
        return s->greatest[i] <= 0 && is_one(d, operand, s->exps[i]);
    case KL_PROB:
        return s->least[i] >= 0 && is_one(d, operand, s->sum[i]);
    default:
        return true;
    }
}

static void judge_input(const struct diagnosis *d, const struct kl_surveys *s, size_t i, size_t row,
                        struct tallies *tallies)
{
    bool is_log = d->look.plan->spaces[X] == KL_LOG_PROB;
    bool hint = looks_like_probabilities(d, X, s, i);
    double sum = wrong_sum(d, X, s, i);
    if (is_log && s->greatest[i] > 0)
        note(tallies, KL_INPUT_NOT_LOG_PROBABILITIES, row, s->greatest[i], hint);
    if (sum != 1)
        note(tallies, KL_INPUT_NOT_NORMALIZED, row, sum, is_log && hint);
}

static void judge_target(const struct diagnosis *d, const struct kl_surveys *s, size_t i,
                         size_t row, struct tallies *tallies)
{
    bool is_prob = d->look.plan->spaces[T] == KL_PROB;
    double sum = wrong_sum(d, T, s, i);
    if (is_prob && s->least[i] < 0)
        note(tallies, KL_TARGET_NEGATIVE, row, s->least[i], false);
    if (sum != 1)
        note(tallies, KL_TARGET_NOT_NORMALIZED, row, sum,
             !is_prob && looks_like_probabilities(d, T, s, i));
}

/* A row of a target of probabilities none of which is above 0: its exponentials are looked at only
 * now. */
static void judge_logarithms(const struct diagnosis *d, const struct kl_surveys *input, size_t i,
                             const struct kl_surveys *exps, size_t row, struct tallies *tallies)
{
    if (exps->greatest[i] > 0 || exps->least[i] == 0 || !is_one(d, T, exps->exps[i]))
        return;
    note(tallies, KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES, row, exps->exps[i], false);
    if (d->look.plan->spaces[X] == KL_LOG_PROB && looks_like_probabilities(d, X, input, i))
        note(tallies, KL_ARGUMENTS_LOOK_SWAPPED, row, 1, false);
}

/* ---- Some rows */

static bool any_without_positive(const struct kl_surveys *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(s->greatest[i] > 0) && s->least[i] < 0)
            return true;
    return false;
}

static void judge(const struct diagnosis *d, size_t row, size_t n, struct tallies *tallies)
{
    const struct kl_look *look = &d->look;
    const enum kl_space *spaces = look->plan->spaces;
    struct kl_surveys input, target, exps;
    kl_survey_rows(look, X, row, n, spaces[X] == KL_LOG_PROB, &input);
    kl_survey_rows(look, T, row, n, spaces[T] == KL_LOG_PROB, &target);
    bool logarithms = spaces[T] == KL_PROB && any_without_positive(&target, n);
    if (logarithms)
        kl_survey_rows(look, T, row, n, true, &exps);
    for (size_t i = 0; i < n; i++) {
        if (!look->layout.each && kl_is_hidden(look, row + i, 0))
            continue;
        tallies->rows++;
        if (is_sound(d, X, &input, i) && is_sound(d, T, &target, i))
            continue;
        judge_input(d, &input, i, row + i, tallies);
        judge_target(d, &target, i, row + i, tallies);
        if (logarithms)
            judge_logarithms(d, &input, i, &exps, row + i, tallies);
    }
}

static void run_piece(void *context, size_t piece)
{
    const struct diagnosis *d = context;
    size_t all = d->look.layout.across.volume, row = piece * d->at_once;
    size_t end = all - row < d->at_once ? all : row + d->at_once;
    for (; row < end; row += d->look.tile.rows)
        judge(d, row, end - row < d->look.tile.rows ? end - row : d->look.tile.rows,
              &d->pieces[piece]);
}

static void join(struct tallies *all, const struct tallies *piece)
{
    all->rows += piece->rows;
    for (int i = 0; i < KL_FINDINGS; i++) {
        struct tally *to = &all->of[i];
        const struct tally *from = &piece->of[i];
        if (from->count == 0)
            continue;
        bool first = to->count == 0;
        to->first = first ? from->first : to->first;
        to->least = first ? from->least : fmin(to->least, from->least);
        to->greatest = first ? from->greatest : fmax(to->greatest, from->greatest);
        to->count += from->count;
        to->hints += from->hints;
    }
}

/* ---- What is said */

/* The first element of a row that is above 0, or with `negative` below. */
static size_t find_element(const struct kl_look *look, int operand, size_t row, bool negative)
{
    const struct kl_numbers *numbers = &look->operands[operand];
    size_t base = kl_offset(&look->layout.across, numbers->array, row), at = base;
    for (size_t i = 0; i < look->layout.along.volume; i++) {
        at = base + kl_offset(&look->layout.along, numbers->array, i);
        double v = kl_load(numbers->dtype, numbers->data, at);
        if ((negative ? v < 0 : v > 0) && !kl_is_hidden(look, row, i))
            break;
    }
    return at;
}

static void say_sums(const char *what, const struct tally *tally, size_t rows, const char *hint,
                     char *to, size_t size)
{
    char range[60];
    if (tally->least == tally->greatest)
        snprintf(range, sizeof range, "%.4g", tally->least);
    else
        snprintf(range, sizeof range, "%.4g to %.4g", tally->least, tally->greatest);
    snprintf(to, size, "the row sums of %s are %s in %zu of %zu rows, and not 1%s", what, range,
             tally->count, rows, hint);
}

static void say(const struct kl_plan *plan, enum kl_finding finding, const struct tally *tally,
                size_t rows, char *to, size_t size)
{
    bool like_probabilities = 2 * tally->hints > tally->count;
    bool prob[2] = {plan->spaces[X] == KL_PROB, plan->spaces[T] == KL_PROB};
    const char *input_hint = like_probabilities
                                 ? ": did you pass probabilities? Use input_space=prob"
                             : prob[X] ? ""
                                       : ": if input holds logits, use input_space=logit";
    switch (finding) {
    case KL_INPUT_NOT_LOG_PROBABILITIES:
        snprintf(to, size,
                 "%zu of %zu rows of input hold values above 0, up to %.4g, and log-probabilities "
                 "never are%s",
                 tally->count, rows, tally->greatest, input_hint);
        return;
    case KL_INPUT_NOT_NORMALIZED:
        say_sums(prob[X] ? "input" : "exp(input)", tally, rows, input_hint, to, size);
        return;
    case KL_TARGET_NOT_NORMALIZED:
        say_sums(prob[T] ? "target" : "exp(target)", tally, rows,
                 like_probabilities ? ": did you pass probabilities? Use target_space=prob, and "
                                      "log_target=false"
                                    : "",
                 to, size);
        return;
    case KL_TARGET_NEGATIVE:
        snprintf(to, size,
                 "%zu of %zu rows of target hold negative values, down to %.4g, and probabilities "
                 "never are",
                 tally->count, rows, tally->least);
        return;
    case KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES:
        snprintf(to, size,
                 "%zu of %zu rows of target are nowhere above 0, and their exponentials sum to 1: "
                 "does it hold log-probabilities? Use log_target=true",
                 tally->count, rows);
        return;
    case KL_ARGUMENTS_LOOK_SWAPPED:
        break;
    }
    snprintf(
        to, size,
        "in %zu of %zu rows input looks like probabilities, and target like log-probabilities: "
        "input takes the model's log-probabilities, and target the observed distribution",
        tally->count, rows);
}

static void report(const struct diagnosis *d, const struct tallies *all,
                   struct kl_diagnosis *diagnosis)
{
    const struct kl_look *look = &d->look;
    diagnosis->rows = all->rows;
    for (int i = 0; i < KL_FINDINGS; i++) {
        const struct tally *tally = &all->of[i];
        enum kl_finding finding = (enum kl_finding)i;
        bool of_target = finding == KL_TARGET_NOT_NORMALIZED || finding == KL_TARGET_NEGATIVE ||
                         finding == KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES;
        bool of_element =
            finding == KL_INPUT_NOT_LOG_PROBABILITIES || finding == KL_TARGET_NEGATIVE;
        int operand = of_target ? T : X;
        diagnosis->findings[i].count = tally->count;
        if (tally->count == 0)
            continue;
        diagnosis->findings[i].operand = of_target ? KL_TARGET : KL_INPUT;
        diagnosis->findings[i].index =
            of_element
                ? find_element(look, operand, tally->first, of_target)
                : kl_offset(&look->layout.across, look->operands[operand].array, tally->first);
        say(look->plan, finding, tally, all->rows, diagnosis->findings[i].message,
            sizeof diagnosis->findings[i].message);
    }
}

static double slack_of(enum kl_dtype dtype)
{
    return dtype == KL_BFLOAT16 ? 5e-2 : dtype == KL_FLOAT16 ? 1e-2 : 1e-3;
}

bool kl_diagnose(const struct kl_plan *plan, struct kl_pool *pool, struct kl_diagnosis *diagnosis,
                 struct kl_problem *problem)
{
    struct diagnosis d = {
        .look = {.plan = plan,
                 .kernel = kl_kernel(),
                 .operands = {{KL_OF_INPUT, plan->input.dtype, false, plan->input.data},
                              {KL_OF_TARGET, plan->target.dtype, false, plan->target.data}},
                 .mask = {KL_OF_MASK, KL_FLOAT64, true, plan->mask.data}},
        .slack = {slack_of(plan->input.dtype), slack_of(plan->target.dtype)}};
    struct kl_patterns patterns;
    struct tallies all = {0};
    diagnosis->rows = 0;
    for (int i = 0; i < KL_FINDINGS; i++)
        diagnosis->findings[i].count = 0;
    if (plan->count == 0)
        return true;
    kl_layout_of_rows(&d.look.layout, plan);
    kl_choose_tile(&d.look.layout, &d.look.tile);
    kl_find_patterns(&patterns, &d.look.layout, &d.look.tile);
    size_t rows = d.look.layout.across.volume, tile = d.look.layout.along.volume * d.look.tile.rows;
    d.at_once = (tile < KL_PIECE ? KL_PIECE / tile : 1) * d.look.tile.rows;
    size_t pieces = (rows + d.at_once - 1) / d.at_once;
    d.pieces = calloc(pieces, sizeof *d.pieces);
    if (!d.pieces)
        return kl_fail(problem, KL_NO_OPERAND, "out_of_memory", "out of memory");
    kl_pool_run(pool, pieces, run_piece, &d);
    for (size_t i = 0; i < pieces; i++)
        join(&all, &d.pieces[i]);
    report(&d, &all, diagnosis);
    free(d.pieces);
    return true;
}
