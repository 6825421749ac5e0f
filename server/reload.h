/* The files that are read at start, and again when one changes and at SIGHUP: tokens, certificate and key. */
#pragma once

#include "api/request/tokens.h"
#include "server/config/options.h"

/* Reads the files that the options name; `tokens` may be NULL if they name none of these. False,
 * with one line on `errors`, if one is at fault. */
bool srv_files_read(const struct srv_options *options, struct api_tokens *tokens, FILE *errors);

/* Logs what was read at start. */
void srv_files_log(const struct srv_options *options, struct api_tokens *tokens);

/* Watches the files that a reload reads. */
void srv_files_watch(const struct srv_options *options);

/* Reads the files, and the receivers of --notify, again, watches what they name, and logs the outcome. What a faulty file held
 * before stays in use. */
void srv_reload(const struct srv_options *options, struct api_tokens *tokens);
