#include "server/request/request.h"

#include "server/connection/deadlines.h"

#include <string.h>

/* FIRST: bytes of memory that a body begins with; it doubles as bytes arrive. PLACED_BODY: bytes above which a body
 * is received where it stays. */
enum { FIRST = 64 << 10, PLACED_BODY = 256 << 10 };

const struct srv_error srv_no_memory = {
    "out_of_memory", "the memory for requests is in use (--max-memory); try again"};

/* Bytes that are counted for a capacity. */
static size_t counted(size_t capacity)
{
    return capacity <= FIRST ? capacity : api_reservation_size(capacity);
}

/* Bytes of memory that are missing for a body to hold `capacity` bytes now. The last 5 % of the limit are for bodies
 * that are small as a whole. */
static size_t missing_for(const struct srv_request *request, size_t capacity)
{
    const struct api_buffer *body = &request->body;
    size_t whole = body->expected > capacity ? body->expected : capacity;
    size_t held = body->borrowed ? 0 : body->capacity, used = atomic_load(&body->budget->used);
    size_t needed = counted(capacity) + (used > held ? used - held : 0);
    size_t max = api_budget_max(body->budget, whole);
    return body->budget->limit == 0 || needed <= max ? 0 : needed - max;
}

/* True if the server never takes a body of `size` bytes, however much memory is free. A declared length
 * was compared with the memory at the begin. */
static bool is_too_large(const struct srv_request *request, size_t size)
{
    const struct api_buffer *body = &request->body;
    size_t max = api_budget_max(body->budget, size);
    return size > request->exchange.max_body ||
           (max > 0 && body->expected == 0 && counted(size + API_PADDING + FIRST) > max);
}

static bool reserve(struct srv_request *request, size_t capacity)
{
    struct api_buffer *body = &request->body;
    if (body->expected > 0 && capacity > body->expected)
        capacity = body->expected;
    bool good = missing_for(request, capacity) == 0 && api_buffer_reserve(body, capacity);
    body->failed = false;
    return good;
}

/* Ends slow requests until a body can hold `capacity` bytes; false if that many are not to be had. */
static bool evict_for(const struct srv_request *request, size_t capacity)
{
    size_t missing = missing_for(request, capacity);
    return missing > 0 && srv_evict_for_memory(request->entry, missing);
}

/* Makes room for bytes of the body, which doubles, or grows by little where memory is short, at the cost of slow
 * requests if there is no other; false if none is left. */
static bool make_room(struct srv_request *request, size_t size)
{
    struct api_buffer *body = &request->body;
    size_t needed = body->size + size + API_PADDING;
    size_t capacity = body->capacity > 0 ? 2 * body->capacity : FIRST;
    if (needed <= body->capacity)
        return true;
    capacity = capacity > needed ? capacity : needed;
    while (!reserve(request, capacity) && !reserve(request, needed + FIRST))
        if (!evict_for(request, needed + FIRST))
            return false;
    atomic_store(&request->entry->held, body->borrowed ? 0 : body->capacity);
    request->entry->lent.body = body->borrowed ? NULL : body;
    return true;
}

bool srv_body_fits(const struct srv_request *request)
{
    const struct api_buffer *body = &request->body;
    while (body->expected > body->capacity && missing_for(request, body->expected) > 0)
        if (!evict_for(request, body->expected))
            return false;
    return true;
}

/* Takes bytes of the body; gives the error for which it is refused, or NULL. */
static const struct srv_error *take_bytes(struct srv_request *request, const char *bytes, size_t n)
{
    static const struct srv_error too_large = {"body_too_large",
                                               "the body is larger than this request may have"};
    struct api_buffer *body = &request->body;
    uint64_t whole = request->exchange.request.content_length;
    if (request->entry->lent.is_taken)
        return atomic_load(&request->entry->ending);
    if (is_too_large(request, body->size + n))
        return &too_large;
    if (!make_room(request, n))
        return &srv_no_memory;
    if (whole <= PLACED_BODY || !srv_upload_took(&request->entry->upload, n))
        memcpy(body->data + body->size, bytes, n);
    body->size += n;
    if (whole > PLACED_BODY)
        srv_upload_offer(&request->entry->upload, body->data + body->size,
                         body->size == whole ? 0 : body->capacity - body->size - API_PADDING);
    return NULL;
}

enum MHD_Result srv_body_receive(struct srv_request *request, const char *bytes, size_t size)
{
    struct srv_connection *entry = request->entry;
    request->received += size;
    if (request->step == SRV_REFUSED)
        return MHD_YES;
    pthread_mutex_lock(&entry->lent.lock);
    entry->error = take_bytes(request, bytes, size);
    pthread_mutex_unlock(&entry->lent.lock);
    srv_body_progress(entry, size);
    return entry->error ? MHD_NO : MHD_YES; /* libmicrohttpd closes the connection */
}
