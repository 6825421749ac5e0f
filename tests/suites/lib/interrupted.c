/* Calls that are stopped, or lack memory, at each point in turn: they fail and say so, or their results are whole. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNT = 30000, MAX_POINTS = 3000 };

static char data[KL_OPERANDS][MAX_COUNT * 8], weights[MAX_COUNT * 8];
static unsigned char mask[MAX_COUNT];

/* results: all that a call may give, and what is wanted of it. */
struct outcome {
    char loss[MAX_COUNT * 8], grads[KL_OPERANDS][MAX_COUNT * 8];
    struct kl_diagnosis diagnosis;
    struct kl_partial partial;
};
enum way { RUN, GRADIENTS, DIAGNOSED, DIAGNOSED_GRADIENTS, DIAGNOSE, PARTIAL, WAYS };

/* The number of times that a call has asked whether it is stopped, and from which one on it is. */
static long asked, stop_at;

static bool is_stopped(const void *context)
{
    (void)context;
    return asked++ >= stop_at;
}

static bool call(const struct kl_plan *plan, enum way way, struct outcome *to,
                 struct kl_problem *problem)
{
    const bool has_loss = way == GRADIENTS || way == DIAGNOSED,
               has_grads = way == GRADIENTS || way == DIAGNOSED_GRADIENTS;
    const struct kl_results results = {
        has_loss ? to->loss : NULL,
        {has_grads ? to->grads[0] : NULL, has_grads ? to->grads[1] : NULL},
        way == GRADIENTS ? NULL : &to->diagnosis};
    memset(to, 0, sizeof *to);
    *problem = (struct kl_problem){.code = NULL};
    asked = 0;
    return way == RUN        ? kl_run(plan, NULL, to->loss, problem)
           : way == DIAGNOSE ? kl_diagnose(plan, NULL, &to->diagnosis, problem)
           : way == PARTIAL  ? kl_run_partial(plan, NULL, &to->partial, problem)
                             : kl_run_gradients(plan, NULL, NULL, &results, problem);
}

/* Interrupts a call at each point, of some where there are many. */
static void interrupt(const struct kl_plan *plan, enum way way, const char *what)
{
    static struct outcome whole, part;
    struct kl_problem problem;
    stop_at = 1L << 40;
    bool good = call(plan, way, &whole, &problem);
    const long points = asked, step = points / 40 + 1;
    for (stop_at = 0; good && stop_at < points; stop_at += step) {
        bool passed = call(plan, way, &part, &problem);
        if (passed ? memcmp(&whole, &part, sizeof whole) != 0
                   : strcmp(problem.code, "stopped") != 0)
            cr_expect(false, "%s, way %d, stopped at %ld of %ld: %s", what, way, stop_at, points,
                      passed ? "not whole" : problem.code);
    }
    stop_at = 1L << 40;
    for (long n = 0, failed = 1; good && failed && n < MAX_POINTS; n++) {
        fail_allocation(n, false);
        fail_now(true);
        bool passed = call(plan, way, &part, &problem);
        fail_now(false);
        failed = allocation_failed();
        if (passed ? memcmp(&whole, &part, sizeof whole) != 0
                   : strcmp(problem.code, "out_of_memory") != 0)
            cr_expect(false, "%s, way %d, allocation %ld fails: %s", what, way, n,
                      passed ? "not whole" : problem.code);
    }
}

static void interrupt_all(const struct kl_plan *plan, const char *what)
{
    struct kl_plan stoppable = *plan;
    stoppable.stopped = is_stopped;
    for (enum way way = RUN; way < WAYS; way++)
        if (way != PARTIAL || plan->reduction != KL_NONE)
            interrupt(&stoppable, way, what);
}

