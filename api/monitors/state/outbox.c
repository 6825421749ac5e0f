#include "api/monitors/state/outbox.h"

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

int api_outbox_known(const struct api_monitor_status *status)
{
    return status->told != API_NONE_WITHHELD ? status->told
           : status->silence == API_SILENT   ? API_STALE
                                             : (int)status->state;
}

bool api_outbox_store(struct api_monitors *monitors, const struct api_change *change)
{
    struct api_receivers *receivers = api_notifier_receivers(monitors->notifier);
    struct api_datum trace = api_datum_text(change->trace.text);
    bool good = true, mutes = change->from == change->to;
    if (!api_trace_is_set(&change->trace))
        trace.kind = API_SQL_NULL;
    for (size_t i = 0; good && i < receivers->n; i++) {
        const struct api_receiver *receiver = &receivers->list[i];
        const struct api_datum *row =
            API_ROW(receiver->name, monitors->now, change->monitor, change->group, change->name,
                    change->from, change->to, change->at, api_time_datum(change->since), change->kl,
                    change->sentence, trace, api_time_datum(change->began));
        if ((mutes && receiver->format == API_NOTIFY_ALERTMANAGER) ||
            !api_receiver_wants(receiver, change->group, change->from, change->to) ||
            !api_notifier_add_pending(monitors->notifier, receiver->name))
            continue;
        good = api_store_run(monitors->store, API_SQL_OUTBOX_PUT, row);
        monitors->has_news = true;
    }
    api_receivers_release(receivers);
    return good;
}

bool api_outbox_put(struct api_monitors *monitors, struct api_monitor *monitor,
                    const struct api_change *change)
{
    struct api_change whole = *change;
    if (!monitors->notifier || !is_news(change))
        return true;
    if (!api_mutes_read(monitors, &monitors->mutes))
        return false;
    if (api_mutes_find(&monitors->mutes, monitor->group, monitor->name, monitors->now).until !=
        API_NO_TIME) {
        if (monitor->status.told == API_NONE_WITHHELD)
            monitor->status.told = last_told(&monitor->status, change);
        return true;
    }
    whole.monitor = monitor->id;
    whole.group = monitor->group;
    whole.name = monitor->name;
    whole.trace = monitor->trace;
    return api_outbox_store(monitors, &whole);
}

/* ---- Rows */

/* row: a change whose texts are offsets. */
struct row {
    struct api_change change;
    size_t group, name, sentence, trace;
};

static size_t keep(struct api_buffer *texts, const struct api_datum *text)
{
    size_t at = texts->size;
    api_append(texts, text->text, text->size);
    api_append(texts, "", 1);
    return at;
}

/* Adds a change: `names` are group and name, `said` sentence and trace. */
static void add(struct api_outbox_job *job, const struct api_change *change,
                const struct api_datum *names, const struct api_datum *said)
{
    const struct row row = {.change = *change,
                            .group = keep(&job->texts, &names[0]),
                            .name = keep(&job->texts, &names[1]),
                            .sentence = keep(&job->texts, &said[0]),
                            .trace = keep(&job->texts, &said[1])};
    api_append(&job->rows, &row, sizeof row);
    job->n++;
}

static void add_row(void *context, const struct api_datum *values)
{
    struct api_outbox_job *job = context;
    int64_t from = values[4].integer, to = values[5].integer;
    bool is_known = from >= 0 && from < API_STATES && to >= 0 && to < API_STATES;
    const struct api_change change = {.monitor = values[1].integer,
                                      .from = is_known ? (int)from : API_OK,
                                      .to = is_known ? (int)to : API_OK,
                                      .mutes = from == to,
                                      .queued = values[0].integer,
                                      .at = values[6].integer,
                                      .since = api_time_of(&values[7]),
                                      .began = api_time_of(&values[11]),
                                      .kl = api_datum_number(&values[8])};
    add(job, &change, values + 2, values + 9);
}

