/* The Kullback-Leibler divergence loss, KL(target || input), as PyTorch, R torch and OneFlow
 * define it: this header is the manual of libkldiv.
 *
 *     struct kl_plan plan;
 *     struct kl_problem problem = {0};
 *     if (!kl_plan(&plan, &input, &target, &options, &problem)) ... problem.detail
 *     void *loss = malloc(plan.loss_size);
 *     if (!kl_run(&plan, pool, loss, &problem)) ...
 *
 * `input` holds log-probabilities of the model Q, `target` probabilities of the observed
 * distribution P; options say so where they hold other things: probabilities, log-probabilities,
 * logits. All logarithms are natural; losses are in nats, or in bits.
 *
 * Nothing here does I/O, prints or exits. The only state is the chosen instruction set
 * (kl_simd_select) and the pools that callers make. Everything else may be called from any
 * thread at any time. A thread that is cancelled in a call ends after it.
 *
 * Results are as told if the calling thread rounds to nearest and keeps subnormal numbers, as threads do unless
 * fesetround says otherwise, or a program was linked with -ffast-math. Threads of a pool round as the one did that made
 * the pool.
 */
#ifndef KLDIV_LIB_KLDIV_H
#define KLDIV_LIB_KLDIV_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define KLDIV_VERSION "0.2.0"

/* That of the library in use. Static lifetime. */
const char *kl_version(void);

/* ---- Problems ------------------------------------------------------------------------- */

/* The tensors of a call. The first two are its operands, which may have gradients: arrays of
 * KL_OPERANDS are indexed by KL_INPUT and KL_TARGET. */
enum kl_operand {
    KL_INPUT,
    KL_TARGET,
    KL_GRAD_OUTPUT,
    KL_WEIGHT,
    KL_MASK,
    KL_INDICES,
    KL_LOG_NORMALIZER,
    KL_NO_OPERAND
};
#define KL_OPERANDS 2

/* kl_problem: the error of a call. The caller owns it and passes it zeroed; only the first problem
 * is recorded. `code` is a stable snake_case word with static lifetime:
 *
 *   reduction_invalid   no such reduction
 *   compat_invalid      no such compatibility mode
 *   base_invalid        neither e nor 2
 *   space_invalid       no such space
 *   space_conflict      log_target with a target_space that is not KL_LOG_PROB
 *   temperature_invalid not a finite number above 0
 *   temperature_unused  a temperature other than 1, or KL_TEMPERATURE_SQUARED, where neither operand holds logits
 *   scale_invalid       no such scale
 *   divergence_invalid  no such divergence
 *   beta_invalid        not a number from 0 to 1; alpha_invalid likewise
 *   beta_unused         a beta other than 0 without KL_JS; alpha_unused: an alpha without KL_SKEW
 *   dtype_invalid       no such dtype
 *   dtype_unsupported   a complex or integral dtype (bool counts as integral)
 *   dim_invalid         an axis that the operands do not have, or one that is given twice
 *   ndim_invalid        more than KL_MAX_DIMS dimensions
 *   shape_invalid       losses of empty rows that outnumber any memory
 *   shape_mismatch      input and target differ in shape (or do not broadcast to one), or the loss
 *                       and grad_output, or weight or mask do not broadcast to the loss
 *   batchmean_scalar    batchmean of a 0-dim tensor, under KL_ONEFLOW
 *   input_negative      a negative probability of input, under KL_MATH, that is not masked; `index`
 *                       is that of the first one, counted in row-major order, and has_index is set
 *   target_negative     likewise of target
 *   simd_invalid        no such instruction set, or this CPU lacks it
 *   partial_none        a partial result of KL_NONE
 *   indices_invalid     indices of a sparse target that are neither -1 nor below the row's length, or twice in a row with
 *                       different values; has_index is set, and `index` is that of the first one in row-major order
 *   indices_missing     a sparse target without them
 *   tail_invalid        no such tail
 *   mass_invalid        values of a row of a sparse target that sum to more than 1; `index` is that of its first one
 *   normalizer_missing  values of a sparse target that are logits, without a log_normalizer
 *   normalizer_unused   a log_normalizer of values that are not logits
 *   sparse_unsupported  broadcasting, other axes than the last, or a diagnosis, of a sparse target
 *   stopped             the caller's plan.stopped said so
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

/* "float64", "float32", "float16", "bfloat16", and the bytes one element takes. NULL and 0 of any other
 * number, as have all functions that name what an enum holds. */
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

/* KL_MAX_DIMS: the maximum of dimensions of a tensor. */
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

/* kl_reduction: how losses are reduced. KL_MEAN divides their sum by their number, KL_BATCHMEAN by
 * size(0) of input (a 0-dim input is not divided), KL_NONE keeps each. KL_ELEMENTWISE_MEAN is the
 * deprecated name of KL_MEAN. Sums over nothing are 0, means over nothing NaN (0 under KL_ONEFLOW
 * for KL_MEAN). */