/* Losses each of which is finite, and whose sum float16 does not hold. */
Test(interrupted, diagnoses_of_a_sum_that_overflows)
{
    const size_t shapes[][2] = {{64, 400}, {1, 400}};
    struct kl_tensor input = {KL_FLOAT16, 2, shapes[0], data[0]};
    struct kl_tensor target = {KL_FLOAT16, 2, shapes[0], data[1]};
    struct kl_options options = {.reduction = KL_SUM, .broadcast = true};
    struct kl_problem problem;
    struct kl_plan plan;
    static struct outcome outcome;
    for (size_t i = 0; i < MAX_COUNT; i++)
        kl_store(KL_FLOAT16, data[0], i, -4), kl_store(KL_FLOAT16, data[1], i, 1);
    for (int broadcast = 0; broadcast < 2; broadcast++) {
        target.shape = shapes[broadcast];
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
        cr_assert(call(&plan, DIAGNOSE, &outcome, &problem));
        cr_expect_eq(outcome.diagnosis.findings[KL_LOSS_NOT_FINITE].count, 64);
        interrupt_all(&plan, broadcast ? "broadcast" : "flat");
    }
}

static size_t choose(unsigned long long *state, size_t n)
{
    return (size_t)(uniform(state) * (double)n);
}

/* Fills an operand with ordinary numbers, or with such as a sum of overflows, or some of which have no loss. */
static void fill(enum kl_dtype dtype, enum kl_space space, char *to, unsigned long long *state)
{
    size_t kind = choose(state, 3);
    for (size_t i = 0; i < MAX_COUNT; i++) {
        double v = uniform(state) * (space == KL_LOG_PROB ? -4 : 1);
        v = kind == 1 ? 300 * v : kind == 2 && i % 997 == 5 ? (double)NAN : v;
        kl_store(dtype, to, i, v);
    }
}

Test(interrupted, random_calls)
{
    enum { ROUNDS = SOME_OF(150) };
    static const int last[] = {-1};
    unsigned long long state = 9;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t shape[] = {1 + choose(&state, 9), 1 + choose(&state, 9),
                                1 + choose(&state, 300)};
        enum kl_dtype dtypes[KL_OPERANDS];
        enum kl_space spaces[KL_OPERANDS];
        for (int k = 0; k < KL_OPERANDS; k++) {
            dtypes[k] = (enum kl_dtype)choose(&state, KL_DTYPES);
            spaces[k] = (enum kl_space)(KL_LOG_PROB + choose(&state, 3));
            fill(dtypes[k], spaces[k], data[k], &state);
        }
        fill(KL_FLOAT32, KL_PROB, weights, &state);
        for (size_t i = 0; i < MAX_COUNT; i++)
            mask[i] = uniform(&state) < 0.8;
        size_t cut = choose(&state, 2), n_dim = choose(&state, 2);
        const struct kl_tensor input = {dtypes[0], 3, shape, data[0]};
        const struct kl_tensor target = {dtypes[1], 3 - cut, shape + cut, data[1]};
        const struct kl_tensor weight = {KL_FLOAT32, 3 - n_dim, shape, weights};
        const struct kl_mask kept = {3 - n_dim, shape, mask};
        const struct kl_options options = {.reduction = (enum kl_reduction)choose(&state, 4),
                                           .compat = (enum kl_compat)choose(&state, 3),
                                           .input_space = spaces[0],
                                           .target_space = spaces[1],
                                           .broadcast = true,
                                           .dim = last,
                                           .n_dim = n_dim,
                                           .weight = choose(&state, 3) ? NULL : &weight,
                                           .mask = choose(&state, 3) ? NULL : &kept};
        struct kl_plan plan;
        char what[40];
        snprintf(what, sizeof what, "round %d", round);
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
        interrupt_all(&plan, what);
    }
}

/* Rows of several tiles, whose derivatives are found from memory that may be lacking. */
Test(interrupted, mixtures_of_long_rows)
{
    static const int last[] = {-1};
    static const size_t shape[] = {2, 9000};
    unsigned long long state = 10;
    for (int i = 0; i < 4; i++) {
        enum kl_dtype dtype = i % 2 ? KL_FLOAT64 : KL_FLOAT32;
        struct kl_options options = {.reduction = KL_SUM,
                                     .divergence = i < 2 ? KL_JS : KL_SKEW,
                                     .input_space = KL_LOGIT,
                                     .target_space = KL_LOGIT,
                                     .dim = last,
                                     .n_dim = 1};
        *(i < 2 ? &options.beta : &options.alpha) = 0.3;
        for (int k = 0; k < KL_OPERANDS; k++)
            fill(dtype, KL_LOGIT, data[k], &state);
        const struct kl_tensor input = {dtype, 2, shape, data[0]};
        const struct kl_tensor target = {dtype, 2, shape, data[1]};
        struct kl_plan plan;
        cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
        interrupt_all(&plan, i < 2 ? "js" : "skew");
    }
}

