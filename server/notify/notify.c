#include "server/notify/notify.h"

#include "api/monitors/batch.h"
#include "api/monitors/state/outbox.h"
#include "api/monitors/test.h"
#include "api/text/clock.h"
#include "server/notify/notify_file.h"
#include "server/notify/post.h"
#include "server/telemetry/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Seconds: between two looks into a store that other servers write; between two looks without news; between two reminders
 * of what lasts, for an Alertmanager; the first and the longest wait after a failure. */
static const double shared_s = 1, idle_s = 60, reminder_s = 60, first_wait_s = 1, max_wait_s = 3600;

/* slot: a receiver, to which one message at a time is under way, so that they come in order. The store is asked for it
 * by a job, which curl's transfers do not wait for. */
struct slot {
    struct api_outbox_job job;
    struct api_exchange asker; /* of the job: `resume` is called at its end */
    bool is_asking;            /* the store's thread has the job */
    atomic_bool is_answered;
    bool has_news; /* since the job was begun */
    struct srv_post post;
    bool is_reminder;
    int64_t number;    /* of the message under way */
    int64_t delivered; /* of one that the outbox still has */
    size_t n;          /* its changes */
    double due;        /* time of the next step, by api_seconds */
    double reminded;
    unsigned failures; /* in a row */
};

static struct {
    struct api_notifier notifier;
    bool is_open, is_running;
    char public_url[2000];
    CURLM *multi;
    struct api_monitors *monitors;
    struct api_budget *budget;
    int64_t server;
    pthread_t thread;
    atomic_bool stopping, has_news;
    bool is_renewing; /* once no job is under way */

    /* Owned by the thread: */
    struct api_receivers *receivers;
    struct slot slots[API_MAX_RECEIVERS];
    struct srv_post post_of_test;
    struct api_notify_test *tests; /* the first one is under way, if its post is */
} notify;

static void wake(void)
{
    atomic_store(&notify.has_news, true);
    curl_multi_wakeup(notify.multi);
}

/* ---- Posts */

static struct api_message message_of(const struct api_change *changes, size_t n, int64_t number)
{
    struct api_message message = {
        .sent_at = api_now(), .public_url = notify.notifier.public_url, .n = n, .changes = changes};
    snprintf(message.id, sizeof message.id, "%016llx", (unsigned long long)number);
    return message;
}

static bool begin(struct srv_post *post, const struct api_receiver *receiver,
                  const struct api_message *message)
{
    if (!srv_post_begin(post, receiver, message, notify.budget))
        return false;
    if (curl_multi_add_handle(notify.multi, post->easy) == CURLM_OK)
        return true;
    srv_post_free(post);
    return false;
}

static void abort_post(struct srv_post *post)
{
    if (post->easy)
        curl_multi_remove_handle(notify.multi, post->easy);
    srv_post_free(post);
}

/* ---- Messages */

/* Notes what the outbox says: the changes that wait, and that were given up. */
static void note_outbox(const struct api_receiver *receiver, const struct api_outbox_job *job)
{
    api_notifier_set_pending(&notify.notifier, receiver->name, job->pending);
    if (job->expired == 0)
        return;
    api_notifier_note(&notify.notifier, receiver->name, API_NOTIFY_EXPIRED, job->expired, NULL);
    srv_log(SRV_LOG_WARNING, "--notify: %zu changes could not be sent for a day, and are given up",
            job->expired);
}

/* Sends what a job gives; without memory, later. */
static void send_message(struct slot *slot, const struct api_receiver *receiver,
                         struct api_outbox_job *job, bool is_reminder, double now)
{
    const struct api_message message = message_of(api_outbox_changes(job), job->n, job->number);
    slot->is_reminder = is_reminder;
    slot->number = job->number;
    slot->n = job->n;
    if (!begin(&slot->post, receiver, &message))
        slot->due = now + first_wait_s;
}

