/* The struct kl_kernel of the file that includes this, which has defined KERNEL_NAME,
 * KERNEL_STRUCT, supported(), and a macro DTYPE(dtype, suffix) that makes one dtype's functions,
 * by the names used here,
 * and a macro GRAD(form, log_target) that makes grad_prob and grad_log. */

DTYPE(KL_FLOAT64, f64)
DTYPE(KL_FLOAT32, f32)
DTYPE(KL_FLOAT16, f16)
DTYPE(KL_BFLOAT16, bf16)
GRAD(prob, false)
GRAD(log, true)

#define FORMS(function, suffix)                                                                    \
    {                                                                                              \
        function##_##suffix##_prob, function##_##suffix##_log                                      \
    }

extern const struct kl_kernel KERNEL_STRUCT;
const struct kl_kernel KERNEL_STRUCT = {
    .name = KERNEL_NAME,
    .supported = supported,
    .sum = {FORMS(sum, f64), FORMS(sum, f32), FORMS(sum, f16), FORMS(sum, bf16)},
    .map = {FORMS(map, f64), FORMS(map, f32), FORMS(map, f16), FORMS(map, bf16)},
    .grad = {grad_prob, grad_log},
    .widen = {widen_f64, widen_f32, widen_f16, widen_bf16},
    .narrow = {narrow_f64, narrow_f32, narrow_f16, narrow_bf16},
    .row_max = row_max,
    .each_max = each_max,
    .total = row_total,
    .each_add = each_add,
    .shift = shift,
    .multiply = multiply,
    .apply_mask = apply_mask,
    .exps = exps,
    .logs = logs,
    .quotients = quotients,
    .row_sums = {row_sums_prob, row_sums_log},
    .each_row_sums = {each_row_sums_prob, each_row_sums_log},
    .sum_exps = sum_exps,
    .widen_bytes = widen_bytes,
    .softmax_backward = softmax_backward,
    .each_row_stats = each_row_stats,
    .row_stats = {row_stats_f64, row_stats_f32, row_stats_f16, row_stats_bf16},
};
