#include "api/loss/tensor.h"

#include "api/loss/options.h"
#include "api/text/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const api_tensor_names[API_TENSORS + 1] = {[KL_INPUT] = "input",
                                                       [KL_TARGET] = "target",
                                                       [KL_GRAD_OUTPUT] = "grad_output",
                                                       [KL_WEIGHT] = "weight",
                                                       [KL_MASK] = "mask",
                                                       [KL_INDICES] = "indices",
                                                       [KL_LOG_NORMALIZER] = "log_normalizer"};

void api_tensor_location(const struct api_tensor *tensor, char *to, size_t size)
{
    if (tensor->is_input)
        snprintf(to, size, "#/inputs/%zu", tensor->input);
    else
        snprintf(to, size, "#/%s", api_tensor_name(tensor));
}

bool api_tensor_fail(const struct api_tensor *tensor, const char *field,
                     struct api_problem *problem, const char *code, const char *format, ...)
{
    char location[100], detail[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    api_tensor_location(tensor, location, sizeof location);
    if (field) {
        size_t used = strlen(location);
        snprintf(location + used, sizeof location - used, "/%s", field);
    }
    return api_fail_at(problem, API_BODY, location, code, "%s: %s", api_tensor_name(tensor),
                       detail);
}

bool api_tensor_type(const struct api_tensor *tensor, enum api_dtype_names format,
                     const char *field, const char *name, struct api_type *type,
                     struct api_problem *problem)
{
    char refusal[API_REFUSAL];
    return api_type_of_tensor(format, name, api_tensor_kind_of(tensor), type, refusal) ||
           api_tensor_fail(tensor, field, problem, "dtype_unsupported", "%s", refusal);
}

static size_t find_tensor(const char *name)
{
    size_t i = 0;
    while (i < API_TENSORS && strcmp(name, api_tensor_names[i]) != 0)
        i++;
    return i;
}

/* Fails for an unknown tensor. numpy.savez names arrays arr_0, arr_1 and so on if it is given no
 * names. */
static bool fail_unknown(const char *name, const char *location, struct api_problem *problem)
{
    const char *nearest = api_nearest(name, api_tensor_names, API_TENSORS);
    char mean[API_MEAN];
    bool unnamed = strncmp(name, "arr_", 4) == 0 && name[4] >= '0' && name[4] <= '9';
    if (api_option_find(name) >= 0)
        return api_fail_at(problem, API_BODY, location, "tensor_unknown",
                           "'%.60s' is an option, not a tensor: send it in the query", name);
    return api_fail_at(problem, API_BODY, location, "tensor_unknown",
                       "there is no tensor '%.60s'%s The tensors are " API_TENSOR_LIST "%s", name,
                       api_mean(mean, nearest, "."),
                       unnamed ? ": np.savez(f, input=..., target=...) names them" : "");
}

struct api_tensor *api_tensor_find(struct api_tensor tensors[API_TENSORS], const char *name,
                                   const size_t *input, struct api_problem *problem)
{
    char location[256];
    size_t i = find_tensor(name);
    if (i < API_TENSORS && !tensors[i].present)
        return &tensors[i];
    if (input)
        snprintf(location, sizeof location, "#/inputs/%zu/name", *input);
    else
        api_pointer_to_member(location, sizeof location, "#/", name);
    if (i == API_TENSORS)
        fail_unknown(name, location, problem);
    else
        api_fail_at(problem, API_BODY, location, "tensor_repeated", "%s: it is given twice", name);
    return NULL;
}

void api_tensor_value_location(const struct api_tensor *tensor, const size_t *subscripts, size_t n,
                               char *to, size_t size)
{
    api_tensor_location(tensor, to, size);
    size_t used = strlen(to);
    if (tensor->is_input)
        used += (size_t)snprintf(to + used, size - used, "/data");
    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "/%zu", subscripts[i]);
}

void api_tensor_element_location(const struct api_tensor *tensor, size_t index, char *to,
                                 size_t size)
{
    const struct kl_tensor *view = &tensor->view;
    size_t subscripts[KL_MAX_DIMS] = {index}, n = tensor->flat ? 1 : view->ndim;
    for (size_t i = tensor->flat ? 0 : n; i-- > 0; index /= view->shape[i])
        subscripts[i] = index % view->shape[i];
    api_tensor_value_location(tensor, subscripts, n, to, size);
}

bool api_mask_check(const struct api_tensor *mask, struct api_problem *problem)
{
    const unsigned char *bytes = mask->view.data;
    size_t count = 0;
    char location[256];
    if (!kl_tensor_count(&mask->view, &count))
        return true;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] > 1) {
            api_tensor_element_location(mask, i, location, sizeof location);
            return api_fail_at(problem, API_BODY, location, "element_invalid",
                               "mask holds %d; only 0 and 1 are valid", bytes[i]);
        }
    return true;
}