enum kl_reduction { KL_MEAN, KL_BATCHMEAN, KL_SUM, KL_NONE, KL_ELEMENTWISE_MEAN };

/* Case-sensitive; fails with PyTorch's words, "bogus is not a valid value for reduction". */
bool kl_reduction_parse(const char *name, enum kl_reduction *reduction, struct kl_problem *problem);
const char *kl_reduction_name(enum kl_reduction reduction);

/* kl_compat: whose rules hold where the formula has no value; t is of target, x of input:
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
 * give NaN: so log_target's t with x = -inf is +inf also where exp(t) is 0 as a float32 or a float64, for it
 * is not 0. There is no clamp and no epsilon anywhere. */
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

/* kl_space: what an operand holds. KL_DEFAULT_SPACE is log-probabilities for input, and for target
 * probabilities, or with log_target their logarithms. Logits are what a softmax makes probabilities
 * of: exp(l / temperature) over its sum along a row, which is never written out. A row is what
 * options.dim names, all of it together, or where that is absent the last axis (of a 0-dim tensor,
 * its element). A logit of -inf is a probability of 0. */
enum kl_space { KL_DEFAULT_SPACE, KL_LOG_PROB, KL_PROB, KL_LOGIT };

/* "log_prob", "prob", "logit". */
bool kl_space_parse(const char *name, enum kl_space *space, struct kl_problem *problem);

/* kl_divergence: the loss of an element, with p and q the probabilities that target and input stand for:
 *
 *   KL_FORWARD   p (log p - log q), the Kullback-Leibler divergence of input from target, KL(p || q)
 *   KL_REVERSE   q (log q - log p), KL(q || p): KL_FORWARD with operands and their spaces exchanged, to the bits
 *   KL_JS        beta p (log p - log m) + (1 - beta) q (log q - log m) with m = beta p + (1 - beta) q: the generalized
 *                Jensen-Shannon divergence of on-policy distillation (Agarwal and others, "On-Policy Distillation of
 *                Language Models", 2024, eq. 1). With beta = 0 it is KL_FORWARD, and with beta = 1 KL_REVERSE, as in
 *                TRL's generalized_jsd_loss and Liger-Kernel's; its own limits there are 0
 *   KL_SKEW      p (log p - log m) with m = alpha p + (1 - alpha) q: the skewed divergence (Lee, "On the Effectiveness
 *                of the Skew Divergence for Statistical Language Analysis", 2001; Ko and others, "DistiLLM", 2024).
 *                With alpha = 0 it is KL_FORWARD, with alpha = 1 it is 0
 *
 * KL_JS and KL_SKEW are finite wherever p and q are. A probability of 0, or a logarithm of -inf, contributes its limit:
 *
 *                   loss of KL_JS                     loss of KL_SKEW
 *   p = q = 0       0                                 0
 *   p = 0           -(1 - beta) q log(1 - beta)       0
 *   q = 0           -beta p log(beta)                 -p log(alpha)
 *
 * An operand that stands for no probability, as it is negative, infinite or NaN, or its exponential overflows, gives NaN.
 * KL_PYTORCH, KL_ONEFLOW and KL_MATH agree on all that, but that a negative probability is an error under KL_MATH. */
enum kl_divergence { KL_FORWARD, KL_REVERSE, KL_JS, KL_SKEW };

/* "forward", "reverse", "js", "skew". */
bool kl_divergence_parse(const char *name, enum kl_divergence *divergence,
                         struct kl_problem *problem);

/* kl_scale: what losses are multiplied by, and so derivatives: nothing, or the square of the temperature. A temperature makes
 * derivatives by logits about 1 / temperature^2 as large. Hinton and others ("Distilling the Knowledge in a Neural Network",
 * 2015, section 2) multiply the loss by its square, so that its part in a sum of losses stays the same. */
enum kl_scale { KL_UNSCALED, KL_TEMPERATURE_SQUARED };

/* "none", "temperature_squared". */
bool kl_scale_parse(const char *name, enum kl_scale *scale, struct kl_problem *problem);

/* kl_tail: what becomes of r = 1 - sum(p), the mass that a sparse target leaves to the elements which it does not name. With
 * s the mass that these have in input:
 *
 *   KL_TAIL_BIN     they count as one element, with the probabilities r and s
 *   KL_TAIL_DROP    p are divided by their sum, so that r is 0; KL_REVERSE is infinite where s is not 0
 *   KL_TAIL_IGNORE  only the elements that are named have losses */
enum kl_tail { KL_TAIL_BIN, KL_TAIL_DROP, KL_TAIL_IGNORE };

