/* Opens what drift monitors are kept in, or memory in its place. */
#pragma once

#include "api/monitors/monitors.h"
#include "server/config/options.h"

/* Opens --store; its requests are counted in `budget`. NULL, with one line on stderr, if it cannot be
 * opened, and --store-fallback does not help: that is only for a file that is not there and cannot be
 * made. A file that is there is never passed over, for then it would seem to have lost what it holds. */
struct api_monitors *srv_store_open(const struct srv_options *options, struct api_budget *budget);

/* Does --migrate: prints what it changes; false, with one line on stderr, if it fails. */
bool srv_store_migrate(const struct srv_options *options);

/* Logs what was opened; a warning if it is memory in place of a file. */
void srv_store_log(const struct srv_options *options, struct api_monitors *monitors);
