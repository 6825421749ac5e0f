/* The struct kl_kernel of the file that includes this, which has defined KERNEL_NAME,
 * KERNEL_STRUCT, supported(), and a macro DTYPE(dtype, suffix) that makes one dtype's functions,
 * by the names used here,
 * and a macro SLOPE(form, log_target) that makes slope_prob and slope_log. */

DTYPE(KL_FLOAT64, f64)
DTYPE(KL_FLOAT32, f32)
DTYPE(KL_FLOAT16, f16)
DTYPE(KL_BFLOAT16, bf16)
SLOPE(prob, false)
SLOPE(log, true)

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
    .slope = {slope_prob, slope_log},
    .widen = {widen_f64, widen_f32, widen_f16, widen_bf16},
    .narrow = {narrow_f64, narrow_f32, narrow_f16, narrow_bf16},
    .top = row_top,
    .each_top = each_top,
    .total = row_total,
    .each_add = each_add,
    .shift = shift,
    .multiply = multiply,
    .hide = hide,
    .exps = exps,
    .logs = logs,
    .quotients = quotients,
    .parts = {parts_prob, parts_log},
    .each_parts = {each_parts_prob, each_parts_log},
    .sum_exps = sum_exps,
    .widen_bytes = widen_bytes,
    .soften = soften,
    .each_survey = each_survey,
    .survey = {survey_f64, survey_f32, survey_f16, survey_bf16},
};
