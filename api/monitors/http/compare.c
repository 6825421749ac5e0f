/* GET compare: closed windows of a period against those of another period, or against what the monitor compares with. */
#include "api/json/format.h"
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/request.h"
#include "api/monitors/rows/window_load.h"
#include "api/store/counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MAX_COUNTS: how many counts of windows are added up: the store's thread reads them in some 100 ms. */
enum { MAX_COUNTS = 250000 };

struct comparison {
    struct api_exchange *x;
    struct api_period period, against;
    bool has_against;
    struct api_snapshot *snapshot; /* of the sum */
    struct api_unseen unseen;
};

static const char *const period_names[] = {"from", "to"};
static const char *const against_names[] = {"against_from", "against_to"};

/* weighed: the windows of a comparison, each with what it is compared with, which weighs as the window does: see add_season
 * in api/monitors/model/pool.c. */
struct weighed {
    const struct api_snapshot *sum;
    double n, weight, mean,
        square; /* weight: sum of n^2 / N; mean, square: sums of n times those of references */
};

/* Adds a window: its counts, unless it has nothing to be compared with. */
static bool weigh(struct weighed *w, struct api_monitors *monitors, struct api_monitor *monitor,
                  const struct api_window *window)
{
    struct api_snapshot *one = api_snapshot_new(monitor->config);
    double n = 0, n_reference = 0;
    size_t n_bins = monitor->config->bins.n_bins;
    if (!one)
        return api_transaction_fail_oom(monitors);
    one->window.revision = monitor->revision;
    api_counts_add(window->counts, window->counts_size, one->counts, n_bins);
    bool good = api_snapshot_compare(monitors, monitor->id, api_position_of(window), one);
    for (size_t i = 0; good && i < n_bins; i++) {
        n += one->counts[i];
        n_reference += one->reference[i];
    }
    for (size_t i = 0; n_reference > 0 && i < n_bins; i++) {
        w->sum->counts[i] += one->counts[i];
        w->sum->reference[i] += n * one->reference[i] / n_reference;
    }
    if (n_reference > 0) {
        const struct api_spread *spread = &one->reference_spread;
        w->n += n;
        w->weight += n * n / n_reference;
        w->mean += n * spread->mean;
        w->square += n * (spread->sd * spread->sd + spread->mean * spread->mean);
    }
    api_snapshot_release(one);
    return good;
}

/* Adds up the windows and what they are compared with. Those that have nothing to be compared with are left out, unless
 * none has: beside the reference of others they would be drift. */
static bool add_season(struct comparison *c, struct api_monitors *monitors,
                       struct api_monitor *monitor)
{
    struct weighed w = {.sum = c->snapshot};
    struct api_moments moments = {.n = 0};
    size_t n_bins = monitor->config->bins.n_bins, size = n_bins * sizeof(double);
    const struct api_datum *of = API_ROW(monitor->id, monitor->revision, c->period.first, INT64_MIN,
                                         c->period.newest, c->period.windows);
    double *all = malloc(size);
    struct api_window_list list = {.n = 0};
    if (!all)
        return api_transaction_fail_oom(monitors);
    memcpy(all, c->snapshot->counts, size);
    memset(c->snapshot->counts, 0, size);
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_NEXT, of);
    for (size_t i = 0; good && i < list.n; i++) {
        double n = w.n;
        good = weigh(&w, monitors, monitor, &list.windows[i]);
        if (w.n > n)
            api_moments_add(&moments, &list.windows[i].moments);
    }
    if (good && w.n > 0) {
        for (size_t i = 0; i < n_bins; i++)
            c->snapshot->reference[i] *= w.n / w.weight;
        c->snapshot->window.moments = moments;
        double mean = w.mean / w.n;
        c->snapshot->reference_spread =
            (struct api_spread){mean, sqrt(fmax(0, w.square / w.n - mean * mean))};
    } else if (good) {
        memcpy(c->snapshot->counts, all, size);
    }
    api_window_list_free(&list);
    free(all);
    return good;
}