/* Called by the store's thread. */
static void resume(struct api_exchange *x)
{
    struct slot *slot = (struct slot *)((char *)x - offsetof(struct slot, asker));
    atomic_store(&slot->is_answered, true);
    curl_multi_wakeup(notify.multi);
}

/* Asks the store for the next message of a receiver. */
static void ask(struct slot *slot, const struct api_receiver *receiver, double now)
{
    struct api_outbox_job *job = &slot->job;
    api_outbox_job_init(job, notify.budget);
    slot->asker.resume = resume;
    job->job.x = &slot->asker;
    job->receiver = receiver->name;
    job->delivered = slot->delivered;
    job->server = notify.server;
    slot->due = now + first_wait_s;
    slot->has_news = false;
    slot->is_asking = api_monitors_submit(notify.monitors, &job->job);
}

/* Sends what the store has answered: the next message, or a reminder of what lasts. */
static void send_answer(struct slot *slot, const struct api_receiver *receiver, double now)
{
    struct api_outbox_job *job = &slot->job;
    bool reminds = receiver->format == API_NOTIFY_ALERTMANAGER;
    slot->delivered = 0;
    note_outbox(receiver, job);
    slot->due = now + (job->is_shared ? shared_s : idle_s);
    if (job->wait > 0 && now + (double)job->wait / 1e6 < slot->due)
        slot->due = now + (double)job->wait / 1e6;
    if (reminds && slot->reminded + reminder_s < slot->due)
        slot->due = slot->reminded + reminder_s;
    if (job->number) {
        send_message(slot, receiver, job, false, now);
    } else if (reminds && job->is_sender && now >= slot->reminded + reminder_s) {
        slot->reminded = now;
        slot->due = now + shared_s;
        api_outbox_collect_lasting(notify.monitors, receiver, job);
        if (job->n > 0)
            send_message(slot, receiver, job, true, now);
    }
}

/* Takes the answers of the store; gives the number of jobs that are under way. */
static size_t take_answers(void)
{
    size_t asking = 0;
    for (size_t i = 0; i < API_MAX_RECEIVERS; i++) {
        struct slot *slot = &notify.slots[i];
        if (slot->is_asking && atomic_exchange(&slot->is_answered, false)) {
            double now = api_seconds();
            slot->is_asking = false;
            slot->due = now + first_wait_s;
            if (!slot->job.problem.code)
                send_answer(slot, &notify.receivers->list[i], now);
            api_outbox_job_free(&slot->job);
        }
        asking += slot->is_asking;
    }
    return asking;
}

/* Waits longer after each failure, and as long as the receiver asks for. */
static double wait_after(unsigned failures, double retry_after)
{
    double wait = first_wait_s;
    for (unsigned i = 1; i < failures && wait < max_wait_s; i++)
        wait *= 2;
    if (retry_after > wait)
        wait = retry_after;
    return wait < max_wait_s ? wait : max_wait_s;
}

static void finish(struct slot *slot, const struct api_receiver *receiver, CURLcode result)
{
    double now = api_seconds();
    const struct srv_outcome outcome = srv_post_end(&slot->post, result);
    bool is_done = outcome.result != API_NOTIFY_FAILED, good = !*outcome.failure;
    abort_post(&slot->post);
    api_notifier_note(&notify.notifier, receiver->name, outcome.result, 1,
                      good ? NULL : outcome.failure);
    if (!good && (is_done || slot->failures == 0))
        srv_log(SRV_LOG_WARNING, "--notify: '%s' did not take %zu changes: %s%s", receiver->name,
                slot->n, outcome.failure, is_done ? "; they are given up" : "; trying again");
    else if (good && slot->failures > 0)
        srv_log(SRV_LOG_INFO, "--notify: '%s' takes messages again", receiver->name);
    else
        srv_log(SRV_LOG_DEBUG, "--notify: '%s' took %zu changes", receiver->name, slot->n);
    slot->failures = is_done ? 0 : slot->failures + 1;
    slot->due = is_done ? now : now + wait_after(slot->failures, outcome.retry_after);
    if (is_done && !slot->is_reminder)
        slot->delivered = slot->number;
}