/* "bin", "drop", "ignore". */
bool kl_tail_parse(const char *name, enum kl_tail *tail, struct kl_problem *problem);

/* kl_sparse: a target that names few elements of each row, such as the k likeliest words of a teacher. Input has the shape
 * [..., n], and rows along its last axis. The target of kl_plan has the shape [..., k], with k from 1 to n, and holds the values
 * of the elements, in the space that options name. An index of -1 names none, wherever it stands, and its value is not read: so
 * rows may name different numbers of elements. An element that is named twice in a row counts once if both values are the same;
 * the derivative by it is that by the first value, and by the other 0.
 *
 * The logarithm of the probability of a logit is value / temperature - log_normalizer, which is logsumexp(logits / temperature)
 * of all n logits. Of a tail that is dropped it makes no difference, and may be absent. Logits of half precision are too coarse
 * for it: log-probabilities, or logits less the maximum of their row, are not. Rounded probabilities may sum to
 * more than 1, by 1e-9 if values are float64, 1e-4 if float32, 1e-2 if float16, 5e-2 if bfloat16: then r is 0. KL_TAIL_DROP takes
 * any finite sum. With KL_TAIL_BIN, if s is 0, an r of at most the number above counts as 0. With KL_TAIL_DROP the loss of a row
 * that names no element is NaN. All is borrowed like a tensor. */
struct kl_sparse {
    const void *indices; /* int32_t or int64_t, of the target's shape: positions in rows of input */
    bool is_int64;
    enum kl_tail tail;
    const struct kl_tensor *log_normalizer; /* a number for each row, of shape [...]; or NULL */
};

/* kl_mask: a byte per loss, 1 if it counts, else 0. Borrowed like a tensor. */
struct kl_mask {
    size_t ndim;
    const size_t *shape;
    const unsigned char *data;
};

/* Zeroed, these are PyTorch's defaults. All that is pointed to is borrowed: `dim` until kl_plan
 * returns, weight's and mask's shapes and data for as long as the plan is used. */
struct kl_options {
    enum kl_reduction reduction;
    enum kl_flag size_average;
    enum kl_flag reduce;
    bool log_target; /* target holds log-probabilities: the same as target_space KL_LOG_PROB */
    enum kl_compat compat;
    enum kl_base base;
    enum kl_space input_space, target_space;

    /* Divides logits before the softmax; 0 is absent, which is 1. Operands that hold something else
     * are left as they are; where neither holds logits only 1 is accepted. Losses and gradients are
     * multiplied by its square only as `scale` says. */
    double temperature;

    /* Axes that losses are summed over before the reduction applies to what remains, counted from
     * 0, or from the last as -1: so KL_NONE gives the divergence of each row, KL_MEAN the mean of
     * the rows', and KL_BATCHMEAN divides by the first size that remains. None if n_dim is 0. */
    const int *dim;
    size_t n_dim;

    /* Operands of different shapes stand for the shape that both broadcast to, as NumPy has it:
     * aligned at the last axis, sizes of 1 repeated. An axis is counted in that shape, a softmax
     * is over its rows, and KL_BATCHMEAN divides by its first size, where PyTorch takes that of
     * input as it was given. */
    bool broadcast;

    /* Multiplies losses, after those of `dim` are summed; broadcasts to them. Reduced losses of logits are
     * summed along each row first if weight and mask are broadcast along it, too. KL_MEAN then divides
     * by the sum of the weights, KL_BATCHMEAN by what it always does. NULL is 1. A sum of weights past
     * double's range divides as infinity does, so that the loss is 0; below 2^-1022 the loss holds, but
     * derivatives may be infinite. Where there is no loss to multiply, as in an empty row, even an
     * infinite weight gives 0. */
    const struct kl_tensor *weight;

    /* Broadcasts to the losses as weight does. Masked losses count nowhere: not in sums, not in
     * what KL_MEAN divides by (the losses left, or their weights) nor KL_BATCHMEAN (the entries of
     * the loss's first axis with any left), nor in the softmax of a row of logits. KL_NONE gives 0
     * for them, their gradients are 0, and what their operands hold has no effect. NULL masks
     * nothing. */
    const struct kl_mask *mask;

    enum kl_divergence divergence;
    double
        beta; /* of KL_JS, from 0 to 1: target's share of the mixture. 0, and so one that is not set, is KL_FORWARD */
    double alpha; /* of KL_SKEW, likewise */
    enum kl_scale scale;

    /* Losses are those of rows, as with the last axis in `dim`, which may name it: so weight, mask and grad_output have the shape
     * [...]. Rules are those of KL_MATH whatever `compat` is: 0 times an infinite logarithm is 0, and a negative probability of
     * target an error. NaN and infinities are none: they give what a dense call of the elements gives, with the tail as one more.
     * KL_NONE tells the rows. What masked rows hold has no effect, their indices included. Derivatives by input are those by all n
     * elements, by target those by values. Time grows with n only as a log-sum-exp of input does. NULL for a target of all
     * elements. */
    const struct kl_sparse *sparse;
};

