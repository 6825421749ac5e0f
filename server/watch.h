/* The thread that watches connections: it ends the late ones, and notices clients that leave. */
#pragma once

#include "server/connections.h"

#include <stdbool.h>

/* Starts the thread; false if it cannot be started. */
bool srv_watch_start(void);
void srv_watch_stop(void);

/* Watches a connection of the table for its client's end. False if the system refuses: its end is
 * then seen when a deadline passes. */
bool srv_watch(const struct srv_connection *connection);
