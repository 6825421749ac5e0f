/* Time per element, in ns, of each kernel at several sizes, with a pure read of the same arrays
 * and plain libm as baselines. Medians of interleaved runs. */
#include "lib/simd/kernel.h"
#include "tests/tools/bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 15, MAX_N = 1 << 22 };

static char *x, *t, *loss;
static volatile double sink;

/* task: the work that is timed, n elements by kernel k. */
struct task {
    const struct kl_kernel *kernel; /* NULL: the read, or libm */
    enum kl_dtype dtype;
    enum kl_rule rule;
    void (*run)(const struct task *task, size_t n);
};

static void run_sum(const struct task *task, size_t n)
{
    sink = task->kernel
               ->sum[task->dtype][kl_rule_is_log(task->rule)](
                   task->rule, &(struct kl_elements){.input = x, .target = t}, n)
               .high;
}

static void run_map(const struct task *task, size_t n)
{
    task->kernel->map[task->dtype][kl_rule_is_log(task->rule)](task->rule, x, t, loss, n);
}

static void run_read(const struct task *task, size_t n)
{
    sink = (double)read_both(x, t, n * kl_dtype_size(task->dtype));
}

static void run_libm(const struct task *task, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double a = kl_load(task->dtype, x, i), b = kl_load(task->dtype, t, i);
        sum += kl_rule_is_log(task->rule) ? exp(b) * (b - a) : b * (log(b) - a);
    }
    sink = sum;
}

static double ns_an_element(const struct task *task, size_t n)
{
    double times[RUNS];
    size_t repeat = n < 65536 ? 65536 / n : 1;
    for (int i = -2; i < RUNS; i++) {
        double start = now_ns();
        for (size_t j = 0; j < repeat; j++)
            task->run(task, n);
        if (i >= 0)
            times[i] = (now_ns() - start) / (double)(n * repeat);
    }
    return median(times, RUNS);
}

static void fill(enum kl_dtype dtype, bool logarithm)
{
    srand48(1);
    for (size_t i = 0; i < MAX_N; i++) {
        kl_store(dtype, x, i, log(drand48() + 1e-9));
        kl_store(dtype, t, i, logarithm ? log(drand48() + 1e-9) : drand48() + 1e-9);
    }
}

static void print_row(const char *what, struct task task)
{
    static const size_t sizes[] = {1 << 10, 1 << 16, 1 << 20, MAX_N};
    printf("| %-26s |", what);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        printf(" %7.3f |", ns_an_element(&task, sizes[i]));
    putchar('\n');
    fflush(stdout);
}

static void print_table(enum kl_dtype dtype, enum kl_rule rule)
{
    printf("\n%s%s, one thread, ns an element\n\n", kl_dtype_name(dtype),
           kl_rule_is_log(rule) ? ", log_target" : "");
    printf("| %-26s | %7s | %7s | %7s | %7s |\n|---|---|---|---|---|\n", "elements", "2^10", "2^16",
           "2^20", "2^22");
    fill(dtype, kl_rule_is_log(rule));
    print_row("read of both arrays", (struct task){NULL, dtype, rule, run_read});
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++) {
        char what[60];
        if (!(*k)->supported())
            continue;
        snprintf(what, sizeof what, "%s sum", (*k)->name);
        print_row(what, (struct task){*k, dtype, rule, run_sum});
        snprintf(what, sizeof what, "%s none", (*k)->name);
        print_row(what, (struct task){*k, dtype, rule, run_map});
    }
    print_row("libm, in double, sum", (struct task){NULL, dtype, rule, run_libm});
}

int main(void)
{
    x = aligned_alloc(64, MAX_N * sizeof(double));
    t = aligned_alloc(64, MAX_N * sizeof(double));
    loss = aligned_alloc(64, MAX_N * sizeof(double));
    if (!x || !t || !loss)
        return 1;
    for (enum kl_dtype dtype = 0; dtype < KL_DTYPES; dtype++) {
        print_table(dtype, KL_PROB_PYTORCH);
        print_table(dtype, KL_LOG_PYTORCH);
    }
    return 0;
}
