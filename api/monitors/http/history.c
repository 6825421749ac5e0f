/* GET of windows. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/request.h"
#include "api/monitors/rows/window_load.h"
#include "api/request/response.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct history {
    struct api_pagination page;
    bool more; /* windows follow this page */
    bool with_counts;
    int64_t revision; /* of the monitor */
    int64_t last[2];  /* start and id of the last window of the page before */
    struct result {
        struct api_snapshot *snapshot;
        struct api_unseen unseen;
    } * results;
    size_t n, reserved; /* results, and bytes of the budget for them */
};

static void drop_snapshots(struct api_exchange *x)
{
    struct history *h = x->state;
    for (size_t i = 0; i < h->n; i++) {
        api_snapshot_release(h->results[i].snapshot);
        api_buffer_free(&h->results[i].unseen.objects);
    }
    free(h->results);
    api_budget_release(x->service->budget, h->reserved);
    h->results = NULL;
    h->n = h->reserved = 0;
}

static void drop(struct api_exchange *x)
{
    struct history *h = x->state;
    drop_snapshots(x);
    api_pagination_free(&h->page);
}

/* ---- Windows */

/* MAX_PAGE_BINS: counts of a page of windows, which the thread reads in some 30 ms. No window has more than
 * MAX_BINS. */
enum { MAX_PAGE_BINS = 100000, MAX_BINS = API_MAX_BINS + KL_OUTER_BINS };

/* Adds the snapshot of a window, and the number of its bins to *n_bins: a former revision's may be more than the present
 * one's. */
static bool add_snapshot(struct api_exchange *x, struct api_monitors *monitors,
                         struct api_monitor *monitor, struct api_window *window, size_t *n_bins)
{
    struct history *h = x->state;
    struct result *result = &h->results[h->n];
    struct api_snapshot *snapshot = result->snapshot = api_snapshot_of(monitors, monitor, window);
    if (!snapshot)
        return false;
    result->unseen.objects.budget = monitors->budget;
    h->n++;
    size_t size = sizeof *snapshot + snapshot->config->bins.n_bins * 2 * sizeof(double);
    if (!api_budget_reserve(monitors->budget, size))
        return api_fail_oom(&x->problem);
    h->reserved += size;
    x->cost_ns += api_config_result_ns(snapshot->config);
    *n_bins += snapshot->config->bins.n_bins;
    return api_unseen_read(monitors->store, monitor->id, snapshot, &result->unseen);
}

/* Makes a snapshot of each window of a list, up to the page's limit and MAX_PAGE_BINS. */
static bool snapshot_all(struct api_exchange *x, struct api_monitors *monitors,
                         struct api_monitor *monitor, struct api_window_list *list)
{
    struct history *h = x->state;
    size_t n_bins = 0;
    drop_snapshots(x);
    x->cost_ns = 0;
    h->results = calloc(list->n + 1, sizeof *h->results);
    h->revision = monitor->revision;
    if (!h->results)
        return api_transaction_fail_oom(monitors);
    while (h->n < list->n && h->n < h->page.limit && n_bins + MAX_BINS <= MAX_PAGE_BINS)
        if (!add_snapshot(x, monitors, monitor, &list->windows[h->n], &n_bins))
            return false;
    h->more = h->n < list->n;
    return true;
}

static bool read_windows(struct api_exchange *x, struct api_monitors *monitors)
{
    const struct history *h = x->state;
    struct api_monitor *monitor = api_monitor_of(x, monitors);
    struct api_window_list list;
    if (!monitor)
        return false;
    const struct api_datum *of =
        API_ROW(monitor->id, h->page.from, h->page.to, h->last[0], h->last[1], h->page.limit + 1);
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS, of) &&
                snapshot_all(x, monitors, monitor, &list);
    api_window_list_free(&list);
    return good;
}

/* Reads the cursor, and whether results have the counts of the bins. */
static bool read_form(struct api_exchange *x)
{
    struct history *h = x->state;
    const char *counts = api_pagination_text(&h->page, "counts");
    h->last[0] = h->last[1] = INT64_MAX;
    h->with_counts = counts && strcmp(counts, "true") == 0;
    return api_pagination_cursor(&h->page, h->last, 2, &x->problem) &&
           (!counts || h->with_counts || strcmp(counts, "false") == 0 ||
            api_fail_at(&x->problem, API_QUERY, "counts", "option_invalid",
                        "counts must be true or false"));
}

