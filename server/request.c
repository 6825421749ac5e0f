#include "server/request.h"

#include "api/text/decimal.h"
#include "server/clock.h"
#include "server/connections.h"
#include "server/identity.h"
#include "server/linger.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* Estimate, in ns, above which a job goes to the lane of huge ones. */
static const double huge_ns = 20e6;

/* STREAMED_BODY: bytes above which a body is copied past the caches, which it would not stay in. */
enum { STREAMED_BODY = 4 << 20 };

/* DROPPED_BODY: the most bytes of a refused body that are read before the reply, which keeps the
 * connection open. */
enum { DROPPED_BODY = 64 << 20 };

struct srv_request *srv_request_new(const struct api_service *service, const char *target,
                                    bool is_reserved)
{
    size_t size = strlen(target) + 1;
    struct srv_request *request = calloc(1, sizeof *request + 2 * size);
    if (!request)
        return NULL;
    memcpy(request->target, target, size);
    request->exchange.service = service;
    request->is_reserved = is_reserved;
    request->references = 1;
    request->unread = -1;
    request->body.budget = service->budget;
    request->start = srv_now();
    srv_metrics_begin_request();
    return request;
}

static void release(void *argument)
{
    struct srv_request *request = argument;
    if (--request->references > 0)
        return;
    api_end(&request->exchange);
    api_buffer_free(&request->body);
    free(request);
}

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

static void add_headers(struct srv_request *request, struct MHD_Response *response)
{
    const struct api_reply *reply = &request->exchange.reply;
    char timing[200];
    format_timing(request, timing);
    if (reply->content_type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    MHD_add_response_header(response, "X-Request-Id", request->id);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "Server-Timing", timing);
    for (size_t i = 0; i < reply->n_headers; i++)
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    if (request->must_close || atomic_load(request->draining))
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* Makes the response from the reply's buffers, without a copy. */
static struct MHD_Response *make_response(struct srv_request *request)
{
    const struct api_reply *reply = &request->exchange.reply;
    const struct api_buffer *body = &reply->body;
    if (reply->n_tensors == 0)
        return MHD_create_response_from_buffer_with_free_callback_cls(
            body->size, body->data ? body->data : request->target, release, request);
    struct MHD_IoVec pieces[1 + API_REPLY_TENSORS] = {{body->data, body->size}};
    for (size_t i = 0; i < reply->n_tensors; i++)
        pieces[1 + i] = (struct MHD_IoVec){reply->tensors[i].data, reply->tensors[i].size};
    return MHD_create_response_from_iovec(pieces, 1 + (unsigned)reply->n_tensors, release, request);
}

static enum MHD_Result answer(struct srv_request *request)
{
    struct MHD_Response *response = make_response(request);
    if (!response)
        return MHD_NO;
    request->references++;
    request->step = SRV_ANSWERED;
    if (request->entry)
        srv_connection_enter(request->entry, SRV_REPLY);
    add_headers(request, response);
    enum MHD_Result result =
        MHD_queue_response(request->connection, (unsigned)request->exchange.reply.status, response);
    MHD_destroy_response(response);
    return result;
}

/* Sends a refusal before the body is read, and has the rest dropped afterwards. */
static enum MHD_Result answer_at_once(struct srv_request *request)
{
    request->must_close = true;
    request->unread = request->entry ? dup(request->entry->fd) : -1;
    return answer(request);
}

/* Sends a refusal. It waits until the request is complete, which keeps the connection open; if
 * the client expects 100-continue or the body is large, it is sent at once and the body is
 * dropped afterwards. */
static enum MHD_Result answer_early(struct srv_request *request)
{
    const struct srv_framing *framing = &request->framing;
    if (framing->expects_continue || framing->content_length > DROPPED_BODY)
        return answer_at_once(request);
    request->step = SRV_REFUSED;
    return MHD_YES;
}

static enum MHD_Result refuse(struct srv_request *request, const char *code, const char *detail)
{
    api_refuse(&request->exchange, code, detail);
    return answer_early(request);
}

static const char *header(const struct srv_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result join_accept(void *joined, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    char *to = joined;
    size_t used = strlen(to);
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_ACCEPT) == 0 && value)
        snprintf(to + used, MAX_ACCEPT - used, used ? ", %s" : "%s", value);
    return MHD_YES;
}

/* Joins all Accept lines with commas (RFC 9110, 5.3); a single line is returned as it is. */
static const char *accept_of(struct srv_request *request)
{
    const char *first = header(request, MHD_HTTP_HEADER_ACCEPT);
    if (!first)
        return NULL;
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, join_accept, request->accept);
    return strlen(request->accept) > strlen(first) ? request->accept : first;
}

static const char *find_header(const void *headers, const char *name)
{
    struct srv_request *request = (struct srv_request *)headers;
    return strcasecmp(name, MHD_HTTP_HEADER_ACCEPT) == 0 ? accept_of(request)
                                                         : header(request, name);
}

/* The path of a target: "http://host/path" is another way to write it (RFC 9112, 3.2.2). */
static const char *path_in(const char *target)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t size = strlen(schemes[i]);
        if (strncasecmp(target, schemes[i], size) == 0)
            return target + size + strcspn(target + size, "/?");
    }
    return target;
}

static void split_target(struct srv_request *request)
{
    const char *path = path_in(request->target), *question = strchr(path, '?');
    char *copy = request->target + strlen(request->target) + 1;
    if (*path == '/')
        memcpy(copy, path, question ? (size_t)(question - path) : strlen(path));
    request->exchange.request.path = *path == '/' ? copy : "/";
    request->exchange.request.query = question ? question + 1 : NULL;
}

