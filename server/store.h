/* Opens what drift monitors are kept in, or memory in its place. */
#pragma once

#include "api/monitors/monitors.h"
#include "server/config/options.h"

/* Opens --store; its requests are counted in `budget`. NULL, with one line on stderr, if it cannot be opened.
 * --store-fallback helps only if the file does not exist and cannot be made: a file that exists is never ignored,
 * because its monitors would seem lost. */
struct api_monitors *srv_store_open(const struct srv_options *options, struct api_budget *budget);

/* Does --migrate: prints what it changes; false, with one line on stderr, if it fails. */
bool srv_store_migrate(const struct srv_options *options);

/* Does --backup: prints the bytes and seconds; false, with one line on stderr, if it fails. */
bool srv_store_backup(const struct srv_options *options);

/* Logs which store was opened: a warning if it is memory instead of a file. */
void srv_store_log(const struct srv_options *options, struct api_monitors *monitors);
