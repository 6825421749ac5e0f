#include "api/notify/notifier.h"

#include "api/json/format.h"
#include "api/metrics/metrics.h"
#include "api/text/clock.h"

#include <stdio.h>
#include <string.h>

bool api_notifier_init(struct api_notifier *notifier, const char *public_url)
{
    pthread_condattr_t monotonic;
    *notifier = (struct api_notifier){.public_url = public_url};
    bool good = pthread_condattr_init(&monotonic) == 0 &&
                pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&notifier->wake, &monotonic) == 0 &&
                pthread_mutex_init(&notifier->lock, NULL) == 0;
    pthread_condattr_destroy(&monotonic);
    return good;
}

void api_notifier_free(struct api_notifier *notifier)
{
    api_receivers_release(notifier->receivers);
    pthread_cond_destroy(&notifier->wake);
    pthread_mutex_destroy(&notifier->lock);
}

void api_notifier_set(struct api_notifier *notifier, struct api_receivers *receivers)
{
    struct api_receiver_status status[API_MAX_RECEIVERS] = {0};
    pthread_mutex_lock(&notifier->lock);
    struct api_receivers *former = notifier->receivers;
    for (size_t i = 0; i < receivers->n; i++) {
        const struct api_receiver_status *known =
            former ? api_notifier_status(notifier, receivers->list[i].name) : NULL;
        status[i] = known ? *known
                          : (struct api_receiver_status){.history = {.last_success = API_NO_TIME,
                                                                     .last_failure = API_NO_TIME,
                                                                     .failing_since = API_NO_TIME}};
    }
    memcpy(notifier->status, status, receivers->n * sizeof *status);
    notifier->receivers = receivers;
    pthread_cond_broadcast(&notifier->wake);
    pthread_mutex_unlock(&notifier->lock);
    api_receivers_release(former);
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

void api_notifier_wake(struct api_notifier *notifier)
{
    pthread_mutex_lock(&notifier->lock);
    notifier->news++;
    pthread_cond_broadcast(&notifier->wake);
    pthread_mutex_unlock(&notifier->lock);
}

void api_notifier_note(struct api_notifier *notifier, const char *name,
                       const struct api_notify_outcome *outcome)
{
    int64_t now = api_now();
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *status = api_notifier_status(notifier, name);
    struct api_receiver_history *history = status ? &status->history : NULL;
    if (status)
        status->results[outcome->result]++;
    if (status && outcome->result == API_NOTIFY_DELIVERED) {
        history->last_success = now;
        history->failing_since = API_NO_TIME;
    } else if (status) {
        history->last_failure = now;
        if (history->failing_since == API_NO_TIME)
            history->failing_since = now;
        memcpy(history->failure, outcome->failure, sizeof history->failure);
    }
    pthread_mutex_unlock(&notifier->lock);
}

void api_notifier_learn(struct api_notifier *notifier, const char *name, size_t pending,
                        size_t expired, const struct api_receiver_history *history)
{
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *status = api_notifier_status(notifier, name);
    if (status) {
        const struct api_receiver_history *own = &status->history;
        status->pending = pending;
        status->results[API_NOTIFY_EXPIRED] += expired;
        if (history->last_success > own->last_success || history->last_failure > own->last_failure)
            status->history = *history;
    }
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

/* Appends `family{name="NAME"`, the name escaped as the text format wants it. */
static void write_label(const char *family, const char *name, struct api_buffer *out)
{
    api_append_format(out, "%s{name=\"", family);
    for (; *name; name++)
        api_append_format(out, *name == '\\' || *name == '"' ? "\\%c" : "%c", *name);
    api_append_text(out, "\"");
}

void api_notifier_write_metrics(struct api_notifier *notifier, const struct api_token *token,
                                struct api_buffer *out)
{
    static const char *const results[API_NOTIFY_RESULTS] = {"delivered", "failed", "refused",
                                                            "expired"};
    static const char total[] = "kldiv_notifications_total",
                      pending[] = "kldiv_notifications_pending";
    pthread_mutex_lock(&notifier->lock);
    const struct api_receiver *list = notifier->receivers->list;
    const size_t n = notifier->receivers->n;
    api_metrics_head(
        out, total, "counter",
        "Attempts to send a message, by result; of expired ones, changes that were given up.");
    for (size_t i = 0; i < n * API_NOTIFY_RESULTS; i++) {
        size_t of = i / API_NOTIFY_RESULTS, result = i % API_NOTIFY_RESULTS;
        if (!api_receiver_is_of_token(&list[of], token))
            continue;
        write_label(total, list[of].name, out);
        api_append_format(out, ",result=\"%s\"} %lu\n", results[result],
                          notifier->status[of].results[result]);
    }
    api_metrics_head(out, pending, "gauge", "Changes that wait to be sent.");
    for (size_t i = 0; i < n; i++)
        if (api_receiver_is_of_token(&list[i], token)) {
            write_label(pending, list[i].name, out);
            api_append_format(out, "} %zu\n", notifier->status[i].pending);
        }
    pthread_mutex_unlock(&notifier->lock);
}
