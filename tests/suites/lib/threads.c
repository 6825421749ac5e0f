/* The pool: equal bits for any number of threads, and many concurrent callers. */
#include "lib/threads/pool.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { N = SOME_OF(300001) };

static double loss_with(struct kl_pool *pool, enum kl_dtype dtype, const void *x, const void *t)
{
    size_t shape[] = {N};
    struct kl_tensor input = {dtype, 1, shape, x}, target = {dtype, 1, shape, t};
    struct kl_options options = {.reduction = KL_SUM};
    struct kl_plan plan;
    double loss = 0;
    char cell[8];
    cr_assert(kl_plan(&plan, &input, &target, &options, NULL));
    cr_assert(kl_run(&plan, pool, cell, NULL));
    loss = kl_load(dtype, cell, 0);
    return loss;
}

Test(threads, do_not_change_a_single_bit)
{
    double *x = malloc(N * sizeof *x), *t = malloc(N * sizeof *t);
    unsigned long long state = 11;
    for (enum kl_dtype dtype = 0; dtype < KL_DTYPES; dtype++) {
        for (size_t i = 0; i < N; i++) {
            kl_store(dtype, x, i, -5 * uniform(&state));
            kl_store(dtype, t, i, uniform(&state));
        }
        double alone = loss_with(NULL, dtype, x, t);
        for (size_t threads = 1; threads <= 16; threads++) {
            struct kl_pool *pool = kl_pool_new(threads);
            cr_assert_eq(kl_pool_threads(pool), threads);
            for (int i = 0; i < 3; i++)
                cr_expect_eq(loss_with(pool, dtype, x, t), alone);
            kl_pool_free(pool);
        }
    }
    free(x);
    free(t);
}

static void count_task(void *context, size_t i, void *scratch)
{
    (void)scratch;
    atomic_uchar *done = context;
    atomic_fetch_add(&done[i], 1);
}

/* Runs many loops; returns, as a pointer, the number of chunks that did not run exactly once. */
static void *run_many(void *pool)
{
    static _Thread_local atomic_uchar done[1000];
    size_t wrong = 0;
    for (size_t n = 0; n < 300; n++) {
        memset((void *)done, 0, sizeof done);
        kl_pool_run(pool, n, count_task, done, NULL);
        for (size_t i = 0; i < COUNT(done); i++)
            wrong += atomic_load(&done[i]) != (i < n);
    }
    return (void *)wrong;
}

Test(threads, many_callers_share_a_pool)
{
    struct kl_pool *pool = kl_pool_new(4);
    pthread_t callers[6];
    for (size_t i = 0; i < COUNT(callers); i++)
        cr_assert_eq(pthread_create(&callers[i], NULL, run_many, pool), 0);
    for (size_t i = 0; i < COUNT(callers); i++) {
        void *problem;
        pthread_join(callers[i], &problem);
        cr_expect_null(problem);
    }
    kl_pool_free(pool);
    kl_pool_free(NULL);
}

/* ---- Threads that are cancelled */

/* cancelled: a call of a thread that is to be cancelled, which does nothing else. */
struct cancelled {
    struct kl_plan plan;
    struct kl_pool *pool;
    bool async, finds_out;
};

static float ones[N];

static bool test_cancel(const void *context)
{
    const struct cancelled *c = context;
    if (c->finds_out)
        pthread_testcancel();
    return false;
}

static struct kl_plan plan_of_ones(void)
{
    const size_t shape[] = {N};
    static size_t kept[1];
    static struct kl_tensor tensor = {KL_FLOAT32, 1, kept, ones};
    const struct kl_options options = {.reduction = KL_SUM, .log_target = true};
    struct kl_plan plan;
    kept[0] = shape[0];
    cr_assert(kl_plan(&plan, &tensor, &tensor, &options, NULL));
    return plan;
}

static void *call_until_cancelled(void *argument)
{
    struct cancelled *c = argument;
    static float grads[N];
    static _Thread_local struct kl_diagnosis diagnosis;
    float loss;
    struct kl_results results = {&loss, {grads, NULL}, NULL};
    pthread_setcanceltype(c->async ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, NULL);
    for (;;) {
        kl_run_gradients(&c->plan, NULL, c->pool, &results, NULL);
        kl_diagnose(&c->plan, c->pool, &diagnosis, NULL);
    }
    return NULL;
}

/* A call ends before its thread does, and whoever shares its pool goes on. */
Test(threads, that_are_cancelled_leave_their_pool_to_others, .timeout = 60)
{
    struct kl_pool *pool = kl_pool_new(3);
    for (int way = 0; way < 60; way++) {
        struct cancelled c = {
            .plan = plan_of_ones(), .pool = pool, .async = way % 3 == 0, .finds_out = way % 3 == 1};
        pthread_t thread;
        void *result;
        float loss;
        c.plan.stopped = test_cancel, c.plan.stop_context = &c;
        cr_assert_eq(pthread_create(&thread, NULL, call_until_cancelled, &c), 0);
        usleep((unsigned)(way * 7 % 50) * 10);
        pthread_cancel(thread);
        cr_assert_eq(pthread_join(thread, &result), 0);
        cr_expect(c.async || result == PTHREAD_CANCELED, "%p", result);
        const struct kl_plan plan = plan_of_ones();
        cr_expect(kl_run(&plan, pool, &loss, NULL));
    }
    kl_pool_free(pool);
}
