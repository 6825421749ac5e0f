#include "server/notify/sender.h"

#include "api/monitors/batch.h"
#include "api/monitors/state/outbox.h"
#include "api/monitors/test.h"
#include "api/text/clock.h"
#include "server/notify/post.h"
#include "server/telemetry/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds: between two looks into a store that other servers write; between two looks without news; between two messages of
 * what lasts, to an Alertmanager; the first and the longest wait after a failure, also if the receiver asks for a longer
 * one; for senders to end. */
static const double shared_s = 1, idle_s = 60, repeat_s = 60, first_wait_s = 1, max_wait_s = 120,
                    end_s = 2;

struct srv_sender {
    struct srv_sender *next;
    struct srv_senders *all;
    char name[129];                      /* of the receiver */
    struct api_receivers *receivers;     /* held: those of the present step */
    const struct api_receiver *receiver; /* among those */
    struct api_notify_test *test;        /* to be sent; or NULL */
    struct api_outbox_job job;
    struct api_receiver_history history;
    bool has_tried;         /* history is not in the store */
    unsigned long news;     /* that were looked for */
    double due, repetition; /* times of the next steps, by api_seconds */
    unsigned failures;      /* in a row */
    int64_t delivered;      /* number of a message that the outbox still has, or 0 */
};

/* Waits on the notifier's lock, which is held, until something has changed or a time by api_seconds; false at that time. */
static bool wait_until(struct api_notifier *notifier, double time)
{
    const struct timespec until = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};
    return pthread_cond_timedwait(&notifier->wake, &notifier->lock, &until) == 0;
}

/* ---- One step */

/* Finds the receiver in the present file; false if it is gone, or all end. A new file is a reason to try at once. */
static bool find_receiver(struct srv_sender *s)
{
    struct api_notifier *notifier = &s->all->notifier;
    struct api_receiver_status *status = api_notifier_status(notifier, s->name);
    s->test = api_notify_test_of(notifier, s->name);
    if (status)
        s->history = status->history;
    if (!status || notifier->ends)
        return false;
    status->is_served = true;
    if (s->receivers != notifier->receivers) {
        api_receivers_release(s->receivers);
        s->receivers = api_receivers_hold(notifier->receivers);
        s->receiver = &s->receivers->list[status - notifier->status];
        s->due = s->failures = 0;
    }
    return true;
}

/* Waits until there is something to do; false if the sender is to end. */
static bool wait_for_work(struct srv_sender *s)
{
    struct api_notifier *notifier = &s->all->notifier;
    pthread_mutex_lock(&notifier->lock);
    bool is_there = find_receiver(s);
    while (is_there && !s->test && api_seconds() < s->due &&
           (s->news == notifier->news || s->failures > 0)) {
        wait_until(notifier, s->due);
        is_there = find_receiver(s);
    }
    if (!s->test)
        s->news = notifier->news;
    pthread_mutex_unlock(&notifier->lock);
    return is_there;
}

/* Ends a test that was not sent. */
static void refuse_test(struct srv_sender *s, struct api_notify_test *test, const char *why)
{
    test->outcome = (struct api_notify_outcome){.result = API_NOTIFY_FAILED};
    snprintf(test->outcome.failure, sizeof test->outcome.failure, "%s", why);
    api_notify_test_end(test, &s->all->notifier);
}

static const char broken_off[] =
    "broken off: the client has left, the server ends, or the file was read again";

/* True if a message under way is to be broken off. Ends a test that waits for it, if nobody waits for that. A look-up goes
 * on in a thread of libcurl when it is broken off: a client that leaves breaks none off, or it could begin any number. */
static bool stops(void *context, bool looks_up)
{
    struct srv_sender *s = context;
    struct api_notifier *notifier = &s->all->notifier;
    pthread_mutex_lock(&notifier->lock);
    bool is_over = notifier->ends || notifier->receivers != s->receivers;
    bool ends_tests = notifier->ends_tests;
    struct api_notify_test *test = api_notify_test_of(notifier, s->name);
    pthread_mutex_unlock(&notifier->lock);
    bool is_left = test && api_notify_test_is_left(test);
    if (test && !s->test && (is_left || ends_tests))
        refuse_test(s, test, broken_off);
    return is_over || (s->test && (ends_tests || (is_left && !looks_up)));
}

