/* How many connections there may be, and how many there are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* srv_quota: the limit that a connection counts toward. */
enum srv_quota {
    SRV_REGULAR,  /* --max-connections */
    SRV_RESERVED, /* for health checks when --max-connections are open */
    SRV_ADMIN,    /* of --admin-listen */
    SRV_QUOTAS,
};

/* SRV_ENDING: the maximal number of connections of a quota that make room for others and are not closed yet. */
enum { SRV_ENDING = 64 };

/* Counts a connection; false if the quota has `limit` connections, not counting those that end to make room. */
bool srv_quota_admit(enum srv_quota quota, size_t limit);

/* Counts one of the quota's connections as one that ends to make room; false if SRV_ENDING do. The watcher is locked. */
bool srv_quota_make_room(enum srv_quota quota);

/* Ends the count of an admitted connection, which `makes_room` or does not. The watcher is locked. */
void srv_quota_leave(enum srv_quota quota, bool makes_room);

/* Number of connections that are admitted and have not left. */
size_t srv_connections_open(void);
