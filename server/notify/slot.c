#include "server/notify/slot.h"

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
static void send_message(struct srv_slot *slot, const struct api_receiver *receiver,
                         struct api_outbox_job *job, bool is_reminder, double now)
{
    const struct srv_sender *sender = slot->sender;
    struct api_message message =
        srv_message_of(api_outbox_changes(job), job->n, job->number, sender->notifier->public_url);
    message.is_reminder = slot->is_reminder = is_reminder;
    slot->number = job->number;
    slot->n = job->n;
    if (!srv_post_begin(&slot->post, sender->multi, receiver, &message, sender->budget))
        slot->due = now + first_wait_s;
}

/* Called by the store's thread. */
static void resume(struct api_exchange *x)
{
    struct srv_slot *slot = (struct srv_slot *)((char *)x - offsetof(struct srv_slot, asker));
    atomic_store(&slot->is_answered, true);
    curl_multi_wakeup(slot->sender->multi);
}

void srv_slot_ask(struct srv_slot *slot, const struct api_receiver *receiver, double now)
{
    const struct srv_sender *sender = slot->sender;
    struct api_outbox_job *job = &slot->job;
    api_outbox_job_init(job, sender->budget);
    slot->asker.resume = resume;
    job->job.x = &slot->asker;
    job->receiver = receiver->name;
    job->delivered = slot->delivered;
    job->server = sender->server;
    job->history = api_notifier_history(sender->notifier, receiver->name);
    job->reads_history = !slot->knows_history;
    job->writes_history = job->history.last_success != slot->stored.last_success ||
                          job->history.last_failure != slot->stored.last_failure;
    slot->due = now + first_wait_s;
    slot->has_news = false;
    slot->is_asking = api_monitors_submit(sender->monitors, &job->job);
}

/* Notes what the store says of the receiver, or that it has what this server says. */
static void note_history(struct srv_slot *slot, const struct api_receiver *receiver)
{
    const struct api_outbox_job *job = &slot->job;
    slot->stored = job->history;
    slot->knows_history = true;
    if (job->reads_history)
        api_notifier_learn_history(slot->sender->notifier, receiver->name, &job->history);
}

/* When the next reminder is due: of an Alertmanager a minute later, else when the clock shows a multiple of the time between
 * two, at midnight of UTC if that is a day: a start of the server leaves none out. */
static double reminder_after(const struct api_receiver *receiver, double now)
{
    int64_t length = (int64_t)receiver->remind * API_SECOND_US;
    return now + (length > 0 ? (double)(length - api_now() % length) / API_SECOND_US : reminder_s);
}

/* Sends what the store has answered: the next message, or a reminder of what lasts. */
static void send_answer(struct srv_slot *slot, const struct api_receiver *receiver, double now)
{
    struct api_outbox_job *job = &slot->job;
    bool reminds = receiver->format == API_NOTIFY_ALERTMANAGER || receiver->remind > 0;
    if (slot->next_reminder == 0)
        slot->next_reminder = receiver->remind > 0 ? reminder_after(receiver, now) : now;
    slot->delivered = 0;
    note_outbox(slot->sender->notifier, receiver, job);
    slot->due = now + (job->is_shared ? shared_s : idle_s);
    if (job->wait > 0 && now + (double)job->wait / 1e6 < slot->due)
        slot->due = now + (double)job->wait / 1e6;
    if (reminds && slot->next_reminder < slot->due)
        slot->due = slot->next_reminder;
    if (job->number) {
        send_message(slot, receiver, job, false, now);
    } else if (reminds && job->is_sender && now >= slot->next_reminder) {
        slot->next_reminder = reminder_after(receiver, now);
        slot->due = now + shared_s;
        api_outbox_collect_lasting(slot->sender->monitors, receiver, job);
        if (job->n > 0)
            send_message(slot, receiver, job, true, now);
    }
}

bool srv_slot_take_answer(struct srv_slot *slot, const struct api_receiver *receiver)
{
    double now = api_seconds();
    if (!slot->is_asking || !atomic_exchange(&slot->is_answered, false))
        return slot->is_asking;
    slot->is_asking = false;
    slot->due = now + first_wait_s;
    if (!slot->job.problem.code) {
        note_history(slot, receiver);
        send_answer(slot, receiver, now);
    }
    api_outbox_job_free(&slot->job);
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

void srv_slot_finish(struct srv_slot *slot, const struct api_receiver *receiver, CURLcode result)
{
    double now = api_seconds();
    const struct srv_outcome outcome = srv_post_end(&slot->post, result);
    bool is_done = outcome.result != API_NOTIFY_FAILED, good = !*outcome.failure;
    srv_post_free(&slot->post);
    api_notifier_note(slot->sender->notifier, receiver->name, outcome.result, 1,
                      good ? NULL : outcome.failure);
    if (!good && (is_done || slot->failures == 0))
        srv_log(SRV_LOG_WARNING,
                is_done ? "--notify: changes are given up receiver=%s n=%zu answer=%s"
                        : "--notify: changes wait for another try receiver=%s n=%zu answer=%s",
                receiver->name, slot->n, outcome.failure);
    else if (good && slot->failures > 0)
        srv_log(SRV_LOG_INFO, "--notify: messages are taken again receiver=%s", receiver->name);
    else if (good)
        srv_log(SRV_LOG_DEBUG, "--notify: changes were taken receiver=%s n=%zu", receiver->name,
                slot->n);
    slot->failures = is_done ? 0 : slot->failures + 1;
    slot->due = is_done ? now : now + wait_after(slot->failures, outcome.retry_after);
    if (is_done && !slot->is_reminder)
        slot->delivered = slot->number;
    if (!is_done && slot->is_reminder)
        slot->next_reminder = slot->due;
}

void srv_slot_reset(struct srv_slot *slot, const struct srv_sender *sender)
{
    srv_post_free(&slot->post);
    *slot = (struct srv_slot){.sender = sender};
}

double srv_slot_reminder(const struct srv_slot *slot)
{
    return slot->is_reminder && slot->post.easy ? api_seconds() : slot->next_reminder;
}
