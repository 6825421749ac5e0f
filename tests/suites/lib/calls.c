/* Stack and heap of calls of every kind; losses have the same bits with and without gradients. */
#include "lib/simd/kernel.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* LOCALS: room for the thread-local variables of this program, some 70 KiB with the server's: glibc puts them on the
 * stack. STACK: bytes of the thread's stack, 64 KiB beside them, part of which glibc uses. MAX: bytes that a call may touch
 * by kldiv.h. Frames of sanitizers are several times as large. */
enum { LOCALS = 80 << 10 };
#ifdef __SANITIZE_ADDRESS__
enum { STACK = LOCALS + (1 << 20), MAX = STACK };
#else
enum { STACK = LOCALS + (64 << 10), MAX = 48 << 10 };
#endif

enum { MAX_COUNT = 40000, UNTOUCHED = 0x5a };

static char data[KL_OPERANDS][MAX_COUNT * 8], grads[KL_OPERANDS][MAX_COUNT * 8];
static char loss[MAX_COUNT * 8], alone[MAX_COUNT * 8], weights[MAX_COUNT * 8];
static unsigned char mask[MAX_COUNT];
static struct kl_plan plan;
static struct kl_diagnosis diagnosis, beside;

/* First problem of a call; the main thread asserts that there is none. */
static struct kl_problem problem;

/* Number of calls that allocated more than kldiv.h allows. */
static size_t too_much;

/* Number of calls whose losses differ in a bit beside gradients or a diagnosis, or whose diagnoses do;
 * any NaN equals any other. */
static size_t different;

static bool same_losses(const char *a, const char *b)
{
    size_t size = kl_dtype_size(plan.dtype), n = plan.loss_size / size;
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i * size, b + i * size, size) != 0 &&
            !(isnan(kl_load(plan.dtype, a, i)) && isnan(kl_load(plan.dtype, b, i))))
            return false;
    return true;
}

static void fill(enum kl_dtype dtype, enum kl_space space, char *array)
{
    unsigned long long state = 4;
    for (size_t i = 0; i < MAX_COUNT; i++)
        kl_store(dtype, array, i,
                 i % 1013 == 50 ? (space == KL_PROB ? 0 : -(double)INFINITY)
                                : uniform(&state) * (space == KL_LOG_PROB ? -4 : 1));
}

static void run_call(const struct kl_tensor *input, const struct kl_tensor *target,
                     const struct kl_options *options)
{
    const struct kl_results results = {loss, {grads[KL_INPUT], grads[KL_TARGET]}, NULL};
    if (kl_plan(&plan, input, target, options, &problem)) {
        kl_run(&plan, NULL, alone, &problem);
        for (int i = 0; i < KL_OPERANDS; i++) {
            struct kl_results one = {loss, {NULL}, NULL};
            one.grad[i] = grads[i];
            kl_run_gradients(&plan, NULL, NULL, &one, &problem);
            different += !same_losses(loss, alone);
        }
        size_t before = bytes_allocated();
        kl_run_gradients(&plan, NULL, NULL, &results, &problem);
        different += !same_losses(loss, alone);
        size_t between = bytes_allocated();
        kl_diagnose(&plan, NULL, &diagnosis, &problem);
        size_t after = bytes_allocated();
        const struct kl_results diagnosed = {loss, {NULL}, &beside};
        kl_run_gradients(&plan, NULL, NULL, &diagnosed, &problem);
        different += !same_losses(loss, alone) || memcmp(&beside, &diagnosis, sizeof beside) != 0;
        /* A diagnosis may compute the loss, too, afterwards. */
        size_t both = kl_scratch_size(&plan, NULL, &diagnosed) + kl_diagnosis_scratch();
        too_much += between - before > kl_scratch_size(&plan, NULL, &results) ||
                    after - between > both || bytes_allocated() - after > 2 * both;
    }
}

/* Runs one shape and its dtypes, with and without dim, weight, mask, broadcasting and reduction. */
static void run_options(size_t ndim, const size_t *shape, struct kl_options options,
                        const enum kl_dtype *dtypes)
{
    static const int axes[] = {0, 1, 2};
    for (int dim = -1; dim < (int)ndim; dim++)
        for (int bits = 0; bits < 16; bits++) {
            size_t left[3], n_left = 0;
            for (size_t i = 0; i < ndim; i++)
                if (dim != (int)i)
                    left[n_left++] = shape[i];
            struct kl_tensor input = {dtypes[KL_INPUT], ndim, shape, data[KL_INPUT]};
            struct kl_tensor target = {dtypes[KL_TARGET], ndim, shape, data[KL_TARGET]};
            struct kl_tensor weight = {KL_FLOAT32, n_left, left, weights};
            struct kl_mask kept = {n_left, left, mask};
            options.dim = dim >= 0 ? axes + dim : NULL, options.n_dim = dim >= 0;
            options.weight = bits & 1 ? &weight : NULL;
            options.mask = bits & 2 ? &kept : NULL;
            options.broadcast = bits & 4;
            options.compat = (enum kl_compat)((dim + 1 + bits) % 3);
            options.reduction = bits & 8 ? KL_NONE : KL_MEAN;
            if (options.broadcast)
                target.ndim--, target.shape++;
            run_call(&input, &target, &options);
        }
}

