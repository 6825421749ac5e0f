#include "server/request.h"

#include "api/memory/spare.h"
#include "api/text/decimal.h"
#include "server/clock.h"
#include "server/deadlines.h"
#include "server/identity.h"
#include "server/linger.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/share.h"
#include "server/stream.h"
#include "server/transport.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* The most work, in ns, that a job of each lane does; a job with more goes on to the next lane. */
static const double most_ns[SRV_LANES] = {[SRV_LARGE] = 20e6, [SRV_HUGE] = HUGE_VAL};

/* STREAMED_BODY: bytes above which a body is copied past the caches, which it would not stay in. */
enum { STREAMED_BODY = 4 << 20 };

/* DROPPED_BODY: the most bytes of a refused body that are read before the reply, which keeps the
 * connection open. */
enum { DROPPED_BODY = 1 << 20 };

/* TARGET: bytes of room for the targets of requests that are kept for the next ones. */
enum { TARGET = 1 << 10 };

static struct api_spare spare_requests;

/* Allocates a zeroed request with `room` bytes for its targets. */
static struct srv_request *allocate(size_t room)
{
    if (room > TARGET)
        return calloc(1, sizeof(struct srv_request) + room);
    struct srv_request *request = api_spare_take(&spare_requests);
    if (!request)
        return calloc(1, sizeof *request + TARGET);
    memset(request, 0, sizeof *request + room);
    return request;
}

