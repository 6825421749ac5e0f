#include "api/monitors/http/parse.h"

#include "api/monitors/rows/columns.h"
#include "api/monitors/rows/window_load.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/status.h"

#include <math.h>
#include <string.h>

struct idempotency_record {
    struct api_observations *o;
    bool found, same;
};

static void read_key(void *context, const struct api_datum *values)
{
    struct idempotency_record *kept = context;
    kept->found = true;
    kept->same = values[0].size == API_HASH && memcmp(values[0].text, kept->o->body, API_HASH) == 0;
    kept->o->pairs.size = 0;
    api_append(&kept->o->pairs, values[1].text, values[1].size);
}

/* True if the kept response is of a monitor that still exists. A newer monitor of the same name has not counted these
 * observations. */
static bool is_of_present_monitors(const struct api_observations *o)
{
    const int64_t *pairs = (const void *)o->pairs.data;
    const struct api_known_set *known = o->x->known;
    size_t n = o->pairs.size / (2 * sizeof *pairs);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < known->n; j++)
            if (pairs[2 * i] == known->monitors[j].id)
                return true;
    return false;
}

static bool check_idempotency(struct api_observations *o, struct api_monitors *monitors)
{
    struct idempotency_record kept = {.o = o};
    if (!o->x->job.key)
        return true;
    if (!api_store_read(monitors->store, API_SQL_KEY,
                        API_ROW(API_BYTES((const char *)o->key, API_HASH)), read_key, &kept))
        return false;
    o->replayed = kept.found && is_of_present_monitors(o);
    return !o->replayed || kept.same ||
           api_fail(&o->x->problem, "idempotency_key_reused",
                    "the Idempotency-Key was used with another body before");
}

/* Keeps the key with the numbers of the windows; of many, with those of the newest, and their counts by verdicts, as of
 * monitors with negative numbers. */
static bool store_idempotency(struct api_observations *o, struct api_monitors *monitors)
{
    o->pairs.size = 0;
    for (size_t i = 0; i < o->n; i++) {
        const int64_t pair[] = {o->observed[i].known->id, o->observed[i].window};
        api_append(&o->pairs, pair, sizeof pair);
    }
    for (size_t i = 0; i < API_VERDICTS && o->is_timed; i++) {
        const int64_t pair[] = {-1 - (int64_t)i, (int64_t)o->verdicts[i]};
        api_append(&o->pairs, pair, sizeof pair);
    }
    if (o->pairs.failed)
        return api_transaction_fail_oom(monitors);
    return api_store_run(monitors->store, API_SQL_KEY_PUT,
                         API_ROW(API_BYTES((const char *)o->key, API_HASH),
                                 API_BYTES((const char *)o->body, API_HASH), monitors->now,
                                 API_BYTES(o->pairs.data, o->pairs.size)));
}

bool api_observations_touch(struct api_observations *o, struct api_monitors *monitors,
                            bool *are_same)
{
    *are_same = true;
    for (size_t i = 0; i < o->n; i++) {
        struct api_observed *observed = &o->observed[i];
        const struct api_known *known = observed->known;
        if (!api_touch(monitors, known->id, known, &observed->monitor))
            return false;
        if (observed->monitor && observed->monitor->revision != known->revision)
            observed->monitor = NULL;
        *are_same &= observed->monitor != NULL;
    }
    return true;
}

/* Fails with timestamp_invalid if observations are older than a monitor keeps its windows. */
static bool check_age(struct api_observations *o, struct api_monitors *monitors,
                      struct api_observed *observed)
{
    const struct api_monitor *monitor = observed->monitor;
    const struct api_monitor_settings *settings = &monitor->config->settings;
    int64_t newest, time = api_observed_first(o, observed),
                    end = api_window_span(settings, time).end;
    observed->is_window_ahead = api_end_is_ahead(monitors, monitor, monitor->status.newest_end);
    if (!api_status_newest_end(monitors, monitor, &newest))
        return false;
    char text[API_TIME_TEXT], last[API_TIME_TEXT];
    return newest == API_NO_TIME ||
           (double)(newest - end) <= settings->retention_days * API_DAY_US ||
           api_fail(&o->x->problem, "timestamp_invalid",
                    "timestamp, %s, is more than retention_days, %g, before the newest window of "
                    "'%.128s', which ends at %s",
                    api_time_text(time, text), settings->retention_days, monitor->name,
                    api_time_text(newest, last));
}

/* max_observations: the number of values that a monitor may count: up to it every sum of counts is exact. */
static const double max_observations = 0x1p53;

static bool check_total(struct api_observations *o, const struct api_observed *observed)
{
    const struct api_monitor *monitor = observed->monitor;
    double total = (double)monitor->status.observations;
    return total + (double)api_observed_count(observed) <= max_observations ||
           api_fail(&o->x->problem, "counts_invalid",
                    "the monitor '%.128s' would have counted more than 2^53 values", monitor->name);
}

/* Earlier windows that those of a column are compared with, and for late ones the windows of pools; as many of 20 bins as take the
 * same time. */
