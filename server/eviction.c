#include "server/eviction.h"

#include "server/clock.h"
#include "server/deadlines.h"
#include "server/log.h"

/* SLOW_MS: lag, in ms, from which a client is slow while others need the memory that it holds. */
enum { SLOW_MS = 1000 };

static const struct srv_error freed_memory = {
    "out_of_memory", "the slowest request was ended for others (--max-memory); try again"};

/* Ends the slowest connection of a quota; false if none is slow, or if enough are about to end. */
static bool evict_slowest(enum srv_quota quota)
{
    struct srv_connection *slowest = NULL;
    unsigned long long now = srv_now_ms(), max = 0;
    for (struct srv_connection *c = srv_connections_lock(); c; c = c->next) {
        unsigned long long lag =
            c->quota == quota && !atomic_load(&c->ending) ? srv_lag(c, now) : 0;
        if (lag > max) {
            max = lag;
            slowest = c;
        }
    }
    bool made = slowest && srv_connection_make_way(slowest);
    srv_connections_unlock();
    return made;
}

bool srv_evict_for_connection(enum srv_quota quota, size_t limit, bool to_wait)
{
    while (!srv_connections_admit(quota, limit))
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

/* Requests that may end for another, each kind with those before it: bodies of more than a small block; all
 * bodies, whose memory is free at once; and responses, whose memory is free once their threads have noticed. */
enum { LARGE_BODIES, BODIES, ALL, KINDS };

/* candidates: what the slow requests of a kind hold together, in bytes, and the costliest of them. */
struct candidates {
    size_t held;
    double cost;
    struct srv_connection *costliest;
};

static int kind_of(const struct srv_connection *c)
{
    if (atomic_load(&c->phase) != SRV_BODY)
        return ALL;
    return atomic_load(&c->held) > API_SMALL ? LARGE_BODIES : BODIES;
}

static void find_candidates(struct srv_connection *first, const struct srv_connection *asking,
                            struct candidates found[KINDS])
{
    unsigned long long now = srv_now_ms();
    for (struct srv_connection *c = first; c; c = c->next) {
        double cost = c == asking ? 0 : cost_of(c, now);
        for (int kind = cost > 0 ? kind_of(c) : KINDS; kind < KINDS; kind++) {
            found[kind].held += atomic_load(&c->held);
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
    find_candidates(srv_connections_lock(), asking, found);
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
    srv_connections_unlock();
    return is_free;
}
