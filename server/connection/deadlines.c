#include "server/connection/deadlines.h"

/* Bounds, in ms. HEADER_MS: a header in all, from its first byte or from the connection's begin.
 * ADMITTED_MS: as long is a connection safe from others that want to replace it. REPLY_RATE: the minimal rate of a
 * response, in bytes per ms, after its grace: 4 KiB/s. */
enum {
    HEADER_MS = 10000,
    RESERVED_HEADER_MS = 1000,
    BODY_GRACE_MS = 10000,
    REPLY_MS = 30000,
    ADMITTED_MS = 500,
    REPLY_RATE = 4,
};

static unsigned long long idle_ms = 75000, request_ms;
static unsigned long long header_ms = HEADER_MS, grace_ms = BODY_GRACE_MS, response_ms = REPLY_MS;

static const struct srv_error
    late_header = {"request_timeout", "the header took longer than 10 s, or than --timeout"},
    idle = {"idle", "no request arrived"},
    late_body = {"request_timeout",
                 "the body arrived at less than 64 KiB/s after 10 s, or after --timeout"},
    late_request = {"request_timeout", "the request took longer than --request-timeout"},
    late_work = {"compute_timeout", "the response took longer than --request-timeout"},
    late_reader = {"reply_timeout", "the client did not read its response in time"};

static unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

void srv_deadlines_set(size_t timeout, size_t request_timeout)
{
    idle_ms = timeout * 1000ull;
    header_ms = min(idle_ms, HEADER_MS);
    grace_ms = min(idle_ms, BODY_GRACE_MS);
    response_ms = min(idle_ms, REPLY_MS);
    request_ms = request_timeout * 1000ull;
}

size_t srv_idle_seconds(void) { return idle_ms / 1000; }

/* Time that a response has made no progress, or less than the minimal rate allows, in ms. */
static unsigned long long response_lag(const struct srv_connection *c, unsigned long long now)
{
    unsigned long long since = atomic_load(&c->since), stalled = 0;
    unsigned long long acked = c->acked > c->first_acked ? c->acked - c->first_acked : 0;
    unsigned long long taken = acked / REPLY_RATE;
    if (c->acked_at >= since && now > c->acked_at)
        stalled = now - c->acked_at;
    return now > since + taken && now - since - taken > stalled ? now - since - taken : stalled;
}

const struct srv_error *srv_overdue(const struct srv_connection *c, unsigned long long now)
{
    /* The phase is written after its start: a change meanwhile pairs the old phase with the later
     * time, which ends no connection early. */
    enum srv_phase phase = atomic_load(&c->phase);
    unsigned long long since = atomic_load(&c->since), begun = atomic_load(&c->begun);
    unsigned long long time = now > since ? now - since : 0;
    bool too_long = request_ms && phase != SRV_IDLE && now > begun + request_ms;
    const struct srv_error *late = too_long ? &late_request : NULL;
    switch (phase) {
    case SRV_IDLE:
        return time > idle_ms ? &idle : NULL;
    case SRV_HEADER:
        return time > (c->quota == SRV_REGULAR ? header_ms : RESERVED_HEADER_MS) ? &late_header
                                                                                 : late;
    case SRV_BODY:
        return time > grace_ms + atomic_load(&c->received) / SRV_BODY_RATE ? &late_body : late;
    case SRV_WORK:
        return too_long ? &late_work : NULL;
    case SRV_REPLY:
        return response_lag(c, now) > response_ms || too_long ? &late_reader : NULL;
    }
    return NULL;
}

unsigned long long srv_body_lag(const struct srv_connection *c, unsigned long long now)
{
    unsigned long long since = atomic_load(&c->since), from = c->seen_at, late = c->body_lag;
    size_t received = atomic_load(&c->received), seen = c->seen;
    if (since > from) { /* it began after the last look */
        from = since;
        late = 0;
        seen = 0;
    }
    late += now > from ? now - from : 0;
    size_t earned = (received > seen ? received - seen : 0) / SRV_BODY_RATE;
    return late > earned ? late - earned : 0;
}

void srv_follow_body(struct srv_connection *c, unsigned long long now)
{
    c->body_lag = atomic_load(&c->phase) == SRV_BODY ? srv_body_lag(c, now) : 0;
    c->seen = atomic_load(&c->received);
    c->seen_at = now;
}

unsigned long long srv_lag(const struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    unsigned long long since = atomic_load(&c->since), late = now > since ? now - since : 0;
    if (phase == SRV_WORK)
        return 0;
    if (phase == SRV_BODY)
        late = srv_body_lag(c, now);
    if (phase == SRV_REPLY)
        late = response_lag(c, now);
    if (late < (c->quota == SRV_REGULAR ? ADMITTED_MS : ADMITTED_MS / 10))
        return 0;
    return phase == SRV_IDLE ? late / 8 : late; /* a client that keeps a connection is not slow */
}
