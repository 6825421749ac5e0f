/* Looks for calls that are far slower than their neighbours: random shapes, options, dtypes and data, each timed beside
 * its base, the same dtypes, spaces, results and reduction on contiguous rows of 1,024 without mask, weight or
 * broadcasting. One thread, its CPU time, about 131,072 elements, the minimum of interleaved runs.
 *
 *     cliffs [SEED [CALLS [RATIO]]]      defaults: 1 2000 6
 *
 * prints each call that takes more than RATIO times its base, in ns an element, with its seed: `cliffs SEED 1 0` runs it
 * alone. The last line counts them. */
#include "lib/kldiv.h"
#include "tests/tools/bench/measure.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ELEMENTS = 1 << 17, RUNS = 5, AXES = 4, BASE_ROW = 1024 };

enum data { TIDY, ONE_NAN, ONE_INF, MANY_NEGATIVE_INF, LARGE, DATA_KINDS };
static const char *const data_names[DATA_KINDS] = {"", " one-nan", " one-inf", " 1%-inf", " x1000"};
static const char *const space_names[] = {"default", "log_prob", "prob", "logit"};

/* call: one configuration. Axis i of a tensor has size 1 if bit i of its `ones` is set. */
struct call {
    unsigned long long seed;
    size_t ndim, shape[AXES];
    enum kl_dtype dtypes[KL_OPERANDS];
    enum data data;
    bool gradients[KL_OPERANDS], diagnose, masked, weighted;
    unsigned ones[KL_NO_OPERAND];
    int dim[AXES];
    struct kl_options options;
};

static uint64_t state;