/* ---- Warnings ------------------------------------------------------------------------- */

/* kl_warning: PyTorch's warnings for the same call. KL_MEAN gives none where options.dim is given,
 * which PyTorch lacks. A set of them is an unsigned with the bit 1u << warning. They depend on
 * options alone and are given whether or not the call succeeds; but for KL_LOSS_NEGATIVE, which kl_loss_warnings finds. */
enum kl_warning {
    KL_MEAN_IS_NOT_KL_DIVERGENCE,
    KL_SIZE_AVERAGE_REDUCE_DEPRECATED,
    KL_ELEMENTWISE_MEAN_DEPRECATED,
    KL_LOSS_NEGATIVE, /* not PyTorch's: of a computed loss */
};
#define KL_WARNINGS 4

struct kl_warning_text {
    const char *code;     /* stable, snake_case */
    const char *category; /* "UserWarning" */
    const char *message;  /* PyTorch's, to the letter, if it has that warning */
};

/* The text for a call whose reduction came out as `applied` (KL_SIZE_AVERAGE_REDUCE_DEPRECATED
 * names it). Static lifetime. NULL if there is no
 * such warning, or no flags give such a reduction. */
const struct kl_warning_text *kl_warning_text(enum kl_warning warning, enum kl_reduction applied);

/* The warnings of a loss that was computed, as plan->warnings has others. KL_LOSS_NEGATIVE: a loss of KL_FORWARD is negative, and
 * input should hold log-probabilities. Most often input holds probabilities then. It is looked for in reduced losses, and in losses
 * of rows, with `dim` if that names the last axis. It is not looked for with weights, a mask of elements, or KL_TAIL_IGNORE: there a negative loss may be
 * right. A target that does not sum to 1 also gives it. Rounding may bring a row to -1e-6 in float64, -1e-5 in float32, -0.01 in
 * float16 and -0.05 in bfloat16, by the coarser operand: a loss is below that, times the rows that it sums, and below -1e-6. */
struct kl_plan;
unsigned kl_loss_warnings(const struct kl_plan *plan, const void *loss);

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
    size_t joint_ndim;           /* of the operands' shape, or what they broadcast to */
    size_t joint_shape[KL_MAX_DIMS];
    size_t count;               /* elements of that */
    size_t counts[KL_OPERANDS]; /* elements of input and of target */
    bool summed[KL_MAX_DIMS];   /* the joint axes that dim names */
    size_t kept_ndim;           /* of the joint shape without the axes of dim: that of the losses */
    size_t kept_shape[KL_MAX_DIMS];
    size_t kept_count;                 /* elements of that: losses before the reduction */
    size_t batch;                      /* its first size; 1 if it has none */
    size_t loss_size;                  /* bytes that kl_run writes */
    enum kl_space spaces[KL_OPERANDS]; /* of input and of target, never KL_DEFAULT_SPACE */
    double temperature;                /* never 0 */
    struct kl_tensor weight;           /* `data` NULL if there is none */
    struct kl_mask mask;               /* the same */

    /* Set by the caller between kl_plan and a call that computes, or left NULL. Each thread that
     * computes asks before a chunk of 16,384 elements, some 10 us unless values are special, and with a sparse target before
     * each row; once the answer is true it must stay so, and the call fails with `stopped`. Its results are then of no use. */
    bool (*stopped)(const void *context);
    const void *stop_context;

    enum kl_divergence divergence; /* that applies: at the ends of beta and alpha no mixture */
    double share;                  /* target's of the mixture: beta or alpha */
    struct kl_sparse sparse;       /* `indices` NULL if there is none */
    bool zero_if_empty;            /* the mean of no losses is 0, as OneFlow has it, not NaN */
    bool exchanged; /* the library's own: input and target have taken each other's place */
};

/* Checks dtypes, shapes and options; reads no data. Fills *plan, which borrows the tensors'
 * shapes and data and holds nothing to free. No pointer but `problem` may be NULL. Shapes must be
 * the same unless options.broadcast is set: PyTorch broadcasts silently, and then divides batchmean
 * by the wrong number. Fails with shape_mismatch, ndim_invalid, dim_invalid, space_conflict,
 * temperature_invalid, batchmean_scalar, an _unused, out_of_memory where the elements
 * outnumber any memory, shape_invalid where losses of empty rows do, or the _invalid of an enum that has no such value. */
bool kl_plan(struct kl_plan *plan, const struct kl_tensor *input, const struct kl_tensor *target,
             const struct kl_options *options, struct kl_problem *problem);

