#include "api/monitors/state/outbox.h"

#include "api/monitors/model/segment.h"
#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/rows/window_rows.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* GROUPING: microseconds for which changes are collected. MAX_AGE: microseconds after which a change is given up.
 * LEASE: microseconds for which a server stays the sender; if it ends, the others wait for so long. */
#define GROUPING (INT64_C(5) * API_SECOND_US)
#define MAX_AGE API_DAY_US
#define LEASE API_MINUTE_US

/* MAX_CHANGES: of a message. */
enum { MAX_CHANGES = 10000 };

/* ---- In */

static bool is_news(const struct api_change *change)
{
    return change->from != change->to && change->to != API_INSUFFICIENT &&
           !(change->from == API_INSUFFICIENT && change->to == API_OK);
}

/* Gives the state that receivers know before a change. */
static int last_told(const struct api_monitor_status *status, const struct api_change *change)
{
    return status->silence == API_SILENT && change->to != API_STALE ? API_STALE : change->from;
}

/* Stores a change for each receiver that wants it. */
static bool store(struct api_monitors *monitors, const struct api_monitor *monitor,
                  const struct api_change *change)
{
    struct api_receivers *receivers = api_notifier_receivers(monitors->notifier);
    struct api_datum trace = api_datum_text(monitor->trace.text);
    bool good = true;
    if (!api_trace_is_set(&monitor->trace))
        trace.kind = API_SQL_NULL;
    for (size_t i = 0; good && i < receivers->n; i++) {
        const struct api_receiver *receiver = &receivers->list[i];
        if (!api_receiver_wants(receiver, monitor->group, change->from, change->to) ||
            !api_notifier_add_pending(monitors->notifier, receiver->name))
            continue;
        good = api_store_run(monitors->store, API_SQL_OUTBOX_PUT,
                             API_ROW(receiver->name, monitors->now, monitor->id, monitor->group,
                                     monitor->name, change->from, change->to, change->at,
                                     api_time_datum(change->since), change->kl, change->sentence,
                                     trace, api_time_datum(change->began)));
        monitors->has_news = true;
    }
    api_receivers_release(receivers);
    return good;
}

bool api_outbox_put(struct api_monitors *monitors, struct api_monitor *monitor,
                    const struct api_change *change)
{
    if (!monitors->notifier || !is_news(change))
        return true;
    if (!api_mutes_read(monitors, &monitors->mutes))
        return false;
    if (api_mutes_find(&monitors->mutes, monitor->group, monitor->name, monitors->now).until ==
        API_NO_TIME)
        return store(monitors, monitor, change);
    if (monitor->status.told == API_NONE_WITHHELD)
        monitor->status.told = last_told(&monitor->status, change);
    return true;
}

/* ---- Rows */

/* Adds a change, whose texts follow those of the changes before: `names` are group and name, `said` sentence and trace. */
static void add(struct api_outbox_job *job, const struct api_change *change,
                const struct api_datum *names, const struct api_datum *said)
{
    const struct api_datum *const texts[] = {&names[0], &names[1], &said[0], &said[1]};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        api_append(&job->texts, texts[i]->text, texts[i]->size);
        api_append(&job->texts, "", 1);
    }
    api_append(&job->rows, change, sizeof *change);
    job->n++;
}

/* Adds a change to another state: former versions have stored others, of mutes. */
static void add_row(void *context, const struct api_datum *values)
{
    int64_t from = values[4].integer, to = values[5].integer;
    bool is_known = from >= 0 && from < API_STATES && to >= 0 && to < API_STATES;
    const struct api_change change = {.monitor = values[1].integer,
                                      .from = is_known ? (int)from : API_OK,
                                      .to = is_known ? (int)to : API_OK,
                                      .queued = values[0].integer,
                                      .at = values[6].integer,
                                      .since = api_time_of(&values[7]),
                                      .began = api_time_of(&values[11]),
                                      .kl = api_datum_number(&values[8])};
    if (from != to)
        add(context, &change, values + 2, values + 9);
}

