#include "api/loss/handlers.h"

#include "api/loss/oip.h"
#include "api/loss/options.h"
#include "api/loss/statistics.h"
#include "api/request/response.h"

static bool is_ready(const struct api_exchange *x)
{
    return !x->service->ready || x->service->ready(x->service->host);
}

static bool check_ready(struct api_exchange *x)
{
    return is_ready(x) || api_fail(&x->problem, "draining", "the server is shutting down");
}

bool api_oip_server(struct api_exchange *x)
{
    api_response_json(&x->response, "{\"name\":\"kldiv\",\"version\":\"" KLDIV_VERSION
                                    "\",\"extensions\":[\"binary_tensor_data\",\"statistics\","
                                    "\"model_configuration\",\"parameters\",\"trace\",\"logging\"");
    return api_response_json(&x->response,
                             x->service->regions ? ",\"system_shared_memory\"]}" : "]}");
}

bool api_oip_live(struct api_exchange *x)
{
    return api_response_json(&x->response, is_ready(x) ? "{\"live\":true,\"ready\":true}"
                                                       : "{\"live\":true,\"ready\":false}");
}

bool api_oip_ready(struct api_exchange *x) { return check_ready(x) && api_oip_live(x); }

/* Inputs that may be left out. Metadata tell of them in `parameters` alone: generic clients send all
 * inputs that are listed. */
#define OPTIONAL_INPUTS "weight,mask,grad_output,indices,log_normalizer"

/* Appends the tensors that are always there, each with one axis and FP32, the defaults of clients that fill
 * in metadata: inferences take any dtype and shape. */
static void write_tensors(struct api_buffer *out, const char *inputs, const char *outputs,
                          const char *type)
{
    api_append_format(out,
                      "\"%s\":[{\"name\":\"input\",%s},{\"name\":\"target\",%s}],"
                      "\"%s\":[{\"name\":\"loss\",%s},{\"name\":\"gradient.input\",%s},"
                      "{\"name\":\"gradient.target\",%s}],\"parameters\":{\"optional_inputs\":",
                      inputs, type, type, outputs, type, type, type);
}

/* Ends a document with the names of parameters that an inference takes. */
static bool end_with_parameters(struct api_exchange *x, const char *end)
{
    api_append_text(&x->response.body, "non_finite,binary_data_output");
    for (size_t i = 0; i < API_OPTIONS; i++)
        api_append_format(&x->response.body, ",%s", api_loss_options[i].name);
    return api_response_json(&x->response, end);
}

bool api_oip_model(struct api_exchange *x)
{
    struct api_buffer *out = &x->response.body;
    api_append_text(out, "{\"name\":\"" API_OIP_MODEL "\",\"versions\":[\"" API_OIP_VERSION
                         "\"],\"platform\":\"kldiv\",");
    write_tensors(out, "inputs", "outputs", "\"datatype\":\"FP32\",\"shape\":[-1]");
    api_append_text(out, "\"" OPTIONAL_INPUTS "\",\"request_parameters\":\"");
    return end_with_parameters(x, "\"}}");
}

bool api_oip_model_ready(struct api_exchange *x)
{
    return check_ready(x) &&
           api_response_json(&x->response, "{\"name\":\"" API_OIP_MODEL "\",\"ready\":true}");
}

bool api_oip_config(struct api_exchange *x)
{
    struct api_buffer *out = &x->response.body;
    api_append_text(out, "{\"name\":\"" API_OIP_MODEL
                         "\",\"platform\":\"kldiv\",\"backend\":\"kldiv\",\"version_policy\":"
                         "{\"latest\":{\"num_versions\":1}},\"max_batch_size\":0,");
    write_tensors(out, "input", "output", "\"data_type\":\"TYPE_FP32\",\"dims\":[-1]");
    api_append_text(out, "{\"string_value\":\"" OPTIONAL_INPUTS
                         "\"},\"request_parameters\":{\"string_value\":\"");
    return end_with_parameters(x, "\"}}}");
}

bool api_oip_stats(struct api_exchange *x)
{
    static const struct api_statistics none;
    static const struct api_duration never;
    const struct api_statistics *s = x->service->statistics ? x->service->statistics : &none;
    struct api_buffer *out = &x->response.body;
    /* perf_analyzer detects the server's version by the queue's count: each inference counts,
     * with 0 ns. */
    const struct api_duration queue = {.count = atomic_load(&s->success.count)};
    const struct {
        const char *name;
        const struct api_duration *duration;
    } durations[] = {{"success", &s->success},
                     {"fail", &s->fail},
                     {"queue", &queue},
                     {"compute_input", &s->decode},
                     {"compute_infer", &s->compute},
                     {"compute_output", &s->encode},
                     {"cache_hit", &never},
                     {"cache_miss", &never}};
    x->response.content_type = "application/json";
    api_append_format(out,
                      "{\"model_stats\":[{\"name\":\"" API_OIP_MODEL
                      "\",\"version\":\"" API_OIP_VERSION "\",\"last_inference\":%llu,"
                      "\"inference_count\":%llu,\"execution_count\":%llu,\"inference_stats\":{",
                      atomic_load(&s->last_ms), atomic_load(&s->success.count),
                      atomic_load(&s->success.count));
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
        api_append_format(out, "%s\"%s\":{\"count\":%llu,\"ns\":%llu}", i ? "," : "",
                          durations[i].name, atomic_load(&durations[i].duration->count),
                          atomic_load(&durations[i].duration->ns));
    api_append_text(out, "},\"batch_stats\":[]}]}");
    return true;
}

bool api_oip_index(struct api_exchange *x)
{
    return api_response_json(&x->response,
                             "[{\"name\":\"" API_OIP_MODEL "\",\"version\":\"" API_OIP_VERSION
                             "\",\"state\":\"READY\",\"reason\":\"\"}]");
}

/* Clients of Triton load a model before they use it. */
bool api_oip_load(struct api_exchange *x) { return api_response_json(&x->response, "{}"); }

bool api_oip_unload(struct api_exchange *x)
{
    return api_fail(&x->problem, "setting_fixed",
                    "the model " API_OIP_MODEL " is a part of this server, and cannot be unloaded");
}
