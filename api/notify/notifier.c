#include "api/notify/notifier.h"

#include "api/json/format.h"
#include "api/metrics/metrics.h"
#include "api/text/clock.h"

#include <stdio.h>
#include <string.h>

static const char *const result_names[API_NOTIFY_RESULTS] = {"delivered", "failed", "refused",
                                                             "expired"};
const struct api_receiver_history api_no_history = {
    .last_success = API_NO_TIME, .last_failure = API_NO_TIME, .failing_since = API_NO_TIME};

bool api_notifier_init(struct api_notifier *notifier, const char *public_url, void (*wake)(void))
{
    *notifier = (struct api_notifier){.public_url = public_url, .wake = wake};
    return pthread_mutex_init(&notifier->lock, NULL) == 0;
}

void api_notifier_free(struct api_notifier *notifier)
{
    api_receivers_release(notifier->receivers);
    pthread_mutex_destroy(&notifier->lock);
}

void api_notifier_set(struct api_notifier *notifier, struct api_receivers *receivers)
{
    struct api_receiver_status status[API_MAX_RECEIVERS] = {{.pending = 0}};
    pthread_mutex_lock(&notifier->lock);
    struct api_receivers *former = notifier->receivers;
    for (size_t i = 0; i < receivers->n; i++) {
        size_t known = former ? api_receivers_find(former, receivers->list[i].name) : 0;
        status[i] = former && known < former->n
                        ? notifier->status[known]
                        : (struct api_receiver_status){.history = api_no_history};
    }
    memcpy(notifier->status, status, receivers->n * sizeof *status);
    notifier->receivers = receivers;
    pthread_mutex_unlock(&notifier->lock);
    api_receivers_release(former);
    notifier->wake();
}

struct api_receivers *api_notifier_receivers(struct api_notifier *notifier)
{
    pthread_mutex_lock(&notifier->lock);
    struct api_receivers *receivers = api_receivers_hold(notifier->receivers);
    pthread_mutex_unlock(&notifier->lock);
    return receivers;
}

struct api_receiver_status *api_notifier_status(struct api_notifier *notifier, const char *name)
{
    size_t i = api_receivers_find(notifier->receivers, name);
    return i < notifier->receivers->n ? &notifier->status[i] : NULL;
}

void api_notifier_note(struct api_notifier *notifier, const char *name,
                       enum api_notify_result result, size_t n, const char *failure)
{
    int64_t now = api_now();
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *status = api_notifier_status(notifier, name);
    if (status)
        status->results[result] += n;
    struct api_receiver_history *history = status ? &status->history : NULL;
    if (history && result == API_NOTIFY_DELIVERED) {
        history->last_success = now;
        history->failing_since = API_NO_TIME;
    } else if (history && failure) {
        history->last_failure = now;
        if (history->failing_since == API_NO_TIME)
            history->failing_since = now;
        snprintf(history->failure, sizeof history->failure, "%s", failure);
    }
    pthread_mutex_unlock(&notifier->lock);
}

static int64_t last_attempt(const struct api_receiver_history *history)
{
    return history->last_success > history->last_failure ? history->last_success
                                                         : history->last_failure;
}

struct api_receiver_history api_notifier_history(struct api_notifier *notifier, const char *name)
{
    pthread_mutex_lock(&notifier->lock);
    const struct api_receiver_status *status = api_notifier_status(notifier, name);
    struct api_receiver_history history = status ? status->history : api_no_history;
    pthread_mutex_unlock(&notifier->lock);
    return history;
}

void api_notifier_learn_history(struct api_notifier *notifier, const char *name,
                                const struct api_receiver_history *history)
{
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *status = api_notifier_status(notifier, name);
    if (status && last_attempt(history) > last_attempt(&status->history))
        status->history = *history;
    pthread_mutex_unlock(&notifier->lock);
}

void api_notifier_set_pending(struct api_notifier *notifier, const char *name, size_t pending)
{
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *status = api_notifier_status(notifier, name);
    if (status)
        status->pending = pending;
    pthread_mutex_unlock(&notifier->lock);
}

bool api_notifier_add_pending(struct api_notifier *notifier, const char *name)
{
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *status = api_notifier_status(notifier, name);
    bool has_room = status && status->pending < API_MAX_PENDING;
    if (has_room)
        status->pending++;
    else if (status)
        status->results[API_NOTIFY_EXPIRED]++;
    pthread_mutex_unlock(&notifier->lock);
    return has_room;
}

void api_notifier_write(struct api_notifier *notifier, const struct api_token *token,
                        struct api_buffer *out)
{
    const char *comma = "";
    api_append_text(out, "{\"notifications\":[");
    pthread_mutex_lock(&notifier->lock);
    for (size_t i = 0; i < notifier->receivers->n; i++) {
        const struct api_receiver *receiver = &notifier->receivers->list[i];
        const struct api_receiver_status *status = &notifier->status[i];
        if (!api_receiver_is_of_token(receiver, token))
            continue;
        const struct api_receiver_history *history = &status->history;
        api_append_text(out, comma);
        comma = ",";
        api_write_json(out,
                       "{'name':%s,'format':%s,'pending':%zu,'last_success':%jd,'last_failure':%jd,"
                       "'failing_since':%jd,'failure':%s}",
                       receiver->name, api_notify_format_names[receiver->format], status->pending,
                       history->last_success, history->last_failure, history->failing_since,
                       history->failure);
    }
    pthread_mutex_unlock(&notifier->lock);
    api_append_text(out, "]}\n");
}

/* Appends the name of a receiver as a label, escaped as the text format wants it. */
static void write_label(const char *name, struct api_buffer *out)
{
    api_append_text(out, "{name=\"");
    for (; *name; name++)
        api_append_format(out, *name == '\\' || *name == '"' ? "\\%c" : "%c", *name);
    api_append_text(out, "\"");
}

void api_notifier_write_metrics(struct api_notifier *notifier, const struct api_token *token,
                                struct api_buffer *out)
{
    pthread_mutex_lock(&notifier->lock);
    const struct api_receivers *receivers = notifier->receivers;
    api_metrics_head(
        out, "kldiv_notifications_total", "counter",
        "Attempts to send a message, by result; of expired ones, changes that were given up.");
    for (size_t i = 0; i < receivers->n; i++)
        for (size_t result = 0;
             api_receiver_is_of_token(&receivers->list[i], token) && result < API_NOTIFY_RESULTS;
             result++) {
            api_append_text(out, "kldiv_notifications_total");
            write_label(receivers->list[i].name, out);
            api_append_format(out, ",result=\"%s\"} %lu\n", result_names[result],
                              notifier->status[i].results[result]);
        }
    api_metrics_head(out, "kldiv_notifications_pending", "gauge", "Changes that wait to be sent.");
    for (size_t i = 0; i < receivers->n; i++) {
        if (!api_receiver_is_of_token(&receivers->list[i], token))
            continue;
        api_append_text(out, "kldiv_notifications_pending");
        write_label(receivers->list[i].name, out);
        api_append_format(out, "} %zu\n", notifier->status[i].pending);
    }
    pthread_mutex_unlock(&notifier->lock);
}
