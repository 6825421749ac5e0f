#include "server/notify/notify.h"

#include "server/notify/sender.h"
#include "server/telemetry/log.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static struct srv_senders senders;
static bool is_open, is_running;

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

bool srv_notify_open(const struct srv_options *options, FILE *errors)
{
    static char public_url[2000]; /* without slashes at its end */
    struct srv_file_error error;
    if (!options->notify)
        return true;
    struct api_receivers *receivers = read_receivers(options->notify, &error);
    if (!receivers) {
        fprintf(errors, "kldivd: %s: %s\n", error.option, error.text);
        return false;
    }
    const char *url = options->public_url;
    size_t size = url ? strlen(url) : 0;
    while (size > 0 && url[size - 1] == '/')
        size--;
    snprintf(public_url, sizeof public_url, "%.*s", (int)size, url ? url : "");
    is_open = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
              api_notifier_init(&senders.notifier, size > 0 ? public_url : NULL) &&
              getrandom(&senders.server, sizeof senders.server, 0) == sizeof senders.server;
    if (is_open)
        api_notifier_set(&senders.notifier, receivers);
    else
        fprintf(errors, "kldivd: --notify: libcurl cannot be started\n");
    return is_open;
}

size_t srv_notify_list_files(const struct srv_options *options, const char **files, size_t max)
{
    const struct api_receivers *receivers = senders.notifier.receivers;
    size_t n = 0;
    if (!is_open)
        return 0;
    files[n++] = options->notify;
    for (size_t i = 0; i < receivers->n; i++) {
        const char *const named[] = {receivers->list[i].secret_file, receivers->list[i].ca_file};
        for (size_t j = 0; j < 2; j++)
            if (named[j] && n < max)
                files[n++] = named[j];
    }
    return n;
}

void srv_notify_attach(struct api_monitors *monitors)
{
    if (is_open)
        api_monitors_notify(monitors, &senders.notifier);
}

bool srv_notify_start(struct api_monitors *monitors, struct api_budget *budget)
{
    senders.monitors = monitors;
    senders.budget = budget;
    is_running = is_open && srv_senders_start(&senders);
    return is_running == is_open;
}

void srv_notify_end_tests(void)
{
    if (is_running)
        srv_senders_end_tests(&senders);
}

bool srv_notify_stop(void) { return !is_running || srv_senders_stop(&senders); }

void srv_notify_close(void)
{
    if (!is_open)
        return;
    api_notifier_free(&senders.notifier);
    curl_global_cleanup();
}

void srv_notify_log(const struct srv_options *options)
{
    if (!is_open)
        return;
    struct api_receivers *receivers = api_notifier_receivers(&senders.notifier);
    srv_log(SRV_LOG_INFO, "read %zu receivers of notifications file=%s", receivers->n,
            options->notify);
    api_receivers_release(receivers);
}

bool srv_notify_reload(const struct srv_options *options, struct srv_file_error *error)
{
    struct api_receivers *receivers = is_open ? read_receivers(options->notify, error) : NULL;
    if (!receivers)
        return !is_open;
    api_notifier_set(&senders.notifier, receivers);
    srv_notify_log(options);
    return srv_senders_start(&senders) ||
           srv_file_fail(error, option, "a receiver's thread cannot be started");
}
