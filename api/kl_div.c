/* POST /kl_div. */
#include "api/call.h"
#include "api/codecs.h"
#include "api/endpoints.h"

#include <strings.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

bool api_kl_div_begin(struct api_exchange *x)
{
    const struct api_request *request = x->request;
    const char *coding = request->content_encoding;
    if (coding && *coding && strcasecmp(coding, "identity") != 0) {
        api_reply_header(x->reply, "Accept-Encoding", "identity");
        return api_fail(&x->problem, "content_coding_unsupported",
                        "Content-Encoding '%.40s' is not among those this path reads: identity",
                        coding);
    }
    if (!api_codec_for_body(request->content_type, &x->problem)) {
        api_codec_list_readable(x->reply->header_text, sizeof x->reply->header_text);
        api_reply_header(x->reply, "Accept", x->reply->header_text);
        return false;
    }
    if (!api_codec_for_answer(request->accept, &x->problem))
        return false;
    size_t most = x->service->max_body;
    if (x->service->budget && x->service->budget->limit && x->service->budget->limit < most)
        most = x->service->budget->limit;
    if (request->content_length > most)
        return api_fail(&x->problem, "body_too_large",
                        "the body has %llu bytes and this server takes %zu",
                        (unsigned long long)request->content_length, most);
    return true;
}

static bool decode(struct api_exchange *x, struct api_call *call)
{
    const struct api_request *request = x->request;
    const struct api_codec *codec = api_codec_for_body(request->content_type, &x->problem);
    return codec && api_codec_body_fits(request->content_type, request->body, &x->problem) &&
           api_options_from_query(&call->options, request->query, &x->problem) &&
           codec->decode(call, request->body, request->body_size, &x->problem);
}

static bool encode(struct api_exchange *x, const struct api_call *call)
{
    const struct api_codec *codec = api_codec_for_answer(x->request->accept, &x->problem);
    if (!codec)
        return false;
    codec->encode(call, &x->reply->body);
    x->reply->content_type = codec->media_types[0];
    return true;
}

bool api_kl_div(struct api_exchange *x)
{
    struct api_call call;
    api_call_init(&call, x->service->budget);
    double start = now_ms();
    bool good = decode(x, &call);
    double decoded = now_ms();
    good = good && api_call_run(&call, x->service->pool, &x->problem);
    double computed = now_ms();
    good = good && encode(x, &call);
    double encoded = now_ms();

    x->reply->decode_ms = decoded - start;
    x->reply->compute_ms = computed - decoded;
    x->reply->encode_ms = encoded - computed;
    x->reply->reduction = call.plan.reduction;
    x->reply->warnings = call.plan.warnings;
    x->reply->elements = good ? call.plan.count : 0;
    api_call_free(&call);
    return good;
}
