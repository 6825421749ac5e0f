#include "server/notify/notify_file.h"

#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct api_receivers *srv_notify_read(const char *path, struct srv_file_error *error)
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

size_t srv_notify_files(const char *path, const struct api_receivers *receivers, const char **files,
                        size_t n, size_t max)
{
    if (n < max)
        files[n++] = path;
    for (size_t i = 0; i < receivers->n; i++) {
        const char *const named[] = {receivers->list[i].secret_file, receivers->list[i].ca_file};
        for (size_t j = 0; j < 2; j++)
            if (named[j] && n < max)
                files[n++] = named[j];
    }
    return n;
}

void srv_notify_file_log(const char *path, struct api_notifier *notifier)
{
    struct api_receivers *receivers = api_notifier_receivers(notifier);
    srv_log(SRV_LOG_INFO, "read %zu receivers of notifications file=%s", receivers->n, path);
    api_receivers_release(receivers);
}

void srv_notify_file_reload(const char *path, struct api_notifier *notifier)
{
    struct srv_file_error error;
    struct api_receivers *receivers = srv_notify_read(path, &error);
    if (receivers) {
        api_notifier_set(notifier, receivers);
        srv_notify_file_log(path, notifier);
    } else {
        srv_log(SRV_LOG_WARNING,
                "a file is at fault, and its previous contents stay in use option=%s error=%s",
                error.option, error.text);
        srv_metrics_reload(false);
    }
}
