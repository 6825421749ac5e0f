/* Random calls of the library, for valgrind, which sees decisions on memory that nobody has set; the
 * sanitizers of gcc do not. Usage: calls ROUNDS KERNEL. Prints the report of a test runner. */
#include "lib/kldiv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_NDIM = 4, MAX_COUNT = 20000 };

static unsigned long state = 7;

static unsigned long draw(unsigned long n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

/* Arrays are new for each call, so that nothing is set by an earlier one. */
struct arrays {
    void *operands[KL_OPERANDS], *weight, *loss, *grads[KL_OPERANDS];
    unsigned char *mask;
};

static double element(enum kl_space space)
{
    double u = (double)draw(1000) / 1000;
    if (space == KL_LOG_PROB)
        return draw(50) ? -4 * u : -(double)INFINITY;
    return space == KL_PROB ? u : 8 * u - 4;
}

static void make_arrays(struct arrays *a, size_t n, const enum kl_dtype *dtypes,
                        const enum kl_space *spaces)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        a->operands[i] = malloc(n * kl_dtype_size(dtypes[i]));
        a->grads[i] = malloc(n * kl_dtype_size(dtypes[i]));
        for (size_t j = 0; j < n; j++)
            kl_store(dtypes[i], a->operands[i], j, element(spaces[i]));
    }
    a->weight = malloc(n * sizeof(float));
    a->mask = malloc(n);
    for (size_t j = 0; j < n; j++) {
        kl_store(KL_FLOAT32, a->weight, j, element(KL_PROB));
        a->mask[j] = draw(3) > 0;
    }
}

static void free_arrays(struct arrays *a)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        free(a->operands[i]);
        free(a->grads[i]);
    }
    free(a->weight);
    free(a->mask);
    free(a->loss);
}

/* Reads results, so that valgrind looks at each; gives the sum of those that are finite. */
static double read_all(enum kl_dtype dtype, const void *array, size_t n)
{
    double sum = 0;
    for (size_t i = 0; array && i < n; i++) {
        double value = kl_load(dtype, array, i);
        sum += isfinite(value) ? value : 0;
    }
    return sum;
}

static bool run(const struct kl_plan *plan, struct arrays *a, double *total)
{
    static struct kl_diagnosis diagnosis;
    struct kl_problem problem = {0};
    a->loss = malloc(plan->loss_size + 1);
    const struct kl_results results = {
        a->loss, {draw(2) ? a->grads[KL_INPUT] : NULL, draw(2) ? a->grads[KL_TARGET] : NULL}};
    if (!kl_run_gradients(plan, NULL, NULL, &results, &problem))
        return problem.has_index; /* of a negative probability */
    *total += read_all(plan->dtype, a->loss, plan->loss_size / kl_dtype_size(plan->dtype));
    *total += read_all(plan->input.dtype, results.grad[KL_INPUT], plan->counts[KL_INPUT]);
    *total += read_all(plan->target.dtype, results.grad[KL_TARGET], plan->counts[KL_TARGET]);
    if (draw(2) && kl_diagnose(plan, NULL, &diagnosis, &problem))
        *total += (double)diagnosis.rows;
    return !problem.code;
}

static bool run_random_call(double *total)
{
    size_t ndim = 1 + draw(MAX_NDIM), shape[MAX_NDIM], left[MAX_NDIM], n_left = 0, n = 1;
    const enum kl_dtype dtypes[] = {(enum kl_dtype)draw(KL_DTYPES), (enum kl_dtype)draw(KL_DTYPES)};
    const enum kl_space spaces[] = {(enum kl_space)(KL_LOG_PROB + draw(3)),
                                    (enum kl_space)(KL_LOG_PROB + draw(3))};
    for (size_t i = 0; i < ndim; i++)
        n *= shape[i] = 1 + draw(draw(3) ? 9 : 40);
    if (n > MAX_COUNT)
        return true;
    struct arrays a;
    make_arrays(&a, n, dtypes, spaces);
    int dim = (int)draw(ndim);
    struct kl_options options = {.input_space = spaces[KL_INPUT],
                                 .target_space = spaces[KL_TARGET],
                                 .compat = (enum kl_compat)draw(3),
                                 .reduction = (enum kl_reduction)draw(4),
                                 .base = (enum kl_base)draw(2),
                                 .broadcast = draw(2),
                                 .dim = &dim,
                                 .n_dim = draw(2)};
    for (size_t i = 0; i < ndim; i++)
        if (!options.n_dim || (size_t)dim != i)
            left[n_left++] = shape[i];
    struct kl_tensor weight = {KL_FLOAT32, n_left, left, a.weight};
    struct kl_mask mask = {n_left, left, a.mask};
    struct kl_tensor input = {dtypes[KL_INPUT], ndim, shape, a.operands[KL_INPUT]};
    struct kl_tensor target = {dtypes[KL_TARGET], ndim, shape, a.operands[KL_TARGET]};
    options.weight = draw(3) ? NULL : &weight;
    options.mask = draw(3) ? NULL : &mask;
    if (options.broadcast && ndim > 1)
        target.ndim--, target.shape++;
    struct kl_plan plan;
    a.loss = NULL;
    bool good = kl_plan(&plan, &input, &target, &options, NULL) && run(&plan, &a, total);
    free_arrays(&a);
    return good;
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, failed = 0;
    double total = 0;
    if (argc > 2 && !kl_simd_select(argv[2], NULL)) {
        printf("(not run: this CPU has no %s)\n", argv[2]);
        return 0;
    }
    for (size_t i = 0; i < rounds; i++)
        failed += !run_random_call(&total);
    printf("%s, all results add up to %.17g\n%zu passed, %zu failed\n", kl_simd_name(), total,
           rounds - failed, failed);
    return failed > 0;
}
