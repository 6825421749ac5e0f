#include "server/connection/quotas.h"

#include "server/connection/watcher.h"

/* The watcher's lock is theirs. */
static struct {
    size_t open, ending; /* ending: of the open ones, those that make room */
} counts[SRV_QUOTAS];

bool srv_quota_admit(enum srv_quota quota, size_t limit)
{
    srv_watcher_lock();
    bool admitted = counts[quota].open - counts[quota].ending < limit;
    counts[quota].open += admitted;
    srv_watcher_unlock();
    return admitted;
}

bool srv_quota_make_room(enum srv_quota quota)
{
    bool can = counts[quota].ending < SRV_ENDING;
    counts[quota].ending += can;
    return can;
}

void srv_quota_leave(enum srv_quota quota, bool makes_room)
{
    counts[quota].open--;
    counts[quota].ending -= makes_room;
}

size_t srv_connections_open(void)
{
    size_t n = 0;
    srv_watcher_lock();
    for (size_t i = 0; i < SRV_QUOTAS; i++)
        n += counts[i].open;
    srv_watcher_unlock();
    return n;
}