/* Sets what the sum is compared with. */
static bool set_reference(struct comparison *c, struct api_monitors *monitors,
                          struct api_monitor *monitor, int64_t max)
{
    const struct api_position first = {c->period.first, INT64_MIN};
    bool is_season = monitor->config->settings.period > 0;
    if (!c->has_against && !is_season)
        return api_snapshot_compare(monitors, monitor->id, first, c->snapshot);
    struct api_moments moments = {.n = 0};
    c->snapshot->reference = calloc(monitor->config->bins.n_bins, sizeof *c->snapshot->reference);
    if (!c->snapshot->reference)
        return api_fail_oom(&c->x->problem);
    if (!c->has_against)
        return add_season(c, monitors, monitor);
    if (!api_period_add_up(monitors, monitor, against_names, max, &c->against,
                           c->snapshot->reference, &moments, &c->x->problem))
        return false;
    api_snapshot_set_spread(c->snapshot, &moments);
    return true;
}

static bool read_unseen(struct comparison *c, struct api_monitors *monitors,
                        const struct api_monitor *monitor)
{
    const struct api_datum *of =
        API_ROW(monitor->id, monitor->revision, c->period.from, c->period.to, API_UNSEEN_KEPT);
    bool good = !monitor->config->bins.labelled ||
                api_unseen_run(monitors->store, API_SQL_UNSEEN_BETWEEN, of, &c->unseen);
    c->snapshot->unseen = c->unseen.kept;
    return good;
}

static bool read_comparison(struct comparison *c, struct api_monitors *monitors)
{
    struct api_monitor *monitor = api_monitor_of(c->x, monitors);
    if (!monitor)
        return false;
    c->snapshot = api_snapshot_new(monitor->config);
    if (!c->snapshot)
        return api_fail_oom(&c->x->problem);
    const struct api_monitor_settings *settings = &monitor->config->settings;
    int64_t sums = c->has_against ? 2 : settings->period > 0 ? 1 + (int64_t)settings->previous : 1;
    int64_t max = MAX_COUNTS / (int64_t)monitor->config->bins.n_bins / sums;
    c->snapshot->window.revision = monitor->revision;
    c->snapshot->state = monitor->status.state;
    max = max > 1 ? max : 1;
    return api_period_add_up(monitors, monitor, period_names, max, &c->period, c->snapshot->counts,
                             &c->snapshot->window.moments, &c->x->problem) &&
           set_reference(c, monitors, monitor, max) && read_unseen(c, monitors, monitor);
}

/* ---- Request and response */

static bool read_query(struct comparison *c)
{
    struct api_page page;
    bool good = api_page_read(c->x, &page, API_NAMES("from", "to", "against_from", "against_to"));
    c->period = (struct api_period){.from = page.from, .to = page.to};
    c->against = (struct api_period){.from = INT64_MIN, .to = INT64_MAX};
    c->has_against =
        api_page_text(&page, against_names[0]) || api_page_text(&page, against_names[1]);
    good = good && api_page_time(&page, against_names[0], &c->against.from) &&
           api_page_time(&page, against_names[1], &c->against.to);
    api_page_free(&page);
    return good;
}

/* Writes the span of the windows, and their number, as members. */
static void write_period(const struct api_period *period, struct api_buffer *out)
{
    api_write_json(out, "'from':%jd,'to':%jd,'windows':%ld", period->first, period->end,
                   period->windows);
}

static void write_comparison(const struct comparison *c, struct api_buffer *out)
{
    api_write_names(out, api_group_of(c->x), api_name_of(c->x));
    api_append(out, ",", 1);
    write_period(&c->period, out);
    api_append_text(out, c->has_against ? ",\"against\":{" : ",\"against\":null,");
    if (c->has_against) {
        write_period(&c->against, out);
        api_append_text(out, "},");
    }
    api_snapshot_write(c->snapshot, true, &c->unseen, out);
    api_append_text(out, "}\n");
}

static bool compare(struct api_exchange *x, struct api_monitors *monitors)
{
    struct comparison c = {.x = x, .unseen.objects.budget = x->service->budget};
    bool good = read_query(&c) && read_comparison(&c, monitors);
    if (good)
        write_comparison(&c, &x->response.body);
    api_snapshot_release(c.snapshot);
    api_buffer_free(&c.unseen.objects);
    return good;
}

const struct api_steps api_compare = {
    .place = API_STORE_READS, .check = api_check_names, .handle = compare};