/* The text at *at, which becomes the next one. */
static const char *next_text(const char **at)
{
    const char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

const struct api_change *api_outbox_changes(struct api_outbox_job *job)
{
    struct api_change *changes = (void *)job->rows.data;
    const char *at = job->texts.data;
    for (size_t i = 0; i < job->n; i++) {
        changes[i].group = next_text(&at);
        changes[i].name = next_text(&at);
        changes[i].sentence = next_text(&at);
        api_trace_read(&changes[i].trace, next_text(&at));
    }
    return changes;
}

void api_outbox_job_free(struct api_outbox_job *job)
{
    api_buffer_free(&job->rows);
    api_buffer_free(&job->texts);
    job->n = 0;
}

/* ---- Out */

/* lease: who sends, and until when. */
struct lease {
    int64_t owner, until;
};

static void read_lease(void *context, const struct api_datum *values)
{
    struct lease *lease = context;
    static const char owner[] = "notify_owner";
    bool is_owner =
        values[0].size == sizeof owner - 1 && memcmp(values[0].text, owner, sizeof owner - 1) == 0;
    *(is_owner ? &lease->owner : &lease->until) = values[1].integer;
}

/* Makes this server the sender, or keeps it so; *ours is false if another server is. The lease is renewed when less
 * time is left than an attempt may take. */
static bool take_lease(struct api_monitors *monitors, const struct api_outbox_job *job, bool *ours)
{
    struct lease lease = {0};
    *ours = true;
    if (!api_store_is_shared(monitors->store))
        return true;
    if (!api_store_read(monitors->store, API_SQL_LEASE, NULL, read_lease, &lease))
        return false;
    int64_t left = lease.until - monitors->now;
    *ours = lease.owner == job->server || left <= 0 || left > 2 * LEASE;
    if (!*ours || (lease.owner == job->server && left > LEASE * 3 / 4))
        return true;
    return api_store_run(monitors->store, API_SQL_LEASE_SET,
                         API_ROW(job->server, monitors->now + LEASE));
}

/* Deletes what was delivered, and what is too old. */
static bool delete_old(struct api_monitors *monitors, struct api_outbox_job *job)
{
    return (job->delivered == 0 || api_store_run(monitors->store, API_SQL_OUTBOX_DELETE,
                                                 API_ROW(job->receiver->name, job->delivered))) &&
           api_store_read(monitors->store, API_SQL_OUTBOX_EXPIRE, API_ROW(monitors->now - MAX_AGE),
                          api_store_count_row, &job->expired);
}

/* first: the change that waits longest, and its message if it has one. */
struct first {
    bool is_there;
    int64_t queued, message;
    struct api_buffer group;
};

static void read_first(void *context, const struct api_datum *values)
{
    struct first *first = context;
    first->is_there = true;
    first->queued = values[0].integer;
    first->message = values[1].integer;
    api_append(&first->group, values[2].text, values[2].size);
}

/* A number that no other message ever has. */
static int64_t new_number(void)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)api_now() * UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(number >> 1 | 1);
}

/* Makes a message of the changes of the group that waits longest, with its segments, once its changes were collected for long enough. */
static bool make(struct api_monitors *monitors, struct api_outbox_job *job,
                 const struct first *first)
{
    int64_t age = monitors->now - first->queued;
    if (first->message) {
        job->number = first->message;
        return true;
    }
    if (age >= 0 && age < GROUPING) {
        job->wait = GROUPING - age;
        return true;
    }
    char group[API_MAX_NAME + 1], segments[API_MAX_NAME + 2];
    snprintf(group, sizeof group, "%.*s", (int)first->group.size, first->group.data);
    size_t parent = api_segment_parent(group);
    if (parent > 0)
        group[parent] = '\0';
    size_t n = api_segment_prefix(group, NULL, segments, sizeof segments);
    job->number = new_number();
    const struct api_datum *assign =
        API_ROW(job->number, job->receiver->name, group, n, segments, MAX_CHANGES);
    return api_store_run(monitors->store, API_SQL_OUTBOX_ASSIGN, assign);
}

/* Gives the next message, or when there may be one. */
static bool find_next(struct api_monitors *monitors, struct api_outbox_job *job)
{
    struct first first = {.queued = 0};
    bool good = api_store_read(monitors->store, API_SQL_OUTBOX_FIRST, API_ROW(job->receiver->name),
                               read_first, &first) &&
                (!first.is_there || make(monitors, job, &first));
    api_buffer_free(&first.group);
    return good && (!job->number ||
                    api_store_read(monitors->store, API_SQL_OUTBOX,
                                   API_ROW(job->receiver->name, job->number), add_row, job));
}

