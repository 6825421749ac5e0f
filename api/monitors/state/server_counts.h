/* api_server_counts: what this server has counted of an open window, in a store that servers share. Each server
 * has a row for each such window, which it alone writes, and writes whole; the window's counts are those of
 * kldiv_counts and of all these rows. That is a grow-only counter (Shapiro, Preguiça, Baquero, Zawirski:
 * Conflict-free replicated data types, 2011): additions of different servers never wait for one another, and
 * cost one statement for any number of bins. Additions are made in concurrent transactions; whatever else
 * changes a window, or closes it, is alone, and takes the rows into kldiv_counts first.
 *
 * A server has a number, which no other ever had. It takes a new one with each connection: whether the last
 * commit was done, and whether the database is the same, is of no matter then. */
#pragma once

#include "api/monitors/state/transaction.h"

struct api_server_counts {
    int64_t window;
    double n;
    struct api_moments moments;
    double counts[]; /* one for each bin */
};

/* Takes a number for this server, unless it has one by this connection. */
bool api_server_number(struct api_monitors *monitors);

/* Adds to this server's row what the transaction has counted of a window. */
bool api_server_counts_add(struct api_monitors *monitors, struct api_pending_monitor *pending,
                           const struct api_dirty_window *dirty);

/* In a store that servers share: adds the rows of all servers to the counts of an open window, and sets its n. */
bool api_server_counts_read(struct api_monitors *monitors, int64_t monitor,
                            struct api_snapshot *snapshot);

/* In a store that servers share: deletes the rows of a window that was read open, and adds them to what the transaction
 * writes to kldiv_counts. The snapshot has them already. */
bool api_server_counts_take(struct api_monitors *monitors, struct api_pending_monitor *pending,
                            struct api_dirty_window *dirty);

/* If rows of a pending monitor were taken, reads its number of values: some may be of other servers, and not known here
 * yet. */
bool api_server_counts_total(struct api_monitors *monitors, struct api_pending_monitor *pending);

/* Reads the numbers of values that other servers have counted since the last time, unless that was too short a while
 * ago; the registry has them. An open window is read again before it is added to. */
bool api_server_counts_refresh(struct api_monitors *monitors);
