/* Cost of each option: one thread, float32, at least 2^20 elements, relative to the plain loss
 * of the same shape. Medians of interleaved runs. */
#include "lib/kldiv.h"
#include "tests/tools/bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RUNS = 15, MAX = 1 << 22, LAST = -1 };

static float *probs[2], *logs[2], *logits[2], *gradients[2], *loss;
static unsigned char *mask;

/* call: its shape is (n, m) or (n, m, inner). */
struct call {
    const char *what;
    size_t n, m, inner;
    struct kl_options options;
    bool gradients, diagnose, broadcast, weighted, masked;
};

static const int last[] = {LAST}, first[] = {0}, middle[] = {1};

#define SHAPE(a, b, c) .n = (a), .m = (b), .inner = (c)
#define LOGITS .input_space = KL_LOGIT, .target_space = KL_LOGIT
#define ROWS .dim = last, .n_dim = 1
#define SUM .reduction = KL_SUM
#define NONE .reduction = KL_NONE

static const struct call calls[] = {
    {.what = "none, each row's divergence (dim=-1)",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {NONE, ROWS}},
    {.what = "none, rows of 10", SHAPE(1 << 17, 10, 1), .options = {NONE, ROWS}},
    {.what = "none, rows of 100", SHAPE(1 << 14, 100, 1), .options = {NONE, ROWS}},
    {.what = "none, columns (dim=0)",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {NONE, .dim = first, .n_dim = 1}},
    {.what = "none, 10 columns",
     SHAPE(1 << 17, 10, 1),
     .options = {NONE, .dim = first, .n_dim = 1}},
    {.what = "none, the middle axis of (64, 100, 200)",
     SHAPE(64, 100, 200),
     .options = {NONE, .dim = middle, .n_dim = 1}},
    {.what = "sum, probabilities against probabilities",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {SUM, .input_space = KL_PROB}},
    {.what = "sum, logits against probabilities",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {SUM, .input_space = KL_LOGIT}},
    {.what = "sum, logits against logits", SHAPE(1 << 10, 1 << 10, 1), .options = {SUM, LOGITS}},
    {.what = "sum, logits against logits, rows of 100",
     SHAPE(1 << 14, 100, 1),
     .options = {SUM, LOGITS}},
    {.what = "sum, logits against logits, rows of 10",
     SHAPE(1 << 17, 10, 1),
     .options = {SUM, LOGITS}},
    {.what = "sum, logits, middle axis of (64, 100, 200)",
     SHAPE(64, 100, 200),
     .options = {SUM, LOGITS, .dim = middle, .n_dim = 1}},
    {.what = "none, logits against logits", SHAPE(1 << 10, 1 << 10, 1), .options = {NONE, LOGITS}},
    {.what = "none, both in bits (base=2)",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {NONE, .base = KL_BITS}},
    {.what = "mean, a mask of each element",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {.reduction = KL_MEAN},
     .masked = true},
    {.what = "mean, a weight of each element",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {.reduction = KL_MEAN},
     .weighted = true},
    {.what = "mean, logits, a mask of each row",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {.reduction = KL_MEAN, LOGITS, ROWS},
     .masked = true},
    {.what = "sum, target broadcast along rows",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {SUM},
     .broadcast = true},
    {.what = "sum, both gradients",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {SUM},
     .gradients = true},
    {.what = "sum, probabilities, both gradients",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {SUM, .input_space = KL_PROB},
     .gradients = true},
    {.what = "sum, logits, both gradients",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {SUM, LOGITS},
     .gradients = true},
    {.what = "sum, target broadcast, both gradients",
     SHAPE(1 << 10, 1 << 10, 1),
     .options = {SUM},
     .gradients = true,
     .broadcast = true},
    {.what = "sum, diagnosed", SHAPE(1 << 10, 1 << 10, 1), .options = {SUM}, .diagnose = true},
    {.what = "sum, diagnosed, rows of 10",
     SHAPE(1 << 17, 10, 1),
     .options = {SUM},
     .diagnose = true},
};

static const float *operand(const struct call *call, int i)
{
    enum kl_space space = i ? call->options.target_space : call->options.input_space;
    if (space == KL_DEFAULT_SPACE)
        space = i ? KL_PROB : KL_LOG_PROB;
    return (space == KL_PROB ? probs : space == KL_LOGIT ? logits : logs)[i];
}

static void run(const struct call *call)
{
    size_t shape[] = {call->n, call->m, call->inner}, ndim = call->inner > 1 ? 3 : 2;
    bool whole = call->options.n_dim == 0;
    struct kl_tensor input = {KL_FLOAT32, ndim, shape, operand(call, 0)};
    struct kl_tensor target = {KL_FLOAT32, ndim, shape, operand(call, 1)};
    struct kl_tensor weight = {KL_FLOAT32, whole ? 2 : 1, shape, probs[0]};
    struct kl_mask kept = {whole ? 2 : 1, shape, mask};
    struct kl_options options = call->options;
    struct kl_diagnosis diagnosis;
    struct kl_results results = {
        loss,
        {call->gradients ? gradients[0] : NULL, call->gradients ? gradients[1] : NULL},
        call->diagnose ? &diagnosis : NULL};
    struct kl_plan plan;
    if (call->broadcast)
        target.ndim = 1, target.shape = shape + 1, options.broadcast = true;
    options.weight = call->weighted ? &weight : NULL;
    options.mask = call->masked ? &kept : NULL;
    if (!kl_plan(&plan, &input, &target, &options, NULL) ||
        !kl_run_gradients(&plan, NULL, NULL, &results, NULL))
        abort();
}

static double time_of(const struct call *call)
{
    double start = now_ns();
    run(call);
    return (now_ns() - start) / (double)(call->n * call->m * call->inner);
}

int main(void)
{
    srand48(1);
    for (int i = 0; i < 2; i++) {
        probs[i] = aligned_alloc(64, MAX * sizeof(float));
        logs[i] = aligned_alloc(64, MAX * sizeof(float));
        logits[i] = aligned_alloc(64, MAX * sizeof(float));
        gradients[i] = aligned_alloc(64, MAX * sizeof(float));
        memset(gradients[i], 0, MAX * sizeof(float));
        for (size_t j = 0; j < MAX; j++) {
            probs[i][j] = (float)(drand48() + 1e-6);
            logs[i][j] = logf(probs[i][j]);
            logits[i][j] = (float)(12 * drand48() - 6);
        }
    }
    loss = aligned_alloc(64, MAX * sizeof(float));
    mask = malloc(MAX);
    memset(loss, 0, MAX * sizeof(float));
    for (size_t i = 0; i < MAX; i++)
        mask[i] = drand48() < 0.8;
    printf("\nOptions (%s), float32, one thread, ns an element, beside the plain loss\n\n",
           kl_simd_name());
    printf("| | kldiv | plain | ratio |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct call plain = calls[i];
        double a[RUNS], b[RUNS], ratios[RUNS];
        plain.options = (struct kl_options){.reduction = calls[i].options.reduction};
        plain.gradients = plain.diagnose = plain.broadcast = plain.weighted = plain.masked = false;
        for (int j = -2; j < RUNS; j++) {
            double ours = time_of(&calls[i]), its = time_of(&plain);
            if (j >= 0)
                a[j] = ours, b[j] = its, ratios[j] = ours / its;
        }
        printf("| %-46s | %.2f | %.2f | %.1f |\n", calls[i].what, median(a, RUNS), median(b, RUNS),
               median(ratios, RUNS));
        fflush(stdout);
    }
    return 0;
}