struct kl_pool;

/* Computes the loss into `loss`, of plan->loss_size bytes, which need no alignment and must not
 * overlap the operands. The operands' data must stay unchanged until it returns.
 *
 * Accuracy: every element and every sum is computed in at least double arithmetic from the exact values of the
 * operands, and rounded once, to the dtype of the loss; so a float16 batchmean overflows only if the quotient does.
 * With p and q the probabilities that target and input stand for, m = max(|log p|, 1), e = p max(|log p|, |log q|, 1), S
 * the sum of the losses' sizes and ulp the unit in the last place, results err by at most
 *
 *   input      target             result                  float64              float32, float16, bfloat16
 *   log_prob   prob or log_prob   a loss                  2.6 ulp [1]          0.51 ulp [2]
 *   prob       prob               a loss                  4 ulp [3]            0.51 ulp [2]
 *   prob       log_prob           a loss                  2^-50 e              2^-50 e, before it is rounded
 *   no logits in either           a sum of losses         2^-50 S [1]          2^-40 S, before it is rounded
 *   logits     no logits          a loss                  2^-50 e              2^-46 e, likewise
 *   any        logits             a loss                  2^-50 e m            2^-46 e m, likewise
 *   logits in either              a sum along a row       2^-46 of the row's sum of e [4], in any dtype
 *   logits     logits             a row's loss < 2^-20    2^-50 (1 / d + l) of itself [5], in any dtype
 *
 *   [1] and by 2^-60 p max(|log q|, 1), which shows where input and log target agree to 10 digits and more
 *   [2] correctly rounded but for one loss in 10,000 at worst
 *   [3] however close the two are, where p, q and p / q are between 2^-900 and 2^900; elsewhere 2^-50 e
 *   [4] 2^-43 of it where input's log q are so far below -1e30 that p below 1e-30 count
 *   [5] and by 2^-150, which shows in losses below 2^-100. d is the greatest difference of log p and log q, -l the least of both;
 *       the row is summed whole, without a weight or mask of its elements
 *
 * All that is of KL_FORWARD, and of KL_REVERSE with the operands exchanged. For KL_JS and KL_SKEW, with w the mixture, l =
 * max(|log p|, |log q|, 1) without the logarithm of a 0, of KL_JS also |log beta| and |log(1 - beta)|, of KL_SKEW |log alpha|,
 * d = log(p / q), c = min(|d|, 1) + 2^-49 l, and u = 2^-49 if the loss is float64, else 2^-44, they err by, before they are
 * rounded,
 *
 *   a loss of KL_JS                     u w c l
 *   a loss of KL_SKEW                   u max(p, w) l
 *   a sum along a row                   the sum of these; of KL_SKEW with logits in both, of u max(p, w) c l
 *
 * so the loss of rows that nearly agree errs by some 2^-49 l / d of itself. Where a, the greatest of |log beta| and |log(1 - beta)|,
 * or |log alpha|, is above 6, they err by a / 6 times as much. With g the derivatives by logarithms and y the
 * softmax, those by logits err by u (s + y l S) over the temperature, where s = (|g| + a) l, S is the row's sum of s, and a is
 * beta p or (1 - beta) q of KL_JS, p by target and 0 by input of KL_SKEW.
 *
 * The loss of a row of a sparse target errs by 2^-50 M times the sum of a l over elements, 2^-46 M if input is not float64, before
 * it is rounded, whatever n and k are. With l as there, of KL_FORWARD and KL_REVERSE too, a is p of KL_FORWARD, q of KL_REVERSE,
 * times max(|log q|, 1) if input holds logits, w of KL_JS, and max(p, w) of KL_SKEW. M is 1, or of target's logits the greatest
 * |value| / temperature + |log_normalizer|, if that is more. The tail of KL_TAIL_BIN is an element with r and s, but that a is 1
 * at least, of KL_REVERSE 1 + s / r, and |log r| 37 at most: r is what p leave of 1, and so known to some 2^-52. With g a
 * derivative by the logarithm of an element that is named, or of the tail, e = (|g| + a) l M, E the sum of e, and u = 2^-49, or 2^-44,
 * derivatives by logarithms err by u e; those of elements that are not named by u max(|log q|, 1) times their part of the tail's e;
 * by logits u max(|log q|, 1) q E is added, and all is over the temperature; those by probabilities err by that over the
 * probability. By target's values u p E is added where they are divided by their sum, and u p / r times the tail's e where they
 * leave r.
 *
 * So losses of KL_FORWARD may be misrounded where logits make them cancel: a row of one, whose loss is 0, may give 1e-14. Target's
 * logits of 700 and more below their row's maximum have p = 0, which shows if log q is below -1e290. Logits that differ
 * by more than double's range from their row's maximum make losses infinite or NaN, as does a sum whose parts overflow
 * double on the way. Bounds hold for rows of any length. A result has the same bits for any number of threads.
 *
 * `pool` may be NULL: then, and for small tensors always, the calling thread does all of it. Fails
 * with input_negative, target_negative, stopped or out_of_memory; then `loss` holds nothing of use. */
