#include "server/notify/notify.h"

#include "api/text/clock.h"
#include "server/notify/tests.h"
#include "server/telemetry/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static struct {
    struct api_notifier notifier;
    bool is_open, is_running;
    char public_url[2000];
    struct srv_sender sender;
    pthread_t thread;
    atomic_bool stopping, has_news;
    bool is_renewing; /* once no job is under way */

    /* Owned by the thread: */
    struct api_receivers *receivers;
    struct srv_delivery deliveries[API_MAX_RECEIVERS];
    struct srv_tests tests;
} notify;

static void wake(void)
{
    atomic_store(&notify.has_news, true);
    curl_multi_wakeup(notify.sender.multi);
}

/* ---- Thread */

static const char why_aborted[] = "the server ends, or reads its file again";

static void abort_all(void)
{
    for (size_t i = 0; i < API_MAX_RECEIVERS; i++)
        srv_delivery_reset(&notify.deliveries[i], &notify.sender);
    srv_tests_abort(&notify.tests, why_aborted);
}

/* Takes the answers of the store; gives the number of jobs that are under way. */
static size_t take_answers(void)
{
    size_t asking = 0;
    for (size_t i = 0; notify.receivers && i < notify.receivers->n; i++)
        asking += srv_delivery_take_answer(&notify.deliveries[i], &notify.receivers->list[i]);
    return asking;
}

/* Finds when reminders of receivers are due that have them as before. */
static void find_reminders(const struct api_receivers *receivers, double next[API_MAX_RECEIVERS])
{
    for (size_t i = 0; notify.receivers && i < receivers->n; i++) {
        const struct api_receiver *receiver = &receivers->list[i];
        size_t before = api_receivers_find(notify.receivers, receiver->name);
        bool is_same = receiver->remind > 0 && before < notify.receivers->n &&
                       notify.receivers->list[before].remind == receiver->remind;
        next[i] = is_same ? srv_delivery_reminder(&notify.deliveries[before]) : 0;
    }
}

/* If the receivers have changed and no job is under way, begins anew with the present ones. Messages under way, reminders
 * too, are sent again. */
static void renew_receivers(size_t asking)
{
    struct api_receivers *receivers = api_notifier_receivers(&notify.notifier);
    double reminders[API_MAX_RECEIVERS] = {0};
    notify.is_renewing = receivers != notify.receivers && asking > 0;
    if (receivers == notify.receivers || asking > 0) {
        api_receivers_release(receivers);
        return;
    }
    find_reminders(receivers, reminders);
    abort_all();
    for (size_t i = 0; i < receivers->n; i++)
        notify.deliveries[i].next_reminder = reminders[i];
    api_receivers_release(notify.receivers);
    notify.receivers = receivers;
}

/* Ends a post; a receiver that takes a test is sent at once what waits for it. */
static void finish(CURL *easy, CURLcode result)
{
    const struct api_receiver *takes = srv_tests_finish(&notify.tests, easy, result);
    for (size_t i = 0; i < notify.receivers->n; i++) {
        struct srv_delivery *delivery = &notify.deliveries[i];
        if (easy == delivery->post.easy)
            srv_delivery_finish(delivery, &notify.receivers->list[i], result);
        if (takes == &notify.receivers->list[i] && !delivery->post.easy)
            delivery->due = api_seconds();
    }
}

/* Finishes posts that have come to an end; false if none has. */
static bool finish_posts(void)
{
    CURLMsg *done;
    bool any = false;
    int left;
    for (size_t i = 0; i < notify.receivers->n; i++) {
        struct srv_post *post = &notify.deliveries[i].post;
        if (post->easy && srv_post_has_no_address(post, notify.sender.multi)) {
            any = true;
            finish(post->easy, CURLE_COULDNT_RESOLVE_HOST);
        }
    }
    while ((done = curl_multi_info_read(notify.sender.multi, &left))) {
        if (done->msg == CURLMSG_DONE) {
            any = true;
            finish(done->easy_handle, done->data.result);
        }
    }
    return any;
}

/* Asks the store for the messages that are due; gives the time until the next look at them, in ms. */
static int take_steps(size_t n_tests)
{
    enum { MAX_MS = 60000, LOOK_MS = 1000 };
    double next = api_seconds() + (n_tests > 0 ? LOOK_MS : MAX_MS) / 1e3;
    bool has_news = atomic_exchange(&notify.has_news, false);
    for (size_t i = 0; i < notify.receivers->n; i++) {
        struct srv_delivery *delivery = &notify.deliveries[i];
        double now = api_seconds();
        delivery->has_news |= has_news;
        if (srv_post_looks_up(&delivery->post) && now + LOOK_MS / 1e3 < next)
            next = now + LOOK_MS / 1e3;
        if (delivery->post.easy || delivery->is_asking || notify.is_renewing)
            continue;
        if (now >= delivery->due || (delivery->has_news && delivery->failures == 0))
            srv_delivery_ask(delivery, &notify.receivers->list[i], now);
        if (!delivery->is_asking && delivery->due < next)
            next = delivery->due;
    }
    double left = next - api_seconds();
    return left > 0 ? (int)(left * 1e3) + 1 : 0;
}

static void wait_for_answers(void)
{
    enum { POLL_MS = 1000 };
    while (take_answers() > 0)
        curl_multi_poll(notify.sender.multi, NULL, 0, POLL_MS, NULL);
}

