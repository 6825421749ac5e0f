/* Tells a service manager again and again that the server works, as long as it does. */
#ifndef KLDIV_SERVER_WATCHDOG_H
#define KLDIV_SERVER_WATCHDOG_H

/* Reads WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment. Called before other threads
 * run. */
void srv_watchdog_start(void);

/* Marks the begin and the end of a step of the calling thread, which takes some ms at most: a part of a
 * request in a network thread, a connection that is accepted, a look at all connections. A thread that
 * waits for work is between steps. Jobs, which may compute for seconds, are none. */
void srv_step_begin(void);
void srv_step_end(void);

/* Sends WATCHDOG=1 if half of the manager's time is over since the last one, unless a thread has been in
 * the same step for that long: it is stuck, as in a deadlock, and the manager will start the server anew.
 * Returns the time until the next call, in ms, at most 1000. Called by the main thread, whose loop is so
 * watched, too. */
unsigned long long srv_watchdog_beat(void);

#endif