bool kl_run(const struct kl_plan *plan, struct kl_pool *pool, void *loss,
            struct kl_problem *problem);

/* ---- Gradients ------------------------------------------------------------------------ */

/* kl_results: the destinations of kl_run_gradients, NULL for what is not wanted: the loss, with the
 * bits that kl_run gives it, its derivatives by each element of an operand, in that operand's own
 * shape, dtype and space, and what kl_diagnose finds, which takes less time beside the loss. They
 * need no alignment but the diagnosis's own, and must not overlap anything else. */
struct kl_diagnosis;
struct kl_results {
    void *loss;
    void *grad[KL_OPERANDS];
    struct kl_diagnosis *diagnosis;
};

/* Computes the loss and its derivatives in one pass over the operands in memory, two or three where they
 * are logits, four of a mixture of rows of more than 2^18. Derivatives are multiplied by `grad_output`, the derivative
 * of whatever is differentiated by the loss: NULL for 1, or a tensor of the loss's shape and any dtype. With u its element (its
 * only one, unless the reduction is none), w that of weight and N what the reduction divides by, g
 * is u w / N; where losses were summed over dim, the g of their sum. By log-probabilities x and by
 * what target holds, as PyTorch's autograd has them, and where KL_ONEFLOW and KL_MATH differ; of KL_FORWARD, and of KL_REVERSE
 * with the operands exchanged:
 *
 *                          by input                 by target
 *   t > 0                  -t g                     (log t + 1 - x) g
 *   t = 0                  -0 g                     NaN; KL_ONEFLOW and KL_MATH: -inf g
 *   t < 0                  -t g; KL_ONEFLOW: 0 g    NaN
 *   t = +inf               -inf g                   NaN; KL_ONEFLOW and KL_MATH: +inf g
 *   log_target             -exp(t) g                exp(t) (t - x + 1) g
 *   log_target, t = -inf   -0 g                     NaN; KL_MATH: 0 g
 *
 * By a probability q of input it is 1 / q times that by its logarithm (by q = 0 where t = 0: NaN;
 * KL_ONEFLOW and KL_MATH: -0 g). By logits it is the softmax's own: with s those by the row's
 * log-probabilities x, (s - exp(x) sum(s)) / temperature. Target's logits of -inf are
 * log_target's t = -inf, but that under KL_ONEFLOW they are as under KL_MATH.
 * Of an operand that was broadcast, the derivatives of all that an element stood for are summed.
 *
 * Of KL_JS by log p: beta p log(p / m), by log q: (1 - beta) q log(q / m); of KL_SKEW by log p: p log(p / m) +
 * (1 - alpha) p q / m, by log q: -(1 - alpha) p q / m; with any compat, and 0 where p or q is 0. By a probability they are
 * these over it, at a probability of 0 too: infinite, or NaN if p and q both are 0; of KL_SKEW by q = 0 where p is not
 * -(1 - alpha) / alpha.
 *
 * Under KL_MATH a negative probability is an error, as it is for the loss. Computed in double and
 * rounded once, to the operand's dtype. With p, q and m = max(|log p|, 1), and s the row's sum of losses, those of unit
 * losses of KL_FORWARD err by at most
 *
 *                          float64                             float32, float16, bfloat16
 *   by input's logits      2^-50 (q max(|log q|, 1) + p m)     2^-46 of the same     over the temperature
 *   by target's logits     2^-49 p m max(|log q|, |s|, m)      2^-45 of the same     over the temperature
 *
 * `pool` as for kl_run. Fails with shape_mismatch if grad_output has another shape than the loss, with dtype_invalid if
 * it has no dtype, with input_negative or target_negative, and with out_of_memory. */
bool kl_run_gradients(const struct kl_plan *plan, const struct kl_tensor *grad_output,
                      struct kl_pool *pool, const struct kl_results *results,
                      struct kl_problem *problem);

/* The most bytes that kl_run_gradients allocates while it runs: none for elements that lie alike in all
 * arrays; some 144 KiB for rows and what is broadcast, 16 bytes for each 512 elements of rows that are
 * few, long and side by side, and more where derivatives are summed back to operands that were broadcast. Rows of 1,025 to 2^18
 * logits in both operands take 16 bytes a logit and thread: KL_JS and KL_SKEW with derivatives, for each operand that has some;
 * KL_FORWARD with derivatives by input alone, and KL_REVERSE by target alone, unless logits are float64. If that memory is not there,
 * calls are slower. A sparse target takes 16 (k + 1) + k + 32 bytes a row, 8 (k + 1) more for each operand with
 * derivatives, and n / 4 bytes a thread. Threads are those of `pool`, which may be NULL.
 * kl_diagnose allocates kl_diagnosis_scratch(), and as much as kl_run besides where the loss may overflow; so does
 * a diagnosis among the results without a loss, and with one whichever is more. No call takes more than 48 KiB of the
 * calling thread's stack. */
