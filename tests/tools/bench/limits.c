/* libkldiv with its pool against the machine's limits: a read of the operands, a copy into a
 * result, one thread against all. Medians of interleaved runs. */
#include "lib/kldiv.h"
#include "lib/threads/pool.h"
#include "tests/tools/bench/measure.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 21, LARGE = 1 << 24, IN_CACHE = 1 << 16, SMALL = 1 << 10, CHUNK = 1 << 14 };

static struct kl_pool *pool;
static char *x, *t, *loss;
static volatile unsigned long long sink;

struct work {
    enum kl_dtype dtype;
    enum kl_reduction reduction;
    size_t n;
    struct kl_pool *pool;
};

static void run_loss(const struct work *w)
{
    struct kl_tensor input = {w->dtype, 1, &w->n, x}, target = {w->dtype, 1, &w->n, t};
    struct kl_options options = {.reduction = w->reduction};
    struct kl_plan plan;
    if (!kl_plan(&plan, &input, &target, &options, NULL) || !kl_run(&plan, w->pool, loss, NULL))
        abort();
}

/* Size in bytes of piece i of arrays of n elements. */
static size_t piece_bytes(const struct work *w, size_t i)
{
    size_t left = w->n - i * CHUNK;
    return (left < CHUNK ? left : CHUNK) * kl_dtype_size(w->dtype);
}

static void read_chunk(void *context, size_t piece, void *scratch)
{
    (void)scratch;
    const struct work *w = context;
    size_t offset = piece * CHUNK * kl_dtype_size(w->dtype);
    sink = read_both(x + offset, t + offset, piece_bytes(w, piece));
}

static void run_read(const struct work *w)
{
    kl_pool_run(w->pool, (w->n + CHUNK - 1) / CHUNK, read_chunk, (void *)w, NULL);
}

EACH_SIMD static void copy_chunk(void *context, size_t piece, void *scratch)
{
    (void)scratch;
    const struct work *w = context;
    size_t offset = piece * CHUNK * kl_dtype_size(w->dtype), bytes = piece_bytes(w, piece);
    const char *a = x + offset, *b = t + offset;
    char *to = loss + offset;
    for (size_t i = 0; i < bytes; i += sizeof(vector))
        *(vector *)(to + i) = *(const vector *)(a + i) ^ *(const vector *)(b + i);
}

static void run_copy(const struct work *w)
{
    kl_pool_run(w->pool, (w->n + CHUNK - 1) / CHUNK, copy_chunk, (void *)w, NULL);
}

/* Times both, interleaved; prints the medians and their ratio for each pair. */
static void compare(const char *what, void (*ours)(const struct work *), struct work our_work,
                    void (*limit)(const struct work *), struct work its_work)
{
    double a[RUNS], b[RUNS], ratios[RUNS];
    size_t repeat = our_work.n < LARGE ? LARGE / 16 / our_work.n : 1;
    for (int i = -2; i < RUNS; i++) {
        double start = now_ns(), middle, end;
        for (size_t j = 0; j < repeat; j++)
            ours(&our_work);
        middle = now_ns();
        for (size_t j = 0; j < repeat; j++)
            limit(&its_work);
        end = now_ns();
        if (i < 0)
            continue;
        a[i] = (middle - start) / (double)(repeat * our_work.n);
        b[i] = (end - middle) / (double)(repeat * our_work.n);
        ratios[i] = a[i] / b[i];
    }
    printf("| %-46s | %.3f | %.3f | %.2f |\n", what, median(a, RUNS), median(b, RUNS),
           median(ratios, RUNS));
    fflush(stdout);
}

static void fill(enum kl_dtype dtype)
{
    srand48(1);
    for (size_t i = 0; i < LARGE; i++) {
        kl_store(dtype, x, i, log(drand48() + 1e-9));
        kl_store(dtype, t, i, drand48() + 1e-9);
    }
}

/* ---- Latency of a call, alone and beside a large one that repeats */

static atomic_bool stop;

static void *run_large(void *unused)
{
    struct work large = {KL_FLOAT32, KL_SUM, LARGE, pool};
    while (!atomic_load(&stop))
        run_loss(&large);
    return unused;
}

