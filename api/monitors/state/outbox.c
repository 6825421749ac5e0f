#include "api/monitors/state/outbox.h"

#include "api/json/format.h"
#include "api/notify/notifier.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

/* GROUPING: microseconds for which changes are collected. MAX_AGE: microseconds after which a change is given up.
 * LEASE: microseconds for which a server stays the sender; if it ends, the others wait for so long. */
#define GROUPING (INT64_C(5) * API_SECOND_US)
#define MAX_AGE API_DAY_US
#define LEASE API_MINUTE_US

/* MAX_CHANGES: of a message. MAX_TOLD: monitors of which one transaction reports that they are stale, or how they
 * are after a mute. */
enum { MAX_CHANGES = 10000, MAX_TOLD = 500 };

/* ---- In */

static bool is_news(const struct api_change *change)
{
    return change->from != change->to && change->to != API_INSUFFICIENT &&
           !(change->from == API_INSUFFICIENT && change->to == API_OK);
}

static struct api_datum time_datum(int64_t time)
{
    struct api_datum datum = API_INTEGER(time);
    if (time == API_NO_TIME)
        datum.kind = API_SQL_NULL;
    return datum;
}

static bool is_muted(const struct api_monitors *monitors, const struct api_monitor *monitor,
                     int64_t now)
{
    return api_mutes_find(&monitors->registry.mutes, monitor->group, monitor->name, now).until !=
           API_NO_TIME;
}

bool api_outbox_put(struct api_monitors *monitors, struct api_pending_monitor *pending,
                    const struct api_change *change)
{
    const struct api_monitor *monitor = pending->monitor;
    bool good = true;
    if (!monitors->notifier || !is_news(change))
        return true;
    if (is_muted(monitors, monitor, monitors->now)) {
        if (pending->status.told == API_NONE_WITHHELD)
            pending->status.told = change->from;
        return true;
    }
    struct api_receivers *receivers = api_notifier_receivers(monitors->notifier);
    struct api_datum trace = API_TEXT_DATUM(pending->trace.text);
    if (!api_trace_is_set(&pending->trace))
        trace.kind = API_SQL_NULL;
    for (size_t i = 0; good && i < receivers->n; i++) {
        const struct api_receiver *receiver = &receivers->list[i];
        const struct api_datum row[] = {
            API_TEXT_DATUM(receiver->name),   API_INTEGER(monitors->now),
            API_INTEGER(monitor->id),         API_TEXT_DATUM(monitor->group),
            API_TEXT_DATUM(monitor->name),    API_INTEGER(change->from),
            API_INTEGER(change->to),          API_INTEGER(change->at),
            time_datum(change->since),        API_REAL(change->kl),
            API_TEXT_DATUM(change->sentence), trace};
        if (!api_receiver_wants(receiver, monitor->group, change->from, change->to) ||
            !api_notifier_add_pending(monitors->notifier, receiver->name))
            continue;
        good = api_store_run(monitors->store, API_SQL_OUTBOX_PUT, row, NULL);
        monitors->has_news = true;
    }
    api_receivers_release(receivers);
    return good;
}

static bool is_stale_due(const struct api_monitor *monitor)
{
    return api_monitor_is_stale(monitor) != monitor->status.stale_told;
}

/* True if changes were withheld from receivers by a mute that is over. */
static bool is_withheld(const struct api_monitors *monitors, const struct api_monitor *monitor,
                        int64_t now)
{
    return monitor->status.told != API_NONE_WITHHELD && !is_muted(monitors, monitor, now);
}

bool api_outbox_is_due(const struct api_monitors *monitors)
{
    int64_t now = api_now();
    for (size_t i = 0; monitors->notifier && i < monitors->registry.n; i++)
        if (is_stale_due(monitors->registry.monitors[i]) ||
            is_withheld(monitors, monitors->registry.monitors[i], now))
            return true;
    return false;
}

/* Stores the change from what receivers know to how the monitor is, after a mute. */
static bool tell_withheld(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    if (!pending)
        return false;
    struct api_monitor_status *status = &pending->status;
    const bool stale = status->stale_told;
    const struct api_change change = {.sentence = stale ? "" : status->sentence,
                                      .at =
                                          stale ? status->last_observation : status->severity_since,
                                      .since = stale ? status->last_observation : status->since,
                                      .from = status->told,
                                      .to = stale ? API_STALE : (int)status->state,
                                      .kl = status->last.scores.drift.kl};
    status->told = API_NONE_WITHHELD;
    return api_outbox_put(monitors, pending, &change);
}