size_t kl_scratch_size(const struct kl_plan *plan, const struct kl_pool *pool,
                       const struct kl_results *results);
size_t kl_diagnosis_scratch(void);

/* ---- Partial results ------------------------------------------------------------------ */

/* KL_CHUNK: elements that are summed at once, in order; whatever such chunks give, and losses of rows, is
 * added exactly. kl_chunk() is that of the library in use, for callers that have no C compiler. */
#define KL_CHUNK 16384
size_t kl_chunk(void);

/* kl_exact: the exact sum of any doubles. Its members are the library's own. */
struct kl_exact {
    unsigned specials, first, end;
    long long digits[72];
};

/* kl_partial: the part that a shard, some entries of the first axis of all tensors, has in a reduced
 * loss: what merges to that of the whole tensors, in any order, to the bits of one call to kl_run. Zeroed,
 * it is that of nothing. It is plain memory without pointers, which may be copied, stored, and sent to
 * processes with the same library on machines with the same byte order. Members are the library's own:
 * the functions below read them, and check nothing, so bytes of strangers must not get there. One thread
 * at a time may merge into it.
 *
 * The bits are those of one call if shards end at multiples of kl_partial_step entries and all are
 * computed with the same instruction set: kl_simd_select names one where machines differ, for "auto" takes
 * the best of each. Sums of other shards differ in rounding alone, as in any sum of floats. */
struct kl_partial {
    struct kl_exact sum;     /* of losses, weighted, in the unit of options.base */
    struct kl_exact weights; /* what KL_MEAN divides by: their sum, or the number of losses */
    struct kl_exact entries; /* what KL_BATCHMEAN divides by */
    bool zero_if_empty;      /* under KL_ONEFLOW, for KL_MEAN */
};

/* kl_partial_step: the entries of the first axis at whose multiples a call may be cut: 1 where rows are
 * summed or softmaxed and the first axis is across them; 0, for never, where it is along them or is not
 * there; and else as many as are a multiple of KL_CHUNK elements. The plan may be that of any shard or of
 * the whole. All arrays are cut along with it, but those that are broadcast along the axis, which go to
 * each shard whole: shards then have 2 entries at least, unless the step is 1 for rows. Options must be the
 * same in all shards, but for `reduction`. */
size_t kl_partial_step(const struct kl_plan *plan);

/* Fills *partial, which serves any reduction but KL_NONE, whatever the plan's: that alone fails, with
 * partial_none. Takes as long as kl_run and fails like it; *partial is of no use then. Under KL_MATH
 * problem->index is within the shard. */
bool kl_run_partial(const struct kl_plan *plan, struct kl_pool *pool, struct kl_partial *partial,
                    struct kl_problem *problem);

/* Adds `more` to *partial, exactly. */
void kl_partial_merge(struct kl_partial *partial, const struct kl_partial *more);

/* The loss: the sum divided as the reduction says, both rounded to double, the quotient too, and then to
 * `dtype`, which is that of the whole's loss. NaN for KL_NONE, and without a dtype. kl_run does the same with its own sums. An
 * infinity or a NaN in any part shows as it does in one call; parts that overflow double together but
 * cancel do not. */
double kl_partial_loss(const struct kl_partial *partial, enum kl_reduction reduction,
                       enum kl_dtype dtype);

/* The sum, and the divisor of a reduction (1 for KL_SUM), each as two doubles: the value rounded to nearest, and the rest,
 * rounded too. A pair has 106 bits. The sum of a chunk has 73 bits, the sum of a row 53. So a pair is exact while the sum is
 * less than 2^33 times its smallest chunk that is not 0. Exact pairs merge to the same bits as partials do, by any exact sum, such as
 * Python's math.fsum of all numbers of all pairs. Otherwise the relative error of a pair is at most 2^-106. If the sum is not
 * finite, the second number is 0. */
void kl_partial_sum(const struct kl_partial *partial, double pair[2]);
void kl_partial_divisor(const struct kl_partial *partial, enum kl_reduction reduction,
                        double pair[2]);