static void run_spaces(const enum kl_dtype *dtypes)
{
    static const struct {
        size_t ndim, shape[3];
    } shapes[] = {{2, {70, 7}}, {2, {2, 1500}}, {2, {30, 100}}, {3, {6, 10, 30}}};
    for (int i = 0; i < 10; i++) { /* the last time a mixture of logits */
        int both = i < 9 ? i : 8;
        struct kl_options options = {.input_space = (enum kl_space)(KL_LOG_PROB + both % 3),
                                     .target_space = (enum kl_space)(KL_LOG_PROB + both / 3),
                                     .divergence = i < 9 ? KL_FORWARD : KL_JS,
                                     .beta = i < 9 ? 0 : 0.5};
        fill(dtypes[KL_INPUT], options.input_space, data[KL_INPUT]);
        fill(dtypes[KL_TARGET], options.target_space, data[KL_TARGET]);
        for (size_t j = 0; j < COUNT(shapes); j++)
            run_options(shapes[j].ndim, shapes[j].shape, options, dtypes);
    }
}

/* Start of the thread-local variables, 17 KiB at the top of the thread's stack. */
static char *begin;

static void *run_everything(void *unused)
{
    begin = __builtin_frame_address(0);
    static const enum kl_dtype dtypes[][KL_OPERANDS] = {
        {KL_FLOAT32, KL_FLOAT32}, {KL_FLOAT64, KL_FLOAT16}, {KL_BFLOAT16, KL_FLOAT32}};
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        for (size_t i = 0; (*k)->supported() && i < COUNT(dtypes); i++) {
            kl_simd_select((*k)->name, &problem);
            run_spaces(dtypes[i]);
        }
    return unused;
}

Test(calls, take_scratch_from_the_heap_as_kl_scratch_size_says_and_64_kib_of_stack)
{
    pthread_attr_t attributes;
    pthread_t thread;
    char *touched;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = before_the_edge(STACK + page), *stack = map + page;
    cr_assert_eq(mprotect(map, page, PROT_NONE), 0);
    fill(KL_FLOAT32, KL_PROB, weights);
    for (size_t i = 0; i < MAX_COUNT; i++)
        mask[i] = i % 3 != 0;
    memset(stack, UNTOUCHED, STACK);
    pthread_attr_init(&attributes);
    cr_assert_eq(pthread_attr_setstack(&attributes, stack, STACK), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, run_everything, NULL), 0);
    pthread_join(thread, NULL);
    cr_expect_null(problem.code, "%s", problem.detail);
    cr_expect_eq(different, 0, "%zu losses differ beside gradients", different);
    cr_expect_eq(too_much, 0, "%zu calls allocate more than kl_scratch_size", too_much);
    for (touched = stack; touched < begin && *touched == UNTOUCHED;)
        touched++;
    cr_expect_leq(begin - touched, MAX, "%td bytes of stack", begin - touched);
    unmap(map, STACK + page);
}

/* Gives grad_output a number that is no dtype, with and without a reduction. */
static void expect_no_dtype(enum kl_dtype dtype)
{
    const size_t shape[] = {2};
    double x[] = {-1, -2}, slope[2];
    const struct kl_tensor operand = {KL_FLOAT64, 1, shape, x};
    const struct kl_results results = {NULL, {slope, NULL}, NULL};
    for (enum kl_reduction reduction = KL_SUM; reduction <= KL_NONE; reduction++) {
        const struct kl_options options = {.reduction = reduction, .log_target = true};
        struct kl_tensor grad_output = {dtype, reduction == KL_NONE, shape, x};
        struct kl_problem refused = {0};
        cr_assert(kl_plan(&plan, &operand, &operand, &options, NULL));
        cr_expect_not(kl_run_gradients(&plan, &grad_output, NULL, &results, &refused), "%d",
                      (int)dtype);
        cr_expect_str_eq(refused.code, "dtype_invalid");
        cr_expect_eq(refused.operand, KL_GRAD_OUTPUT);
    }
}