static double reads_of(const struct api_observations *o, const struct api_observed *observed)
{
    const struct api_monitor *monitor = observed->monitor;
    const struct api_monitor_settings *settings = &monitor->config->settings;
    double n = (double)api_observed_windows(observed), previous = settings->previous;
    double before = (double)monitor->status.last_window; /* at most */
    double growing = fmin(n, fmax(0, previous - before));
    double reads = growing * before + growing * (growing - 1) / 2 + (n - growing) * previous;
    if (api_settings_pool(settings) > 1 && settings->window == API_SECONDS) {
        double late_us =
            (double)monitor->status.last.start - (double)api_observed_first(o, observed);
        double late = fmin(n, fmax(0, late_us / (settings->window_size * 1e6)));
        reads += 2 * late * (double)api_settings_pool(settings);
    }
    return reads * (1 + (double)monitor->config->bins.n_bins / 1000);
}

/* MAX_READS takes some three seconds, for which others wait for the store. */
bool api_check_reads(struct api_observations *o)
{
    enum { MAX_READS = 2000000 };
    o->reads = o->reads_before;
    for (size_t i = 0; i < o->n; i++)
        o->reads += reads_of(o, &o->observed[i]);
    return o->reads <= MAX_READS ||
           api_fail(
               &o->x->problem, "too_many_columns",
               "some %.0f former windows are to be read for comparison, and a request may have "
               "%d; send fewer columns%s at once",
               o->reads, MAX_READS, o->is_timed ? ", or a shorter time," : "");
}

static bool observe(const struct api_observations *o, struct api_monitors *monitors,
                    struct api_observed *observed)
{
    struct api_part *part = observed->counting.parts;
    if (!api_observe(monitors, observed->monitor, &part->tally, o->time, &observed->dirty))
        return false;
    observed->window = observed->dirty->snapshot->window.id;
    return api_unseen_store(monitors->store, observed->known->id, observed->window, &part->unseen);
}

static bool check_all(struct api_observations *o, struct api_monitors *monitors)
{
    if (!api_check_reads(o))
        return false;
    for (size_t i = 0; i < o->n; i++)
        if (!check_age(o, monitors, &o->observed[i]) || !check_total(o, &o->observed[i]))
            return false;
    return true;
}

static bool store(struct api_observations *o, struct api_monitors *monitors)
{
    if (o->is_timed && !api_timed_store(o, monitors))
        return false;
    for (size_t i = 0; i < o->n && !o->is_timed; i++)
        if (!observe(o, monitors, &o->observed[i]))
            return false;
    return api_count_missed(o, monitors) &&
           (api_name_of(o->x) || api_columns_note(monitors, api_group_of(o->x), &o->columns)) &&
           (!o->x->job.key || store_idempotency(o, monitors));
}

enum api_outcome api_apply_run(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_observations *o = x->state;
    bool are_same;
    o->replayed = false;
    if (!api_observations_touch(o, monitors, &are_same) || !check_idempotency(o, monitors))
        return API_FAILED;
    if (o->replayed)
        return API_DONE;
    if (!are_same)
        return API_PARSE_AGAIN;
    if (!api_check_store(monitors, &x->problem))
        return API_FAILED;
    return api_outcome_of(check_all(o, monitors) && store(o, monitors));
}

/* Reads the present window of a repeated request: the one that its observations went to when it came first. */
static bool read_again(struct api_observations *o, struct api_monitors *monitors,
                       struct api_observed *observed, const int64_t *pair)
{
    struct api_monitor *monitor;
    if (!api_touch(monitors, pair[0], observed->known, &monitor))
        return false;
    if (!monitor)
        return true;
    bool good = api_snapshot_read(monitors, monitor, API_SQL_WINDOW, API_ROW(pair[0], pair[1]),
                                  &observed->snapshot);
    (void)o;
    return good && (!observed->snapshot || api_unseen_read(monitors->store, pair[0],
                                                           observed->snapshot, &observed->unseen));
}

static bool read_back_replay(struct api_observations *o, struct api_monitors *monitors)
{
    const int64_t *pairs = (const int64_t *)o->pairs.data;
    size_t n = o->pairs.size / (2 * sizeof *pairs);
    for (size_t j = 0; j < n; j++)
        if (pairs[2 * j] < 0 && pairs[2 * j] >= -API_VERDICTS)
            o->verdicts[-1 - pairs[2 * j]] = (size_t)pairs[2 * j + 1];
    for (size_t i = 0; i < o->n; i++) {
        api_snapshot_release(o->observed[i].snapshot);
        o->observed[i].snapshot = NULL;
        for (size_t j = 0; j < n; j++)
            if (pairs[2 * j] == o->observed[i].known->id &&
                !read_again(o, monitors, &o->observed[i], &pairs[2 * j]))
                return false;
    }
    return true;
}

bool api_apply_read_back(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_observations *o = x->state;
    if (o->replayed)
        return read_back_replay(o, monitors);
    for (size_t i = 0; i < o->n; i++) {
        if (!o->is_timed) {
            api_snapshot_release(o->observed[i].snapshot);
            o->observed[i].snapshot = o->observed[i].dirty->snapshot;
            atomic_fetch_add(&o->observed[i].snapshot->refcount, 1);
        }
        if (o->observed[i].snapshot &&
            !api_unseen_read(monitors->store, o->observed[i].known->id, o->observed[i].snapshot,
                             &o->observed[i].unseen))
            return false;
    }
    return true;
}
