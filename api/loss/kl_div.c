#include "api/loss/handlers.h"

#include "api/loss/call.h"
#include "api/loss/codecs.h"
#include "api/loss/oip.h"
#include "api/loss/statistics.h"
#include "api/memory/freelist.h"
#include "api/request/access.h"
#include "api/request/body.h"
#include "api/request/coding.h"
#include "api/request/response.h"
#include "api/text/clock.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time, in ns per byte, to compress. */
static const double compress_ns = 10;

/* ---- Header */

static bool check_kl_div(struct api_exchange *x)
{
    if (!api_body_check_coding(x))
        return false;
    x->decoder = api_codec_for_body(x);
    if (!x->decoder)
        return false;
    x->encoder = api_codec_for_response(api_request_header(&x->request, "Accept"),
                                        &x->response.content_type, &x->problem);
    return x->encoder && api_body_check_size(x);
}

static bool check_infer(struct api_exchange *x)
{
    x->decoder = x->encoder = &api_codec_oip;
    return api_body_check_coding(x) && api_body_check_size(x);
}

/* ---- Body */

/* Clients of the Open Inference Protocol may add parameters of their own. */
static bool read_query(struct api_exchange *x, struct api_options *options)
{
    const char *query = x->request.query;
    bool only_known = x->response.endpoint->steps == &api_infer;
    return !query || !*query || api_options_from_query(options, query, only_known, &x->problem);
}

/* Tells of a broken file that its NUL bytes are missing, if they are: files of these formats have some. */
static void explain_missing_nuls(const struct api_request *request, struct api_problem *problem)
{
    bool is_file = strcmp(problem->code, "safetensors_malformed") == 0 ||
                   strcmp(problem->code, "npz_malformed") == 0;
    size_t used = strlen(problem->detail);
    if (is_file && request->body_size > 0 && !memchr(request->body, 0, request->body_size))
        snprintf(problem->detail + used, sizeof problem->detail - used,
                 ". It has no NUL byte, but such files do: curl's -d @FILE removes them, "
                 "--data-binary @FILE does not");
}

/* Decodes the body and plans the call. */
static bool read_call(struct api_exchange *x, struct api_call *call)
{
    bool good = read_query(x, &call->options) &&
                x->decoder->decode(call, &x->request, &x->problem) &&
                api_call_plan(call, &x->problem) && api_codec_check_response(x, call) &&
                (!api_call_writes(call) || api_check_writer(x));
    x->response.reduction = call->plan.reduction;
    x->response.warnings = api_call_warnings(call).bits; /* also part of a problem */
    if (!good)
        explain_missing_nuls(&x->request, &x->problem);
    return good;
}

/* ---- The estimate, which decides on the thread that runs a call */

/* Time per element, in ns, on one thread of the slower kernels, as `make bench` prints it. An
 * error by a factor of two does no harm. */
static const double plain_ns = 1, logits_ns = 1.5, prob_input_ns = 2, weight_ns = 2, mask_ns = 2,
                    rows_ns = 2, gradient_ns = 2, diagnose_ns = 4, broadcast_ns = 1;

/* Nanoseconds a row more, which rows of few elements show. */
static const double short_row_ns = 20, short_broadcast_ns = 60;

/* Elements of a row that is soft-maxed or summed as a whole. */
static double row_length(const struct kl_plan *plan)
{
    double length = 1;
    bool is_named = plan->options.n_dim > 0;
    for (size_t i = 0; i < plan->joint_ndim; i++)
        if (is_named ? plan->summed[i] : i + 1 == plan->joint_ndim)
            length *= (double)plan->joint_shape[i];
    return length > 1 ? length : 1;
}

static double ns_per_joint_element(const struct api_call *call)
{
    const struct kl_plan *plan = &call->plan;
    double ns = plain_ns, row_ns = 0;
    for (int i = 0; i < KL_OPERANDS; i++) {
        ns += plan->spaces[i] == KL_LOGIT ? logits_ns : 0;
        ns += call->options.gradient >> i & 1 ? gradient_ns : 0;
        ns += plan->counts[i] < plan->count ? broadcast_ns : 0;
        row_ns += plan->spaces[i] == KL_LOGIT ? short_row_ns : 0;
        row_ns += plan->counts[i] < plan->count ? short_broadcast_ns : 0;
    }
    ns += plan->spaces[KL_INPUT] == KL_PROB ? prob_input_ns : 0;
    ns += plan->weight.data ? weight_ns : 0;
    ns += plan->mask.data ? mask_ns : 0;
    ns += plan->options.n_dim > 0 ? rows_ns : 0;
    ns += call->options.diagnose ? diagnose_ns : 0;
    row_ns += call->options.diagnose ? short_row_ns : 0;
    return ns + row_ns / row_length(plan);
}