static void print_latency(const char *what, size_t n, size_t calls)
{
    double *times = malloc(calls * sizeof *times);
    struct work small = {KL_FLOAT32, KL_SUM, n, pool};
    for (size_t i = 0; i < calls; i++) {
        double start = now_ns();
        run_loss(&small);
        times[i] = (now_ns() - start) / 1000;
    }
    double middle = median(times, calls);
    printf("| %-46s | %.2f | %.2f |\n", what, middle, times[calls * 99 / 100]);
    fflush(stdout);
    free(times);
}

/* Prints gradients on one thread, 2^16 elements. */
static void print_gradient(enum kl_dtype dtype, bool log_target, enum kl_operand by)
{
    enum { N = IN_CACHE };
    size_t n = N;
    struct kl_tensor input = {dtype, 1, &n, x}, target = {dtype, 1, &n, log_target ? x : t};
    struct kl_options options = {.reduction = KL_BATCHMEAN, .log_target = log_target};
    struct kl_plan plan;
    struct kl_results results = {.grad[KL_INPUT] = by == KL_INPUT ? loss : NULL,
                                 .grad[KL_TARGET] = by == KL_TARGET ? loss : NULL};
    double times[RUNS];
    if (!kl_plan(&plan, &input, &target, &options, NULL))
        abort();
    for (int i = 0; i < RUNS; i++) {
        double start = now_ns();
        kl_run_gradients(&plan, NULL, NULL, &results, NULL);
        times[i] = (now_ns() - start) / N;
    }
    printf("| %s | %s | %s | %.3f |\n", kl_dtype_name(dtype), log_target ? "true" : "false",
           by == KL_INPUT ? "input" : "target", median(times, RUNS));
}

static void print_gradients(void)
{
    printf("\nGradients, one thread, 2^16 elements\n\n");
    printf("| dtype | log_target | by | ns an element |\n|---|---|---|---|\n");
    for (enum kl_dtype dtype = KL_FLOAT64; dtype <= KL_FLOAT32; dtype++) {
        fill(dtype);
        for (int log_target = 0; log_target < 2; log_target++)
            for (enum kl_operand by = KL_INPUT; by <= KL_TARGET; by++)
                print_gradient(dtype, log_target, by);
    }
}

int main(void)
{
    pool = kl_pool_new(2);
    x = aligned_alloc(64, LARGE * sizeof(double));
    t = aligned_alloc(64, LARGE * sizeof(double));
    loss = aligned_alloc(64, LARGE * sizeof(float));
    if (!pool || !x || !t || !loss)
        return 1;
    memset(loss, 0, LARGE * sizeof(float));
    printf("\nThe limits (%s), ns an element\n\n", kl_simd_name());
    printf("| | kldiv | limit | ratio |\n|---|---|---|---|\n");
    fill(KL_FLOAT32);
    struct work large = {KL_FLOAT32, KL_SUM, LARGE, pool}, none = large;
    struct work cached = {KL_FLOAT32, KL_SUM, IN_CACHE, pool}, alone = cached;
    none.reduction = KL_NONE;
    alone.pool = NULL;
    compare("float32 sum, 2^24, 2 threads; reading", run_loss, large, run_read, large);
    compare("float32 none, 2^24, 2 threads; copying", run_loss, none, run_copy, none);
    compare("float32 sum, 2^16, 1 thread; with 2 threads", run_loss, alone, run_loss, cached);
    printf("\nA call, float32 sum, microseconds\n\n| | median | 99th of 100 |\n|---|---|---|\n");
    print_latency("1,024 elements", SMALL, 100000);
    print_latency("16,384 elements, 64 KiB an operand", 1 << 14, 10000);
    print_latency("131,072 elements", 1 << 17, 3000);
    puts("| while another call computes 2^24 elements again and again: | | |");
    pthread_t thread;
    pthread_create(&thread, NULL, run_large, NULL);
    print_latency("16,384 elements", 1 << 14, 5000);
    print_latency("131,072 elements", 1 << 17, 3000);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    print_gradients();
    return 0;
}