static uint64_t next_random(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static unsigned below(unsigned n) { return (unsigned)(next_random() % n); }
static bool one_in(unsigned n) { return below(n) == 0; }
static double uniform(void) { return (double)(next_random() >> 11) * 0x1p-53; }

/* ---- Choosing */

static void choose_shape(struct call *c)
{
    static const size_t sizes[] = {1,  1,  2,  2,   3,   4,   5,    7,    8,    10,   12,   16,
                                   20, 33, 48, 100, 128, 257, 1000, 1024, 1025, 4096, 32000};
    size_t left = ELEMENTS, filled = 0;
    c->ndim = 1 + below(AXES);
    filled = below((unsigned)c->ndim); /* this axis takes what the others leave */
    for (size_t i = 0; i < c->ndim; i++) {
        size_t size = sizes[below(sizeof sizes / sizeof *sizes)];
        c->shape[i] = size <= left ? size : 1;
        if (i != filled)
            left /= c->shape[i];
    }
    c->shape[filled] = left;
}

static void choose_dim(struct call *c)
{
    for (size_t i = 0; i < c->ndim; i++)
        if (one_in(2))
            c->dim[c->options.n_dim++] = (int)i;
}

/* Axes of size 1 of a tensor that broadcasts. */
static unsigned some_axes(const struct call *c) { return below(1u << c->ndim); }

static void choose(struct call *c, unsigned long long seed)
{
    static const enum kl_space inputs[] = {KL_LOG_PROB, KL_LOGIT, KL_LOGIT, KL_PROB};
    static const enum kl_space targets[] = {KL_PROB, KL_LOGIT, KL_LOGIT, KL_LOG_PROB};
    *c = (struct call){.seed = seed};
    state = seed;
    choose_shape(c);
    c->dtypes[0] = c->dtypes[1] = one_in(2) ? KL_FLOAT32 : (enum kl_dtype)below(KL_DTYPES);
    if (one_in(4))
        c->dtypes[1] = (enum kl_dtype)below(KL_DTYPES);
    c->data = one_in(3) ? (enum data)below(DATA_KINDS) : TIDY;
    c->options.input_space = inputs[below(4)];
    c->options.target_space = targets[below(4)];
    c->options.reduction = (enum kl_reduction)below(KL_ELEMENTWISE_MEAN);
    c->options.compat = one_in(4) ? KL_ONEFLOW : KL_PYTORCH;
    if (one_in(2))
        choose_dim(c);
    c->diagnose = one_in(4);
    for (int i = 0; i < KL_OPERANDS; i++)
        c->gradients[i] = one_in(3);
    c->options.broadcast = one_in(4);
    if (c->options.broadcast)
        c->ones[below(KL_OPERANDS)] = some_axes(c);
    c->masked = one_in(3);
    c->weighted = one_in(3);
    c->ones[KL_MASK] = some_axes(c);
    c->ones[KL_WEIGHT] = some_axes(c);
}

/* The call that `c` is compared with: rows of BASE_ROW, with the same dtypes, spaces and results. */
static struct call base_of(const struct call *c)
{
    struct call base = {.ndim = 2,
                        .shape = {ELEMENTS / BASE_ROW, BASE_ROW},
                        .dtypes = {c->dtypes[0], c->dtypes[1]},
                        .gradients = {c->gradients[0], c->gradients[1]},
                        .diagnose = c->diagnose,
                        .options = c->options};
    base.options.n_dim = 0;
    base.options.broadcast = false;
    return base;
}

/* ---- Data */

/* buffers: those of one call, reused by the next. */
struct buffers {
    void *operands[KL_OPERANDS], *gradients[KL_OPERANDS], *loss, *weight;
    unsigned char *mask;
};

static double element(enum kl_space space, enum data data)
{
    double logit = (uniform() + uniform() + uniform() - 1.5) * 4;
    if (data == MANY_NEGATIVE_INF && space != KL_PROB && one_in(100))
        return -INFINITY;
    if (data == LARGE && space == KL_LOGIT)
        return logit * 1000;
    return space == KL_LOGIT ? logit : space == KL_PROB ? exp(logit) : logit - 8;
}

static void fill(const struct call *c, struct buffers *b)
{
    static const double odd[DATA_KINDS] = {[ONE_NAN] = NAN, [ONE_INF] = INFINITY};
    const enum kl_space spaces[] = {c->options.input_space, c->options.target_space};
    for (int i = 0; i < KL_OPERANDS; i++) {
        for (size_t k = 0; k < ELEMENTS; k++)
            kl_store(c->dtypes[i], b->operands[i], k, element(spaces[i], c->data));
        if (c->data == ONE_NAN || c->data == ONE_INF)
            kl_store(c->dtypes[i], b->operands[i], below(ELEMENTS), odd[c->data]);
    }
    for (size_t k = 0; k < ELEMENTS; k++) {
        b->mask[k] = !one_in(4);
        kl_store(KL_FLOAT32, b->weight, k, uniform());
    }
}

/* ---- Running */

static size_t narrowed(const struct call *c, enum kl_operand tensor, const size_t *shape,
                       size_t ndim, size_t *out)
{
    for (size_t i = 0; i < ndim; i++)
        out[i] = c->ones[tensor] >> i & 1 ? 1 : shape[i];
    return ndim;
}

static bool run(const struct call *c, struct buffers *b)
{
    size_t shapes[KL_NO_OPERAND][AXES], left[AXES], n_left = 0;
    bool summed[AXES] = {false};
    for (size_t i = 0; i < c->options.n_dim; i++)
        summed[c->dim[i]] = true;
    for (size_t i = 0; i < c->ndim; i++)
        if (!summed[i])
            left[n_left++] = c->shape[i];
    struct kl_tensor operands[KL_OPERANDS];
    for (int i = 0; i < KL_OPERANDS; i++)
        operands[i] = (struct kl_tensor){c->dtypes[i], narrowed(c, i, c->shape, c->ndim, shapes[i]),
                                         shapes[i], b->operands[i]};
    struct kl_tensor weight = {KL_FLOAT32, narrowed(c, KL_WEIGHT, left, n_left, shapes[KL_WEIGHT]),
                               shapes[KL_WEIGHT], b->weight};
    struct kl_mask mask = {narrowed(c, KL_MASK, left, n_left, shapes[KL_MASK]), shapes[KL_MASK],
                           b->mask};
    struct kl_options options = c->options;
    options.dim = c->dim;
    options.weight = c->weighted ? &weight : NULL;
    options.mask = c->masked ? &mask : NULL;
    struct kl_diagnosis diagnosis;
    struct kl_results results = {.loss = b->loss,
                                 .grad = {c->gradients[0] ? b->gradients[0] : NULL,
                                          c->gradients[1] ? b->gradients[1] : NULL},
                                 .diagnosis = c->diagnose ? &diagnosis : NULL};
    struct kl_plan plan;
    return kl_plan(&plan, &operands[0], &operands[1], &options, NULL) &&
           kl_run_gradients(&plan, NULL, NULL, &results, NULL);
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds an element of the call; infinite if it is refused. */
static double time_of(const struct call *c, struct buffers *b)
{
    size_t n = 1;
    for (size_t i = 0; i < c->ndim; i++)
        n *= c->shape[i];
    double start = cpu_ns();
    return run(c, b) ? (cpu_ns() - start) / (double)n : INFINITY;
}

/* ---- Printing */

static void print_axes(const char *name, const struct call *c, unsigned ones)
{
    printf(" %s", name);
    for (size_t i = 0; i < c->ndim; i++)
        putchar(ones >> i & 1 ? '1' : 'n');
}

static void print_call(const struct call *c)
{
    printf("%llu: (", c->seed);
    for (size_t i = 0; i < c->ndim; i++)
        printf("%s%zu", i ? "," : "", c->shape[i]);
    printf(") %s %s", kl_dtype_name(c->dtypes[0]), space_names[c->options.input_space]);
    printf(" %s %s", kl_dtype_name(c->dtypes[1]), space_names[c->options.target_space]);
    printf(" %s", kl_reduction_name(c->options.reduction));
    for (size_t i = 0; i < c->options.n_dim; i++)
        printf("%s%d", i ? "," : " dim=", c->dim[i]);
    printf("%s%s", c->gradients[0] ? " grad-input" : "", c->gradients[1] ? " grad-target" : "");
    printf("%s%s", c->diagnose ? " diagnose" : "", data_names[c->data]);
    for (int i = 0; i < KL_OPERANDS; i++)
        if (c->options.broadcast && c->ones[i])
            print_axes(i ? "target" : "input", c, c->ones[i]);
    if (c->masked)
        print_axes("mask", c, c->ones[KL_MASK]);
    if (c->weighted)
        print_axes("weight", c, c->ones[KL_WEIGHT]);
    putchar('\n');
}

static bool is_slow(unsigned long long seed, double bound, struct buffers *buffers)
{
    struct call call, base;
    double ns = INFINITY, base_ns = INFINITY;
    choose(&call, seed);
    base = base_of(&call);
    for (int i = 0; i < RUNS; i++) {
        if (i == 0)
            fill(&base, &buffers[1]), fill(&call, &buffers[0]);
        ns = fmin(ns, time_of(&call, &buffers[0]));
        base_ns = fmin(base_ns, time_of(&base, &buffers[1]));
    }
    if (!(ns > bound * base_ns) || isinf(ns))
        return false;
    printf("%6.2f %6.2f %6.1f  ", ns, base_ns, ns / base_ns);
    print_call(&call);
    return true;
}

static void allocate(struct buffers *b)
{
    for (int i = 0; i < KL_OPERANDS; i++) {
        b->operands[i] = calloc(ELEMENTS, sizeof(double));
        b->gradients[i] = calloc(ELEMENTS, sizeof(double));
    }
    b->loss = calloc(ELEMENTS, sizeof(double));
    b->weight = calloc(ELEMENTS, sizeof(double));
    b->mask = calloc(ELEMENTS, 1);
}

int main(int argc, char **argv)
{
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned long calls = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000, slow = 0;
    double bound = argc > 3 ? strtod(argv[3], NULL) : 6;
    static struct buffers buffers[2];
    allocate(&buffers[0]);
    allocate(&buffers[1]);
    puts("    ns   base  ratio  seed: call");
    for (unsigned long i = 0; i < calls; i++)
        slow += is_slow(seed + i, bound, buffers);
    printf("%lu of %lu calls take more than %g times their base (simd=%s)\n", slow, calls, bound,
           kl_simd_name());
    return 0;
}