/* Estimates the time, in ns on one thread, to run a planned call and to write its response at
 * `ns_per_element`. */
static double call_cost(const struct api_call *call, double ns_per_element)
{
    const struct kl_plan *plan = &call->plan;
    double outputs = plan->reduction == KL_NONE ? (double)plan->kept_count : 1;
    for (int i = 0; i < KL_OPERANDS; i++)
        outputs += call->options.gradient >> i & 1 ? (double)plan->counts[i] : 0;
    return (double)plan->count * ns_per_joint_element(call) + outputs * ns_per_element;
}

static double decode_cost(const struct api_exchange *x)
{
    bool is_inference = x->decoder == &api_codec_oip;
    size_t size = is_inference ? api_oip_json_size(&x->request) : x->request.body_size;
    return (double)size * x->decoder->parsed * API_PARSE_NS;
}

static double response_cost(const struct api_exchange *x, const struct api_call *call)
{
    enum { BYTES_OF_A_NUMBER = 20 };
    bool is_binary = x->encoder == &api_codec_oip && !(call->oip.wanted & ~call->oip.binary);
    double ns = is_binary ? API_COPY_NS : x->encoder->ns_per_element;
    const char *accepted = api_request_header(&x->request, "Accept-Encoding");
    if (x->encoder->compresses && accepted && api_coding_choose(accepted))
        ns += compress_ns * BYTES_OF_A_NUMBER;
    return call_cost(call, ns);
}

/* ---- The way of a call */

static struct api_freelist free_calls;

static bool estimate(struct api_exchange *x)
{
    if (x->is_untyped && !api_codec_check_body(x))
        return false;
    x->cost_ns = decode_cost(x);
    return true;
}

static enum api_outcome parse(struct api_exchange *x)
{
    struct api_call *call = x->state;
    double start = 1e3 * api_seconds();
    api_call_init(call, x->service);
    call->stop = x->stop;
    bool good = read_call(x, call);
    if (good)
        x->cost_ns = decode_cost(x) + response_cost(x, call);
    x->response.decode_ms += 1e3 * api_seconds() - start;
    return api_outcome_of(good);
}

static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_response *response = &x->response;
    struct api_call *call = x->state;
    double start = 1e3 * api_seconds();
    (void)monitors;
    bool good = api_call_run(call, &x->problem);
    call->computed_ms = 1e3 * api_seconds();
    response->compute_ms = call->computed_ms - start;
    response->elements = good ? call->plan.count : 0;
    response->warnings = api_call_warnings(call).bits;
    return api_outcome_of(good);
}

static bool write_loss(struct api_exchange *x)
{
    struct api_call *call = x->state;
    x->encoder->encode(call, &x->response);
    x->response.encode_ms = 1e3 * api_seconds() - call->computed_ms;
    return true;
}

static void drop(struct api_exchange *x) { api_call_free(x->state); }

const struct api_steps api_kl_div = {.max_body = API_WHOLE_BODY,
                                     .state = sizeof(struct api_call),
                                     .kept = &free_calls,
                                     .check = check_kl_div,
                                     .estimate = estimate,
                                     .parse = parse,
                                     .run = run,
                                     .write = write_loss,
                                     .drop = drop};

/* ---- Statistics of inferences */

static void add(struct api_duration *duration, double ms)
{
    atomic_fetch_add(&duration->count, 1);
    atomic_fetch_add(&duration->ns, (unsigned long long)(ms * 1e6));
}

static void count(const struct api_exchange *x)
{
    const struct api_response *response = &x->response;
    struct api_statistics *statistics = x->service->statistics;
    bool good = response->status == 200;
    if (statistics)
        add(good ? &statistics->success : &statistics->fail,
            response->decode_ms + response->compute_ms + response->encode_ms);
    if (statistics && good) {
        add(&statistics->decode, response->decode_ms);
        add(&statistics->compute, response->compute_ms);
        add(&statistics->encode, response->encode_ms);
        atomic_store(&statistics->last_ms, (unsigned long long)time(NULL) * 1000);
    }
}

const struct api_steps api_infer = {.max_body = API_WHOLE_BODY,
                                    .state = sizeof(struct api_call),
                                    .kept = &free_calls,
                                    .check = check_infer,
                                    .estimate = estimate,
                                    .parse = parse,
                                    .run = run,
                                    .write = write_loss,
                                    .count = count,
                                    .drop = drop};
