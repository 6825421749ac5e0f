/* The end of a process that does not end by itself after SIGTERM. A thread of its own waits for it and
 * needs neither memory nor descriptors then, as a call may have failed that others rely on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* SRV_EXIT_STUCK: the exit status of such a process. SRV_LAST_RESORT: seconds that it has after
 * --drain-timeout to end its threads and close its store. */
enum { SRV_EXIT_STUCK = 2, SRV_LAST_RESORT = 5 };

/* Starts the thread; false if it cannot be started. Where a signal to end waits for 5 s, as the main thread
 * is stuck, the process ends `seconds` later. */
bool srv_last_resort_start(size_t seconds);

/* Has the process end after so many seconds, with SRV_EXIT_STUCK and a line in the log. */
void srv_last_resort_arm(size_t seconds);

/* Ends the thread. */
void srv_last_resort_stop(void);