/* Sends changes, as the message of a number. */
static struct api_notify_outcome post(struct srv_sender *s, const struct api_change *changes,
                                      size_t n, int64_t number)
{
    struct api_message message = {.sent_at = api_now(),
                                  .public_url = s->all->notifier.public_url,
                                  .is_test = s->test != NULL,
                                  .n = n,
                                  .changes = changes};
    snprintf(message.id, sizeof message.id, "%016llx", (unsigned long long)number);
    struct api_notify_outcome outcome = srv_post(s->receiver, &message, s->all->budget, stops, s);
    if (outcome.status == 0 && stops(s, false))
        snprintf(outcome.failure, sizeof outcome.failure, "%s", broken_off);
    return outcome;
}

static void send_test(struct srv_sender *s)
{
    const int64_t now = api_now();
    const struct api_change change = {.group = "kldiv",
                                      .name = "test",
                                      .sentence = "nothing has happened; this is a test",
                                      .at = now,
                                      .since = now,
                                      .began = API_NO_TIME,
                                      .queued = now,
                                      .from = API_OK,
                                      .to = API_WARNING};
    s->test->outcome = post(s, &change, 1, now);
    if (s->test->outcome.result == API_NOTIFY_DELIVERED)
        s->due = 0;
    api_notify_test_end(s->test, &s->all->notifier);
}

/* Has the store note what was delivered, and give the next message unless the server ends; false if it cannot. */
static bool ask(struct srv_sender *s, bool ends)
{
    struct api_outbox_job *job = &s->job;
    api_outbox_job_init(job, s->all->budget);
    job->receiver = s->receiver;
    job->server = s->all->server;
    job->delivered = s->delivered;
    job->history = s->history;
    job->writes_history = s->has_tried;
    job->takes_none = ends;
    job->repeats = s->receiver->format == API_NOTIFY_ALERTMANAGER && api_seconds() >= s->repetition;
    bool good = api_monitors_submit(s->all->monitors, &job->job);
    if (good)
        api_store_job_wait(&job->job);
    good = good && !job->problem.code;
    atomic_store(&s->all->is_unanswered, !good);
    if (!good)
        return false;
    s->delivered = 0;
    s->has_tried = false;
    api_notifier_learn(&s->all->notifier, s->name, job->pending, job->expired, &job->history);
    if (job->expired > 0)
        srv_log(SRV_LOG_WARNING,
                "--notify: %zu changes could not be sent for a day, and are given up",
                job->expired);
    return true;
}

/* Logs the first failure of several, and the success after them. */
static void log_outcome(const struct srv_sender *s, const struct api_notify_outcome *outcome)
{
    if (outcome->result == API_NOTIFY_REFUSED ||
        (outcome->result == API_NOTIFY_FAILED && s->failures == 0))
        srv_log(SRV_LOG_WARNING,
                outcome->result == API_NOTIFY_REFUSED
                    ? "--notify: changes are given up receiver=%s n=%zu answer=%s"
                    : "--notify: changes wait for another try receiver=%s n=%zu answer=%s",
                s->name, s->job.n, outcome->failure);
    else if (outcome->result == API_NOTIFY_DELIVERED && s->failures > 0)
        srv_log(SRV_LOG_INFO, "--notify: messages are taken again receiver=%s", s->name);
    else if (outcome->result == API_NOTIFY_DELIVERED)
        srv_log(SRV_LOG_DEBUG, "--notify: changes were taken receiver=%s n=%zu", s->name, s->job.n);
}

/* Sends the message that the store has given. */
static void send_message(struct srv_sender *s)
{
    struct api_outbox_job *job = &s->job;
    struct api_notify_outcome outcome = {.result = API_NOTIFY_DELIVERED};
    if (job->n > 0) {
        outcome = post(s, api_outbox_changes(job), job->n, job->number);
        if (outcome.result == API_NOTIFY_FAILED && stops(s, false))
            return; /* it is sent again */
        api_notifier_note(&s->all->notifier, s->name, &outcome);
        log_outcome(s, &outcome);
        s->has_tried = true;
    }
    s->due = 0;
    if (outcome.result != API_NOTIFY_FAILED) {
        s->failures = 0;
        s->delivered = job->is_repetition ? 0 : job->number;
        return;
    }
    double wait = first_wait_s;
    for (unsigned i = 0; i < s->failures && wait < max_wait_s; i++)
        wait *= 2;
    wait = outcome.retry_after > wait ? outcome.retry_after : wait;
    s->failures++;
    s->due = api_seconds() + (wait < max_wait_s ? wait : max_wait_s);
    if (job->is_repetition)
        s->repetition = s->due;
}