/* Enums come from callers in C, where any number fits. */
Test(calls, numbers_that_no_enum_has_are_refused)
{
    static const int numbers[] = {-2147483647 - 1, -1, 4, 5, 7, 9, 99, 1 << 20, 2147483647};
    struct kl_partial partial = {.zero_if_empty = false};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        int n = numbers[i];
        bool is_finding = n >= 0 && n < KL_FINDINGS;
        const struct kl_warning_text *text = kl_warning_text((enum kl_warning)n, KL_SUM);
        cr_expect_null(kl_dtype_name((enum kl_dtype)n), "%d", n);
        cr_expect_eq(kl_dtype_size((enum kl_dtype)n), 0, "%d", n);
        cr_expect_eq(kl_reduction_name((enum kl_reduction)n) != NULL, n == KL_ELEMENTWISE_MEAN,
                     "%d", n);
        cr_expect_eq(kl_finding_code((enum kl_finding)n) != NULL, is_finding, "%d", n);
        cr_expect_null(text, "%d", n);
        cr_expect_null(kl_warning_text(KL_SIZE_AVERAGE_REDUCE_DEPRECATED, (enum kl_reduction)n),
                       "%d", n);
        cr_expect(isnan(kl_partial_loss(&partial, KL_SUM, (enum kl_dtype)n)), "%d", n);
        expect_no_dtype((enum kl_dtype)n);
    }
    cr_expect_null(kl_warning_text(KL_SIZE_AVERAGE_REDUCE_DEPRECATED, KL_BATCHMEAN));
    cr_expect_str_eq(kl_warning_text(KL_SIZE_AVERAGE_REDUCE_DEPRECATED, KL_NONE)->code,
                     "size_average_reduce_deprecated");
}

Test(calls, for_plain_losses_allocate_nothing)
{
    static const struct {
        size_t count;
        enum kl_reduction reduction;
    } cases[] = {{10, KL_SUM}, {10, KL_NONE}, {1 << 21, KL_SUM}, {1 << 21, KL_NONE}};
    char *x = calloc(1 << 21, sizeof(float));
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kl_tensor tensor = {KL_FLOAT32, 1, &cases[i].count, x};
        struct kl_options options = {.reduction = cases[i].reduction};
        cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL));
        void *losses = malloc(plan.loss_size);
        const struct kl_results results = {losses, {NULL}, NULL};
        size_t before = bytes_allocated();
        cr_assert(kl_run(&plan, NULL, losses, NULL));
        cr_expect_eq(bytes_allocated() - before, kl_scratch_size(&plan, NULL, &results), "case %zu",
                     i);
        cr_expect_eq(bytes_allocated(), before, "case %zu", i);
        free(losses);
    }
    free(x);
}

Test(calls, of_long_rows_take_scratch_for_each_thread)
{
    enum { ROWS = 12, LENGTH = 5000, OF_A_LOGIT = 16 };
    static float logits[ROWS * LENGTH], slopes[KL_OPERANDS][ROWS * LENGTH];
    static const size_t shape[] = {ROWS, LENGTH};
    const struct kl_tensor x = {KL_FLOAT32, 2, shape, logits};
    const struct kl_options mixture = {.divergence = KL_JS,
                                       .beta = 0.5,
                                       .dim = (const int[]){1},
                                       .n_dim = 1,
                                       .input_space = KL_LOGIT,
                                       .target_space = KL_LOGIT};
    float value;
    const struct kl_results results = {&value, {slopes[KL_INPUT], slopes[KL_TARGET]}, NULL};
    struct kl_pool *pool = kl_pool_new(3);
    cr_assert(kl_plan(&plan, &x, &x, &mixture, NULL));
    cr_expect_eq(kl_scratch_size(&plan, pool, &results) - kl_scratch_size(&plan, NULL, &results),
                 2 * OF_A_LOGIT * LENGTH * KL_OPERANDS);
    kl_pool_free(pool);
}

Test(calls, without_memory_fail_before_anything_is_written)
{
    enum { N = 600 };
    static const int last[] = {-1};
    const size_t shape[] = {20, N / 20};
    struct kl_tensor input = {KL_FLOAT32, 2, shape, data[KL_INPUT]};
    struct kl_tensor target = {KL_FLOAT32, 1, shape + 1, data[KL_TARGET]};
    const struct kl_options options = {
        .reduction = KL_NONE, .input_space = KL_LOGIT, .broadcast = true, .dim = last, .n_dim = 1};
    const struct kl_results results = {loss, {grads[KL_INPUT], grads[KL_TARGET]}, NULL};
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    for (long n = 0;; n++) {
        problem.code = NULL;
        memset(loss, UNTOUCHED, N), memset(grads, UNTOUCHED, sizeof grads);
        fail_allocation(n, false);
        fail_now(true);
        bool good = kl_run_gradients(&plan, NULL, NULL, &results, &problem);
        fail_now(false);
        cr_assert_eq(good, !allocation_failed());
        if (good) {
            cr_expect_gt(n, 0, "no allocation has failed");
            break;
        }
        cr_expect_str_eq(problem.code, "out_of_memory");
        cr_expect_eq(loss[0], UNTOUCHED);
        cr_expect_eq(grads[KL_INPUT][0], UNTOUCHED);
        cr_expect_eq(grads[KL_TARGET][0], UNTOUCHED);
    }
}
