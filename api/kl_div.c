/* POST /kl_div, and POST /v2/models/kl_div/infer. */
#include "api/call.h"
#include "api/endpoints.h"
#include "api/formats/codecs.h"
#include "api/formats/coding.h"
#include "api/formats/oip.h"
#include "api/reply.h"
#include "api/statistics.h"
#include "api/text/number.h"

#include <string.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* 64 KiB of JSON take some 100 us to read. */
enum { LIGHT_BODY = 64 << 10 };

/* Operands that broadcast may be small where the work is not. An escape might spell the word. */
static bool may_broadcast(const char *text, size_t size)
{
    static const char *const signs[] = {"broadcast", "\\u", "%"};
    for (size_t i = 0; text && i < sizeof signs / sizeof *signs; i++)
        if (memmem(text, size, signs[i], strlen(signs[i])))
            return true;
    return false;
}

bool api_is_heavy(const struct api_request *request)
{
    struct api_problem ignored = {0};
    const struct api_codec *codec = api_codec_for_body(request->content_type, &ignored);
    return request->body_size > LIGHT_BODY || !api_coding_is_none(request->content_encoding) ||
           (codec && codec->inflates) || may_broadcast(request->body, request->body_size) ||
           (request->query && may_broadcast(request->query, strlen(request->query)));
}

static bool check_coding(struct api_exchange *x)
{
    const char *coding = x->request->content_encoding;
    if (api_coding_known(coding))
        return true;
    api_reply_header(x->reply, "Accept-Encoding", api_codings);
    return api_fail(&x->problem, "content_coding_unsupported",
                    "Content-Encoding '%.40s' is not among those this path reads: %s", coding,
                    api_codings);
}

static bool check_size(struct api_exchange *x)
{
    size_t most = x->service->max_body;
    if (x->service->budget && x->service->budget->limit && x->service->budget->limit < most)
        most = x->service->budget->limit;
    if (x->request->content_length > most ||
        (x->service->budget && x->service->budget->limit &&
         api_block_size(x->request->content_length + API_PADDING) > x->service->budget->limit))
        return api_fail(&x->problem, "body_too_large",
                        "the body has %llu bytes and this server takes %zu",
                        (unsigned long long)x->request->content_length, most);
    return true;
}

bool api_kl_div_begin(struct api_exchange *x)
{
    const char *media_type;
    if (!check_coding(x))
        return false;
    if (!api_codec_for_body(x->request->content_type, &x->problem)) {
        api_codec_list_readable(x->reply->header_text, sizeof x->reply->header_text);
        api_reply_header(x->reply, "Accept", x->reply->header_text);
        return false;
    }
    return api_codec_for_answer(x->request->accept, &media_type, &x->problem) && check_size(x);
}

bool api_infer_begin(struct api_exchange *x) { return check_coding(x) && check_size(x); }

/* Undoes the Content-Encoding: afterwards request->body is what `inflated` holds. */
static bool undo_coding(struct api_exchange *x, struct api_request *request,
                        struct api_buffer *inflated)
{
    if (api_coding_is_none(request->content_encoding))
        return true;
    if (!api_inflate(request->content_encoding, request->body, request->body_size,
                     x->service->max_body, inflated, &x->problem))
        return false;
    request->body = inflated->data;
    request->body_size = inflated->size;
    return true;
}

static bool decode(struct api_exchange *x, struct api_call *call, struct api_buffer *inflated)
{
    struct api_request request = *x->request;
    const struct api_codec *codec = api_codec_for_body(request.content_type, &x->problem);
    return codec && undo_coding(x, &request, inflated) &&
           api_codec_body_fits(request.content_type, request.body, &x->problem) &&
           api_options_from_query(&call->options, request.query, &x->problem) &&
           codec->decode(call, &request, &x->problem) && api_call_complete(call, &x->problem);
}

static bool encode(struct api_exchange *x, struct api_call *call)
{
    const struct api_codec *codec =
        api_codec_for_answer(x->request->accept, &x->reply->content_type, &x->problem);
    if (codec)
        codec->encode(call, x->reply);
    return codec != NULL;
}

static bool decode_inference(struct api_exchange *x, struct api_call *call,
                             struct api_buffer *inflated)
{
    struct api_request request = *x->request;
    return undo_coding(x, &request, inflated) &&
           api_options_from_query(&call->options, request.query, &x->problem) &&
           api_oip_decode(call, &request, &x->problem) && api_call_complete(call, &x->problem);
}

static bool encode_inference(struct api_exchange *x, struct api_call *call)
{
    const char *coding = api_coding_for_answer(x->request->accept_encoding);
    api_oip_encode(call, x->reply);
    if (coding && !x->reply->body.failed)
        api_deflate_reply(x->reply, coding);
    return true;
}

/* One loss from body to reply. */
static bool answer(struct api_exchange *x,
                   bool (*decode_body)(struct api_exchange *, struct api_call *,
                                       struct api_buffer *),
                   bool (*encode_answer)(struct api_exchange *, struct api_call *))
{
    struct api_call call;
    struct api_buffer inflated = {.budget = x->service->budget};
    api_call_init(&call, x->service);
    double start = now_ms();
    bool good = decode_body(x, &call, &inflated);
    double decoded = now_ms();
    good = good && api_call_run(&call, &x->problem);
    double computed = now_ms();
    good = good && encode_answer(x, &call);
    double encoded = now_ms();

    x->reply->decode_ms = decoded - start;
    x->reply->compute_ms = computed - decoded;
    x->reply->encode_ms = encoded - computed;
    x->reply->reduction = call.plan.reduction;
    x->reply->warnings = api_call_warnings(&call).bits;
    x->reply->elements = good ? call.plan.count : 0;
    api_call_free(&call);
    api_buffer_free(&inflated);
    return good;
}

bool api_kl_div(struct api_exchange *x) { return answer(x, decode, encode); }

static void count(struct api_duration *duration, double ms)
{
    atomic_fetch_add(&duration->count, 1);
    atomic_fetch_add(&duration->ns, (unsigned long long)(ms * 1e6));
}

bool api_infer(struct api_exchange *x)
{
    bool good = answer(x, decode_inference, encode_inference);
    const struct api_reply *reply = x->reply;
    struct api_statistics *statistics = x->service->statistics;
    double ms = reply->decode_ms + reply->compute_ms + reply->encode_ms;
    if (!statistics)
        return good;
    count(good ? &statistics->success : &statistics->fail, ms);
    if (good) {
        count(&statistics->decode, reply->decode_ms);
        count(&statistics->compute, reply->compute_ms);
        count(&statistics->encode, reply->encode_ms);
        atomic_store(&statistics->last_ms, (unsigned long long)time(NULL) * 1000);
    }
    return good;
}
