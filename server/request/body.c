#include "server/request/request.h"

#include "server/connection/deadlines.h"
#include "server/connection/eviction.h"

#include <string.h>

/* FIRST: bytes of memory that a body begins with; it doubles as bytes arrive. */
enum { FIRST = 64 << 10 };

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
    size_t max = api_budget_limit(body->budget, size);
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

bool srv_body_reclaim(struct srv_request *request)
{
    bool is_mine = !request->is_evictable || srv_connection_reclaim_body(request->entry);
    request->is_evictable = false;
    return is_mine;
}

/* Makes room for `n` bytes; gives the error for which there is none, or NULL. */
static const struct srv_error *prepare(struct srv_request *request, size_t n)
{
    static const struct srv_error too_large = {"body_too_large",
                                               "the body is larger than this request may have"};
    if (!srv_body_reclaim(request))
        return atomic_load(&request->entry->ending);
    if (is_too_large(request, request->body.size + n))
        return &too_large;
    return make_room(request, n) ? NULL : &srv_no_memory;
}

/* Counts `n` bytes that have come. Until more come, the memory of the body may be freed for other requests. */
static void count(struct srv_request *request, size_t n)
{
    struct api_buffer *body = &request->body;
    body->size += n;
    request->received += n;
    request->is_evictable = !body->borrowed && body->capacity > 0;
    if (request->is_evictable)
        atomic_store(&request->entry->evictable, body);
    srv_body_progress(request->entry, n);
}

const struct srv_error *srv_body_receive(struct srv_message *message, const char *bytes, size_t n)
{
    struct srv_request *request = (struct srv_request *)message;
    bool is_dropped = request->step == SRV_REFUSED;
    const struct srv_error *why = is_dropped ? NULL : prepare(request, n);
    if (is_dropped)
        request->received += n;
    if (is_dropped || why)
        return why;
    memcpy(request->body.data + request->body.size, bytes, n);
    count(request, n);
    return NULL;
}

char *srv_body_space(struct srv_message *message, size_t *n, const struct srv_error **why)
{
    struct srv_request *request = (struct srv_request *)message;
    const struct api_buffer *body = &request->body;
    if (request->step == SRV_REFUSED)
        return NULL;
    *why = prepare(request, *n < FIRST / 2 ? *n : FIRST / 2);
    if (*why)
        return NULL;
    size_t room = body->capacity - body->size - API_PADDING;
    *n = *n < room ? *n : room;
    return body->data + body->size;
}

void srv_body_filled(struct srv_message *message, size_t n)
{
    count((struct srv_request *)message, n);
}