enum MHD_Result srv_request_begin(struct srv_request *request, struct MHD_Connection *connection,
                                  const char *method, const char *version)
{
    struct srv_refusal refusal = {0};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->entry = info ? info->socket_context : NULL;
    request->connection = connection;
    if (request->entry)
        srv_connection_enter(request->entry, SRV_BODY);
    srv_request_identify(header(request, "X-Request-Id"), request->id, sizeof request->id);
    split_target(request);
    request->exchange.request.method = method;
    request->exchange.request.header = find_header;
    request->exchange.request.headers = request;

    if (!srv_guard(connection, request->target, method, version, &request->framing, &refusal)) {
        api_refuse(&request->exchange, refusal.code, refusal.detail);
        return answer_at_once(request);
    }
    request->exchange.request.content_length = request->framing.content_length;
    if (!api_begin(&request->exchange))
        return answer_early(request);
    request->must_close |= request->is_reserved;
    if (request->is_reserved && !api_endpoint_is_probe(request->exchange.reply.endpoint)) {
        srv_metrics_connection_refused();
        return refuse(request, "too_many_connections", "all connections are in use; try again");
    }
    if (request->framing.content_length > 0 &&
        !api_buffer_reserve(&request->body, request->framing.content_length + API_PADDING))
        return refuse(request, "out_of_memory",
                      "the memory for requests is in use (--max-memory); try again");
    request->step = SRV_READING;
    return MHD_YES;
}

/* Sends a refusal while a body without a declared length still arrives, when libmicrohttpd takes no
 * response, and lets it close the connection. */
static enum MHD_Result answer_past_library(struct srv_request *request)
{
    const struct api_reply *reply = &request->exchange.reply;
    char head[500];
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                        "X-Request-Id: %s\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
                        reply->status, MHD_get_reason_phrase_for((unsigned)reply->status),
                        reply->content_type, reply->body.size, request->id);
    int fd = request->entry ? request->entry->fd : -1;
    request->unread = fd < 0 ? -1 : dup(fd);
    request->step = SRV_ANSWERED;
    request->sent = send(fd, head, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) == size &&
                    send(fd, reply->body.data, reply->body.size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                        (ssize_t)reply->body.size;
    return MHD_NO;
}

/* Refuses a body without a declared length that exceeds a limit while it arrives. */
static enum MHD_Result outgrown(struct srv_request *request, const char *code, const char *detail)
{
    api_refuse(&request->exchange, code, detail);
    api_buffer_free(&request->body);
    return answer_past_library(request);
}

enum MHD_Result srv_request_body(struct srv_request *request, const char *bytes, size_t size)
{
    struct api_buffer *body = &request->body;
    request->received += size;
    if (request->entry)
        atomic_fetch_add_explicit(&request->entry->received, size, memory_order_relaxed);
    if (request->step == SRV_REFUSED)
        return request->received > DROPPED_BODY ? answer_past_library(request) : MHD_YES;
    if (body->size + size > request->exchange.service->max_body)
        return outgrown(request, "body_too_large", "the body is larger than this server takes");
    if (!api_buffer_room(body, size + API_PADDING))
        return outgrown(request, "out_of_memory",
                        "the memory for requests is in use (--max-memory); try again");
    if (request->framing.content_length > STREAMED_BODY)
        srv_stream(body->data + body->size, bytes, size);
    else
        memcpy(body->data + body->size, bytes, size);
    body->size += size;
    return MHD_YES;
}

/* True if the client has closed its side of the connection. */
static bool client_left(const struct srv_request *request)
{
    char byte;
    return request->entry && !atomic_load(&request->entry->shut) &&
           recv(request->entry->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void work(struct srv_job *job)
{
    struct srv_request *request = (struct srv_request *)job;
    if (client_left(request))
        api_refuse(&request->exchange, "client_left", "the client closed its side");
    else
        api_handle(&request->exchange, true);
    api_buffer_free(&request->body);
    MHD_resume_connection(request->connection);
}

enum MHD_Result srv_request_complete(struct srv_request *request, struct MHD_Connection *connection)
{
    struct api_buffer *body = &request->body;
    if (request->step != SRV_READING)
        return answer(request);
    request->read_ms = (srv_now() - request->start) * 1e3;
    if (body->data)
        memset(body->data + body->size, 0, API_PADDING);
    request->exchange.request.body = body->data ? body->data : request->nothing;
    request->exchange.request.body_size = body->size;
    if (request->entry)
        srv_connection_enter(request->entry, SRV_REPLY);
    if (api_handle(&request->exchange, false))
        return answer(request);
    request->step = SRV_WORKING;
    request->job.run = work;
    MHD_suspend_connection(connection);
    srv_jobs_add(request->exchange.cost_ns > huge_ns ? SRV_HUGE : SRV_LARGE, &request->job);
    return MHD_YES;
}

void srv_request_done(struct srv_request *request, bool sent)
{
    const struct api_reply *reply = &request->exchange.reply;
    const char *method = request->exchange.request.method ? request->exchange.request.method : "";
    double seconds = srv_now() - request->start;
    bool probe = reply->endpoint && api_endpoint_is_probe(reply->endpoint);
    srv_metrics_end_request(reply, method, request->received, seconds);
    if (!probe || reply->status != 200) {
        struct srv_access access = {.request_id = request->id,
                                    .method = method,
                                    .target = request->target,
                                    .status = reply->status,
                                    .code = sent || request->sent      ? reply->code
                                            : request->step == SRV_NEW ? "malformed"
                                                                       : "aborted",
                                    .body_bytes = request->received,
                                    .reply_bytes = api_reply_size(reply),
                                    .elements = reply->elements,
                                    .ms = seconds * 1e3};
        srv_log_access(&access);
    }
    if (request->unread >= 0)
        srv_linger(request->unread);
    release(request);
}