/* Ends what is under way, which stays in the store, and lets another server send. */
static void end_all(void)
{
    wait_for_answers();
    srv_tests_take(&notify.tests, notify.receivers, true);
    srv_tests_abort(&notify.tests, why_aborted);
    size_t n = notify.receivers ? notify.receivers->n : 0;
    for (size_t i = 0; i < n; i++)
        srv_delivery_leave(&notify.deliveries[i], &notify.receivers->list[i], false);
    wait_for_answers();
    if (n > 0)
        srv_delivery_leave(&notify.deliveries[0], &notify.receivers->list[0], true);
    wait_for_answers();
    api_receivers_release(notify.receivers);
}

static void *send_all(void *unused)
{
    int running;
    (void)unused;
    while (!atomic_load(&notify.stopping)) {
        renew_receivers(take_answers());
        srv_tests_take(&notify.tests, notify.receivers, false);
        int wait = take_steps(srv_tests_look(&notify.tests));
        curl_multi_perform(notify.sender.multi, &running);
        if (!finish_posts() && !atomic_load(&notify.has_news))
            curl_multi_poll(notify.sender.multi, NULL, 0, wait, NULL);
    }
    end_all();
    return NULL;
}

/* ---- The file */

static const char option[] = "--notify";

/* Reads a file that a receiver names, without the end of its last line; what it holds is kept. */
static bool read_named(const char *path, char **to, size_t *size, struct srv_file_error *error)
{
    struct srv_text text;
    if (!path)
        return true;
    if (!srv_text_read(&text, option, path, error))
        return false;
    while (text.size > 0 && strchr("\r\n", text.data[text.size - 1]))
        text.size--;
    *to = text.data;
    *size = text.size;
    return text.size > 0 || srv_file_fail(error, option, "%s is empty", path);
}

/* Reads the file of --notify with those that it names: secrets, and certificates of authorities. NULL, with the place
 * and the reason in *error, if one is at fault. */
static struct api_receivers *read_receivers(const char *path, struct srv_file_error *error)
{
    struct srv_text text;
    struct api_problem problem = {.code = NULL};
    if (!srv_text_read(&text, option, path, error))
        return NULL;
    struct api_receivers *receivers = api_receivers_read(text.data, text.size, &problem);
    srv_text_free(&text);
    if (!receivers) {
        srv_file_fail(error, option, "%.150s%s%s: %.200s", path, *problem.location ? ", " : "",
                      problem.location, problem.detail);
        return NULL;
    }
    for (size_t i = 0; i < receivers->n; i++) {
        struct api_receiver *receiver = &receivers->list[i];
        char *ca = NULL;
        size_t ca_size;
        bool good =
            read_named(receiver->secret_file, &receiver->secret, &receiver->secret_size, error) &&
            read_named(receiver->ca_file, &ca, &ca_size, error);
        free(ca); /* libcurl reads it whenever it connects */
        if (!good) {
            api_receivers_release(receivers);
            return NULL;
        }
    }
    return receivers;
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
    struct api_receivers *receivers = read_receivers(options->notify, &error);
    if (!receivers) {
        fprintf(errors, "kldivd: %s: %s\n", error.option, error.text);
        return false;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        !(notify.sender.multi = curl_multi_init()) || !copy_public_url(options->public_url) ||
        !api_notifier_init(&notify.notifier, *notify.public_url ? notify.public_url : NULL, wake) ||
        getrandom(&notify.sender.server, sizeof notify.sender.server, 0) !=
            sizeof notify.sender.server) {
        fprintf(errors, "kldivd: --notify: libcurl cannot be started\n");
        api_receivers_release(receivers);
        return false;
    }
    api_notifier_set(&notify.notifier, receivers);
    notify.sender.notifier = &notify.notifier;
    notify.is_open = true;
    return true;
}

size_t srv_notify_list_files(const struct srv_options *options, const char **files, size_t max)
{
    static const char *const of_system[] = {"/etc/resolv.conf",
                                            "/etc/ssl/certs/ca-certificates.crt"};
    size_t n = 0, own;
    if (!notify.is_open)
        return 0;
    const struct api_receivers *receivers = notify.notifier.receivers;
    if (n < max)
        files[n++] = options->notify;
    for (size_t i = 0; i < receivers->n; i++) {
        const char *const named[] = {receivers->list[i].secret_file, receivers->list[i].ca_file};
        for (size_t j = 0; j < 2; j++)
            if (named[j] && n < max)
                files[n++] = named[j];
    }
    own = n;
    for (size_t i = 0; i < 2 && n < max; i++)
        files[n++] = of_system[i];
    return own;
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
    notify.sender.monitors = monitors;
    notify.sender.budget = budget;
    notify.tests.sender = &notify.sender;
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
    srv_lookup_close();
    curl_multi_cleanup(notify.sender.multi);
    curl_global_cleanup();
}

void srv_notify_log(const struct srv_options *options)
{
    if (!notify.is_open)
        return;
    struct api_receivers *receivers = api_notifier_receivers(&notify.notifier);
    srv_log(SRV_LOG_INFO, "read %zu receivers of notifications file=%s", receivers->n,
            options->notify);
    api_receivers_release(receivers);
}

bool srv_notify_reload(const struct srv_options *options, struct srv_file_error *error)
{
    struct api_receivers *receivers =
        notify.is_open ? read_receivers(options->notify, error) : NULL;
    if (!receivers)
        return !notify.is_open;
    api_notifier_set(&notify.notifier, receivers);
    srv_notify_log(options);
    return true;
}
