#include "server/connection/eviction.h"

#include "api/text/clock.h"
#include "server/connection/deadlines.h"
#include "server/telemetry/log.h"

/* SLOW_MS: lag, in ms, from which a client is slow while others need the memory that it holds. */
enum { SLOW_MS = 1000 };

static const struct srv_error evicted = {
    "too_many_connections", "the slowest connection was closed for a new one; try again"};
static const struct srv_error freed_memory = {
    "out_of_memory", "the slowest request was ended for others (--max-memory); try again"};

/* Ends the slowest connection of a quota; false if none is slow, or if enough are about to end. */
static bool evict_slowest(enum srv_quota quota)
{
    struct srv_connection *slowest = NULL;
    unsigned long long now = api_now_ms(), max = 0;
    size_t i = 0;
    srv_watcher_lock();
    for (struct srv_connection *c; (c = srv_connection_next(&i));) {
        unsigned long long lag =
            c->quota == quota && !atomic_load(&c->ending) ? srv_lag(c, now) : 0;
        if (lag > max) {
            max = lag;
            slowest = c;
        }
    }
    bool ends = slowest && srv_quota_make_room(quota);
    if (ends) {
        slowest->makes_room = true;
        srv_connection_end(slowest, &evicted);
    }
    srv_watcher_unlock();
    return ends;
}

bool srv_evict_for_connection(enum srv_quota quota, size_t limit, bool to_wait)
{
    while (!srv_quota_admit(quota, limit))
        if (to_wait || !evict_slowest(quota))
            return false;
    return true;
}

/* Cost of a slow request to others: the memory that it holds times its lag. 0 if it is not slow. */
static double cost_of(const struct srv_connection *c, unsigned long long now)
{
    enum srv_phase phase = atomic_load(&c->phase);
    unsigned long long lag = phase == SRV_REPLY  ? srv_lag(c, now)
                             : phase == SRV_BODY ? srv_body_lag(c, now)
                                                 : 0;
    if (atomic_load(&c->ending) || lag <= SLOW_MS)
        return 0;
    return (double)atomic_load(&c->held) * (double)lag;
}

/* Which requests may end so that another can be served: first bodies, whose memory is free at once; then also
 * responses, whose memory is free once their threads have noticed. */
enum { BODIES, ALL, KINDS };

/* candidates: what the slow requests of a kind hold together, in bytes, and the costliest of them. */
struct candidates {
    size_t held;
    double cost;
    struct srv_connection *costliest;
};

/* A request that holds little does not end where more than a small block is missing. */
static void find_candidates(const struct srv_connection *asking, size_t missing,
                            struct candidates found[KINDS])
{
    unsigned long long now = api_now_ms();
    size_t min_held = missing > API_SMALL ? API_SMALL : 0, i = 0;
    for (struct srv_connection *c; (c = srv_connection_next(&i));) {
        size_t held = atomic_load(&c->held);
        double cost = c == asking || held <= min_held ? 0 : cost_of(c, now);
        int kind = atomic_load(&c->phase) == SRV_BODY ? BODIES : ALL;
        for (; cost > 0 && kind < KINDS; kind++) {
            found[kind].held += held;
            if (cost > found[kind].cost) {
                found[kind].cost = cost;
                found[kind].costliest = c;
            }
        }
    }
}

bool srv_evict_for_memory(const struct srv_connection *asking, size_t missing)
{
    struct candidates found[KINDS] = {0};
    int kind = 0;
    bool is_free = false;
    srv_watcher_lock();
    find_candidates(asking, missing, found);
    while (kind < KINDS && found[kind].held < missing)
        kind++;
    struct srv_connection *ended = kind < KINDS ? found[kind].costliest : NULL;
    if (ended) {
        srv_log(SRV_LOG_WARNING,
                "memory is short (--max-memory): ended the slowest request that holds the most, "
                "%zu bytes",
                atomic_load(&ended->held));
        srv_connection_end(ended, &freed_memory);
        is_free = srv_connection_take_body(ended);
    }
    srv_watcher_unlock();
    return is_free;
}
