#include "server/request/handler.h"

#include "api/request/response.h"
#include "api/request/route.h"
#include "api/text/clock.h"
#include "server/connection/deadlines.h"
#include "server/connection/linger.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Maximum of work, in ns, that a job of each queue does; a job with more goes on to the next queue. */
static const double max_ns[SRV_QUEUES] = {
    [SRV_LARGE] = 20e6, [SRV_HUGE] = HUGE_VAL, [SRV_PROBES] = HUGE_VAL};

/* Counts the request once, by the response that it gets or would have got. */
static void count_response(struct srv_request *request)
{
    const struct api_response *response = &request->exchange.response;
    if (request->is_counted || response->status == 0)
        return;
    request->is_counted = true;
    srv_metrics_count_response(response, request->method, request->received);
}

/* Bounds the bytes of a response to a scrape that the kernel takes before it has sent them; 0 for no bound. It would
 * take 4 MB of the 12 MB that 10,000 monitors are: 1 ms in which a network thread serves nobody else, and 1 GB where
 * 250 clients do not read. Not by SO_SNDBUF, which would hold for later responses, too. A unix socket takes 208 KiB. */
enum { MAX_UNSENT = 128 << 10 };
static void bound_unsent(const struct srv_connection *c, int bytes)
{
    if (!c->peer.is_local)
        setsockopt(c->watched.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

static enum MHD_Result respond(struct srv_request *request)
{
    const struct api_response *response = &request->exchange.response;
    if (response->shared)
        bound_unsent(request->entry, MAX_UNSENT);

    struct MHD_Response *mhd_response = srv_response_make(request);
    if (!mhd_response) {
        api_refuse(&request->exchange, "out_of_memory", "no memory is left for the response");
        mhd_response = srv_response_make(request);
    }
    if (!mhd_response)
        return MHD_NO;
    request->step = SRV_ANSWERED;
    /* Freed once it is sent: not the bytes that others send, too. */
    atomic_store(&request->entry->held, api_response_size(response) -
                                            (response->shared ? response->shared->bytes.size : 0));
    srv_connection_enter(request->entry, SRV_REPLY);
    count_response(request);
    enum MHD_Result result =
        MHD_queue_response(request->connection, (unsigned)response->status, mhd_response);
    MHD_destroy_response(mhd_response);
    return result;
}

static bool has_body(const struct srv_request *request)
{
    return request->exchange.request.content_length > 0 || request->chunked;
}

/* True if the whole body has arrived. The framing has read this request's header, and perhaps on into the
 * next request. */
static bool is_body_here(const struct srv_connection *c)
{
    enum srv_framing_state state = c->framing.state;
    int unread;
    if (state == SRV_REQUEST_LINE || state == SRV_FIELD)
        return true;
    return state == SRV_BODY_BYTES && !c->tls && ioctl(c->watched.fd, FIONREAD, &unread) == 0 &&
           (uint64_t)unread >= c->framing.left;
}

/* Sends a refusal at once, and has the body dropped afterwards; or, if the body is here, when it is read,
 * which keeps the connection open. */
static enum MHD_Result respond_early(struct srv_request *request)
{
    if (!request->expects_continue && (!has_body(request) || is_body_here(request->entry))) {
        request->step = SRV_REFUSED;
        return MHD_YES;
    }
    request->must_close = true;
    request->unread = dup(request->entry->watched.fd);
    return respond(request);
}

static enum MHD_Result refuse_request(struct srv_request *request, const char *code,
                                      const char *detail)
{
    api_refuse(&request->exchange, code, detail);
    return respond_early(request);
}

/* Finds a field for the service, as api_request says. */
static const char *find_header(const void *headers, const char *name)
{
    const struct srv_request *request = headers;
    if (request->authority && strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
        return request->authority;
    return srv_fields_find(&request->fields, name);
}

/* The authority of "http://host/path", another way to write a path (RFC 9112, 3.2.2); or NULL. */
static const char *authority_in(const char *target)
{
    return strncasecmp(target, "http://", 7) == 0    ? target + 7
           : strncasecmp(target, "https://", 8) == 0 ? target + 8
                                                     : NULL;
}

static void split_target(struct srv_request *request)
{
    const char *authority = authority_in(request->target);
    const char *path = authority ? authority + strcspn(authority, "/?") : request->target;
    const char *question = strchr(path, '?');
    char *copy = request->target + strlen(request->target) + 1;
    if (*path == '/')
        memcpy(copy, path, question ? (size_t)(question - path) : strlen(path));
    if (authority)
        request->authority = memcpy(copy + strlen(copy) + 1, authority, (size_t)(path - authority));
    request->exchange.request.path = *path == '/' ? copy : "/";
    request->exchange.request.query = question ? question + 1 : NULL;
}

/* Finds out who asks, where a trusted proxy asks for another. */
static void read_client(struct srv_request *request)
{
    struct srv_forwarded forwarded = {.is_found = false};
    if (!request->entry->peer.is_proxy)
        return;
    srv_fields_forwarded(&request->fields, &forwarded);
    srv_forwarded_text(&forwarded, request->client);
}

/* Reads what the framing has checked already. */
static void read_framing(struct srv_request *request)
{
    const char *const *values = request->fields.values, *length = values[SRV_CONTENT_LENGTH];
    uint64_t size = length ? strtoull(length, NULL, 10) : 0;
    request->exchange.request.content_length = size;
    request->chunked = !length && values[SRV_TRANSFER_ENCODING];
    request->expects_continue = values[SRV_EXPECT] != NULL;
    request->body.expected = length ? size + API_PADDING : 0;
    if (length && size <= SMALL_BODY)
        api_buffer_borrow(&request->body, request->small_body, sizeof request->small_body);
}

/* Refuses a request that this connection does not serve, or lets its body come. */
static enum MHD_Result check_header(struct srv_request *request)
{
    struct srv_connection *entry = request->entry;
    char detail[80];
    /* libmicrohttpd has read by a function that is not the adapter's: nothing has been checked. */
    if (++entry->headers > entry->framing.headers) {
        request->must_close = true;
        srv_log(SRV_LOG_ERROR, "a request was refused: libmicrohttpd read it past the adapter");
        return refuse_request(request, "internal_error",
                              "the framing of the request was not checked");
    }
    if (request->fields.repeated) {
        snprintf(detail, sizeof detail, "at most one %s is allowed", request->fields.repeated);
        return refuse_request(request, "bad_request", detail);
    }
    if (!api_begin(&request->exchange))
        return respond_early(request);
    bool is_probe = api_endpoint_is_probe(request->exchange.response.endpoint);
    if (entry->quota == SRV_ADMIN && !is_probe)
        return refuse_request(request, "not_found", "this address serves only health and metrics");
    request->must_close = entry->quota == SRV_RESERVED;
    if (request->must_close && !is_probe) {
        srv_metrics_connection_refused();
        return refuse_request(request, "too_many_connections",
                              "all connections are in use; try again");
    }
    if (!srv_body_fits(request))
        return refuse_request(request, srv_no_memory.code, srv_no_memory.detail);
    request->step = SRV_READING;
    return MHD_YES;
}

enum MHD_Result srv_request_begin(struct srv_request *request, struct MHD_Connection *connection,
                                  const char *method, const char *version)
{
    request->connection = connection;
    srv_fields_read(&request->fields, connection);
    request->is_http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
    request->closes = request->fields.closes;
    srv_request_identify(request->fields.values[SRV_X_REQUEST_ID], request->id, sizeof request->id);
    read_client(request);
    split_target(request);
    size_t method_size = strlen(method);
    memcpy(request->method, method,
           method_size < sizeof request->method ? method_size : sizeof request->method - 1);
    request->exchange.request.method = request->method;
    request->exchange.request.header = find_header;
    request->exchange.request.headers = request;
    read_framing(request);

    if (has_body(request))
        srv_connection_enter(request->entry, SRV_BODY);
    return check_header(request);
}

/* Ends receiving in place: bytes that libmicrohttpd was not told of are no longer among those to come. */
static void end_upload(struct srv_connection *c)
{
    c->framing.left -= c->upload.ahead;
    c->upload = (struct srv_upload){0};
}

/* ---- Refusals while the request arrives */

void srv_request_abort(struct srv_request *request, const struct srv_error *why)
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
    end_upload(request->entry);
    srv_connection_keep_body(request->entry);
    api_buffer_free(&request->body);
    count_response(request);
    srv_response_send(request);
}

/* ---- Work */

/* True if nobody is to get the response; what is stored is answered by that none the less. */
static bool is_stopped(const struct srv_request *request)
{
    return atomic_load(&request->entry->stop) && !request->exchange.is_stored;
}

/* Ends a job whose response nobody waits for. */
static void refuse_stopped(struct srv_request *request)
{
    const struct srv_error *ending = atomic_load(&request->entry->ending);
    if (ending)
        api_refuse(&request->exchange, ending->code, ending->detail);
    else
        api_refuse(&request->exchange, "client_left", "the client closed its side");
}

static bool pass_on(struct srv_request *request);

static void work(struct srv_job *job)
{
    struct srv_request *request = (struct srv_request *)job;
    bool done = is_stopped(request) || api_handle(&request->exchange, max_ns[request->queue]);
    if (is_stopped(request))
        refuse_stopped(request);
    else if (!done && pass_on(request))
        return;
    api_buffer_free(&request->body);
    srv_connection_resume(request->entry);
}

/* Queues the request as a job of the queue for its kind or cost. If the queue is full, it is refused, unless
 * the store has what came with it: then it is answered here and now. */
static bool hand_over(struct srv_request *request)
{
    request->job.run = work;
    request->job.cost_ns = request->exchange.cost_ns;
    request->queue = request->exchange.cost_ns > max_ns[SRV_LARGE] ? SRV_HUGE : SRV_LARGE;
    if (api_endpoint_is_probe(request->exchange.response.endpoint))
        request->queue = SRV_PROBES;
    if (srv_jobs_add(request->queue, &request->job))
        return true;
    if (request->exchange.is_stored && api_handle(&request->exchange, HUGE_VAL))
        return false;
    api_refuse(&request->exchange, "overloaded", "more than 10 s of work is pending; try again");
    return false;
}

/* Leaves the suspended request to the store, or to a job; false if it is refused. */
static bool pass_on(struct srv_request *request)
{
    return request->exchange.work ? api_wait(&request->exchange) : hand_over(request);
}

/* Goes on with a request as far as this thread may; the rest is for others. */
static enum MHD_Result go_on(struct srv_request *request, struct MHD_Connection *connection)
{
    if (api_handle(&request->exchange, API_LIGHT_NS))
        return respond(request);
    request->step = SRV_WORKING;
    srv_connection_enter(request->entry, SRV_WORK);
    srv_connection_suspend(request->entry, connection);
    if (!pass_on(request))
        srv_connection_resume(request->entry);
    return MHD_YES;
}

enum MHD_Result srv_request_complete(struct srv_request *request, struct MHD_Connection *connection)
{
    struct api_buffer *body = &request->body;
    if (request->step == SRV_WORKING && request->exchange.response.status == 0) {
        /* The endpoint alone knows if its work has been stored. */
        if (request->exchange.work || !is_stopped(request))
            return go_on(request, connection);
        refuse_stopped(request);
    }
    if (request->step != SRV_READING)
        return respond(request);
    if (!srv_connection_keep_body(request->entry)) { /* it was taken when its last bytes had come */
        refuse_stopped(request);
        return respond(request);
    }
    request->read_ms = (api_seconds() - request->start) * 1e3;
    request->exchange.request.body = body->data ? body->data : request->small_body;
    request->exchange.request.body_size = body->size;
    memset(request->exchange.request.body + body->size, 0, API_PADDING);
    return go_on(request, connection);
}

/* Bytes of the body that the connection has not read; the largest number if that is unknown. */
static uint64_t unread_size(const struct srv_request *request)
{
    const struct srv_framing *framing = &request->entry->framing;
    bool is_known = framing->state == SRV_BODY_BYTES && !request->entry->tls;
    return is_known ? framing->left : UINT64_MAX;
}

void srv_request_done(struct srv_request *request, bool sent)
{
    const struct api_response *response = &request->exchange.response;
    const char *method = request->exchange.request.method ? request->exchange.request.method : "";
    double seconds = api_seconds() - request->start;
    const char *token = request->exchange.token.name;
    const struct srv_error *ending = atomic_load(&request->entry->ending);
    const char *lost = ending ? ending->code : request->step == SRV_NEW ? "malformed" : "aborted";
    bool probe = response->endpoint && api_endpoint_is_probe(response->endpoint);
    count_response(request);
    if (response->status != 0)
        srv_metrics_count_time(response, seconds);
    const char *address = request->entry->peer.address;
    const struct api_trace *trace = &request->exchange.trace;
    if (!probe || response->status != 200)
        srv_log_access(&(struct srv_access){
            .request_id = request->id,
            .method = method,
            .target = request->target,
            .token = *token ? token : NULL,
            .is_audit = api_route_writes(&request->exchange),
            .client = *request->client ? request->client : address,
            .proxy = *request->client ? address : NULL,
            .trace = api_trace_is_set(trace) ? trace : NULL,
            .status = response->status,
            .code = sent || request->sent ? response->code : lost,
            .body_bytes = request->received,
            .response_bytes = api_response_size(response),
            .elements = response->elements,
            .peer = request->entry->peer.is_local ? &request->entry->peer.process : NULL,
            .ms = seconds * 1e3});
    end_upload(request->entry);
    if (response->shared)
        bound_unsent(request->entry, 0);
    if (request->step == SRV_READING)
        srv_connection_keep_body(request->entry);
    if (request->unread >= 0)
        srv_linger(request->unread, request->entry->quota == SRV_REGULAR, unread_size(request));
    srv_request_release(request);
}
