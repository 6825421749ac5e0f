/* api_work: what a request has the store's thread do; and what that thread works with. Works that
 * wait share a transaction, so that they share one wait for the disk. */
#ifndef KLDIV_API_MONITORS_WORK_H
#define KLDIV_API_MONITORS_WORK_H

#include "api/monitors/monitors.h"
#include "api/monitors/score.h"

/* api_work: begins the structure of each kind of work. The thread calls `run` within a transaction,
 * `collect` when all works have run and their observations are written, `publish` after the commit;
 * each may be NULL. False from run or collect is a problem of the request, by which run must
 * have written nothing, or, with api_store_failed, one of the store. A work may run again, after its
 * transaction failed. */
struct api_work {
    struct api_work *next;
    bool alone; /* has a transaction of its own: it changes what others see */
    bool (*run)(struct api_work *work, struct api_monitors *monitors);
    bool (*collect)(struct api_work *work, struct api_monitors *monitors);
    void (*publish)(struct api_work *work, struct api_monitors *monitors);
    struct api_problem problem;
    struct api_exchange *x; /* told at the end */
    bool done;
};

/* api_touched: a window that works of this transaction changed. Its view holds what it is then. */
struct api_touched {
    struct api_touched *next;
    struct api_view *view;
    double *added; /* counts of this transaction; NULL if none */
    bool is_new, closes, rescored;
};

/* api_draft: a monitor as it is in this transaction. */
struct api_draft {
    struct api_draft *next;
    struct api_monitor *monitor;
    struct api_live live;
    struct api_touched *windows, **last;
};

struct api_monitors {
    struct api_registry registry;
    struct api_store *store;
    struct api_budget *budget;
    size_t most;

    /* Owned by the thread: */
    int64_t now; /* of this transaction, in microseconds since 1970 */
    struct api_draft *drafts;
    bool out_of_memory; /* the reason of a failure that is not the store's */
    int64_t keys;       /* idempotency keys in the store */
    int64_t keys_pruned;
    int64_t next_close; /* no later than the first of all monitors */
    bool must_pause;    /* the last upkeep failed */
    int64_t *dead;      /* monitors that are deleted, and have rows left */
    size_t n_dead;

    /* Shared, under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct api_work *first, *last;
    size_t waiting;
    bool stopping, started;
    pthread_t thread;
    void (*log)(bool is_failure, const char *sentence);

    atomic_bool stored;
    struct api_store_statistics *statistics;
};

/* Fails for want of memory; the transaction ends. */
bool api_work_out_of_memory(struct api_monitors *monitors);

int64_t api_now(void);

/* The draft of a monitor, made at its first use. NULL if memory is exhausted. */
struct api_draft *api_draft_of(struct api_monitors *monitors, struct api_monitor *monitor);

/* ---- observe.c: observations */

/* Adds counts to the window that a time belongs to; *touched becomes that window. */
bool api_observe(struct api_monitors *monitors, struct api_monitor *monitor, const uint64_t *counts,
                 int64_t time, struct api_touched **touched);

/* ---- close.c: windows are written, scored, closed */

/* Writes what works have added, and closes what is due. */
bool api_flush(struct api_monitors *monitors);

/* Touches all open windows of a monitor so that they close, or those that are due. */
bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone);

/* Makes the view of a window of a monitor, by the config of the window's revision; takes the window.
 * NULL if the store or memory fails. */
struct api_view *api_view_of(struct api_monitors *monitors, const struct api_monitor *monitor,
                             struct api_window *window);

/* Reads live numbers of a monitor from its windows. */
bool api_live_read(struct api_monitors *monitors, const struct api_monitor *monitor,
                   struct api_live *live);

/* Writes the live numbers of a draft. */
bool api_live_store(struct api_monitors *monitors, const struct api_draft *draft);

/* ---- upkeep.c: what is done between requests */

/* Closes windows that are due, sweeps, and shows whether the store can be written. */
bool api_upkeep(struct api_monitors *monitors);

/* True if there is something to do now. Finds when the next window is due. */
bool api_upkeep_is_due(struct api_monitors *monitors);

/* ---- sweep.c: what is too old */
bool api_sweep(struct api_monitors *monitors, bool *more);

/* Deletes windows of a monitor that ended too long before the newest, at most a hundred; *n becomes
 * their number. */
bool api_expire(struct api_monitors *monitors, const struct api_monitor *monitor,
                int64_t newest_end, size_t *n);
bool api_add_dead(struct api_monitors *monitors, int64_t monitor);

#endif