static enum api_outcome parse_windows(struct api_exchange *x)
{
    const char *const *known = API_NAMES("from", "to", "limit", "cursor", "counts");
    struct history *h = x->state;
    return api_outcome_of(api_pagination_read(x, &h->page, known) && read_form(x));
}

/* Gives the cursor of the next page, of as many numbers as it returns: none if there is no such page. */
static size_t find_next(const struct history *h, int64_t cursor[2])
{
    if (!h->more || h->n == 0)
        return 0;
    cursor[0] = h->results[h->n - 1].snapshot->window.start;
    cursor[1] = h->results[h->n - 1].snapshot->window.id;
    return 2;
}

/* Writes the counts of a window; null for one of another revision, whose bins are others. */
static void write_counts(const struct history *h, const struct api_snapshot *snapshot,
                         struct api_buffer *out)
{
    api_append_text(out, ",\"counts\":");
    if (snapshot->window.revision == h->revision)
        api_write_numbers(out, snapshot->counts, snapshot->config->bins.n_bins);
    else
        api_append_text(out, "null");
}

static bool write_windows(struct api_exchange *x)
{
    const struct history *h = x->state;
    struct api_buffer *out = &x->response.body;
    int64_t cursor[2];
    api_begin_json(x);
    api_append_text(out, "{\"windows\":[");
    for (size_t i = 0; i < h->n; i++) {
        api_append_text(out, i ? ",{" : "{");
        api_snapshot_write(h->results[i].snapshot, false, &h->results[i].unseen, out);
        if (h->with_counts)
            write_counts(h, h->results[i].snapshot, out);
        api_append(out, "}", 1);
    }
    api_pagination_end(cursor, find_next(h, cursor), out);
    return true;
}

#define READS_WINDOWS                                                                              \
    .place = API_STORE_READS, .state = sizeof(struct history), .check = api_check_names,           \
    .drop = drop
const struct api_steps api_windows = {
    .parse = parse_windows, .read_back = read_windows, .write = write_windows, READS_WINDOWS};

/* ---- One window */

static bool read_window(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_monitor *monitor = api_monitor_of(x, monitors);
    struct api_window_list list;
    const char *which = x->captures.value[2];
    int64_t id = 0;
    if (!monitor)
        return false;
    api_pagination_numbers(which, &id, 1);
    bool latest = strcmp(which, "latest") == 0, current = strcmp(which, "current") == 0;
    const struct api_datum *of = API_ROW(monitor->id, latest || current ? monitor->revision : id);
    bool good = api_window_list_run(&list, monitors->store,
                                    latest    ? API_SQL_WINDOW_LATEST
                                    : current ? API_SQL_WINDOW_OPEN
                                              : API_SQL_WINDOW,
                                    of) &&
                snapshot_all(x, monitors, monitor, &list);
    if (good && list.n == 0)
        good =
            api_fail(&x->problem, "window_not_found", "there is no %swindow%s%.40s of '%.128s'",
                     latest    ? "closed "
                     : current ? "open "
                               : "",
                     latest || current ? "" : " ", latest || current ? "" : which, monitor->name);
    api_window_list_free(&list);
    return good;
}

static enum api_outcome parse_window(struct api_exchange *x)
{
    struct history *h = x->state;
    const char *which = x->captures.value[2];
    int64_t id;
    if (!api_pagination_numbers(which, &id, 1) && strcmp(which, "latest") != 0 &&
        strcmp(which, "current") != 0)
        api_fail(&x->problem, "window_not_found",
                 "there is no window '%.40s'; use latest, current or an id", which);
    return api_outcome_of(!x->problem.code && api_pagination_read(x, &h->page, API_NAMES(NULL)));
}

static bool write_window(struct api_exchange *x)
{
    const struct history *h = x->state;
    struct api_buffer *out = api_begin_json(x);
    api_write_names(out, api_group_of(x), api_name_of(x));
    api_append(out, ",", 1);
    api_snapshot_write(h->results->snapshot, true, &h->results->unseen, out);
    api_append_text(out, "}\n");
    return true;
}

const struct api_steps api_window = {
    .parse = parse_window, .read_back = read_window, .write = write_window, READS_WINDOWS};