struct srv_request *srv_request_new(const struct api_service *service, struct srv_connection *entry,
                                    const char *target)
{
    size_t size = strlen(target) + 1;
    struct srv_request *request = allocate(2 * size);
    if (!request)
        return NULL;
    request->is_spare = 2 * size <= TARGET;
    memcpy(request->target, target, size);
    request->exchange.service = service;
    request->entry = entry;
    request->exchange.stop = &entry->stop;
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
    if (request->is_spare)
        api_spare_keep(&spare_requests, request);
    else
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

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Tells how long the connection stays open: proxies must not send on one that is about to close. */
static bool add_persistence(const struct srv_request *request, struct MHD_Response *response)
{
    const struct srv_framing *framing = &request->entry->framing;
    char timeout[40] = "timeout=";
    if (framing->closes || framing->old)
        return true; /* libmicrohttpd says what it does */
    if (request->must_close || atomic_load(request->draining) ||
        atomic_load(&request->entry->ending))
        return add(response, MHD_HTTP_HEADER_CONNECTION, "close");
    api_unsigned_write(timeout + strlen(timeout), srv_idle_seconds());
    MHD_set_response_options(response, MHD_RF_SEND_KEEP_ALIVE_HEADER, MHD_RO_END);
    return add(response, "Keep-Alive", timeout);
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
           add(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
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
    if (reply->n_tensors == 0)
        return MHD_create_response_from_buffer_with_free_callback_cls(
            body->size, body->data ? body->data : request->target, release, request);
    struct MHD_IoVec pieces[1 + API_REPLY_TENSORS] = {{body->data, body->size}};
    for (size_t i = 0; i < reply->n_tensors; i++)
        pieces[1 + i] = (struct MHD_IoVec){reply->tensors[i].data, reply->tensors[i].size};
    return MHD_create_response_from_iovec(pieces, 1 + (unsigned)reply->n_tensors, release, request);
}

/* Makes the response, which holds a reference; NULL if memory is exhausted. An answer that lacks a
 * field would be another answer: without its Content-Encoding, a body is taken for JSON. */
static struct MHD_Response *make_response(struct srv_request *request)
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

static enum MHD_Result answer(struct srv_request *request)
{
    struct MHD_Response *response = make_response(request);
    if (!response) {
        api_refuse(&request->exchange, "out_of_memory", "no memory is left for the answer");
        response = make_response(request);
    }
    if (!response)
        return MHD_NO;
    request->step = SRV_ANSWERED;
    atomic_store(&request->entry->held, api_reply_size(&request->exchange.reply));
    srv_connection_enter(request->entry, SRV_REPLY);
    enum MHD_Result result =
        MHD_queue_response(request->connection, (unsigned)request->exchange.reply.status, response);
    MHD_destroy_response(response);
    return result;
}

/* Sends a refusal before the body is read, and has the rest dropped afterwards. */
static enum MHD_Result answer_at_once(struct srv_request *request)
{
    request->must_close = true;
    request->unread = dup(request->entry->fd);
    return answer(request);
}

/* Sends a refusal. It waits until the request is complete, which keeps the connection open; if
 * the client expects 100-continue or the body is large, it is sent at once and the body is
 * dropped afterwards. */
static enum MHD_Result answer_early(struct srv_request *request)
{
    uint64_t length = request->exchange.request.content_length;
    bool has_body = length > 0 || request->chunked;
    if (request->expects_continue || length > DROPPED_BODY ||
        (has_body && request->entry->quota != SRV_REGULAR))
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
    if (request->authority && strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
        return request->authority;
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
    if (path > request->target) {
        const char *authority = strstr(request->target, "//") + 2;
        request->authority = memcpy(copy + strlen(copy) + 1, authority, (size_t)(path - authority));
    }
    request->exchange.request.path = *path == '/' ? copy : "/";
    request->exchange.request.query = question ? question + 1 : NULL;
}

/* Reads what the framing has checked already. */
static void read_framing(struct srv_request *request)
{
    const char *length = header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    request->exchange.request.content_length = length ? strtoull(length, NULL, 10) : 0;
    request->chunked = !length && header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    request->expects_continue = header(request, MHD_HTTP_HEADER_EXPECT) != NULL;
    request->body.expected = length ? request->exchange.request.content_length + API_PADDING : 0;
    atomic_store(&request->entry->announced, api_block_size(request->body.expected));
}

enum MHD_Result srv_request_begin(struct srv_request *request, struct MHD_Connection *connection,
                                  const char *method)
{
    request->connection = connection;
    srv_request_identify(header(request, "X-Request-Id"), request->id, sizeof request->id);
    split_target(request);
    size_t method_size = strlen(method);
    memcpy(request->method, method,
           method_size < sizeof request->method ? method_size : sizeof request->method - 1);
    request->exchange.request.method = request->method;
    request->exchange.request.header = find_header;
    request->exchange.request.headers = request;
    read_framing(request);

    bool has_body = request->exchange.request.content_length > 0 || request->chunked;
    if (has_body)
        srv_connection_enter(request->entry, SRV_BODY);
    if (!api_begin(&request->exchange))
        return answer_early(request);
    bool is_probe = api_endpoint_is_probe(request->exchange.reply.endpoint);
    if (request->entry->quota == SRV_ADMIN && !is_probe)
        return refuse(request, "not_found", "this address has health and metrics alone");
    request->must_close = request->entry->quota == SRV_RESERVED;
    if (request->must_close && !is_probe) {
        srv_metrics_connection_refused();
        return refuse(request, "too_many_connections", "all connections are in use; try again");
    }
    request->step = SRV_READING;
    return MHD_YES;
}

/* ---- Refusals while the request arrives */

void srv_request_target(const char *line, size_t size, char *target, size_t room)
{
    const char *space = memchr(line, ' ', size), *end = line + size;
    size_t n = 0;
    for (const char *p = space ? space + 1 : end; p<end && * p> ' ' && *p < 0x7f; p++)
        if (n + 1 < room)
            target[n++] = *p;
    target[n] = '\0';
}

/* Appends the header of a reply that libmicrohttpd does not send. */
static void write_header(const struct srv_request *request, struct api_buffer *out)
{
    const struct api_reply *reply = &request->exchange.reply;
    api_append_format(out, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nConnection: close\r\n",
                      reply->status, MHD_get_reason_phrase_for((unsigned)reply->status),
                      reply->body.size);
    api_append_format(out, "X-Request-Id: %s\r\nCache-Control: no-store\r\n", request->id);
    if (reply->content_type)
        api_append_format(out, "Content-Type: %s\r\n", reply->content_type);
    for (size_t i = 0; i < reply->n_headers; i++)
        api_append_format(out, "%s: %s\r\n", reply->headers[i].name, reply->headers[i].value);
    api_append_text(out, "\r\n");
}

/* Sends a refusal while a request still arrives, when libmicrohttpd takes no response. */
static void send_past_library(struct srv_request *request)
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

void srv_request_cut(struct srv_request *request, const struct srv_refusal *why)
{
    if (request->step == SRV_ANSWERED || request->step == SRV_WORKING)
        return;
    if (!request->exchange.request.method) { /* the header is not complete */
        srv_request_identify(NULL, request->id, sizeof request->id);
        split_target(request);
        memcpy(request->method, request->entry->framing.method, sizeof request->method);
        request->exchange.request.method = request->method;
    }
    if (request->step != SRV_REFUSED)
        api_refuse(&request->exchange, why->code, why->detail);
    api_buffer_free(&request->body);
    atomic_store(&request->entry->held, 0);
    send_past_library(request);
}

/* Refuses a body; libmicrohttpd closes the connection. */
static enum MHD_Result cut(struct srv_request *request, const char *code, const char *detail)
{
    srv_request_cut(request, &(struct srv_refusal){code, detail});
    return MHD_NO;
}

/* ---- Body */

/* Bytes of memory that a body asks for when it needs `needed`. */
static size_t next_capacity(const struct api_buffer *body, size_t needed)
{
    size_t capacity = body->capacity > 0 ? 2 * body->capacity : SRV_FIRST;
    if (capacity < needed)
        capacity = needed;
    return body->expected > 0 && capacity > body->expected ? body->expected : capacity;
}

/* True if a body may hold `capacity` bytes now. */
static bool may_hold(const struct srv_request *request, size_t capacity)
{
    bool others_wait = srv_connections_paused() > 0 && !request->was_paused;
    return srv_share_asked(request->body.budget, request->entry, capacity, others_wait);
}

/* Has the request wait for memory, with the rest of its body unread. */
static void pause_body(struct srv_request *request, size_t capacity)
{
    struct srv_connection *entry = request->entry;
    atomic_store(&entry->wanted, capacity);
    srv_connection_pause(entry, request->connection, request->was_paused);
    request->was_paused = true;
}

/* Makes room for bytes of the body; false if the request has to wait for it. */
static bool make_room(struct srv_request *request, size_t size)
{
    struct api_buffer *body = &request->body;
    size_t needed = body->size + size + API_PADDING, capacity = next_capacity(body, needed);
    if (needed <= body->capacity)
        return true;
    if (!may_hold(request, api_block_size(capacity)) && body->expected == 0)
        capacity = needed + SRV_FIRST;
    if (may_hold(request, api_block_size(capacity)) && api_buffer_reserve(body, capacity)) {
        request->was_paused = false;
        atomic_store(&request->entry->held, body->capacity);
        return true;
    }
    body->failed = false;
    pause_body(request, api_block_size(capacity));
    return false;
}

/* Goes on after a pause; false if the request was ended meanwhile. */
static bool end_pause(struct srv_request *request)
{
    const struct srv_refusal *ending = atomic_load(&request->entry->ending);
    srv_connection_unpause(request->entry);
    if (ending)
        srv_request_cut(request, ending);
    return !ending;
}

enum MHD_Result srv_request_body(struct srv_request *request, const char *bytes, size_t *size)
{
    struct api_buffer *body = &request->body;
    size_t n = *size;
    if (atomic_load(&request->entry->phase) == SRV_PAUSED && !end_pause(request))
        return MHD_NO;
    if (request->step == SRV_REFUSED) {
        request->received += n;
        *size = 0;
        if (request->received <= DROPPED_BODY)
            return MHD_YES;
        send_past_library(request);
        return MHD_NO;
    }
    if (body->size + n > request->exchange.service->max_body)
        return cut(request, "body_too_large", "the body is larger than this server takes");
    if (!make_room(request, n))
        return MHD_YES;
    if (request->exchange.request.content_length > STREAMED_BODY)
        srv_stream(body->data + body->size, bytes, n);
    else
        memcpy(body->data + body->size, bytes, n);
    body->size += n;
    request->received += n;
    atomic_store_explicit(&request->entry->received, request->received, memory_order_relaxed);
    *size = 0;
    return MHD_YES;
}

/* ---- Work */

/* Ends a job whose answer nobody waits for. */
static void refuse_stopped(struct srv_request *request)
{
    const struct srv_refusal *ending = atomic_load(&request->entry->ending);
    if (ending)
        api_refuse(&request->exchange, ending->code, ending->detail);
    else
        api_refuse(&request->exchange, "client_left", "the client closed its side");
}

static bool hand_over(struct srv_request *request);

static void work(struct srv_job *job)
{
    struct srv_request *request = (struct srv_request *)job;
    bool done = atomic_load(&request->entry->stop) ||
                api_handle(&request->exchange, most_ns[request->lane]);
    if (atomic_load(&request->entry->stop))
        refuse_stopped(request);
    else if (!done && hand_over(request))
        return;
    api_buffer_free(&request->body);
    srv_connection_resume(request->entry);
}

/* Queues the request as a job of the lane for its cost; refuses it if the lane is full. */
static bool hand_over(struct srv_request *request)
{
    request->job.run = work;
    request->job.cost_ns = request->exchange.cost_ns;
    request->lane = request->exchange.cost_ns > most_ns[SRV_LARGE] ? SRV_HUGE : SRV_LARGE;
    if (srv_jobs_add(request->lane, &request->job))
        return true;
    api_refuse(&request->exchange, "overloaded",
               "as much work waits as this server does in 10 s; try again");
    return false;
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
    if (api_handle(&request->exchange, API_LIGHT_NS))
        return answer(request);
    request->step = SRV_WORKING;
    srv_connection_suspend(request->entry, connection);
    if (!hand_over(request))
        srv_connection_resume(request->entry);
    return MHD_YES;
}

void srv_request_done(struct srv_request *request, bool sent)
{
    const struct api_reply *reply = &request->exchange.reply;
    const char *method = request->exchange.request.method ? request->exchange.request.method : "";
    double seconds = srv_now() - request->start;
    const char *token = request->exchange.token.name;
    const struct srv_refusal *ending = atomic_load(&request->entry->ending);
    const char *lost = ending ? ending->code : request->step == SRV_NEW ? "malformed" : "aborted";
    bool probe = reply->endpoint && api_endpoint_is_probe(reply->endpoint);
    srv_metrics_end_request(reply, method, request->received, seconds);
    if (!probe || reply->status != 200) {
        struct srv_access access = {.request_id = request->id,
                                    .method = method,
                                    .target = request->target,
                                    .token = *token ? token : NULL,
                                    .status = reply->status,
                                    .code = sent || request->sent ? reply->code : lost,
                                    .body_bytes = request->received,
                                    .reply_bytes = api_reply_size(reply),
                                    .elements = reply->elements,
                                    .ms = seconds * 1e3};
        srv_log_access(&access);
    }
    if (request->unread >= 0)
        srv_linger(request->unread, request->entry->quota == SRV_REGULAR);
    release(request);
}
