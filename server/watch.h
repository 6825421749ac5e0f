/* The thread that watches connections: it ends the late ones, notices clients that leave, and
 * resumes bodies that wait for memory. */
#ifndef KLDIV_SERVER_WATCH_H
#define KLDIV_SERVER_WATCH_H

#include "api/memory/budget.h"
#include "server/connections.h"

#include <stdbool.h>

/* Starts the thread; false if it cannot be started. `budget` outlives it. */
bool srv_watch_start(const struct api_budget *budget);
void srv_watch_stop(void);

/* Watches a connection of the table for its client's end. False if the system refuses: its end is
 * then seen when a deadline passes. */
bool srv_watch(const struct srv_connection *connection);

#endif
