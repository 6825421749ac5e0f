#include "server/request/request.h"

#include "api/memory/freelist.h"
#include "api/request/response.h"
#include "api/request/route.h"
#include "api/text/clock.h"
#include "server/connection/linger.h"
#include "server/connection/tls.h"
#include "server/telemetry/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* TEXT: bytes of room for the text of requests that are kept for the next ones. */
enum { TEXT = 3 << 10 };

static struct api_freelist request_pool;

/* Allocates a request with `room` bytes for its text, zeroed up to its header. */
static struct srv_request *allocate(size_t room)
{
    if (room > TEXT)
        return calloc(1, sizeof(struct srv_request) + room);
    struct srv_request *request = api_freelist_get(&request_pool);
    if (!request)
        return calloc(1, sizeof *request + TEXT);
    memset(request, 0, offsetof(struct srv_request, header));
    return request;
}

void srv_request_mark(struct srv_request *request, enum srv_span span)
{
    double now = api_seconds();
    request->spans[span] += (now - request->marked) * 1e3;
    request->marked = now;
}

/* Called by the store's thread. */
static void resume(struct api_exchange *x)
{
    struct srv_request *request =
        (struct srv_request *)((char *)x - offsetof(struct srv_request, exchange));
    srv_request_mark(request, SRV_STORED);
    srv_connection_resume(request->entry);
}

/* Bytes of the first line from its first space on: no less than the target has. */
static size_t target_size(const char *header, size_t size)
{
    const char *end = header + size, *target = memchr(header, ' ', size);
    const char *line_end = target ? memchr(target, '\r', (size_t)(end - target)) : NULL;
    return target ? (size_t)((line_end ? line_end : end) - target) : 0;
}

struct srv_request *srv_request_new(const struct api_service *service, struct srv_connection *entry,
                                    const char *header, size_t size)
{
    enum { NULS = 3 };
    size_t room = size + target_size(header, size) + NULS;
    struct srv_request *request = allocate(room);
    if (!request)
        return NULL;
    request->is_pooled = room <= TEXT;
    memcpy(request->text, header, size);
    request->text[size] = '\0';
    request->exchange.service = service;
    request->entry = entry;
    request->exchange.stop = &entry->stop;
    request->exchange.resume = resume;
    request->refcount = 1;
    request->unread = -1;
    request->body.budget = service->budget;
    api_buffer_borrow(&request->exchange.response.body, request->small_response, SMALL_REPLY);
    request->start = request->marked = api_seconds();
    srv_metrics_begin_request();
    return request;
}

void srv_request_release(void *argument)
{
    struct srv_request *request = argument;
    if (--request->refcount > 0)
        return;
    api_end(&request->exchange);
    api_buffer_free(&request->body);
    if (request->is_pooled)
        api_freelist_put(&request_pool, request);
    else
        free(request);
    srv_metrics_end_request();
}

/* ---- End */

void srv_request_count(struct srv_request *request)
{
    const struct api_response *response = &request->exchange.response;
    if (request->is_counted || response->status == 0)
        return;
    request->is_counted = true;
    srv_metrics_count_response(response, request->exchange.request.method, request->received);
}

/* Bytes of the body that the connection has not read; the largest number if that is unknown. */
static uint64_t unread_size(const struct srv_request *request)
{
    const struct srv_framing *framing = &request->entry->framing;
    bool is_known = framing->state == SRV_BODY_BYTES && !request->entry->session;
    return is_known ? framing->left : UINT64_MAX;
}

/* Ends the sending side of a connection whose request was not read, and has the rest dropped. */
static void linger(struct srv_request *request)
{
    struct srv_connection *entry = request->entry;
    if (entry->session)
        srv_tls_bye(entry->session);
    srv_linger(request->unread, entry->quota == SRV_REGULAR, unread_size(request));
}

/* Seconds from which on a request is slow; 0: none is. */
static double slow;

void srv_request_log_slow(double seconds) { slow = seconds; }

static void log_request(const struct srv_request *request, bool sent)
{
    const struct api_response *response = &request->exchange.response;
    const struct srv_peer *peer = &request->entry->peer;
    const struct srv_error *ending = atomic_load(&request->entry->ending);
    const char *lost = ending ? ending->code : request->step == SRV_NEW ? "malformed" : "aborted";
    const char *token = request->exchange.token.name;
    const struct api_trace *trace = &request->exchange.trace;
    struct srv_access access = {.request_id = request->id,
                                .method = request->exchange.request.method,
                                .target = request->header.target,
                                .token = *token ? token : NULL,
                                .is_audit = api_route_writes(&request->exchange),
                                .client = *request->client ? request->client : peer->address,
                                .proxy = *request->client ? peer->address : NULL,
                                .trace = api_trace_is_set(trace) ? trace : NULL,
                                .status = response->status,
                                .code = sent ? response->code : lost,
                                .body_bytes = request->received,
                                .response_bytes = api_response_size(response),
                                .elements = response->elements,
                                .peer = peer->is_local ? &peer->process : NULL,
                                .ms = (request->marked - request->start) * 1e3};
    memcpy(access.spans, request->spans, sizeof access.spans);
    bool probe = response->endpoint && api_endpoint_is_probe(response->endpoint);
    if (!probe || response->status != 200)
        srv_log_access(&access);
    if (slow > 0 && access.ms > slow * 1e3)
        srv_log_slow(&access);
}

void srv_request_done(struct srv_request *request, bool sent)
{
    const struct api_response *response = &request->exchange.response;
    srv_request_mark(request, request->step == SRV_ANSWERED ? SRV_SENT : SRV_READ);
    srv_request_count(request);
    if (response->status != 0)
        srv_metrics_count_time(response, request->marked - request->start);
    log_request(request, sent);
    srv_body_reclaim(request);
    if (request->unread >= 0)
        linger(request);
    srv_request_release(request);
}

/* ---- Ids */

static uint64_t seed;

__attribute__((constructor)) static void make_seed(void)
{
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        seed = (uintptr_t)&seed;
}

/* Finalizer of SplitMix64: a bijection, so different counters give different ids. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

void srv_request_identify(const char *given, char *id, size_t size)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "._-";
    static atomic_ullong counter;
    size_t length = given ? strlen(given) : 0;
    if (length >= 1 && length < size && strspn(given, allowed) == length) {
        memcpy(id, given, length + 1);
        return;
    }
    uint64_t number = mix(seed + atomic_fetch_add(&counter, 1));
    for (int i = 0; i < 16; i++, number <<= 4)
        id[i] = "0123456789abcdef"[number >> 60];
    id[16] = '\0';
}
