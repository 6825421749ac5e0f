#include "api/request/response.h"
#include "api/request/route.h"
#include "server/connection/deadlines.h"
#include "server/request/request.h"
#include "server/telemetry/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct api_service *service;

void srv_begin_init(const struct api_service *for_requests) { service = for_requests; }

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
    struct srv_request *request = srv_request_new(service, entry, text, size);
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

bool srv_begin(struct srv_connection *entry, const char *text, size_t size, bool is_here)
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

bool srv_refuse_arriving(struct srv_connection *entry, const char *text, size_t size,
                         const struct srv_error *why)
{
    struct srv_request *request = srv_request_of(entry);
    if (!request)
        request = new_request(entry, text, size, false);
    if (!request)
        return false;
    if (request->step != SRV_REFUSED)
        api_refuse(&request->exchange, why->code, why->detail);
    if (request->step == SRV_READING)
        request->step = SRV_REFUSED;
    srv_body_reclaim(request);
    api_buffer_free(&request->body);
    answer_now(request);
    return true;
}
