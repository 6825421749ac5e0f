#include "api/loss/npy.h"

#include "api/files/dtypes.h"
#include "api/files/npy_header.h"
#include "api/loss/codecs.h"
#include "api/loss/warnings.h"
#include "api/request/response.h"

#include <stdint.h>
#include <string.h>

enum { MAGIC = 6, ALIGNMENT = 64 };

/* reader: an array on its way into a tensor. */
struct reader {
    struct api_tensor *tensor;
    const struct api_npy *npy;
    struct api_type type;
    struct api_problem *problem;
};

/* Copies one element, its bytes in reverse if `swapped`. */
static void copy_element(char *to, const char *from, size_t size, bool swapped)
{
    if (!swapped) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        to[i] = from[size - 1 - i];
}

/* Copies elements to C order and the machine's byte order. `index` counts the subscripts of
 * `to`, and `strides` are those of `from`, in elements; axes of size 1 are skipped. */
static void rearrange(const struct reader *r, const char *from, char *to, size_t count)
{
    size_t shape[KL_MAX_DIMS] = {0}, strides[KL_MAX_DIMS] = {0}, index[KL_MAX_DIMS] = {0};
    size_t size = r->type.size, at = 0, stride = 1, ndim = 0;
    for (size_t i = 0; i < r->npy->ndim; i++)
        if (r->tensor->shape[i] > 1)
            shape[ndim++] = r->tensor->shape[i];
    for (size_t i = 0; i < ndim; i++) {
        size_t d = r->npy->fortran_order ? i : ndim - 1 - i;
        strides[d] = stride;
        stride *= shape[d];
    }
    for (size_t n = 0; n < count; n++) {
        copy_element(to + n * size, from + at * size, size, r->type.swapped);
        for (size_t d = ndim; d-- > 0;) {
            at += strides[d];
            if (++index[d] < shape[d])
                break;
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
}

static bool place_elements(struct reader *r, const char *data, size_t size)
{
    struct api_tensor *tensor = r->tensor;
    size_t count, along = 0;
    api_tensor_set(tensor, r->type.dtype, r->npy->ndim, data);
    if (!kl_tensor_count(&tensor->view, &count) || count * r->type.size != size)
        return api_tensor_fail(tensor, NULL, r->problem, "npy_malformed",
                               "the .npy header's shape and descr do not fit the %zu bytes of data "
                               "after it",
                               size);
    for (size_t i = 0; i < r->npy->ndim; i++)
        along += tensor->shape[i] > 1;
    if (!r->type.swapped && (!r->npy->fortran_order || along <= 1))
        return true;
    /* Use another buffer: `data` may lie in the tensor's own. */
    struct api_buffer rearranged = {.budget = tensor->data.budget};
    if (!api_buffer_reserve(&rearranged, size + 1) || !rearranged.data)
        return api_fail_oom(r->problem);
    rearranged.size = size;
    rearrange(r, data, rearranged.data, count);
    api_buffer_free(&tensor->data);
    tensor->data = rearranged;
    tensor->view.data = rearranged.data;
    return true;
}

bool api_npy_read(struct api_tensor *tensor, const char *bytes, size_t size,
                  struct api_problem *problem)
{
    struct api_npy npy;
    struct api_problem wrong = {0};
    struct reader r = {.tensor = tensor, .npy = &npy, .problem = problem};
    if (!api_npy_parse(bytes, size, &npy, &wrong))
        return api_tensor_fail(tensor, NULL, problem, wrong.code, "%s", wrong.detail);
    memcpy(tensor->shape, npy.shape, sizeof npy.shape);
    return api_tensor_type(tensor, API_NUMPY, NULL, npy.descr, &r.type, problem) &&
           place_elements(&r, bytes + npy.start, size - npy.start);
}

void api_npy_header(struct api_buffer *out, const struct kl_tensor *tensor)
{
    size_t start = out->size;
    api_append(out, "\x93NUMPY\x01\0\0\0", MAGIC + 4);
    api_append_format(out, "{'descr': '<%s', 'fortran_order': False, 'shape': (",
                      api_dtype_name(API_NUMPY, tensor->dtype));
    for (size_t d = 0; d < tensor->ndim; d++) {
        api_append_unsigned(out, tensor->shape[d]);
        api_append_text(out, d + 1 < tensor->ndim ? ", " : "");
    }
    api_append_text(out, tensor->ndim == 1 ? ",), }" : "), }");
    while ((out->size - start + 1) % ALIGNMENT != 0 && !out->failed)
        api_append(out, " ", 1);
    api_append(out, "\n", 1);
    if (out->failed)
        return;
    size_t length = out->size - start - MAGIC - 4;
    out->data[start + 8] = (char)(length & 0xff);
    out->data[start + 9] = (char)(length >> 8);
}

/* Converts bfloat16 to float32 in place. */
static bool widen(struct api_buffer *numbers)
{
    struct api_buffer wide = {.budget = numbers->budget};
    size_t count = numbers->size / kl_dtype_size(KL_BFLOAT16);
    if (!api_buffer_reserve(&wide, count * kl_dtype_size(KL_FLOAT32) + 1))
        return false;
    wide.size = count * kl_dtype_size(KL_FLOAT32);
    for (size_t i = 0; i < count; i++)
        kl_store(KL_FLOAT32, wide.data, i, kl_load(KL_BFLOAT16, numbers->data, i));
    api_buffer_free(numbers);
    *numbers = wide;
    return true;
}

struct api_buffer *api_npy_output(struct api_call *call, size_t output, struct kl_tensor *view)
{
    struct api_buffer *numbers = api_call_output(call, output, view);
    if (!numbers || view->dtype != KL_BFLOAT16)
        return numbers;
    numbers->failed = !widen(numbers);
    view->dtype = KL_FLOAT32;
    view->data = numbers->data;
    return numbers;
}

void api_npy_warnings(const struct api_call *call, struct api_response *response)
{
    const struct api_warnings warnings = api_call_warnings(call);
    if (!warnings.bits)
        return;
    api_warnings_codes(&warnings, response->header_text, sizeof response->header_text);
    api_response_header(response, "KL-Div-Warnings", response->header_text);
}

/* Writes the loss alone. */
static void encode(struct api_call *call, struct api_response *response)
{
    struct kl_tensor view;
    struct api_buffer *loss = api_npy_output(call, 0, &view);
    response->body.failed |= loss->failed;
    api_npy_header(&response->body, &view);
    api_response_take(response, loss);
    api_npy_warnings(call, response);
}

static const char *const media_types[] = {"application/x-npy", NULL};
const struct api_codec api_codec_npy = {
    .media_types = media_types, .encode = encode, .ns_per_element = API_COPY_NS, .loss_only = true};
