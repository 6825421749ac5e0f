#include "server/notify/delivery.h"

#include "api/monitors/monitors.h"
#include "api/text/clock.h"
#include "server/telemetry/log.h"

/* Seconds: between two looks into a store that other servers write; between two looks without news; between two reminders
 * of what lasts, for an Alertmanager; the first and the longest wait after a failure, also if the receiver asks
 * for a longer one. */
static const double shared_s = 1, idle_s = 60, reminder_s = 60, first_wait_s = 1, max_wait_s = 120;

/* Notes what the outbox says: the changes that wait, and that were given up. */
static void note_outbox(struct api_notifier *notifier, const struct api_receiver *receiver,
                        const struct api_outbox_job *job)
{
    api_notifier_set_pending(notifier, receiver->name, job->pending);
    if (job->expired == 0)
        return;
    api_notifier_note(notifier, receiver->name, API_NOTIFY_EXPIRED, job->expired, NULL);
    srv_log(SRV_LOG_WARNING, "--notify: %zu changes could not be sent for a day, and are given up",
            job->expired);
}

/* Sends what a job gives; without memory, later. */
static void send_message(struct srv_delivery *delivery, const struct api_receiver *receiver,
                         struct api_outbox_job *job, bool is_reminder, double now)
{
    const struct srv_sender *sender = delivery->sender;
    struct api_message message =
        srv_message_of(api_outbox_changes(job), job->n, job->number, sender->notifier->public_url);
    message.is_reminder = delivery->is_reminder = is_reminder;
    delivery->number = job->number;
    delivery->n = job->n;
    if (!srv_post_begin(&delivery->post, sender->multi, receiver, &message, sender->budget))
        delivery->due = now + first_wait_s;
}

/* Called by the store's thread. */
static void resume(struct api_exchange *x)
{
    struct srv_delivery *delivery =
        (struct srv_delivery *)((char *)x - offsetof(struct srv_delivery, asker));
    atomic_store(&delivery->is_answered, true);
    curl_multi_wakeup(delivery->sender->multi);
}

/* True for receivers that are told again of what lasts. */
static bool reminds(const struct api_receiver *receiver)
{
    return receiver->format == API_NOTIFY_ALERTMANAGER || receiver->remind > 0;
}

/* Prepares a job of the store. */
static struct api_outbox_job *prepare(struct srv_delivery *delivery,
                                      const struct api_receiver *receiver)
{
    const struct srv_sender *sender = delivery->sender;
    struct api_outbox_job *job = &delivery->job;
    api_outbox_job_init(job, sender->budget);
    delivery->asker.resume = resume;
    job->job.x = &delivery->asker;
    job->receiver = receiver->name;
    job->delivered = delivery->delivered;
    job->server = sender->server;
    job->history = api_notifier_history(sender->notifier, receiver->name);
    job->reads_history = !delivery->knows_history;
    job->reminds =
        reminds(receiver) && delivery->next_reminder > 0 && api_seconds() >= delivery->next_reminder
            ? receiver
            : NULL;
    job->writes_history = job->history.last_success != delivery->stored.last_success ||
                          job->history.last_failure != delivery->stored.last_failure;
    return job;
}

void srv_delivery_ask(struct srv_delivery *delivery, const struct api_receiver *receiver,
                      double now)
{
    struct api_outbox_job *job = prepare(delivery, receiver);
    delivery->due = now + first_wait_s;
    delivery->has_news = false;
    delivery->is_asking = api_monitors_submit(delivery->sender->monitors, &job->job);
}

void srv_delivery_leave(struct srv_delivery *delivery, const struct api_receiver *receiver,
                        bool ends_lease)
{
    if (delivery->is_unanswered)
        return;
    srv_post_free(&delivery->post);
    struct api_outbox_job *job = prepare(delivery, receiver);
    job->takes_none = true;
    job->ends_lease = ends_lease;
    delivery->is_asking = api_monitors_submit(delivery->sender->monitors, &job->job);
}

/* Notes what the store says of the receiver, or that it has what this server says. */
static void note_history(struct srv_delivery *delivery, const struct api_receiver *receiver)
{
    const struct api_outbox_job *job = &delivery->job;
    delivery->stored = job->history;
    delivery->knows_history = true;
    if (job->reads_history)
        api_notifier_learn_history(delivery->sender->notifier, receiver->name, &job->history);
}