/* Sizes of structs, in bytes, for callers from other languages: a size that is not that of a caller's own
 * declaration tells that the two do not fit. 0 for what is not named here, as for a number that is newer
 * than the library.
 *
 * A struct grows by members at its end, of which 0 means what the library did before, and numbers are
 * never used twice. A struct that grows changes the soname, and so does a function that is taken away, so
 * that programs which were compiled against another size are not loaded. Callers that look functions up
 * by name compare sizes at their start: where the library's is greater they may pass so many bytes, zeroed
 * beyond their own members; where it is less the library is too old for them. */
enum kl_struct {
    KL_SIZEOF_PROBLEM,
    KL_SIZEOF_TENSOR,
    KL_SIZEOF_MASK,
    KL_SIZEOF_OPTIONS,
    KL_SIZEOF_PLAN,
    KL_SIZEOF_PARTIAL,
    KL_SIZEOF_RESULTS,
    KL_SIZEOF_DIAGNOSIS,
    KL_SIZEOF_DRIFT_OPTIONS, /* of kldiv_drift.h, as those below */
    KL_SIZEOF_DRIFT,
    KL_SIZEOF_DRIFT_BIN,
};
size_t kl_sizeof(enum kl_struct name);

/* ---- Diagnosis ------------------------------------------------------------------------ */

/* kl_finding: what kl_diagnose may find. Rows are those that options.dim names, or along the last
 * axis; masked ones are not looked at, and masked elements of others are left out. A
 * row is normalized if its probabilities sum to 1 within 1e-3 (1e-2 for float16, 5e-2 for
 * bfloat16), or, of rows masked in part, to less; its exponentials likewise. Of logits
 * only whether losses are finite. A loss is not finite if an element of it is not, if the sum of a
 * row is not, or if the call's result overflows, for which every row is counted: so rows are counted
 * that are NaN by a negative target, which has a finding of its own too. */
enum kl_finding {
    KL_ARGUMENTS_LOOK_SWAPPED,              /* input like probabilities, target like their logs */
    KL_INPUT_NOT_LOG_PROBABILITIES,         /* rows with values above 0 */
    KL_INPUT_NOT_NORMALIZED,                /* rows of exp(input), or of probabilities */
    KL_TARGET_NOT_NORMALIZED,               /* likewise */
    KL_TARGET_NEGATIVE,                     /* rows with negative probabilities */
    KL_TARGET_LOOKS_LIKE_LOG_PROBABILITIES, /* rows not above 0 whose exponentials sum to 1 */
    KL_LOSS_NOT_FINITE,                     /* rows with a loss that is infinite or NaN */
};
#define KL_FINDINGS 7

struct kl_diagnosis {
    /* Rows of the call without those that are masked as a whole, by a mask that options.dim gives one byte for each row;
     * without dim a row counts also if each of its elements is masked. */
    size_t rows;
    struct {
        size_t count; /* of rows; 0 if there is nothing to say */
        enum kl_operand
            operand;  /* which `index` is in: target for those named after it, else input */
        size_t index; /* of the first such value, or the first element of the first row */
        char message[300];
    } findings[KL_FINDINGS];
};

/* "input_not_normalized" and so on. Static lifetime. */
const char *kl_finding_code(enum kl_finding finding);

/* Looks at the operands, in one pass, and calls kl_run where finite losses may have a sum that is not.
 * Rows that are as they should be take 1 to 2.5 ns an element, about as long as kl_run or less. Rows that may hold a loss
 * which is not finite are looked at element by element, at 10 to 500 ns each: those with a NaN, an
 * infinity or a negative target, and those whose losses could be beyond the dtype's range by a bound that knows only the row's
 * extremes, as in float16 from 65504 on. Fails with stopped or out_of_memory. */
bool kl_diagnose(const struct kl_plan *plan, struct kl_pool *pool, struct kl_diagnosis *diagnosis,
                 struct kl_problem *problem);

/* ---- Threads -------------------------------------------------------------------------- */

/* A pool of `threads` threads, the caller of kl_run counting as one, so 1 starts none. It may
 * serve any number of kl_run calls at once; they share it task by task, so a long one does
 * not hold up a short one. Each thread holds 136 KiB beside its stack, and takes no signals. After
 * a fork the child must neither use nor free the pool. NULL if memory or threads cannot be had. */
struct kl_pool *kl_pool_new(size_t threads);

/* Waits for the threads to end. No kl_run may be using the pool. NULL is fine. */
void kl_pool_free(struct kl_pool *pool);

size_t kl_pool_threads(const struct kl_pool *pool);

/* ---- Instruction sets ----------------------------------------------------------------- */

/* Chooses the kernel for the whole process: "auto" for the best that this CPU and its
 * operating system support, or one of "avx512", "avx2", "neon", "generic", which runs anywhere.
 * Without this call the choice is "auto". Call it before threads use the library. Fails with
 * simd_invalid. */
bool kl_simd_select(const char *name, struct kl_problem *problem);

/* The name of the kernel in use. */
const char *kl_simd_name(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
