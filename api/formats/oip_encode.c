#include "api/formats/oip.h"

#include "api/formats/dtypes.h"
#include "api/formats/json_tensor.h"
#include "api/response.h"
#include "api/warnings.h"

#include <stdio.h>
#include <string.h>

static void write_head(const struct api_call *call, struct api_buffer *out)
{
    const struct api_warnings warnings = api_call_warnings(call);
    api_append_text(out, "{\"model_name\":\"" API_OIP_MODEL
                         "\",\"model_version\":\"" API_OIP_VERSION "\"");
    if (call->oip.id.size > 1) {
        api_append_text(out, ",\"id\":");
        api_append_json_string(out, call->oip.id.data);
    }
    api_append_text(out, ",\"parameters\":{");
    api_warnings_members(&warnings, out);
    api_append_text(out, "},\"outputs\":[");
}

/* Writes the start of an output's object. */
static void begin_output(struct api_buffer *out, const char *name, const struct kl_tensor *view)
{
    api_append_text(out, "{\"name\":\"");
    api_append_text(out, name);
    api_append_text(out, "\",\"datatype\":\"");
    api_append_text(out, api_dtype_name(API_INFERENCE, view->dtype));
    api_append_text(out, "\",\"shape\":");
    api_append_sizes(out, view->shape, view->ndim);
}

/* Writes one output, with its data or the size of its binary part. Data of bfloat16 have the digits of
 * float32, in which clients hold it. */
static void write_output(struct api_buffer *out, const char *name, const struct kl_tensor *view,
                         size_t size, bool binary, enum api_nonfinite nonfinite)
{
    begin_output(out, name, view);
    if (binary) {
        api_append_text(out, ",\"parameters\":{\"binary_data_size\":");
        api_append_unsigned(out, size);
        api_append_text(out, "}}");
        return;
    }
    size_t count = size / kl_dtype_size(view->dtype);
    struct kl_tensor flat = {view->dtype, 1, &count, view->data};
    api_append_text(out, ",\"data\":");
    api_json_tensor_write(out, &flat, nonfinite,
                          view->dtype == KL_BFLOAT16 ? KL_FLOAT32 : view->dtype);
    api_append_text(out, "}");
}

void api_oip_encode(struct api_call *call, struct api_response *response)
{
    struct api_buffer *out = &response->body, *binary[API_OUTPUTS], *tensor;
    struct kl_tensor view;
    size_t n_binary = 0;
    const char *separator = "";
    write_head(call, out);
    for (size_t i = 0; i < API_RESULTS; i++) {
        if (!(call->oip.wanted >> i & 1) || !(tensor = api_call_output(call, i, &view)))
            continue;
        bool is_shared = call->oip.slices[i].in, is_binary = call->oip.binary >> i & 1;
        api_append_text(out, separator);
        separator = ",";
        if (is_shared) {
            begin_output(out, api_output_names[i], &view);
            api_append_text(out, "}");
            continue;
        }
        write_output(out, api_output_names[i], &view, tensor->size, is_binary, call->oip.nonfinite);
        if (is_binary)
            binary[n_binary++] = tensor;
    }
    api_append_text(out, "]}");
    response->compress = true;
    response->content_type = n_binary ? "application/octet-stream" : "application/json";
    if (n_binary == 0)
        return;
    snprintf(response->header_text, sizeof response->header_text, "%zu", out->size);
    api_response_header(response, "Inference-Header-Content-Length", response->header_text);
    for (size_t i = 0; i < n_binary; i++)
        api_response_take(response, binary[i]);
}