/* ---- Tests */

static void end_test(const struct srv_outcome *outcome)
{
    struct api_notify_test *test = notify.tests;
    notify.tests = test->next;
    test->status = outcome->status;
    test->seconds = outcome->seconds;
    memcpy(test->failure, outcome->failure, sizeof test->failure);
    memcpy(test->answer, notify.post_of_test.answer, sizeof test->answer);
    abort_post(&notify.post_of_test);
    api_store_job_finish(test->job); /* which may be freed now */
}

static void begin_test(void)
{
    static const struct api_change change = {.group = "kldiv",
                                             .name = "test",
                                             .sentence = "nothing has happened; this is a test",
                                             .from = API_OK,
                                             .to = API_WARNING,
                                             .kl = 0};
    struct api_change now = change;
    size_t i = api_receivers_find(notify.receivers, notify.tests->name);
    struct srv_outcome gone = {.failure = "it is not there any more, or memory is exhausted"};
    now.at = now.since = now.queued = api_now();
    struct api_message message = message_of(&now, 1, now.at);
    message.is_test = true;
    if (i == notify.receivers->n ||
        !begin(&notify.post_of_test, &notify.receivers->list[i], &message))
        end_test(&gone);
}

static void take_tests(bool ends)
{
    struct api_notify_test **last = &notify.tests;
    while (*last)
        last = &(*last)->next;
    *last = api_notify_tests_take(&notify.notifier, ends);
}

/* ---- Thread */

static void abort_all(void)
{
    struct srv_outcome ended = {.failure = "the server ends, or reads its file again"};
    for (size_t i = 0; i < API_MAX_RECEIVERS; i++) {
        abort_post(&notify.slots[i].post);
        notify.slots[i] = (struct slot){.reminded = -reminder_s};
    }
    if (notify.post_of_test.easy)
        end_test(&ended);
}

/* Begins anew with the receivers of now, if they are others and no job is under way. What is under way is sent again. */
static void renew_receivers(size_t asking)
{
    struct api_receivers *receivers = api_notifier_receivers(&notify.notifier);
    notify.is_renewing = receivers != notify.receivers && asking > 0;
    if (receivers == notify.receivers || asking > 0) {
        api_receivers_release(receivers);
        return;
    }
    abort_all();
    api_receivers_release(notify.receivers);
    notify.receivers = receivers;
}

/* Finishes posts that have come to an end; false if none has. */
static bool finish_posts(void)
{
    CURLMsg *done;
    bool any = false;
    int left;
    while ((done = curl_multi_info_read(notify.multi, &left))) {
        CURL *easy = done->easy_handle;
        CURLcode result = done->data.result;
        if (done->msg != CURLMSG_DONE)
            continue;
        any = true;
        if (easy == notify.post_of_test.easy) {
            const struct srv_outcome outcome = srv_post_end(&notify.post_of_test, result);
            end_test(&outcome);
        }
        for (size_t i = 0; i < notify.receivers->n; i++)
            if (easy == notify.slots[i].post.easy)
                finish(&notify.slots[i], &notify.receivers->list[i], result);
    }
    return any;
}

/* Asks the store for the messages that are due; gives the time until the next one, in ms. */
static int take_steps(void)
{
    enum { MAX_MS = 60000 };
    double next = api_seconds() + MAX_MS / 1e3;
    bool has_news = atomic_exchange(&notify.has_news, false);
    for (size_t i = 0; i < notify.receivers->n; i++) {
        struct slot *slot = &notify.slots[i];
        double now = api_seconds();
        slot->has_news |= has_news;
        if (slot->post.easy || slot->is_asking || notify.is_renewing)
            continue;
        if (now >= slot->due || (slot->has_news && slot->failures == 0))
            ask(slot, &notify.receivers->list[i], now);
        if (!slot->is_asking && slot->due < next)
            next = slot->due;
    }
    double left = next - api_seconds();
    return left > 0 ? (int)(left * 1e3) + 1 : 0;
}