static void read_history(void *context, const struct api_datum *values)
{
    struct api_receiver_history *history = context;
    int64_t *const times[] = {&history->last_success, &history->last_failure,
                              &history->failing_since};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        *times[i] = api_time_of(&values[i]);
    snprintf(history->failure, sizeof history->failure, "%.*s", (int)values[3].size,
             values[3].text);
}

/* Writes how attempts at a receiver go if this server has made one; else reads it, as another server may have. */
static bool exchange_history(struct api_monitors *monitors, struct api_outbox_job *job)
{
    struct api_receiver_history *history = &job->history;
    const struct api_datum *row =
        API_ROW(job->receiver->name, api_time_datum(history->last_success),
                api_time_datum(history->last_failure), api_time_datum(history->failing_since),
                history->failure);
    return job->writes_history
               ? api_store_run(monitors->store, API_SQL_RECEIVER_PUT, row)
               : api_store_read(monitors->store, API_SQL_RECEIVER, row, read_history, history);
}

/* ---- What lasts */

static void add_lasting(struct api_outbox_job *job, const struct api_monitor *monitor, int state)
{
    const struct api_monitor_status *status = &monitor->status;
    bool is_stale = state == API_STALE;
    const struct api_change change = {.monitor = monitor->id,
                                      .from = state,
                                      .to = state,
                                      .at = is_stale ? status->last_observation
                                                     : status->severity_since,
                                      .since = is_stale ? status->last_observation : status->since,
                                      .began = is_stale ? API_NO_TIME : status->began,
                                      .kl = status->last.scores.drift.kl};
    if (job->n < MAX_CHANGES && api_receiver_wants(job->receiver, monitor->group, state, state))
        add(job, &change, API_ROW(monitor->group, monitor->name),
            API_ROW(is_stale ? "" : status->sentence, ""));
}

/* lasting: what is collected for a receiver. */
struct lasting {
    struct api_outbox_job *job;
    const struct api_monitors *monitors;
};

static void add_row_of_lasting(void *context, const struct api_datum *values)
{
    const struct lasting *lasting = context;
    const struct api_monitors *monitors = lasting->monitors;
    struct api_monitor monitor;
    api_monitor_read(&monitor, values);
    if (api_mutes_find(&monitors->mutes, monitor.group, monitor.name, monitors->now).until !=
        API_NO_TIME)
        return;
    if (monitor.status.state >= API_WARNING)
        add_lasting(lasting->job, &monitor, (int)monitor.status.state);
    if (monitor.status.silence == API_SILENT)
        add_lasting(lasting->job, &monitor, API_STALE);
}

/* Fills a job with the present states, as changes. */
static bool collect_lasting(struct api_monitors *monitors, struct api_outbox_job *job)
{
    struct lasting lasting = {job, monitors};
    if (!api_mutes_read(monitors, &monitors->mutes) ||
        !api_store_read(monitors->store, API_SQL_MONITORS_LASTING, NULL, add_row_of_lasting,
                        &lasting))
        return false;
    job->number = job->n > 0 ? new_number() : 0;
    job->is_repetition = true;
    return true;
}

/* ---- The job */

static bool run(struct api_store_job *base, struct api_monitors *monitors)
{
    struct api_outbox_job *job = (struct api_outbox_job *)base;
    int64_t pending = 0;
    bool ours;
    api_outbox_job_free(job);
    job->number = job->wait = 0;
    job->expired = 0;
    job->is_repetition = false;
    job->is_shared = api_store_is_shared(monitors->store);
    if (!take_lease(monitors, job, &ours))
        return false;
    if (job->ends_lease)
        return !job->is_shared || !ours ||
               api_store_run(monitors->store, API_SQL_LEASE_SET, API_ROW(job->server, 0));
    if (!delete_old(monitors, job) || !exchange_history(monitors, job) ||
        !api_store_number(monitors->store, API_SQL_OUTBOX_COUNT, API_ROW(job->receiver->name),
                          &pending))
        return false;
    job->pending = (size_t)pending;
    bool good = !ours || job->takes_none ||
                ((pending == 0 || find_next(monitors, job)) &&
                 (job->number || !job->repeats || collect_lasting(monitors, job)));
    return good && ((!job->rows.failed && !job->texts.failed) || api_fail_oom(base->problem));
}

void api_outbox_job_init(struct api_outbox_job *job, struct api_budget *budget)
{
    *job = (struct api_outbox_job){
        .job = {.run = run}, .rows = {.budget = budget}, .texts = {.budget = budget}};
    job->job.problem = &job->problem;
}
