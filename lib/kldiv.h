/* The Kullback-Leibler divergence loss, KL(target || input), as PyTorch, R torch and OneFlow
 * define it: this header is the manual of libkldiv.
 *
 *     struct kl_plan plan;
 *     struct kl_problem problem = {0};
 *     if (!kl_plan(&plan, &input, &target, &options, &problem)) ... problem.detail
 *     void *loss = malloc(plan.loss_size);
 *     if (!kl_run(&plan, pool, loss, &problem)) ...
 *
 * `input` holds log-probabilities of the model Q; `target` holds probabilities of the observed
 * distribution P, or their logarithms. All logarithms are natural; losses are in nats, or in bits.
 *
 * Nothing here does I/O, prints or exits. The only state is the chosen instruction set
 * (kl_simd_select) and the pools that callers make. Everything else may be called from any
 * thread at any time.
 */
#ifndef KLDIV_LIB_KLDIV_H
#define KLDIV_LIB_KLDIV_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define KLDIV_VERSION "0.1.0"

/* ---- Problems ------------------------------------------------------------------------- */

enum kl_operand { KL_NO_OPERAND, KL_INPUT, KL_TARGET, KL_UPSTREAM };

/* Why a call failed. Owned by the caller, who passes it zeroed; the first problem wins and
 * later ones leave it alone. `code` is a stable snake_case word with static lifetime:
 *
 *   reduction_invalid   no such reduction
 *   compat_invalid      no such compatibility mode
 *   base_invalid        neither e nor 2
 *   dtype_invalid       no such dtype
 *   dtype_unsupported   a complex or integral dtype (bool counts as integral)
 *   dim_invalid         an axis that the operands do not have, or one that is given twice
 *   ndim_invalid        more than KL_MAX_DIMS dimensions
 *   shape_mismatch      input and target differ in shape, or loss and upstream gradient
 *   batchmean_scalar    batchmean of a 0-dim tensor, under KL_ONEFLOW
 *   target_negative     a negative probability, under KL_MATH; `index` is that of the first one,
 *                       counted in row-major order, and has_index is set
 *   simd_invalid        no such instruction set, or this CPU lacks it
 *   out_of_memory       */
struct kl_problem {
    const char *code;
    char detail[256];
    enum kl_operand operand;
    bool has_index;
    size_t index;
};

/* ---- Dtypes --------------------------------------------------------------------------- */

enum kl_dtype { KL_FLOAT64, KL_FLOAT32, KL_FLOAT16, KL_BFLOAT16 };
#define KL_DTYPES 4

/* "float64", "float32", "float16", "bfloat16", and the bytes one element takes. */
const char *kl_dtype_name(enum kl_dtype dtype);
size_t kl_dtype_size(enum kl_dtype dtype);

/* Reads one of the names above. Names of complex and integral dtypes (as numpy and PyTorch
 * spell them) fail with dtype_unsupported and PyTorch's words, others with dtype_invalid. */
bool kl_dtype_parse(const char *name, enum kl_dtype *dtype, struct kl_problem *problem);

/* The dtype of the loss of two operands: PyTorch's promotion. The wider one; of float16 and
 * bfloat16 neither holds the other, so together they give float32. */
enum kl_dtype kl_dtype_promote(enum kl_dtype a, enum kl_dtype b);

/* Element `index` of an array of `dtype`, exactly, and its inverse: `value` rounded once, to
 * nearest, ties to even. Arrays need no alignment. */
double kl_load(enum kl_dtype dtype, const void *array, size_t index);
void kl_store(enum kl_dtype dtype, void *array, size_t index, double value);

/* ---- Tensors -------------------------------------------------------------------------- */

/* What a tensor may have at most. */
#define KL_MAX_DIMS 64

/* A dense row-major tensor in the machine's byte order. All of it is borrowed. `ndim` 0 is a
 * scalar, whose `shape` may be NULL; a size of 0 in any place makes the tensor empty. `data`
 * needs no alignment. */
struct kl_tensor {
    enum kl_dtype dtype;
    size_t ndim;
    const size_t *shape;
    const void *data;
};

/* The product of the sizes; false if it or the bytes it stands for overflow size_t. */
bool kl_tensor_count(const struct kl_tensor *tensor, size_t *count);

/* ---- Options -------------------------------------------------------------------------- */

/* What becomes of the elements' losses. KL_MEAN divides their sum by their number, KL_BATCHMEAN
 * by size(0) of input (a 0-dim input is not divided), KL_NONE keeps each.
 * KL_ELEMENTWISE_MEAN is the deprecated name of KL_MEAN. Sums over nothing are 0, means over
 * nothing NaN (0 under KL_ONEFLOW for KL_MEAN). */