static void *send_all(void *unused)
{
    enum { POLL_MS = 1000 };
    int running;
    (void)unused;
    while (!atomic_load(&notify.stopping)) {
        renew_receivers(take_answers());
        take_tests(false);
        int wait = take_steps();
        if (notify.tests && !notify.post_of_test.easy)
            begin_test();
        curl_multi_perform(notify.multi, &running);
        if (!finish_posts() && !atomic_load(&notify.has_news))
            curl_multi_poll(notify.multi, NULL, 0, wait, NULL);
    }
    while (take_answers() > 0)
        curl_multi_poll(notify.multi, NULL, 0, POLL_MS, NULL);
    take_tests(true);
    abort_all();
    while (notify.tests)
        end_test(&(struct srv_outcome){.failure = "the server ends"});
    api_receivers_release(notify.receivers);
    return NULL;
}

/* ---- Start and end */

/* Copies --public-url without slashes at its end. */
static bool copy_public_url(const char *url)
{
    size_t size = url ? strlen(url) : 0;
    while (size > 0 && url[size - 1] == '/')
        size--;
    if (size >= sizeof notify.public_url)
        return false;
    if (url)
        memcpy(notify.public_url, url, size);
    return true;
}

bool srv_notify_open(const struct srv_options *options, FILE *errors)
{
    struct srv_file_error error;
    if (!options->notify)
        return true;
    struct api_receivers *receivers = srv_notify_read(options->notify, &error);
    if (!receivers) {
        fprintf(errors, "kldivd: %s: %s\n", error.option, error.text);
        return false;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(notify.multi = curl_multi_init()) ||
        !copy_public_url(options->public_url) ||
        !api_notifier_init(&notify.notifier, *notify.public_url ? notify.public_url : NULL, wake) ||
        getrandom(&notify.server, sizeof notify.server, 0) != sizeof notify.server) {
        fprintf(errors, "kldivd: --notify: libcurl cannot be started\n");
        api_receivers_release(receivers);
        return false;
    }
    api_notifier_set(&notify.notifier, receivers);
    notify.is_open = true;
    return true;
}

void srv_notify_list_files(const struct srv_options *options, const char **files, size_t max)
{
    static const char *const of_system[] = {"/etc/resolv.conf",
                                            "/etc/ssl/certs/ca-certificates.crt"};
    size_t n = 0;
    if (!notify.is_open)
        return;
    for (size_t i = 0; i < 2 && n < max; i++)
        files[n++] = of_system[i];
    srv_notify_files(options->notify, notify.notifier.receivers, files, n, max);
}

void srv_notify_attach(struct api_monitors *monitors)
{
    if (notify.is_open)
        api_monitors_notify(monitors, &notify.notifier);
}

bool srv_notify_start(struct api_monitors *monitors, struct api_budget *budget)
{
    if (!notify.is_open)
        return true;
    notify.monitors = monitors;
    notify.budget = budget;
    notify.notifier.accepts_tests = true;
    abort_all();
    notify.is_running = pthread_create(&notify.thread, NULL, send_all, NULL) == 0;
    return notify.is_running;
}

void srv_notify_stop(void)
{
    if (!notify.is_running)
        return;
    atomic_store(&notify.stopping, true);
    wake();
    pthread_join(notify.thread, NULL);
}

void srv_notify_close(void)
{
    if (!notify.is_open)
        return;
    api_notifier_free(&notify.notifier);
    curl_multi_cleanup(notify.multi);
    curl_global_cleanup();
}

void srv_notify_log(const struct srv_options *options)
{
    if (notify.is_open)
        srv_notify_file_log(options->notify, &notify.notifier);
}

void srv_notify_reload(const struct srv_options *options)
{
    if (notify.is_open)
        srv_notify_file_reload(options->notify, &notify.notifier);
}