static const char missed[] = "the last 3 tables for its group lack its column";
_Static_assert(API_MISSED == 3, "the sentence says so");

/* Stores the change of a monitor that has become stale, or is not stale any more, and that receivers know it. */
static bool tell_stale(struct api_monitors *monitors, struct api_monitor *monitor)
{
    struct api_pending_monitor *pending = api_pending_of(monitors, monitor);
    if (!pending)
        return false;
    struct api_monitor_status *status = &pending->status;
    status->stale_told = !status->stale_told;
    int64_t last = status->last_observation;
    bool is_missed =
        status->stale_told && isinf(api_settings_stale_after(&monitor->config->settings));
    const struct api_change change = {.sentence = is_missed ? missed : "",
                                      .at = last == API_NO_TIME ? monitors->now : last,
                                      .since = last,
                                      .from = status->stale_told ? (int)status->state : API_STALE,
                                      .to = status->stale_told ? API_STALE : (int)status->state,
                                      .kl = (double)NAN};
    return api_outbox_put(monitors, pending, &change);
}

bool api_outbox_watch(struct api_monitors *monitors)
{
    size_t told = 0;
    for (size_t i = 0; monitors->notifier && i < monitors->registry.n && told < MAX_TOLD; i++) {
        struct api_monitor *monitor = monitors->registry.monitors[i];
        bool is_first = is_withheld(monitors, monitor, monitors->now);
        if (!is_first && !is_stale_due(monitor))
            continue;
        if (!(is_first ? tell_withheld : tell_stale)(monitors, monitor))
            return false;
        told++;
    }
    return true;
}

/* ---- Rows */

/* row: a change whose texts are offsets. */
struct row {
    struct api_change change;
    size_t group, name, sentence, trace;
};

static size_t keep(struct api_buffer *texts, const char *text, size_t size)
{
    size_t at = texts->size;
    api_append(texts, text, size);
    api_append(texts, "", 1);
    return at;
}

static void add_row(void *context, const struct api_datum *values)
{
    struct api_outbox_job *job = context;
    int64_t from = values[4].integer, to = values[5].integer;
    bool is_known = from >= 0 && from < API_NOTIFY_STATES && to >= 0 && to < API_NOTIFY_STATES;
    const struct row row = {
        .change = {.monitor = values[1].integer,
                   .from = is_known ? (int)from : API_OK,
                   .to = is_known ? (int)to : API_OK,
                   .queued = values[0].integer,
                   .at = values[6].integer,
                   .since = values[7].kind == API_SQL_INTEGER ? values[7].integer : API_NO_TIME,
                   .kl = api_datum_number(&values[8])},
        .group = keep(&job->texts, values[2].text, values[2].size),
        .name = keep(&job->texts, values[3].text, values[3].size),
        .sentence = keep(&job->texts, values[9].text, values[9].size),
        .trace = keep(&job->texts, values[10].text, values[10].size)};
    api_append(&job->rows, &row, sizeof row);
    job->n++;
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
    if (!api_store_run(monitors->store, API_SQL_LEASE, NULL,
                       &(struct api_rows){read_lease, &lease}))
        return false;
    int64_t left = lease.until - monitors->now;
    *ours = lease.owner == job->server || left <= 0 || left > 2 * LEASE;
    if (!*ours || (lease.owner == job->server && left > LEASE * 3 / 4))
        return true;
    const struct api_datum set[] = {API_INTEGER(job->server), API_INTEGER(monitors->now + LEASE)};
    return api_store_run(monitors->store, API_SQL_LEASE_SET, set, NULL);
}

static void count_row(void *context, const struct api_datum *values)
{
    (void)values;
    ++*(size_t *)context;
}

static bool delete (struct api_monitors *monitors, struct api_outbox_job *job)
{
    const struct api_datum message[] = {API_TEXT_DATUM(job->receiver), API_INTEGER(job->delivered)};
    const struct api_datum old[] = {API_INTEGER(monitors->now - MAX_AGE)};
    return (job->delivered == 0 ||
            api_store_run(monitors->store, API_SQL_OUTBOX_DELETE, message, NULL)) &&
           api_store_run(monitors->store, API_SQL_OUTBOX_EXPIRE, old,
                         &(struct api_rows){count_row, &job->expired});
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

/* Makes a message of the changes of the group that waits longest, once its changes were collected for long enough. */
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
        API_TEXT_DATUM(job->receiver),
        {.kind = API_SQL_TEXT, .text = first->group.data, .size = first->group.size},
        API_INTEGER(MAX_CHANGES)};
    return api_store_run(monitors->store, API_SQL_OUTBOX_ASSIGN, assign, NULL);
}