enum kl_reduction { KL_MEAN, KL_BATCHMEAN, KL_SUM, KL_NONE, KL_ELEMENTWISE_MEAN };

/* Case-sensitive; fails with PyTorch's words, "bogus is not a valid value for reduction". */
bool kl_reduction_parse(const char *name, enum kl_reduction *reduction, struct kl_problem *problem);
const char *kl_reduction_name(enum kl_reduction reduction);

/* Whose rules hold where the formula has none. With t an element of target, x of input:
 *
 *                                   KL_PYTORCH   KL_ONEFLOW   KL_MATH
 *   t = 0, x finite                 0            0            0
 *   t = 0, x = +-inf                NaN          0            0
 *   t = 0, x NaN                    NaN          0            NaN
 *   t < 0                           NaN          0            target_negative
 *   t NaN                           NaN          0            NaN
 *   t = +inf, x >= 0                NaN          +inf         +inf    (x = +inf: NaN)
 *   log_target, t = -inf            NaN          NaN          0       (x NaN: NaN)
 *
 * Everywhere else the three agree: t (log t - x), and with log_target exp(t) (t - x).
 * KL_PYTORCH is PyTorch 1.13 to 2.x; KL_ONEFLOW is OneFlow and PyTorch before 1.13. A finite
 * result that overflows is an infinity of its sign, also where PyTorch's two separate products
 * give NaN. There is no clamp and no epsilon anywhere. */
enum kl_compat { KL_PYTORCH, KL_ONEFLOW, KL_MATH };

bool kl_compat_parse(const char *name, enum kl_compat *compat, struct kl_problem *problem);

/* The deprecated flags size_average and reduce. If either is given, the two override
 * `reduction`, batchmean included: reduce=false is none, otherwise size_average=false is sum,
 * otherwise mean. So do PyTorch's documentation and its module; its functional form divides
 * by the batch size once more after `reduction="batchmean"`, a quirk not followed here. */
enum kl_flag { KL_ABSENT, KL_TRUE, KL_FALSE };

/* The unit of losses and gradients: of natural logarithms, or of those to base 2, in which they
 * are 1 / ln 2 times as large. Log-probabilities are natural in both. */
enum kl_base { KL_NATS, KL_BITS };

/* "e" or "2". */
bool kl_base_parse(const char *name, enum kl_base *base, struct kl_problem *problem);

/* Zeroed, these are PyTorch's defaults. */
struct kl_options {
    enum kl_reduction reduction;
    enum kl_flag size_average;
    enum kl_flag reduce;
    bool log_target; /* target holds log-probabilities */
    enum kl_compat compat;
    enum kl_base base;

    /* Axes that losses are summed over before the reduction applies to what remains, counted from
     * 0, or from the last as -1: so KL_NONE gives the divergence of each row, KL_MEAN the mean of
     * the rows', and KL_BATCHMEAN divides by the first size that remains. Borrowed until kl_plan
     * returns; none if n_dim is 0. */
    const int *dim;
    size_t n_dim;
};

/* ---- Warnings ------------------------------------------------------------------------- */

/* What PyTorch warns of for the same call. A set of them is an unsigned with the bit
 * 1u << warning. They depend on options alone and are given whether or not the call succeeds. */
enum kl_warning {
    KL_MEAN_IS_NOT_KL_DIVERGENCE,
    KL_SIZE_AVERAGE_REDUCE_DEPRECATED,
    KL_ELEMENTWISE_MEAN_DEPRECATED,
};
#define KL_WARNINGS 3

struct kl_warning_text {
    const char *code;     /* stable, snake_case */
    const char *category; /* "UserWarning" */
    const char *message;  /* PyTorch's, to the letter */
};

/* The text for a call whose reduction came out as `applied` (KL_SIZE_AVERAGE_REDUCE_DEPRECATED
 * names it). Static lifetime. */
const struct kl_warning_text *kl_warning_text(enum kl_warning warning, enum kl_reduction applied);

/* ---- The loss ------------------------------------------------------------------------- */

/* One checked call: everything that is known before the data is read. */
struct kl_plan {
    struct kl_tensor input, target;
    struct kl_options options;
    enum kl_reduction reduction; /* the one that applies: never KL_ELEMENTWISE_MEAN */
    unsigned warnings;           /* set even where shapes or dtypes make kl_plan fail */
    enum kl_dtype dtype;         /* of the loss */
    size_t ndim;                 /* of the loss: what dim leaves under KL_NONE, else 0 */
    size_t shape[KL_MAX_DIMS];   /* of the loss */
    size_t count;                /* elements of each operand */
    bool summed[KL_MAX_DIMS];    /* the operands' axes that dim names */
    size_t places;               /* what dim leaves of count */
    size_t batch;                /* the first size that dim leaves; 1 if it leaves none */
    size_t loss_size;            /* bytes that kl_run writes */
};

