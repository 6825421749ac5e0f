#include "api/monitors/state/server_counts.h"

#include "api/monitors/state/group_rows.h"
#include "api/monitors/state/window_rows.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rows */

/* sum: of rows of a window; `server` is the one whose row counts, or 0 for all. */
struct sum {
    int64_t server, at;
    double n, *counts;
    struct api_moments moments;
    size_t n_bins;
    bool is_there;
};

static void add_row(void *context, const struct api_datum *values)
{
    struct sum *sum = context;
    double count;
    if ((sum->server != 0 && values[0].integer != sum->server) ||
        values[3].size != sum->n_bins * sizeof count)
        return;
    for (size_t i = 0; i < sum->n_bins; i++) {
        memcpy(&count, values[3].text + i * sizeof count, sizeof count);
        sum->counts[i] += count;
    }
    api_moments_read(&values[4], &sum->moments);
    sum->n += (double)values[1].integer;
    sum->at = values[2].integer > sum->at ? values[2].integer : sum->at;
    sum->is_there = true;
}

static bool add_rows(struct api_monitors *monitors, enum api_statement statement, int64_t monitor,
                     int64_t window, struct sum *sum)
{
    sum->at = API_NO_TIME;
    return api_store_read(monitors->store, statement, API_ROW(monitor, window), add_row, sum);
}

/* ---- The row of this server */

bool api_server_number(struct api_monitors *monitors)
{
    return monitors->server != 0 || api_store_number(monitors->store, API_SQL_META_NEXT,
                                                     API_ROW("server"), &monitors->server);
}

/* Sets the counts to those of this server's row, in memory or else in the store. */
static bool read_own(struct api_monitors *monitors, const struct api_monitor *monitor,
                     struct api_server_counts *counts, size_t n_bins)
{
    const struct api_server_counts *known = monitor->own;
    struct sum sum = {
        .server = monitors->server, .counts = counts->counts, .n_bins = n_bins, .n = 0};
    if (known && known->window == counts->window) {
        memcpy(counts, known, sizeof *counts + n_bins * sizeof *counts->counts);
        return true;
    }
    bool good = add_rows(monitors, API_SQL_SERVER_COUNTS, monitor->id, counts->window, &sum);
    counts->n = sum.n;
    counts->moments = sum.moments;
    return good;
}

static bool write_own(struct api_monitors *monitors, const struct api_pending_monitor *pending,
                      const struct api_server_counts *counts, size_t n_bins)
{
    const struct api_datum *row =
        API_ROW(pending->monitor->id, counts->window, monitors->server, API_INTEGER(counts->n),
                pending->status.last_observation,
                API_BYTES((const char *)counts->counts, n_bins * sizeof *counts->counts),
                api_moments_datum(&counts->moments));
    return api_store_run(monitors->store, API_SQL_SERVER_COUNTS_PUT, row);
}

bool api_server_counts_add(struct api_monitors *monitors, struct api_pending_monitor *pending,
                           const struct api_dirty_window *dirty)
{
    size_t n_bins = dirty->snapshot->config->bins.n_bins;
    struct api_server_counts *counts = calloc(1, sizeof *counts + n_bins * sizeof(double));
    if (!counts)
        return api_transaction_fail_oom(monitors);
    free(pending->own);
    pending->own = counts;
    counts->window = dirty->snapshot->window.id;
    if (!read_own(monitors, pending->monitor, counts, n_bins))
        return false;
    for (size_t i = 0; i < n_bins; i++) {
        counts->counts[i] += dirty->added[i];
        counts->n += dirty->added[i];
    }
    api_moments_add(&counts->moments, &dirty->moments);
    return write_own(monitors, pending, counts, n_bins);
}

/* ---- The rows of all servers */

bool api_server_counts_read(struct api_monitors *monitors, int64_t monitor,
                            struct api_snapshot *snapshot)
{
    struct sum sum = {.counts = snapshot->counts, .n_bins = snapshot->config->bins.n_bins};
    if (snapshot->window.closed || !api_store_is_shared(monitors->store))
        return true;
    bool good = add_rows(monitors, API_SQL_SERVER_COUNTS, monitor, snapshot->window.id, &sum);
    api_moments_add(&snapshot->window.moments, &sum.moments);
    snapshot->window.n = 0; /* read again: other servers may have added meanwhile */
    for (size_t i = 0; i < sum.n_bins; i++)
        snapshot->window.n += sum.counts[i];
    return good;
}

bool api_server_counts_take(struct api_monitors *monitors, struct api_pending_monitor *pending,
                            struct api_dirty_window *dirty)
{
    struct sum sum = {.n_bins = dirty->snapshot->config->bins.n_bins};
    if (!dirty->is_read || !api_store_is_shared(monitors->store))
        return true;
    if (!dirty->added)
        dirty->added = calloc(sum.n_bins, sizeof *dirty->added);
    if (!dirty->added)
        return api_transaction_fail_oom(monitors);
    sum.counts = dirty->added;
    bool good = add_rows(monitors, API_SQL_SERVER_COUNTS_TAKE, pending->monitor->id,
                         dirty->snapshot->window.id, &sum);
    pending->counted += (int64_t)sum.n;
    pending->has_taken |= sum.is_there;
    if (sum.at > pending->status.last_observation)
        api_monitor_see(pending->monitor, &pending->status, sum.at, monitors->now);
    return good;
}

bool api_server_counts_total(struct api_monitors *monitors, struct api_pending_monitor *pending)
{
    return !pending->has_taken ||
           api_store_number(monitors->store, API_SQL_OBSERVATIONS, API_ROW(pending->monitor->id),
                            &pending->status.observations);
}

/* ---- What other servers counted */

static void learn(struct api_registry *registry, struct api_monitor *monitor,
                  const struct api_datum *values)
{
    struct api_monitor_status *status = &monitor->status;
    if (status->observations == values[3].integer)
        return;
    pthread_rwlock_wrlock(&registry->lock);
    status->observations = values[3].integer;
    if (values[4].integer > status->last_observation)
        api_monitor_see(monitor, status, values[4].integer, api_now());
    pthread_rwlock_unlock(&registry->lock);
    api_snapshot_release(monitor->open);
    monitor->open = NULL;
}

static void learn_row(void *context, const struct api_datum *values)
{
    struct api_monitors *monitors = context;
    struct api_named of;
    if (!api_named_read(&of, values))
        return;
    struct api_monitor *monitor = api_registry_find(&monitors->registry, of.group, of.name);
    if (monitor && monitor->id == values[2].integer)
        learn(&monitors->registry, monitor, values);
}

/* REST: a reading of all rows that took some time is followed by so many times that time without one, up to 10 s. It
 * takes 38 ms for 10,000 monitors that three servers observe. */
bool api_server_counts_refresh(struct api_monitors *monitors)
{
    enum { REST = 20 };
    double start = api_seconds();
    if (start < monitors->next_refresh)
        return true;
    bool good = api_store_read(monitors->store, API_SQL_OBSERVATIONS_OF_OTHERS,
                               API_ROW(monitors->server), learn_row, monitors);
    double end = api_seconds(), rest_s = REST * (end - start);
    monitors->next_refresh = end + (rest_s < 10 ? rest_s : 10);
    return good;
}
