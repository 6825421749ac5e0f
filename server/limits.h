/* Fits options to the machine and the container. */
#pragma once

#include "server/options.h"

/* Sets threads, http_threads and max_memory if they are 0; lowers max_connections to the limit
 * of descriptors, which is first raised to its hard limit. Call it once, before threads start. */
void srv_limits_apply(struct srv_options *options);

/* Logs the resulting limits and their origin. */
void srv_limits_log(const struct srv_options *options);
