/* Notifications: from the outbox of the store to the receivers of --notify. */
#pragma once

#include "api/monitors/monitors.h"
#include "api/notify/notifier.h"
#include "server/config/options.h"
#include "server/config/text_file.h"

/* Reads the file of --notify and starts libcurl, while files may still be opened. False, with a line on `errors`. Does
 * nothing without --notify. */
bool srv_notify_open(const struct srv_options *options, FILE *errors);

/* Sets the files that a reload reads, at most `max`, and gives their number. */
size_t srv_notify_list_files(const struct srv_options *options, const char **files, size_t max);

/* Makes the monitors store changes for the receivers; call it before their thread starts. */
void srv_notify_attach(struct api_monitors *monitors);

/* Starts the senders; stops them, when no request is left: what was not sent stays in the store. False if one is left that
 * goes on to use monitors and budget: the process must end without freeing them. */
bool srv_notify_start(struct api_monitors *monitors, struct api_budget *budget);
bool srv_notify_stop(void);

/* Ends tests that requests wait for. */
void srv_notify_end_tests(void);

/* Frees it all, after the monitors' thread has ended. */
void srv_notify_close(void);

/* Logs what was read; reads the file again. If one is at fault, what it held before stays in use: false, with *error. */
void srv_notify_log(const struct srv_options *options);
bool srv_notify_reload(const struct srv_options *options, struct srv_file_error *error);