/* When the next reminder is due: of an Alertmanager a minute later, else when the clock shows a multiple of the time between
 * two, at midnight of UTC if that is a day: a start of the server leaves none out. */
static double reminder_after(const struct api_receiver *receiver, double now)
{
    int64_t length = (int64_t)receiver->remind * API_SECOND_US;
    return now + (length > 0 ? (double)(length - api_now() % length) / API_SECOND_US : reminder_s);
}

/* Sends what the store has answered: the next message, or a reminder of what lasts. */
static void send_answer(struct srv_delivery *delivery, const struct api_receiver *receiver,
                        double now)
{
    struct api_outbox_job *job = &delivery->job;
    if (delivery->next_reminder == 0)
        delivery->next_reminder = receiver->remind > 0 ? reminder_after(receiver, now) : now;
    delivery->delivered = 0;
    note_outbox(delivery->sender->notifier, receiver, job);
    delivery->due = now + (job->is_shared ? shared_s : idle_s);
    if (job->wait > 0 && now + (double)job->wait / 1e6 < delivery->due)
        delivery->due = now + (double)job->wait / 1e6;
    if (reminds(receiver) && delivery->next_reminder < delivery->due)
        delivery->due = delivery->next_reminder;
    if (job->takes_none)
        return;
    if (job->is_reminder) {
        delivery->next_reminder = reminder_after(receiver, now);
        delivery->due = now + shared_s;
    }
    if (job->number)
        send_message(delivery, receiver, job, job->is_reminder, now);
}

bool srv_delivery_take_answer(struct srv_delivery *delivery, const struct api_receiver *receiver)
{
    double now = api_seconds();
    if (!delivery->is_asking || !atomic_exchange(&delivery->is_answered, false))
        return delivery->is_asking;
    delivery->is_asking = false;
    delivery->due = now + first_wait_s;
    delivery->is_unanswered = delivery->job.problem.code != NULL;
    if (!delivery->is_unanswered) {
        note_history(delivery, receiver);
        send_answer(delivery, receiver, now);
    }
    api_outbox_job_free(&delivery->job);
    return false;
}

/* Waits longer after each failure, or as long as the receiver asks for. */
static double wait_after(unsigned failures, double retry_after)
{
    double wait = first_wait_s;
    for (unsigned i = 1; i < failures && wait < max_wait_s; i++)
        wait *= 2;
    wait = retry_after > wait ? retry_after : wait;
    return wait < max_wait_s ? wait : max_wait_s;
}

void srv_delivery_finish(struct srv_delivery *delivery, const struct api_receiver *receiver,
                         CURLcode result)
{
    double now = api_seconds();
    const struct srv_outcome outcome = srv_post_end(&delivery->post, result);
    bool is_done = outcome.result != API_NOTIFY_FAILED, good = !*outcome.failure;
    srv_post_free(&delivery->post);
    api_notifier_note(delivery->sender->notifier, receiver->name, outcome.result, 1,
                      good ? NULL : outcome.failure);
    if (!good && (is_done || delivery->failures == 0))
        srv_log(SRV_LOG_WARNING,
                is_done ? "--notify: changes are given up receiver=%s n=%zu answer=%s"
                        : "--notify: changes wait for another try receiver=%s n=%zu answer=%s",
                receiver->name, delivery->n, outcome.failure);
    else if (good && delivery->failures > 0)
        srv_log(SRV_LOG_INFO, "--notify: messages are taken again receiver=%s", receiver->name);
    else if (good)
        srv_log(SRV_LOG_DEBUG, "--notify: changes were taken receiver=%s n=%zu", receiver->name,
                delivery->n);
    delivery->failures = is_done ? 0 : delivery->failures + 1;
    delivery->due = is_done ? now : now + wait_after(delivery->failures, outcome.retry_after);
    if (is_done && !delivery->is_reminder)
        delivery->delivered = delivery->number;
    if (!is_done && delivery->is_reminder)
        delivery->next_reminder = delivery->due;
}

void srv_delivery_reset(struct srv_delivery *delivery, const struct srv_sender *sender)
{
    srv_post_free(&delivery->post);
    *delivery = (struct srv_delivery){.sender = sender};
}

double srv_delivery_reminder(const struct srv_delivery *delivery)
{
    return delivery->is_reminder && delivery->post.easy ? api_seconds() : delivery->next_reminder;
}
