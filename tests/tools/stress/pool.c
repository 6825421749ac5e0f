/* Many callers on one pool, for ThreadSanitizer, under which Criterion aborts. Prints the report
 * of a test runner. */
#include "lib/kldiv.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLERS = 6, ROUNDS = 40, N = 100000 };

static struct kl_pool *pool;
static double data[2][N];

static double loss(size_t n)
{
    size_t shape[] = {n};
    struct kl_tensor input = {KL_FLOAT64, 1, shape, data[0]};
    struct kl_tensor target = {KL_FLOAT64, 1, shape, data[1]};
    struct kl_options options = {.reduction = KL_SUM};
    struct kl_plan plan;
    double value = NAN;
    if (kl_plan(&plan, &input, &target, &options, NULL))
        kl_run(&plan, pool, &value, NULL);
    return value;
}

static void *call(void *expected)
{
    size_t wrong = 0;
    for (size_t i = 0; i < ROUNDS; i++)
        wrong += loss(N - i) != ((const double *)expected)[i];
    return (void *)wrong;
}

int main(void)
{
    pthread_t callers[CALLERS];
    double expected[ROUNDS];
    size_t failed = 0;
    for (size_t i = 0; i < N; i++) {
        data[0][i] = -1 - (double)(i % 7);
        data[1][i] = 1.0 / (double)(1 + i % 5);
    }
    for (size_t i = 0; i < ROUNDS; i++)
        expected[i] = loss(N - i);
    pool = kl_pool_new(3);
    for (size_t i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, call, expected);
    for (size_t i = 0; i < CALLERS; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        failed += wrong != NULL;
    }
    kl_pool_free(pool);
    printf("%zu passed, %zu failed\n", CALLERS - failed, failed);
    return failed != 0;
}
