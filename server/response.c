#include "server/response.h"

#include "api/text/decimal.h"
#include "server/deadlines.h"
#include "server/transport.h"

#include <string.h>
#include <unistd.h>

/* Formats milliseconds with three decimals, at most 24 characters. */
static size_t format_ms(char *to, double ms)
{
    uint64_t us = (uint64_t)(ms * 1e3);
    size_t n = api_unsigned_write(to, us / 1000);
    to[n++] = '.';
    to[n++] = (char)('0' + us / 100 % 10);
    to[n++] = (char)('0' + us / 10 % 10);
    to[n++] = (char)('0' + us % 10);
    return n;
}

/* Formats Server-Timing, "read;dur=0.125, decode;dur=...", in at most 200 bytes. */
static void format_timing(const struct srv_request *request, char *to)
{
    const struct api_reply *reply = &request->exchange.reply;
    const struct {
        const char *text;
        double ms;
    } stages[] = {{"read;dur=", request->read_ms},
                  {", decode;dur=", reply->decode_ms},
                  {", compute;dur=", reply->compute_ms},
                  {", encode;dur=", reply->encode_ms}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        size_t size = strlen(stages[i].text);
        memcpy(to, stages[i].text, size);
        to += size;
        to += format_ms(to, stages[i].ms);
    }
    *to = '\0';
}

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Tells how long the connection stays open: proxies must not send on one that is about to close. */
static bool add_persistence(const struct srv_request *request, struct MHD_Response *response)
{
    char timeout[40] = "timeout=";
    if (request->entry->closes || request->entry->old)
        return true; /* libmicrohttpd says what it does */
    if (request->must_close || atomic_load(request->draining) ||
        atomic_load(&request->entry->ending))
        return add(response, MHD_HTTP_HEADER_CONNECTION, "close");
    api_unsigned_write(timeout + strlen(timeout), srv_idle_seconds());
    MHD_set_response_options(response, MHD_RF_SEND_KEEP_ALIVE_HEADER, MHD_RO_END);
    return add(response, "Keep-Alive", timeout);
}

static const char *cache_control(const struct api_reply *reply)
{
    return reply->cache_control ? reply->cache_control : "no-store";
}

/* Adds the reply's header; false if memory is exhausted. */
static bool add_headers(const struct srv_request *request, struct MHD_Response *response)
{
    const struct api_reply *reply = &request->exchange.reply;
    char timing[200];
    format_timing(request, timing);
    bool good =
        !reply->content_type || add(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    good = good && add(response, "X-Request-Id", request->id) &&
           add(response, MHD_HTTP_HEADER_CACHE_CONTROL, cache_control(reply)) &&
           add(response, "Server-Timing", timing);
    for (size_t i = 0; good && i < reply->n_headers; i++)
        good = add(response, reply->headers[i].name, reply->headers[i].value);
    return good && add_persistence(request, response);
}

/* Makes the response's body from the reply's buffers, without a copy. */
static struct MHD_Response *make_body(struct srv_request *request)
{
    const struct api_reply *reply = &request->exchange.reply;
    const struct api_buffer *body = &reply->body;
    if (reply->file) {
        const struct MHD_IoVec file = {reply->file, reply->file_size};
        return MHD_create_response_from_iovec(&file, 1, srv_request_release, request);
    }
    if (reply->n_tensors == 0 && !reply->shared)
        return MHD_create_response_from_buffer_with_free_callback_cls(
            body->size, body->data ? body->data : request->target, srv_request_release, request);
    struct MHD_IoVec pieces[2 + API_REPLY_TENSORS];
    unsigned n = 0;
    if (reply->shared)
        pieces[n++] = (struct MHD_IoVec){reply->shared->bytes.data, reply->shared->bytes.size};
    pieces[n++] = (struct MHD_IoVec){body->data, body->size};
    for (size_t i = 0; i < reply->n_tensors; i++)
        pieces[n++] = (struct MHD_IoVec){reply->tensors[i].data, reply->tensors[i].size};
    return MHD_create_response_from_iovec(pieces, n, srv_request_release, request);
}

struct MHD_Response *srv_response_make(struct srv_request *request)
{
    struct MHD_Response *response = make_body(request);
    if (!response)
        return NULL;
    request->references++;
    if (add_headers(request, response))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

/* ---- Past the library */

/* Appends the header of a reply that libmicrohttpd does not send. */
static void write_header(const struct srv_request *request, struct api_buffer *out)
{
    const struct api_reply *reply = &request->exchange.reply;
    api_append_format(out, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nConnection: close\r\n",
                      reply->status, MHD_get_reason_phrase_for((unsigned)reply->status),
                      reply->body.size);
    api_append_format(out, "X-Request-Id: %s\r\nCache-Control: %s\r\n", request->id,
                      cache_control(reply));
    if (reply->content_type)
        api_append_format(out, "Content-Type: %s\r\n", reply->content_type);
    for (size_t i = 0; i < reply->n_headers; i++)
        api_append_format(out, "%s: %s\r\n", reply->headers[i].name, reply->headers[i].value);
    api_append_text(out, "\r\n");
}

void srv_response_send(struct srv_request *request)
{
    const struct api_buffer *body = &request->exchange.reply.body;
    bool has_body = body->size > 0 && strcmp(request->method, MHD_HTTP_METHOD_HEAD) != 0;
    struct api_buffer head = {0};
    write_header(request, &head);
    request->unread = dup(request->entry->fd);
    request->step = SRV_ANSWERED;
    request->sent =
        !head.failed && srv_transport_send(request->entry, head.data, head.size, has_body) &&
        (!has_body || srv_transport_send(request->entry, body->data, body->size, false));
    api_buffer_free(&head);
}
