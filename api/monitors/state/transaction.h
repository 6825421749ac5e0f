/* api_monitors: all monitors with their store, and what a transaction of the store's thread changes. */
#pragma once

#include "api/monitors/model/score.h"
#include "api/monitors/model/window.h"
#include "api/monitors/state/metrics.h"
#include "api/request/job.h"
#include "api/store/store.h"
#include "api/store/store_metrics.h"
#include "api/text/clock.h"
#include "api/text/trace.h"

/* api_dirty_window: a window that jobs of this transaction changed. Its snapshot holds what it is then. */
struct api_dirty_window {
    struct api_dirty_window *next;
    struct api_snapshot *snapshot;
    bool is_new, closes, rescored;
};

/* api_pending_monitor: a monitor as it is in this transaction. */
struct api_pending_monitor {
    struct api_pending_monitor *next;
    struct api_monitor *monitor;
    struct api_monitor_status status;
    struct api_trace trace; /* of the last request that has one, and changes it */
    struct api_pool *pool;  /* as in the monitor, after the windows that are written */
    int64_t counted;        /* values that the row of the monitor does not have yet */
    bool has_expired;       /* windows that were too old are deleted */
    struct api_dirty_window *windows, **last;
};

struct api_monitors {
    struct api_registry registry;
    struct api_monitor_metrics metrics;
    struct api_store *store;
    struct api_budget *budget;
    struct api_notifier *notifier; /* NULL: nobody is told of changes */
    size_t max_monitors;
    int64_t max_store;  /* bytes; 0: no limit */
    size_t counted;     /* bytes of a store in memory that the budget has */
    bool store_is_full; /* it is in memory, of which monitors have no more */

    /* Owned by the thread: */
    int64_t now; /* of this transaction, in microseconds since 1970 */
    struct api_pending_monitor *staged;
    const struct api_trace *trace; /* of the request whose job runs, or NULL */
    bool out_of_memory;            /* the reason of a failure that is not the store's */
    int64_t keys;                  /* idempotency keys in the store */
    int64_t keys_pruned;
    int64_t next_close;          /* no later than the first of all monitors */
    bool has_news;               /* the transaction has stored changes that are to be told */
    struct api_named_rows mutes; /* what maintenance has left of them, if it has read them */
    bool backoff;                /* the last maintenance failed */
    struct api_config *former;   /* the one of a former revision that was read last, or NULL */
    int64_t former_monitor, former_revision;
    bool shrink_unfinished; /* the store has more to give back than one step does */
    bool log_has_deleted;   /* the log of the store may have copies of deleted rows */
    bool gc_unfinished;     /* there is more to collect than one round does */
    int64_t *tombstones;    /* monitors that are deleted, and have rows left */
    size_t n_tombstones;
    int64_t change;                /* number of the last change of monitors that is known */
    bool changes;                  /* the transaction changes some, with the next number */
    int64_t written;               /* number of the last transaction that is known: see others.h */
    bool writes;                   /* the transaction has the next number */
    int64_t epoch, learned;        /* the present one; that in which numbers of all were learned */
    double next_learning;          /* time, as api_seconds has it, of what others counted */
    struct api_buffer load_errors; /* sentences on monitors that were left out, each with a NUL */

    /* Shared, under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct api_lane {
        struct api_store_job *first, *last;
    } small, large; /* jobs that wait */
    struct api_outage outage;
    bool was_large; /* the last were of the large ones: small ones are next */
    size_t waiting;
    bool stopping, started;
    pthread_t thread;
    void (*log)(bool is_failure, const char *sentence);

    atomic_llong size; /* bytes of the store, at the last transaction */
    atomic_bool stored, loaded;
    struct api_store_metrics store_metrics;
};

/* Fails for want of memory; the transaction ends. */
bool api_transaction_fail_oom(struct api_monitors *monitors);

/* Fails with store_full if the store must not grow. */
bool api_check_store(const struct api_monitors *monitors, struct api_problem *problem);

/* Notes the size of the store, in a transaction. */
bool api_note_size(struct api_monitors *monitors);

/* The pending monitor of a monitor, made at its first use. NULL if memory is exhausted. */
struct api_pending_monitor *api_pending_of(struct api_monitors *monitors,
                                           struct api_monitor *monitor);

/* Marks the window of a snapshot as changed, which it takes; the snapshot may be NULL after a failure. */
struct api_dirty_window *api_mark_dirty(struct api_monitors *monitors,
                                        struct api_pending_monitor *pending,
                                        struct api_snapshot *snapshot);

/* Has the windows of its pools read again if one that starts then is among them: it changes, or goes. */
void api_pending_forget_pool(struct api_pending_monitor *pending, int64_t start);

/* Forgets the windows that were changed, once api_flush has written them. */
void api_pending_clear(struct api_pending_monitor *pending);

/* Frees the pending monitor that was made last, in which nothing has changed. */
void api_pending_drop(struct api_monitors *monitors);

/* Number under which the transaction changes monitors; 0 in a store of one server. */
int64_t api_change_of(struct api_monitors *monitors);

/* Ends a transaction's changes: leaves their number for other servers; then, once it is committed, or
 * was not, for this one. */
bool api_change_store(struct api_monitors *monitors);
void api_change_end(struct api_monitors *monitors, bool is_committed);
