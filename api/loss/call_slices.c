#include "api/loss/call.h"

const char *const api_output_names[API_OUTPUTS] = {"loss", "gradient.input", "gradient.target",
                                                   "sum", "divisor"};

/* Checks an output's range in shared memory: its size, and that it is no other tensor's. */
static bool check_slice(const struct api_call *call, size_t output, struct api_problem *problem)
{
    const struct api_slice *slice = &call->oip.slices[output];
    size_t size = api_call_output_size(call, output);
    if (slice->size < size)
        return api_slice_fail(slice, "shared_memory_byte_size", "region_too_small", problem,
                              "%s has %zu bytes, but its range in shared memory has %zu",
                              api_output_names[output], size, slice->size);
    for (size_t i = 0; i < API_TENSORS; i++)
        if (!api_slice_check_apart(slice, &call->tensors[i].slice, problem))
            return false;
    for (size_t i = 0; i < output; i++)
        if (!api_slice_check_apart(slice, &call->oip.slices[i], problem))
            return false;
    return true;
}

bool api_call_check_slices(const struct api_call *call, struct api_problem *problem)
{
    for (size_t i = 0; i < API_RESULTS; i++)
        if (call->oip.slices[i].in && !check_slice(call, i, problem))
            return false;
    return true;
}

/* Copies indices out of shared memory: they are positions, which are checked before they are used, and clients could change
 * them in between. */
static bool copy_indices(struct api_call *call, struct api_problem *problem)
{
    struct api_tensor *indices = &call->tensors[KL_INDICES];
    if (!indices->slice.in)
        return true;
    api_append(&indices->data, indices->slice.data, indices->slice.size);
    call->plan.sparse.indices = indices->data.data;
    return !indices->data.failed || api_fail_oom(problem);
}

bool api_call_begin_slices(struct api_call *call, struct api_problem *problem)
{
    for (size_t i = 0; i < API_TENSORS; i++)
        if (!api_slice_touch(&call->tensors[i].slice, call->tensors[i].slice.size, problem))
            return false;
    for (size_t i = 0; i < API_RESULTS; i++)
        if (api_call_has_output(call, i) && call->oip.slices[i].in &&
            !api_slice_touch(&call->oip.slices[i], api_call_output_size(call, i), problem))
            return false;
    return copy_indices(call, problem);
}

bool api_call_has_lost_slices(const struct api_call *call)
{
    bool is_lost = false;
    for (size_t i = 0; i < API_TENSORS; i++)
        is_lost |= api_slice_is_lost(&call->tensors[i].slice);
    for (size_t i = 0; i < API_RESULTS; i++)
        is_lost |= api_slice_is_lost(&call->oip.slices[i]);
    return is_lost;
}

bool api_call_end_slices(struct api_call *call, struct api_problem *problem)
{
    struct api_problem lost = {0};
    for (size_t i = 0; i < API_TENSORS; i++)
        api_slice_check(&call->tensors[i].slice, &lost);
    for (size_t i = 0; i < API_RESULTS; i++)
        api_slice_check(&call->oip.slices[i], &lost);
    if (lost.code)
        *problem = lost;
    return !lost.code;
}
