#include "server/request/handler.h"

#include "api/request/response.h"
#include "api/request/route.h"
#include "api/text/clock.h"
#include "server/connection/deadlines.h"
#include "server/connection/door.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Maximum of work, in ns, that a job of each queue does; a job with more goes on to the next queue. */
static const double max_ns[SRV_QUEUES] = {
    [SRV_LARGE] = 20e6, [SRV_HUGE] = HUGE_VAL, [SRV_PROBES] = HUGE_VAL};

static struct {
    const struct api_service *service;
    const atomic_bool *draining;
} handler;

/* Bounds the bytes of a response to a scrape that the kernel takes before it has sent them; 0 for no bound. It would
 * take 4 MB of the 12 MB that 10,000 monitors are: 1 ms in which a network thread serves nobody else, and 1 GB where
 * 250 clients do not read. Not by SO_SNDBUF, which would hold for later responses, too. A unix socket takes 208 KiB. */
enum { MAX_UNSENT = 128 << 10 };
static void bound_unsent(const struct srv_connection *c, int bytes)
{
    if (!c->peer.is_local)
        setsockopt(c->watched.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

static enum MHD_Result respond(struct srv_request *request, struct MHD_Connection *connection)
{
    const struct api_response *response = &request->exchange.response;
    if (response->shared)
        bound_unsent(request->entry, MAX_UNSENT);

    struct MHD_Response *mhd_response = srv_response_make(request, atomic_load(handler.draining));
    if (!mhd_response) {
        api_refuse(&request->exchange, "out_of_memory", "no memory is left for the response");
        mhd_response = srv_response_make(request, atomic_load(handler.draining));
    }
    if (!mhd_response)
        return MHD_NO;
    bool is_refused = request->step == SRV_NEW || request->step == SRV_REFUSED;
    srv_request_mark(request, is_refused ? SRV_READ : SRV_COMPUTED);
    request->step = SRV_ANSWERED;
    /* Freed once it is sent: not the bytes that others send, too. */
    atomic_store(&request->entry->held, api_response_size(response) -
                                            (response->shared ? response->shared->bytes.size : 0));
    srv_connection_enter(request->entry, SRV_REPLY);
    srv_request_count(request);
    enum MHD_Result result =
        MHD_queue_response(connection, (unsigned)response->status, mhd_response);
    MHD_destroy_response(mhd_response);
    return result;
}

static bool has_body(const struct srv_request *request)
{
    return request->exchange.request.content_length > 0 || request->chunked;
}

/* Has a request answered before all of it is read, and the rest dropped afterwards. */
static void answer_now(struct srv_request *request)
{
    if (request->unread < 0)
        request->unread = dup(request->entry->watched.fd);
    request->message.is_ready = request->message.must_close = true;
}

/* Sends a refusal at once; or, if the body is here, when it is read, which keeps the connection open. */
static void refuse_early(struct srv_request *request, bool is_here)
{
    bool waits = request->header.values[SRV_EXPECT];
    request->step = SRV_REFUSED;
    if (waits || (has_body(request) && !is_here))
        answer_now(request);
}

/* Finds a field for the service, as api_request says. */
static const char *find_header(const void *headers, const char *name)
{
    const struct srv_request *request = headers;
    if (request->authority && strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
        return request->authority;
    return srv_header_find(&request->header, name);
}

/* The authority of "http://host/path", another way to write a path (RFC 9112, 3.2.2); or NULL. */
static const char *authority_in(const char *target)
{
    return strncasecmp(target, "http://", 7) == 0    ? target + 7
           : strncasecmp(target, "https://", 8) == 0 ? target + 8
                                                     : NULL;
}

/* Copies the parts of the target to the end of the text, which begins with `size` bytes and has room. */
static void split_target(struct srv_request *request, size_t size)
{
    const char *target = request->header.target, *authority = authority_in(target);
    const char *path = authority ? authority + strcspn(authority, "/?") : target;
    const char *question = strchr(path, '?');
    char *copy = request->text + size + 1;
    size_t path_size = question ? (size_t)(question - path) : strlen(path);
    memcpy(copy, path, path_size);
    copy[path_size] = '\0';
    request->exchange.request.path = *path == '/' ? copy : "/";
    request->exchange.request.query = question ? question + 1 : NULL;
    if (!authority)
        return;
    copy += path_size + 1;
    memcpy(copy, authority, (size_t)(path - authority));
    copy[path - authority] = '\0';
    request->authority = copy;
}

/* Reads what the framing has checked already. */
static void read_framing(struct srv_request *request)
{
    const char *const *values = request->header.values, *length = values[SRV_CONTENT_LENGTH];
    uint64_t size = length ? strtoull(length, NULL, 10) : 0;
    request->exchange.request.content_length = size;
    request->chunked = !length && values[SRV_TRANSFER_ENCODING];
    request->body.expected = length ? size + API_PADDING : 0;
    if (length && size <= SMALL_BODY)
        api_buffer_borrow(&request->body, request->small_body, sizeof request->small_body);
}

static bool refuse(struct api_exchange *x, const char *code, const char *detail)
{
    api_refuse(x, code, detail);
    return false;
}

/* Refuses a request that this connection does not serve; false then. */
static bool check_header(struct srv_request *request)
{
    struct srv_connection *entry = request->entry;
    struct api_exchange *x = &request->exchange;
    char detail[80];
    request->message.must_close = entry->quota == SRV_RESERVED;
    if (request->header.repeated) {
        snprintf(detail, sizeof detail, "at most one %s is allowed", request->header.repeated);
        return refuse(x, "bad_request", detail);
    }
    if (!api_begin(x))
        return false;
    bool is_probe = api_endpoint_is_probe(x->response.endpoint);
    if (entry->quota == SRV_ADMIN && !is_probe)
        return refuse(x, "not_found", "this address serves only health and metrics");
    if (request->message.must_close && !is_probe) {
        srv_metrics_connection_refused();
        return refuse(x, "too_many_connections", "all connections are in use; try again");
    }
    return srv_body_fits(request) || refuse(x, srv_no_memory.code, srv_no_memory.detail);
}

/* Makes the request of a connection, from its header, which is whole or else malformed or incomplete; NULL if no memory is
 * left. */
static struct srv_request *new_request(struct srv_connection *entry, const char *text, size_t size,
                                       bool is_whole)
{
    struct srv_request *request = srv_request_new(handler.service, entry, text, size);
    atomic_store(&entry->request, request ? &request->message : NULL);
    if (!request)
        return NULL;
    struct srv_header *header = &request->header;
    if (is_whole)
        srv_header_read(header, request->text);
    else
        srv_header_guess(header, request->text);
    srv_request_identify(header->values[SRV_X_REQUEST_ID], request->id, sizeof request->id);
    split_target(request, size);
    const char *method = is_whole ? header->method : entry->framing.method;
    request->exchange.request.method = method;
    request->message.is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    return request;
}

static bool begin(struct srv_connection *entry, const char *text, size_t size, bool is_here)
{
    struct srv_request *request = new_request(entry, text, size, true);
    if (!request)
        return false;
    if (entry->peer.is_proxy)
        srv_forwarded_text(&request->header.forwarded, request->client);
    request->exchange.request.header = find_header;
    request->exchange.request.headers = request;
    read_framing(request);
    if (has_body(request))
        srv_connection_enter(entry, SRV_BODY);
    request->step = SRV_READING;
    if (!check_header(request))
        refuse_early(request, is_here);
    return true;
}

/* ---- Refusals while the request arrives */

static struct srv_request *request_of(const struct srv_connection *entry)
{
    return (struct srv_request *)atomic_load(&entry->request);
}

static bool refuse_arriving(struct srv_connection *entry, const char *text, size_t size,
                            const struct srv_error *why)
{
    struct srv_request *request = request_of(entry);
    if (!request)
        request = new_request(entry, text, size, false);
    if (!request)
        return false;
    if (request->step != SRV_REFUSED)
        api_refuse(&request->exchange, why->code, why->detail);
    if (request->step == SRV_READING)
        request->step = SRV_REFUSED;
    srv_body_keep(request);
    api_buffer_free(&request->body);
    answer_now(request);
    return true;
}

/* ---- Work */

/* True if nobody waits for the response, so that work on it stops. A request whose observations are stored goes on to
 * its response. */
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
    struct srv_request *request =
        (struct srv_request *)((char *)job - offsetof(struct srv_request, job));
    srv_request_mark(request, SRV_QUEUED);
    bool done = is_stopped(request) || api_handle(&request->exchange, max_ns[request->queue]);
    srv_request_mark(request, SRV_COMPUTED);
    if (is_stopped(request))
        refuse_stopped(request);
    else if (!done && pass_on(request))
        return;
    api_buffer_free(&request->body);
    srv_connection_resume(request->entry);
}

/* Queues the request as a job of the queue for its kind or cost. If the queue is full, the request is refused; but if
 * the store already has its observations, this thread makes the response instead. */
static bool hand_over(struct srv_request *request)
{
    request->job.run = work;
    request->job.cost_ns = request->exchange.cost_ns;
    request->queue = request->exchange.cost_ns > max_ns[SRV_LARGE] ? SRV_HUGE : SRV_LARGE;
    if (api_endpoint_is_probe(request->exchange.response.endpoint))
        request->queue = SRV_PROBES;
    const char *refusal = srv_jobs_add(request->queue, &request->job);
    if (!refusal)
        return true;
    if (request->exchange.is_stored && api_handle(&request->exchange, HUGE_VAL))
        return false;
    api_refuse(&request->exchange, "overloaded", refusal);
    return false;
}

/* Leaves the suspended request to the store, or to a job; false if it is refused. */
static bool pass_on(struct srv_request *request)
{
    return request->exchange.work ? api_wait(&request->exchange) : hand_over(request);
}

/* Goes on with a request as far as this thread may, and leaves the rest to others: false then. */
static bool go_on(struct srv_request *request, struct MHD_Connection *connection)
{
    bool done = api_handle(&request->exchange, API_LIGHT_NS);
    srv_request_mark(request, SRV_COMPUTED);
    if (done)
        return true;
    request->step = SRV_WORKING;
    srv_connection_enter(request->entry, SRV_WORK);
    srv_connection_suspend(request->entry, connection);
    if (!pass_on(request))
        srv_connection_resume(request->entry);
    return false;
}

/* Takes the body, which is complete; false if its memory was freed when its last bytes had come. */
static bool take_body(struct srv_request *request)
{
    struct api_buffer *body = &request->body;
    atomic_store(&request->entry->held, 0);
    if (!srv_body_keep(request))
        return false;
    srv_request_mark(request, SRV_READ);
    request->exchange.request.body = body->data ? body->data : request->small_body;
    request->exchange.request.body_size = body->size;
    memset(request->exchange.request.body + body->size, 0, API_PADDING);
    return true;
}

/* Answers a request that is ready, or leaves it to others until they are done. */
static enum MHD_Result answer(struct srv_request *request, struct MHD_Connection *connection)
{
    bool works = request->step == SRV_WORKING && request->exchange.response.status == 0;
    bool is_done = true;
    if (request->step == SRV_WORKING)
        srv_request_mark(request, SRV_QUEUED);
    /* The endpoint alone knows if its work has been stored. */
    if (works && !request->exchange.work && is_stopped(request))
        refuse_stopped(request);
    else if (works)
        is_done = go_on(request, connection);
    else if (request->step == SRV_READING && !take_body(request))
        refuse_stopped(request);
    else if (request->step == SRV_READING)
        is_done = go_on(request, connection);
    return is_done ? respond(request, connection) : MHD_YES;
}

/* ---- Calls of libmicrohttpd, and of the door */

static struct srv_connection *entry_of(struct MHD_Connection *connection)
{
    return srv_connection_at(
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
}

enum MHD_Result srv_handle(void *unused, struct MHD_Connection *connection, const char *url,
                           const char *method, const char *version, const char *upload,
                           size_t *upload_size, void **context)
{
    struct srv_connection *entry = entry_of(connection);
    (void)unused, (void)url, (void)method, (void)version, (void)upload, (void)upload_size;
    if (!request_of(entry)) /* libmicrohttpd has read it by itself: nobody has checked it */
        return MHD_NO;
    if (*context)
        return answer(request_of(entry), connection);
    *context = entry; /* libmicrohttpd closes what is answered at its first call */
    return MHD_YES;
}

void srv_handled(void *unused, struct MHD_Connection *connection, void **context,
                 enum MHD_RequestTerminationCode how)
{
    struct srv_connection *entry = entry_of(connection);
    struct srv_request *request = request_of(entry);
    (void)unused, (void)context;
    if (request && request->exchange.response.shared)
        bound_unsent(entry, 0);
    if (request)
        srv_request_done(request, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    atomic_store(&entry->request, NULL);
    atomic_store(&entry->held, 0);
    atomic_store(&entry->progress.received, 0);
    srv_connection_enter(entry, SRV_IDLE);
}

static void abort_request(struct srv_message *message)
{
    srv_request_done((struct srv_request *)message, false);
}

void srv_handler_init(const struct api_service *service, const atomic_bool *draining)
{
    static const struct srv_reader reader = {.begin = begin,
                                             .body = srv_body_receive,
                                             .place = srv_body_place,
                                             .placed = srv_body_placed,
                                             .refuse = refuse_arriving,
                                             .done = abort_request};
    handler.service = service;
    handler.draining = draining;
    srv_door_init(&reader);
}
