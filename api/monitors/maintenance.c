#include "api/monitors/maintenance.h"

#include "api/monitors/silence.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/group_rows.h"
#include "api/monitors/state/server_counts.h"

/* MAX_KEYS: idempotency keys that are kept for a day. MAX_DUE: monitors whose windows one
 * transaction closes. */
enum { MAX_KEYS = 1000000, MAX_DUE = 100 };

/* True once a minute, and after the clock has gone back. */
static bool keys_are_due(const struct api_monitors *monitors, int64_t now)
{
    return now >= monitors->keys_pruned + API_MINUTE_US || now < monitors->keys_pruned ||
           monitors->keys > MAX_KEYS;
}

static bool prune_keys(struct api_monitors *monitors)
{
    int64_t keys = 0;
    if (!keys_are_due(monitors, monitors->now))
        return true;
    if (!api_store_run(monitors->store, API_SQL_KEYS_PRUNE, API_ROW(monitors->now - API_DAY_US)) ||
        !api_store_number(monitors->store, API_SQL_KEYS_COUNT, NULL, &keys))
        return false;
    if (keys > MAX_KEYS &&
        !api_store_run(monitors->store, API_SQL_KEYS_TRIM, API_ROW(keys - MAX_KEYS)))
        return false;
    monitors->keys = keys > MAX_KEYS ? MAX_KEYS : keys;
    monitors->keys_pruned = monitors->now;
    return true;
}

/* Reads what other servers have observed, before a monitor is reported as stale: others may have observed it. */
static bool refresh_before_reporting(struct api_monitors *monitors)
{
    if (!api_store_is_shared(monitors->store) || !api_silence_is_due(monitors))
        return true;
    monitors->next_refresh = 0;
    return api_server_counts_refresh(monitors);
}

/* Writes a page of the store and restores it. It changes the value, because SQLite writes no page for a row that is
 * set to the value it has. */
static bool probe(struct api_monitors *monitors)
{
    return api_store_run(monitors->store, API_SQL_PROBE, API_ROW(1)) &&
           api_store_run(monitors->store, API_SQL_PROBE, API_ROW(-1));
}

/* True if the last observation of a monitor came when the clock was ahead by more than servers' clocks differ. */
static bool was_seen_ahead(const struct api_monitor *monitor, int64_t now)
{
    return monitor->status.last_observation > now + API_MINUTE_US;
}

/* Has silence count from now on. */
static bool see_now(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    if (pending)
        api_monitor_see(monitor, &pending->status, monitors->now, monitors->now);
    return pending;
}

bool api_maintain(struct api_monitors *monitors)
{
    const struct api_registry *registry = &monitors->registry;
    size_t due = 0;
    if ((!atomic_load(&monitors->stored) && !probe(monitors)) ||
        !refresh_before_reporting(monitors))
        return false;
    for (size_t i = 0; i < registry->n && due < MAX_DUE; i++) {
        struct api_monitor *monitor = registry->monitors[i];
        bool closes = monitor->status.next_close <= monitors->now,
             is_ahead = was_seen_ahead(monitor, monitors->now);
        if ((closes && !api_close_open(monitors, monitor, true)) ||
            (is_ahead && !see_now(monitors, monitor)))
            return false;
        due += closes || is_ahead;
    }
    return api_mutes_end(monitors) && api_silence_watch(monitors) && prune_keys(monitors) &&
           api_gc(monitors);
}

bool api_maintenance_is_due(struct api_monitors *monitors)
{
    const struct api_registry *registry = &monitors->registry;
    int64_t now = api_now();
    bool gc_unfinished = monitors->n_tombstones > 0, is_ahead = false;
    monitors->next_close = INT64_MAX;
    for (size_t i = 0; i < registry->n; i++) {
        const struct api_monitor *monitor = registry->monitors[i];
        gc_unfinished |= monitor->may_have_expired;
        is_ahead |= was_seen_ahead(monitor, now);
        if (monitor->status.next_close < monitors->next_close)
            monitors->next_close = monitor->status.next_close;
    }
    return gc_unfinished || is_ahead || monitors->next_close <= now ||
           keys_are_due(monitors, now) || api_mutes_are_due(registry) ||
           api_silence_is_due(monitors);
}
