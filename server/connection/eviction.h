/* Chooses the connection that ends so that others can be served, when connections or memory run out. Nobody waits for
 * memory: a request that gets none is refused. */
#pragma once

#include "server/connection/connections.h"

/* Counts a connection before libmicrohttpd takes it. If `limit` connections of the quota exist already, the
 * slowest one is ended to make room, unless this one has `to_wait`; false if none is slow. */
bool srv_evict_for_connection(enum srv_quota quota, size_t limit, bool to_wait);

/* Ends the slowest request that holds the most memory, if it is behind its minimum rate, and if all such requests
 * together hold the `missing` bytes. True if its memory is free at once: that of a body is; that of a response
 * once its network thread has noticed. Called by the network thread of `asking`. */
bool srv_evict_for_memory(const struct srv_connection *asking, size_t missing);