/* Asks for the next message, and sends it. */
static void send_next(struct srv_sender *s)
{
    const double now = api_seconds();
    struct api_outbox_job *job = &s->job;
    s->due = now + first_wait_s;
    if (ask(s, false)) {
        if (job->is_repetition)
            s->repetition = now + repeat_s;
        s->due = now + (job->is_shared ? shared_s : idle_s);
        if (job->wait > 0 && now + (double)job->wait / 1e6 < s->due)
            s->due = now + (double)job->wait / 1e6;
        if (s->receiver->format == API_NOTIFY_ALERTMANAGER && s->repetition > now &&
            s->repetition < s->due) /* one that is past, another server sends */
            s->due = s->repetition;
        if (job->number)
            send_message(s);
    }
    api_outbox_job_free(job);
}

/* ---- The thread */

/* Ends a test that is left, and tells the store what it does not know; not if it did not answer the last time. */
static void leave(struct srv_sender *s)
{
    if (s->test)
        refuse_test(s, s->test, "the receiver is not there any more");
    if ((s->delivered || s->has_tried) && !atomic_load(&s->all->is_unanswered)) {
        ask(s, true);
        api_outbox_job_free(&s->job);
    }
}

/* Forgets a sender, unless its receiver has come again meanwhile. */
static bool is_over(struct srv_sender *s)
{
    struct api_notifier *notifier = &s->all->notifier;
    struct srv_sender **link = &s->all->first;
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *status = api_notifier_status(notifier, s->name);
    bool ends = notifier->ends || !status;
    if (ends) {
        if (status)
            status->is_served = false;
        while (*link != s)
            link = &(*link)->next;
        *link = s->next;
        pthread_cond_broadcast(&notifier->wake);
    }
    pthread_mutex_unlock(&notifier->lock);
    return ends;
}

static void *serve(void *argument)
{
    struct srv_sender *s = argument;
    do {
        while (wait_for_work(s))
            (s->test ? send_test : send_next)(s);
        leave(s);
    } while (!is_over(s));
    api_receivers_release(s->receivers);
    free(s);
    return NULL;
}

/* ---- All */

/* Starts the sender of a name; under the lock. */
static bool start(struct srv_senders *all, const char *name)
{
    pthread_t thread;
    struct srv_sender *s = calloc(1, sizeof *s);
    if (!s)
        return false;
    s->all = all;
    s->next = all->first;
    snprintf(s->name, sizeof s->name, "%s", name);
    if (pthread_create(&thread, NULL, serve, s) != 0) {
        free(s);
        return false;
    }
    pthread_detach(thread);
    all->first = s;
    return true;
}

bool srv_senders_start(struct srv_senders *all)
{
    bool good = true;
    pthread_mutex_lock(&all->notifier.lock);
    const struct api_receivers *receivers = all->notifier.receivers;
    for (size_t i = 0; i < receivers->n; i++) {
        const struct srv_sender *s = all->first;
        while (s && strcmp(s->name, receivers->list[i].name) != 0)
            s = s->next;
        good &= s || start(all, receivers->list[i].name);
    }
    pthread_mutex_unlock(&all->notifier.lock);
    return good;
}

void srv_senders_end_tests(struct srv_senders *all)
{
    pthread_mutex_lock(&all->notifier.lock);
    all->notifier.ends_tests = true;
    pthread_mutex_unlock(&all->notifier.lock);
}

bool srv_senders_stop(struct srv_senders *all)
{
    struct api_outbox_job job;
    const double end = api_seconds() + end_s;
    pthread_mutex_lock(&all->notifier.lock);
    all->notifier.ends = true;
    pthread_cond_broadcast(&all->notifier.wake);
    while (all->first && wait_until(&all->notifier, end))
        ;
    bool all_ended = !all->first;
    pthread_mutex_unlock(&all->notifier.lock);
    api_outbox_job_init(&job, all->budget);
    job.ends_lease = true;
    job.server = all->server;
    if (all_ended && !atomic_load(&all->is_unanswered) &&
        api_monitors_submit(all->monitors, &job.job))
        api_store_job_wait(&job.job);
    return all_ended;
}