static bool run(struct api_store_job *base, struct api_monitors *monitors)
{
    struct api_outbox_job *job = (struct api_outbox_job *)base;
    const struct api_datum receiver[] = {API_TEXT_DATUM(job->receiver)};
    struct first first = {.queued = 0};
    int64_t pending = 0;
    bool ours;
    api_outbox_job_free(job);
    job->number = job->wait = 0;
    job->expired = 0;
    if (!take_lease(monitors, job, &ours) || !delete (monitors, job) ||
        !api_store_run(monitors->store, API_SQL_OUTBOX_COUNT, receiver,
                       &(struct api_rows){api_datum_read_integer, &pending}))
        return false;
    job->pending = (size_t)pending;
    job->is_shared = api_store_is_shared(monitors->store);
    job->is_sender = ours;
    if (!ours) {
        job->wait = API_SECOND_US;
        return true;
    }
    bool good = pending == 0 || api_store_run(monitors->store, API_SQL_OUTBOX_FIRST, receiver,
                                              &(struct api_rows){read_first, &first});
    good = good && (!first.is_there || make(monitors, job, &first));
    api_buffer_free(&first.group);
    const struct api_datum message[] = {receiver[0], API_INTEGER(job->number)};
    good = good && (!job->number || api_store_run(monitors->store, API_SQL_OUTBOX, message,
                                                  &(struct api_rows){add_row, job}));
    if (good && (job->rows.failed || job->texts.failed))
        return api_fail_oom(base->problem);
    return good;
}

void api_outbox_job_init(struct api_outbox_job *job, struct api_budget *budget)
{
    *job = (struct api_outbox_job){
        .job = {.run = run}, .rows = {.budget = budget}, .texts = {.budget = budget}};
    job->job.problem = &job->problem;
}

/* ---- What lasts */

static void add_lasting(const struct api_monitor *monitor, int state, struct api_outbox_job *job)
{
    const struct api_monitor_status *status = &monitor->status;
    const char *sentence = state == API_STALE ? "" : status->sentence;
    const struct row row = {
        .change = {.monitor = monitor->id,
                   .from = state,
                   .to = state,
                   .at = state == API_STALE ? status->last_observation : status->severity_since,
                   .since = state == API_STALE ? status->last_observation : status->since,
                   .kl = status->last.scores.drift.kl},
        .group = keep(&job->texts, monitor->group, strlen(monitor->group)),
        .name = keep(&job->texts, monitor->name, strlen(monitor->name)),
        .sentence = keep(&job->texts, sentence, strlen(sentence)),
        .trace = keep(&job->texts, "", 0)};
    api_append(&job->rows, &row, sizeof row);
    job->n++;
}

void api_outbox_collect_lasting(struct api_monitors *monitors, const struct api_receiver *receiver,
                                struct api_outbox_job *job)
{
    struct api_registry *registry = &monitors->registry;
    const bool tells_all = receiver->format == API_NOTIFY_ALERTMANAGER;
    int64_t now = api_now();
    api_outbox_job_free(job);
    pthread_rwlock_rdlock(&registry->lock);
    for (size_t i = 0; i < registry->n && job->n < MAX_CHANGES; i++) {
        const struct api_monitor *monitor = registry->monitors[i];
        int state = (int)monitor->status.state;
        if (state < API_WARNING && !monitor->status.stale_told)
            continue;
        if (is_muted(monitors, monitor, now))
            continue;
        if (state >= (tells_all ? API_WARNING : API_CRITICAL) &&
            api_receiver_wants(receiver, monitor->group, state, state))
            add_lasting(monitor, state, job);
        if (tells_all && monitor->status.stale_told &&
            api_receiver_wants(receiver, monitor->group, API_STALE, API_STALE))
            add_lasting(monitor, API_STALE, job);
    }
    pthread_rwlock_unlock(&registry->lock);
    job->number = job->n > 0 ? new_number() : 0;
    if (job->rows.failed || job->texts.failed)
        job->n = 0;
}