/* Rows that were not gathered before the call was stopped are not read: each task that
 * gathers asks once, and the call after them. */
Test(interrupted, sparse_targets)
{
    enum { ROWS = 12, N = 2000, K = 5 };
    static const size_t shapes[KL_OPERANDS][2] = {{ROWS, N}, {ROWS, K}};
    static int32_t indices[ROWS * K];
    unsigned long long state = 11;
    for (size_t i = 0; i < COUNT(indices); i++)
        indices[i] = (int32_t)(i % K * 7);
    fill(KL_FLOAT32, KL_LOGIT, data[0], &state);
    for (size_t i = 0; i < COUNT(indices); i++)
        kl_store(KL_FLOAT32, data[1], i, 0.1);
    const struct kl_tensor input = {KL_FLOAT32, 2, shapes[0], data[0]},
                           target = {KL_FLOAT32, 2, shapes[1], data[1]};
    const struct kl_sparse sparse = {.indices = indices};
    const struct kl_options options = {
        .reduction = KL_SUM, .input_space = KL_LOGIT, .sparse = &sparse};
    static struct outcome outcome;
    struct kl_problem problem;
    struct kl_plan plan;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    interrupt_all(&plan, "sparse");
    plan.stopped = is_stopped;
    stop_at = 0;
    long tasks = 2; /* of KL_CHUNK elements */
    cr_expect_not(call(&plan, GRADIENTS, &outcome, &problem));
    cr_expect_eq(asked, tasks + 1, "%ld", asked);
}

/* ---- How long a call goes on without asking */

/* MAX_SECONDS: a hundred times what the header says, of a machine that others use, too. */
#define MAX_SECONDS 1e-3
enum { LONG = 1 << 22, MASKED = 5 };

static double last_asked, longest;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool watch(const void *context)
{
    (void)context;
    longest = fmax(longest, now() - last_asked);
    last_asked = now();
    return false;
}

/* long_call: a call of float32 elements x and t. Of its mask, and of the elements below it, one is hidden, and
 * negative. */
struct long_call {
    const char *name;
    enum way way;
    size_t shape[2];
    struct kl_options options;
    bool weighs, masks, broadcasts;
    float x, t;
};

/* The longest time, in seconds of the thread, in the best of some runs. */
static double longest_of(const struct kl_plan *plan, enum way way)
{
    char *loss = malloc(LONG * 4), *grads[KL_OPERANDS] = {malloc(LONG * 4), malloc(LONG * 4)};
    static struct kl_diagnosis diagnosis;
    static struct kl_partial partial;
    const struct kl_results results = {
        loss, {way == GRADIENTS ? grads[0] : NULL, way == GRADIENTS ? grads[1] : NULL}, NULL};
    const struct kl_results grads_alone = {NULL, {grads[0], NULL}, NULL};
    double best = INFINITY;
    for (int i = 0; i < 5; i++) {
        longest = 0, last_asked = now();
        bool good =
            way == PARTIAL ? kl_run_partial(plan, NULL, &partial, NULL)
            : way == DIAGNOSE
                ? kl_diagnose(plan, NULL, &diagnosis, NULL)
                : kl_run_gradients(plan, NULL, NULL,
                                   way == DIAGNOSED_GRADIENTS ? &grads_alone : &results, NULL);
        cr_assert(good);
        watch(NULL);
        best = fmin(best, longest);
    }
    free(loss), free(grads[0]), free(grads[1]);
    return best;
}

