/* The watcher: the thread that looks at each connection when the connection is due, or when its client leaves. No event
 * leads to a walk over all connections: a heap orders them by the time of the next look. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct srv_watched;

/* Looks at what is watched, with the watcher locked: `events` are those of epoll, 0 where the entry is due. Sets the
 * time of the next look, or stops watching. May unlock the watcher for a while, if nobody else removes the entry. */
typedef void srv_look(struct srv_watched *watched, unsigned events, unsigned long long now);

/* srv_watched: an entry of the watcher, the first member of its owner's structure. */
struct srv_watched {
    int fd;
    unsigned number;   /* unlike those of other entries that had the descriptor */
    atomic_ullong due; /* time of the next look, in ms */
    size_t index;      /* in the heap */
    srv_look *look;
};

/* SRV_NEVER: the due time of an entry that waits for events alone. */
#define SRV_NEVER (~0ull)

/* Starts the thread, with room for descriptors below `descriptors`; false if it cannot be started. If a signal to end
 * waits for 5 s because the main thread is stuck, the process ends `seconds` later. */
bool srv_watcher_start(size_t descriptors, size_t seconds);
void srv_watcher_stop(void);

/* SRV_EXIT_STUCK: the exit status of a process that does not end by itself after SIGTERM. SRV_LAST_RESORT: seconds that
 * it has after --drain-timeout to end its threads and close its store. */
enum { SRV_EXIT_STUCK = 2, SRV_LAST_RESORT = 5 };

/* Ends the process after so many seconds, with SRV_EXIT_STUCK and a line in the log. It needs neither memory nor
 * descriptors, because a call that others rely on may have failed, nor the watcher's lock, which another thread may
 * hold. */
void srv_watcher_end_process(size_t seconds);

/* Locks the watcher: nothing is looked at, added or removed until it is unlocked. */
void srv_watcher_lock(void);
void srv_watcher_unlock(void);

/* Waits until a number of entries, which changes with the watcher locked, is 0. */
void srv_watcher_wait(const size_t *n);

/* Adds an entry, whose `fd`, `due` and `look` are set; the watcher is locked. False if there is no room for its
 * descriptor. */
bool srv_watch_add(struct srv_watched *watched);

/* Removes an entry before its descriptor is closed; the watcher is locked. */
void srv_watch_remove(struct srv_watched *watched);

/* Has an entry looked at when epoll has these events of its descriptor, too; false if the system refuses. */
bool srv_watch_events(const struct srv_watched *watched, unsigned events);

/* Sets the time of the next look; the watcher is locked. Called by `look`. */
void srv_watch_at(struct srv_watched *watched, unsigned long long due);

/* Has an entry looked at no later than `due`; the watcher is locked. An entry moves toward the front of
 * srv_watched_next's order alone. */
void srv_watch_by(struct srv_watched *watched, unsigned long long due);

/* Does that where the watcher is not locked; the lock is taken only if the entry is due later. */
void srv_watch_soon(struct srv_watched *watched, unsigned long long due);

/* The entry of a descriptor, or NULL. Called with the watcher locked, or by a thread that keeps the entry. */
struct srv_watched *srv_watched_at(int fd);

/* Gives the entry after *i others, and advances *i; NULL at the end. The watcher is locked. */
struct srv_watched *srv_watched_next(size_t *i);