struct api_change *api_outbox_changes(struct api_outbox_job *job)
{
    struct api_change *changes = (void *)job->rows.data;
    const struct row *rows = (const void *)job->rows.data;
    for (size_t i = 0; i < job->n; i++) { /* a row is larger than its change: it is read before */
        struct row row = rows[i];
        row.change.group = job->texts.data + row.group;
        row.change.name = job->texts.data + row.name;
        row.change.sentence = job->texts.data + row.sentence;
        api_trace_read(&row.change.trace, job->texts.data + row.trace);
        changes[i] = row.change;
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

/* Ends the lease of this server. */
static bool give_up_lease(struct api_monitors *monitors, const struct api_outbox_job *job)
{
    return !api_store_is_shared(monitors->store) ||
           api_store_run(monitors->store, API_SQL_LEASE_SET, API_ROW(job->server, 0));
}

static bool delete (struct api_monitors *monitors, struct api_outbox_job *job)
{
    return (job->delivered == 0 || api_store_run(monitors->store, API_SQL_OUTBOX_DELETE,
                                                 API_ROW(job->receiver, job->delivered))) &&
           api_store_read(monitors->store, API_SQL_OUTBOX_EXPIRE, API_ROW(monitors->now - MAX_AGE),
                          api_store_count_row, &job->expired);
}

/* first: the change that waits longest, and its message if it has one. */
struct first {
    bool is_there;
    int64_t queued, message, id;
    struct api_buffer group;
};

static void read_first(void *context, const struct api_datum *values)
{
    struct first *first = context;
    first->is_there = true;
    first->queued = values[0].integer;
    first->message = values[1].integer;
    api_append(&first->group, values[2].text, values[2].size);
    first->id = values[3].integer;
}

/* A number that no other message ever has. */
static int64_t new_number(void)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
        number = (uint64_t)api_now() * UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(number >> 1 | 1);
}

/* Makes a message of the changes of the group that waits longest, once its changes were collected for long enough: up to one
 * that mutes, which is a message of its own. */
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
    job->number = new_number();
    const struct api_datum assign[] = {
        API_INTEGER(job->number),
        api_datum_text(job->receiver),
        {.kind = API_SQL_TEXT, .text = first->group.data, .size = first->group.size},
        API_INTEGER(first->id),
        API_INTEGER(MAX_CHANGES)};
    return api_store_run(monitors->store, API_SQL_OUTBOX_ASSIGN, assign);
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

/* Reads how attempts at a receiver went before this server started, or how another server's go; or writes how those of this
 * server go. */
static bool exchange_history(struct api_monitors *monitors, struct api_outbox_job *job)
{
    struct api_receiver_history *history = &job->history;
    const struct api_datum *row = API_ROW(job->receiver, api_time_datum(history->last_success),
                                          api_time_datum(history->last_failure),
                                          api_time_datum(history->failing_since), history->failure);
    job->reads_history |= !job->is_sender;
    if (job->reads_history)
        return api_store_read(monitors->store, API_SQL_RECEIVER, row, read_history, history);
    return !job->writes_history || api_store_run(monitors->store, API_SQL_RECEIVER_PUT, row);
}

/* ---- What lasts */

static void add_lasting(const struct api_monitor *monitor, int state, struct api_outbox_job *job)
{
    const struct api_monitor_status *status = &monitor->status;
    const char *sentence = state == API_STALE ? "" : status->sentence;
    const struct api_change change = {
        .monitor = monitor->id,
        .from = state,
        .to = state,
        .at = state == API_STALE ? status->last_observation : status->severity_since,
        .since = state == API_STALE ? status->last_observation : status->since,
        .began = state == API_STALE ? API_NO_TIME : status->began,
        .kl = status->last.scores.drift.kl};
    add(job, &change, API_ROW(monitor->group, monitor->name), API_ROW(sentence, ""));
}

/* lasting: what is collected for a receiver. */
struct lasting {
    struct api_outbox_job *job;
    const struct api_mutes *mutes;
    int64_t now;
};

static void add_row_of_lasting(void *context, const struct api_datum *values)
{
    const struct lasting *lasting = context;
    struct api_outbox_job *job = lasting->job;
    const struct api_receiver *receiver = job->reminds;
    const bool tells_all = receiver->format == API_NOTIFY_ALERTMANAGER;
    struct api_monitor monitor;
    api_monitor_read(&monitor, values);
    int state = (int)monitor.status.state;
    if (job->n >= MAX_CHANGES ||
        api_mutes_find(lasting->mutes, monitor.group, monitor.name, lasting->now).until !=
            API_NO_TIME)
        return;
    if (state >= (tells_all ? API_WARNING : API_CRITICAL) &&
        api_receiver_wants(receiver, monitor.group, state, state))
        add_lasting(&monitor, state, job);
    if (tells_all && monitor.status.silence == API_SILENT &&
        api_receiver_wants(receiver, monitor.group, API_STALE, API_STALE))
        add_lasting(&monitor, API_STALE, job);
}

/* Fills a job with the present states, as changes. */
static bool collect_lasting(struct api_monitors *monitors, struct api_outbox_job *job)
{
    struct lasting lasting = {job, &monitors->mutes, monitors->now};
    if (!api_mutes_read(monitors, &monitors->mutes) ||
        !api_store_read(monitors->store, API_SQL_MONITORS_LASTING, NULL, add_row_of_lasting,
                        &lasting))
        return false;
    if (job->rows.failed || job->texts.failed)
        job->n = 0;
    job->number = job->n > 0 ? new_number() : 0;
    job->is_reminder = true;
    return true;
}

static bool run(struct api_store_job *base, struct api_monitors *monitors)
{
    struct api_outbox_job *job = (struct api_outbox_job *)base;
    const struct api_datum *receiver = API_ROW(job->receiver);
    struct first first = {.queued = 0};
    int64_t pending = 0;
    bool ours;
    api_outbox_job_free(job);
    job->number = job->wait = 0;
    job->expired = 0;
    job->is_reminder = false;
    if (!take_lease(monitors, job, &ours) || !delete (monitors, job) ||
        !api_store_number(monitors->store, API_SQL_OUTBOX_COUNT, receiver, &pending))
        return false;
    job->pending = (size_t)pending;
    job->is_shared = api_store_is_shared(monitors->store);
    job->is_sender = ours;
    if (!exchange_history(monitors, job))
        return false;
    if (!ours) {
        job->wait = API_SECOND_US;
        return true;
    }
    if (job->takes_none)
        return !job->ends_lease || give_up_lease(monitors, job);
    bool good = pending == 0 ||
                api_store_read(monitors->store, API_SQL_OUTBOX_FIRST, receiver, read_first, &first);
    good = good && (!first.is_there || make(monitors, job, &first));
    api_buffer_free(&first.group);
    good =
        good && (!job->number || api_store_read(monitors->store, API_SQL_OUTBOX,
                                                API_ROW(receiver[0], job->number), add_row, job));
    if (good && (job->rows.failed || job->texts.failed))
        return api_fail_oom(base->problem);
    return good && (job->number || !job->reminds || collect_lasting(monitors, job));
}

void api_outbox_job_init(struct api_outbox_job *job, struct api_budget *budget)
{
    *job = (struct api_outbox_job){
        .job = {.run = run}, .rows = {.budget = budget}, .texts = {.budget = budget}};
    job->job.problem = &job->problem;
}
