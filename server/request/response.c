#include "server/request/request.h"

#include "api/text/decimal.h"
#include "server/connection/deadlines.h"

#include <string.h>

/* Formats milliseconds with three decimals, at most 24 characters. */
static size_t format_ms(char *to, double ms)
{
    uint64_t us = (uint64_t)(ms * 1e3);
    size_t n = api_unsigned_write(to, us / 1000);
    size_t digits = api_unsigned_write(to + n, 1000 + us % 1000); /* the point replaces the 1 */
    to[n] = '.';
    return n + digits;
}

/* Formats Server-Timing, "read;dur=0.125, decode;dur=...", in at most 200 bytes. */
static void format_timing(const struct srv_request *request, char *to)
{
    const struct api_response *response = &request->exchange.response;
    const struct {
        const char *text;
        double ms;
    } stages[] = {{"read;dur=", request->spans[SRV_READ]},
                  {", decode;dur=", response->decode_ms},
                  {", compute;dur=", response->compute_ms},
                  {", encode;dur=", response->encode_ms}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        size_t size = strlen(stages[i].text);
        memcpy(to, stages[i].text, size);
        to += size;
        to += format_ms(to, stages[i].ms);
    }
    *to = '\0';
}

static bool add_header(struct MHD_Response *mhd_response, const char *name, const char *value)
{
    return MHD_add_response_header(mhd_response, name, value) == MHD_YES;
}

/* Tells how long the connection stays open: proxies must not send on one that is about to close. */
static bool add_persistence(const struct srv_request *request, bool is_draining,
                            struct MHD_Response *mhd_response)
{
    const struct srv_header *header = &request->header;
    char timeout[40] = "timeout=";
    if (request->message.must_close || is_draining || atomic_load(&request->entry->ending) ||
        header->closes || (request->entry->framing.is_http_1_0 && !header->stays))
        return add_header(mhd_response, MHD_HTTP_HEADER_CONNECTION, "close");
    api_unsigned_write(timeout + strlen(timeout), srv_idle_seconds());
    MHD_set_response_options(mhd_response, MHD_RF_SEND_KEEP_ALIVE_HEADER, MHD_RO_END);
    return add_header(mhd_response, "Keep-Alive", timeout);
}

static const char *cache_control(const struct api_response *response)
{
    return response->cache_control ? response->cache_control : "no-store";
}

/* Adds the response's header; false if memory is exhausted. */
static bool add_headers(const struct srv_request *request, bool is_draining,
                        struct MHD_Response *mhd_response)
{
    const struct api_response *response = &request->exchange.response;
    char timing[200];
    format_timing(request, timing);
    bool good = !response->content_type ||
                add_header(mhd_response, MHD_HTTP_HEADER_CONTENT_TYPE, response->content_type);
    good = good && add_header(mhd_response, "X-Request-Id", request->id) &&
           add_header(mhd_response, MHD_HTTP_HEADER_CACHE_CONTROL, cache_control(response)) &&
           add_header(mhd_response, "Server-Timing", timing);
    for (size_t i = 0; good && i < response->n_headers; i++)
        good = add_header(mhd_response, response->headers[i].name, response->headers[i].value);
    return good && add_persistence(request, is_draining, mhd_response);
}

/* Makes the body from the response's buffers, without a copy. */
static struct MHD_Response *make_body(struct srv_request *request)
{
    const struct api_response *response = &request->exchange.response;
    const struct api_buffer *body = &response->body;
    if (response->file) {
        const struct MHD_IoVec file = {response->file, response->file_size};
        return MHD_create_response_from_iovec(&file, 1, srv_request_release, request);
    }
    if (response->n_tensors == 0 && !response->shared)
        return MHD_create_response_from_buffer_with_free_callback_cls(
            body->size, body->data ? body->data : request->text, srv_request_release, request);
    struct MHD_IoVec pieces[2 + API_RESPONSE_TENSORS];
    unsigned n = 0;
    if (response->shared)
        pieces[n++] =
            (struct MHD_IoVec){response->shared->bytes.data, response->shared->bytes.size};
    pieces[n++] = (struct MHD_IoVec){body->data, body->size};
    for (size_t i = 0; i < response->n_tensors; i++)
        pieces[n++] = (struct MHD_IoVec){response->tensors[i].data, response->tensors[i].size};
    return MHD_create_response_from_iovec(pieces, n, srv_request_release, request);
}

struct MHD_Response *srv_response_make(struct srv_request *request, bool is_draining)
{
    struct MHD_Response *mhd_response = make_body(request);
    if (!mhd_response)
        return NULL;
    request->refcount++;
    if (add_headers(request, is_draining, mhd_response))
        return mhd_response;
    MHD_destroy_response(mhd_response);
    return NULL;
}
