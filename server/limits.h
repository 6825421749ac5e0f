/* Options fitted to what the machine and the container give. */
#ifndef KLDIV_SERVER_LIMITS_H
#define KLDIV_SERVER_LIMITS_H

#include "server/options.h"

/* Settles threads, max_memory and max_connections, where they are 0 or more than there is. Raises the
 * process's own limit of descriptors as far as it goes. Call it once, before threads start. */
void srv_limits_apply(struct srv_options *options);

/* Logs what came out, and why. */
void srv_limits_log(const struct srv_options *options);

#endif