static double longest_of_call(const struct long_call *call)
{
    enum { SIZE = LONG * sizeof(float) };
    float *x = malloc(SIZE), *t = malloc(SIZE), *weights_of_all = malloc(SIZE);
    unsigned char *unmasked = malloc(LONG);
    for (size_t i = 0; i < LONG; i++)
        x[i] = call->x, t[i] = call->t, weights_of_all[i] = 1, unmasked[i] = 1;
    if (call->masks)
        unmasked[MASKED] = 0, t[MASKED] = -1;
    struct kl_tensor input = {KL_FLOAT32, 2, call->shape, x};
    struct kl_tensor target = {KL_FLOAT32, 2 - call->broadcasts, call->shape + call->broadcasts, t};
    struct kl_tensor weight = {KL_FLOAT32, 2, call->shape, weights_of_all};
    struct kl_mask kept = {2, call->shape, unmasked};
    struct kl_options options = call->options;
    struct kl_plan plan;
    options.broadcast = call->broadcasts;
    options.weight = call->weighs ? &weight : NULL;
    options.mask = call->masks ? &kept : NULL;
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL), "%s", call->name);
    plan.stopped = watch;
    double seconds = longest_of(&plan, call->way);
    free(x), free(t), free(weights_of_all), free(unmasked);
    return seconds;
}

#define LOGITS .input_space = KL_LOGIT, .target_space = KL_LOGIT

Test(interrupted, calls_ask_every_few_microseconds)
{
    static const int last[] = {-1};
    static const struct long_call calls[] = {
        {"a sum", RUN, {1, LONG}, {.reduction = KL_SUM}, 0, 0, 0, -1, 0.5f},
        {"losses", RUN, {1, LONG}, {.reduction = KL_NONE, .compat = KL_MATH}, 0, 0, 0, -1, 0.5f},
        {"weights", RUN, {2, LONG / 2}, {.reduction = KL_MEAN}, 1, 0, 0, -1, 0.5f},
        {"masked weights", PARTIAL, {2, LONG / 2}, {.reduction = KL_MEAN}, 1, 1, 0, -1, 0.5f},
        {"entries", RUN, {LONG / 2, 2}, {.reduction = KL_BATCHMEAN}, 0, 1, 0, -1, 0.5f},
        {"a mask", RUN, {2, LONG / 2}, {.reduction = KL_MEAN}, 0, 1, 0, -1, 0.5f},
        {"NaN", RUN, {1, LONG}, {.reduction = KL_SUM, .compat = KL_MATH}, 0, 0, 0, NAN, 0.5f},
        {"masked NaN",
         RUN,
         {1, LONG},
         {.reduction = KL_SUM, .compat = KL_MATH},
         0,
         1,
         0,
         NAN,
         0.5f},
        {"derivatives", DIAGNOSED_GRADIENTS, {1, LONG}, {.compat = KL_MATH}, 0, 1, 0, -1, 0.5f},
        {"a broadcast", GRADIENTS, {64, LONG / 64}, {.reduction = KL_SUM}, 0, 0, 1, -1, 0.5f},
        {"logits", GRADIENTS, {1, LONG}, {.reduction = KL_SUM, LOGITS}, 0, 0, 0, -1, 0.5f},
        {"masked logits", GRADIENTS, {1, LONG}, {.reduction = KL_SUM, LOGITS}, 0, 1, 0, -1, 0.5f},
        {"rows", RUN, {2, LONG / 2}, {.dim = last, .n_dim = 1}, 0, 0, 0, -1, 0.5f},
        {"a diagnosis", DIAGNOSE, {2, LONG / 2}, {.reduction = KL_SUM}, 0, 0, 0, -1, 0.5f},
        {"that of weights", DIAGNOSE, {2, LONG / 2}, {.reduction = KL_SUM}, 1, 0, 0, -1, 0.5f},
        {"that of NaN", DIAGNOSE, {2, LONG / 2}, {.reduction = KL_SUM}, 0, 0, 0, -1, NAN},
        {"that of logits",
         DIAGNOSE,
         {2, LONG / 2},
         {.reduction = KL_SUM, LOGITS},
         0,
         1,
         0,
         -1,
         0.5f},
    };
    for (size_t i = 0; i < COUNT(calls); i++) {
        double seconds = longest_of_call(&calls[i]);
        cr_expect_lt(seconds, MAX_SECONDS, "%s: %.0f us", calls[i].name, 1e6 * seconds);
    }
}
