/* The file of --notify with the files that it names: secrets and certificates of authorities. */
#pragma once

#include "api/notify/notifier.h"
#include "server/config/text_file.h"

/* Reads them; NULL, with the place and the reason in *error, if one is at fault. */
struct api_receivers *srv_notify_read(const char *path, struct srv_file_error *error);

/* Adds the files to a list of `n`, up to `max`; returns their number. They live as long as the receivers. */
size_t srv_notify_files(const char *path, const struct api_receivers *receivers, const char **files,
                        size_t n, size_t max);

/* Logs what was read; reads the files again for a notifier, and logs the outcome. What a faulty file held before stays in
 * use. */
void srv_notify_file_log(const char *path, struct api_notifier *notifier);
void srv_notify_file_reload(const char *path, struct api_notifier *notifier);
