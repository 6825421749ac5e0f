/* The struct kl_kernel of the file that includes this, by the names of the functions that the macros
 * of elements.h, grad.h, rows.h and mixture.h make of each dtype, and of the others. */

#define FUNCTIONS(dtype, suffix)                                                                   \
    ELEMENTS(dtype, suffix)                                                                        \
    GRADS(dtype, suffix)                                                                           \
    ROWS(dtype, suffix)                                                                            \
    MIXTURES(dtype, suffix)
FUNCTIONS(KL_FLOAT64, f64)
FUNCTIONS(KL_FLOAT32, f32)
FUNCTIONS(KL_FLOAT16, f16)
FUNCTIONS(KL_BFLOAT16, bf16)

/* Functions of all dtypes, by forms if there are two or three. */
#define DTYPES(function)                                                                           \
    {                                                                                              \
        function##_f64, function##_f32, function##_f16, function##_bf16                            \
    }
#define TWO(function)                                                                              \
    {                                                                                              \
        function##_prob, function##_log                                                            \
    }
#define THREE(function)                                                                            \
    {                                                                                              \
        function##_prob, function##_log, function##_quotient                                       \
    }
#define FORMS(forms, function)                                                                     \
    {                                                                                              \
        forms(function##_f64), forms(function##_f32), forms(function##_f16),                       \
            forms(function##_bf16)                                                                 \
    }

extern const struct kl_kernel KERNEL_STRUCT;
const struct kl_kernel KERNEL_STRUCT = {
    .name = KERNEL_NAME,
    .supported = supported,
    .max_short = 16 * SINGLE_LANES,
    .sum = FORMS(TWO, sum),
    .map = FORMS(TWO, map),
    .losses = FORMS(THREE, losses),
    .grads = FORMS(TWO, grads),
    .scan = DTYPES(scan),
    .widen = DTYPES(widen),
    .narrow = DTYPES(narrow),
    .row_max = DTYPES(row_max),
    .exp_sum = DTYPES(exp_sum),
    .exp_scale = DTYPES(exp_scale),
    .row_sums = FORMS(TWO, row_sums),
    .row_grads = FORMS(TWO, row_grads),
    .logit_sums = DTYPES(logit_sums),
    .short_sums = DTYPES(short_sums),
    .cached_grads = DTYPES(cached_grads),
    .mixture_row = DTYPES(mixture_row),
    .row_stats = DTYPES(row_stats),
    .broadcast = broadcast,
    .row_totals = row_totals,
    .row_maxima = row_maxima,
    .softmax_terms = {softmax_terms_prob, softmax_terms_log},
    .total = total,
    .exact_total = exact_total,
    .add = add,
    .max = max,
    .shift = shift,
    .multiply = multiply,
    .scale = scale,
    .apply_mask = apply_mask,
    .count = count,
    .exps = exps,
    .logs = logs,
    .quotients = quotients,
    .softmax_backward = softmax_backward,
    .log_ratios = log_ratios,
    .close_terms = close_terms,
    .mixture = mixture,
    .bin_counts = bin_counts,
};
