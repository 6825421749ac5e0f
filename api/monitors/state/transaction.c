#include "api/monitors/state/transaction.h"

#include "api/monitors/state/window_rows.h"
#include "api/store/counts.h"

#include <stdlib.h>
#include <string.h>

bool api_transaction_fail_oom(struct api_monitors *monitors)
{
    monitors->out_of_memory = true;
    return false;
}

/* ---- What other servers have counted */

struct renewed {
    struct api_pending_monitor *pending;
    struct api_snapshot *open; /* or NULL */
};

static void read_numbers(void *context, const struct api_datum *values)
{
    struct renewed *renewed = context;
    struct api_monitor_status *status = &renewed->pending->status;
    struct api_snapshot *open = renewed->open;
    status->observations = values[0].integer;
    status->last_observation = api_time_of(&values[1]);
    if (!open)
        return;
    open->window.start = values[2].integer;
    open->window.end = values[3].integer;
    open->window.n = api_datum_number(&values[4]);
    open->window.moments = (struct api_moments){.n = 0};
    api_moments_read(&values[5], &open->window.moments);
    memset(open->counts, 0, open->config->bins.n_bins * sizeof *open->counts);
    api_counts_add(values[6].text, values[6].size, open->counts, open->config->bins.n_bins);
}

/* Reads the numbers of a monitor, and those of its open window in memory, if they may be of an earlier epoch. */
static bool renew(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    struct api_monitor *monitor = pending->monitor;
    struct api_snapshot *known = monitor->open;
    if (monitor->epoch == monitors->epoch)
        return true;
    struct renewed renewed = {pending, known ? api_snapshot_copy(known) : NULL};
    if (known && !renewed.open)
        return api_transaction_fail_oom(monitors);
    api_snapshot_release(known);
    monitor->open = renewed.open;
    return api_store_read(monitors->store, API_SQL_NUMBERS,
                          API_ROW(renewed.open ? renewed.open->window.id : INT64_C(0), monitor->id),
                          read_numbers, &renewed);
}

/* ---- Pending monitors */

void api_pending_clear(struct api_pending_monitor *pending)
{
    for (struct api_dirty_window *t = pending->windows, *next; t; t = next) {
        next = t->next;
        api_snapshot_release(t->snapshot);
        free(t);
    }
    pending->windows = NULL;
    pending->last = &pending->windows;
}

static void free_pending(struct api_pending_monitor *pending)
{
    api_pending_clear(pending);
    api_pool_release(pending->pool);
    pending->monitor->pending = NULL;
    free(pending);
}

void api_pending_drop(struct api_monitors *monitors)
{
    struct api_pending_monitor *pending = monitors->staged;
    monitors->staged = pending->next;
    free_pending(pending);
}

struct api_pending_monitor *api_pending_of(struct api_monitors *monitors,
                                           struct api_monitor *monitor)
{
    struct api_pending_monitor *pending = monitor->pending;
    if (pending && monitors->trace && api_trace_is_set(monitors->trace))
        pending->trace = *monitors->trace;
    if (pending)
        return pending;
    pending = calloc(1, sizeof *pending);
    if (!pending) {
        api_transaction_fail_oom(monitors);
        return NULL;
    }
    *pending = (struct api_pending_monitor){.next = monitors->staged,
                                            .monitor = monitor,
                                            .status = monitor->status,
                                            .pool = api_pool_hold(monitor->pool)};
    pending->last = &pending->windows;
    if (monitors->trace)
        pending->trace = *monitors->trace;
    monitors->staged = monitor->pending = pending;
    return renew(monitors, pending) ? pending : NULL;
}

void api_pending_forget_pool(struct api_pending_monitor *pending, int64_t start)
{
    const struct api_pool *pool = pending->pool;
    if (!pool || (pool->n > 0 && pool->n == pool->max && start < pool->starts[pool->n - 1]))
        return;
    api_pool_release(pending->pool);
    pending->pool = NULL;
}

struct api_dirty_window *api_mark_dirty(struct api_monitors *monitors,
                                        struct api_pending_monitor *pending,
                                        struct api_snapshot *snapshot)
{
    struct api_dirty_window *dirty = snapshot ? calloc(1, sizeof *dirty) : NULL;
    if (snapshot && !dirty)
        api_transaction_fail_oom(monitors);
    if (!dirty) {
        api_snapshot_release(snapshot);
        return NULL;
    }
    dirty->snapshot = snapshot;
    *pending->last = dirty;
    pending->last = &dirty->next;
    return dirty;
}

/* ---- The size of the store */

/* Counts, for the budget, what a store in memory takes beyond OWN bytes; later, where requests have the
 * memory now. */
static void count_size(struct api_monitors *monitors, size_t size)
{
    enum { OWN = 1 << 20 };
    struct api_budget *budget = monitors->budget;
    size_t counted = monitors->counted, bytes = size > OWN ? size - OWN : 0;
    if (bytes < counted)
        api_budget_forget(budget, counted - bytes);
    if (bytes <= counted || api_budget_retain(budget, bytes - counted, true))
        monitors->counted = bytes;
    monitors->store_is_full =
        budget && budget->limit && atomic_load(&budget->retained) > budget->limit / 2;
}

bool api_note_size(struct api_monitors *monitors)
{
    int64_t bytes;
    if (!api_store_size(monitors->store, &bytes))
        return false;
    atomic_store(&monitors->size, bytes);
    if (api_store_is_in_memory(monitors->store))
        count_size(monitors, (size_t)bytes);
    return true;
}

bool api_check_store(const struct api_monitors *monitors, struct api_problem *problem)
{
    long long size = atomic_load(&monitors->size);
    if (monitors->store_is_full)
        return api_fail(problem, "store_full",
                        "the store in memory has %lld bytes; with the monitors it may have half of "
                        "--max-memory; delete monitors, or lower retention_days",
                        size);
    return monitors->max_store == 0 || size < monitors->max_store ||
           api_fail(problem, "store_full",
                    "the store has %lld bytes, and --max-store is %lld; delete monitors, or lower "
                    "retention_days",
                    size, (long long)monitors->max_store);
}

/* ---- Changes of this server */

int64_t api_change_of(struct api_monitors *monitors)
{
    if (!api_store_is_shared(monitors->store))
        return 0;
    monitors->changes = true;
    return monitors->change + 1;
}

bool api_change_store(struct api_monitors *monitors)
{
    return !monitors->changes || api_store_run(monitors->store, API_SQL_META_SET,
                                               API_ROW(monitors->change + 1, "change"));
}

void api_change_end(struct api_monitors *monitors, bool is_committed)
{
    monitors->change += monitors->changes && is_committed;
    monitors->changes = false;
}
