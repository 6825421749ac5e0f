#include "server/request/request.h"

#include "api/memory/freelist.h"
#include "api/text/clock.h"
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

/* Called by the store's thread. */
static void resume(struct api_exchange *x)
{
    struct srv_request *request =
        (struct srv_request *)((char *)x - offsetof(struct srv_request, exchange));
    srv_connection_resume(request->entry);
}

struct srv_request *srv_request_new(const struct api_service *service, struct srv_connection *entry,
                                    const char *header, size_t size)
{
    enum { NULS = 3 };
    size_t room = 2 * size + NULS;
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
    request->references = 1;
    request->unread = -1;
    request->body.budget = service->budget;
    api_buffer_borrow(&request->exchange.response.body, request->small_response, SMALL_REPLY);
    request->start = api_seconds();
    srv_metrics_begin_request();
    return request;
}

void srv_request_release(void *argument)
{
    struct srv_request *request = argument;
    if (--request->references > 0)
        return;
    api_end(&request->exchange);
    api_buffer_free(&request->body);
    if (request->is_pooled)
        api_freelist_put(&request_pool, request);
    else
        free(request);
    srv_metrics_end_request();
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