/* Checks dtypes, shapes and options; reads no data. Fills *plan, which borrows both tensors'
 * shapes and data and holds nothing to free. No pointer but `problem` may be NULL. Shapes must be
 * the same: PyTorch broadcasts silently, and then divides batchmean by the wrong number. Fails with
 * shape_mismatch, ndim_invalid, dim_invalid, batchmean_scalar, out_of_memory where the elements outnumber any memory, or the
 * _invalid of an enum that has no such value. */
bool kl_plan(struct kl_plan *plan, const struct kl_tensor *input, const struct kl_tensor *target,
             const struct kl_options *options, struct kl_problem *problem);

struct kl_pool;

/* Computes the loss into `loss`, of plan->loss_size bytes, which need no alignment and must not
 * overlap the operands. The operands' data must stay unchanged until it returns.
 *
 * Accuracy: every element and every sum is computed in at least double arithmetic from the
 * exact values of the operands, reduced there, and rounded to the dtype of the loss at the end; so
 * a float16 batchmean overflows only if the quotient does. Losses of float16, bfloat16 and float32
 * are correctly rounded but for one in 10,000 at worst, and those are off by no more than 0.51
 * units in the last place; their sums err by 2^-40 of the sum of the losses' sizes before
 * rounding. Losses of float64 are within 2.6 units, their sums within 2^-50 of the sizes, both but
 * for 2^-60 of target * max(|input|, 1), which shows where input and log target agree to 10 digits
 * and more. A sum whose parts overflow double on the way is infinite or NaN. The result has the
 * same bits for any number of threads.
 *
 * `pool` may be NULL: then, and for small tensors always, the calling thread does all of it.
 * Fails with target_negative or out_of_memory; then `loss` holds nothing of use. */
bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem);

/* ---- Gradients ------------------------------------------------------------------------ */

/* Computes the derivative of the loss by each element of one operand, KL_INPUT or KL_TARGET, into
 * `gradient`: plan->count elements of that operand's dtype, row-major, which need no alignment
 * and must not overlap the operands. Each is multiplied by the upstream gradient of the loss:
 * `upstream` is NULL for 1, or a tensor of the loss's shape and any dtype. With u its element (its
 * only one, unless the reduction is none), g is u / places for mean, u / batch for batchmean, u
 * for sum and none; where losses were summed over dim, the u of their sum. As PyTorch's autograd has them, and where KL_ONEFLOW and KL_MATH differ:
 *
 *                          by input                 by target
 *   t > 0                  -t g                     (log t + 1 - x) g
 *   t = 0                  -0 g                     NaN; KL_ONEFLOW and KL_MATH: -inf g
 *   t < 0                  -t g; KL_ONEFLOW: 0 g    NaN
 *   t = +inf               -inf g                   NaN; KL_ONEFLOW and KL_MATH: +inf g
 *   log_target             -exp(t) g                exp(t) (t - x + 1) g
 *   log_target, t = -inf   -0 g                     NaN; KL_MATH: 0 g
 *
 * Under KL_MATH a negative target is an error, as it is for the loss. Computed in double and
 * rounded once, to the operand's dtype. `pool` as for kl_run. Fails with shape_mismatch if
 * upstream has another shape than the loss, and with target_negative. */
bool kl_gradient(const struct kl_plan *plan, enum kl_operand operand,
                 const struct kl_tensor *upstream, struct kl_pool *pool, void *gradient,
                 struct kl_problem *problem);

/* ---- Threads -------------------------------------------------------------------------- */

/* A pool of `threads` threads, the caller of kl_run counting as one, so 1 starts none. It may
 * serve any number of kl_run calls at once; they share it piece by piece, so a long one does
 * not hold up a short one. Its threads take no signals. After a fork the child must neither use
 * nor free it. NULL if memory or threads cannot be had. */
struct kl_pool *kl_pool_new(size_t threads);

/* Waits for the threads to end. No kl_run may be using the pool. NULL is fine. */
void kl_pool_free(struct kl_pool *pool);

size_t kl_pool_threads(const struct kl_pool *pool);

/* ---- Instruction sets ----------------------------------------------------------------- */

/* Chooses the kernel for the whole process: "auto" for the best that this CPU and its
 * operating system support, or one of "avx512", "avx2", "neon", "scalar". Without this call the
 * choice is "auto". Call it before threads use the library. Fails with simd_invalid. */
bool kl_simd_select(const char *name, struct kl_problem *problem);

/* The name of the kernel in use. */
const char *kl_simd_name(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
