/* The body of a request: memory for it, and its bytes. */
#include "server/deadlines.h"
#include "server/response.h"
#include "server/share.h"

#include <string.h>

/* PLACED_BODY: bytes above which a body is received where it stays. */
enum { PLACED_BODY = 256 << 10 };

/* Refuses a body; libmicrohttpd closes the connection. */
static enum MHD_Result refuse(struct srv_request *request, const char *code, const char *detail)
{
    srv_request_cut(request, &(struct srv_refusal){code, detail});
    return MHD_NO;
}

/* Bytes of memory that a body asks for when it needs `needed`. */
static size_t next_capacity(const struct api_buffer *body, size_t needed)
{
    size_t capacity = body->capacity > 0 ? 2 * body->capacity : SRV_FIRST;
    if (capacity < needed)
        capacity = needed;
    return body->expected > 0 && capacity > body->expected ? body->expected : capacity;
}

/* Bytes that are counted for a capacity. */
static size_t counted(size_t capacity)
{
    return capacity <= SRV_FIRST ? capacity : api_reservation_size(capacity);
}

/* True if a body may hold `capacity` bytes now. */
static bool may_hold(const struct srv_request *request, size_t capacity)
{
    bool others_wait = srv_connections_paused() > 0 && !request->was_paused;
    return srv_share_asked(request->body.budget, request->entry, capacity, others_wait);
}

/* True if the server never takes a body of `size` bytes, however much memory is free. A declared length
 * was compared with the memory at the begin. */
static bool is_too_large(const struct srv_request *request, size_t size)
{
    const struct api_buffer *body = &request->body;
    size_t most = api_budget_max(body->budget, size);
    return size > request->exchange.service->max_body ||
           (most > 0 && body->expected == 0 && counted(size + API_PADDING + SRV_FIRST) > most);
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
    srv_share_lock();
    if (!may_hold(request, counted(capacity)) && body->expected == 0)
        capacity = needed + SRV_FIRST;
    bool good = may_hold(request, counted(capacity)) && api_buffer_reserve(body, capacity);
    if (good)
        atomic_store(&request->entry->held, body->capacity);
    srv_share_unlock();
    request->was_paused &= !good;
    body->failed = false;
    if (!good)
        pause_body(request, counted(capacity));
    return good;
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

/* Has the rest of the body received where it stays, as far as there is room. */
static void offer_place(struct srv_request *request)
{
    const struct api_buffer *body = &request->body;
    size_t room = body->capacity - body->size - API_PADDING;
    bool is_whole = body->size == request->exchange.request.content_length;
    srv_upload_offer(&request->entry->upload, body->data + body->size, is_whole ? 0 : room);
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
        return MHD_YES;
    }
    if (is_too_large(request, body->size + n))
        return refuse(request, "body_too_large", "the body is larger than this server takes");
    if (!make_room(request, n)) {
        srv_upload_offer(&request->entry->upload, NULL, 0); /* of a full place: nothing is ahead */
        return MHD_YES;
    }
    if (!srv_upload_took(&request->entry->upload, n))
        memcpy(body->data + body->size, bytes, n);
    body->size += n;
    if (request->exchange.request.content_length > PLACED_BODY)
        offer_place(request);
    request->received += n;
    atomic_store_explicit(&request->entry->received, request->received, memory_order_relaxed);
    *size = 0;
    return MHD_YES;
}
