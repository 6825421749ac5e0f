/* api_monitors: all monitors with their store, and what a transaction of the store's thread has in memory. The store is the
 * only state: what is in memory beside it was read from it, and is not used once a number in the store has changed. */
#pragma once

#include "api/monitors/model/score.h"
#include "api/monitors/rows/known.h"
#include "api/monitors/rows/metrics.h"
#include "api/monitors/rows/monitor.h"
#include "api/request/job.h"
#include "api/store/store.h"
#include "api/store/store_metrics.h"
#include "api/text/clock.h"
#include "api/text/trace.h"

#include <pthread.h>

/* API_HASHED: lists of monitors by the last bits of their ids. */
enum { API_HASHED = 1024 };

struct api_monitors {
    struct api_known_cache known; /* for other threads */
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
    struct api_monitor *by_id[API_HASHED], *newest, *oldest; /* that are in memory: see touch.h */
    size_t bytes;                                            /* of those */
    struct api_mutes mutes;        /* of this transaction, if it has read them */
    const struct api_trace *trace; /* of the request whose job runs, or NULL */
    bool out_of_memory;            /* the reason of a failure that is not the store's */
    int64_t keys_pruned;
    int64_t next_close, next_silence; /* times at which there is something to do, at the earliest */
    bool looks_for_silence;           /* a transaction has changed when that is */
    bool has_news;                    /* the transaction has stored changes that are to be told */
    bool backoff;                     /* the last maintenance failed */
    struct api_config *former;        /* the one of a former revision that was read last, or NULL */
    int64_t former_monitor, former_revision;
    bool shrink_unfinished;        /* the store has more to give back than one step does */
    bool log_has_deleted;          /* the log of the store may have copies of deleted rows */
    bool has_orphans;              /* deleted monitors may have rows left */
    int64_t gc_from;               /* id from which on monitors may have expired windows */
    struct api_buffer unreadable;  /* int64_t: id and version of monitors that cannot be read */
    struct api_buffer load_errors; /* sentences on those, each with a NUL, until there is a log */

    /* Shared, under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct api_lane {
        struct api_store_job *first, *last;
    } small, large, probes; /* jobs that wait; probes are not among `waiting` */
    pthread_cond_t probe;   /* one waits */
    uint64_t probe_turn;    /* how often one came where none waited */
    struct api_outage outage;
    bool was_large; /* the last were of the large ones: small ones are next */
    size_t waiting;
    bool stopping, started, times_probes;
    pthread_t thread, timer;
    void (*log)(bool is_failure, const char *sentence);

    atomic_llong size;        /* bytes of the store, at the last transaction */
    atomic_size_t n_at_start; /* monitors, when the store was read last */
    atomic_bool stored, loaded;
    struct api_store_metrics store_metrics;
};

/* Fails for want of memory; the transaction ends. */
bool api_transaction_fail_oom(struct api_monitors *monitors);

/* Fails with store_full if the store must not grow. */
bool api_check_store(const struct api_monitors *monitors, struct api_problem *problem);

/* Fails if the store has a schema that this version may not use: another server may have changed it. */
bool api_read_schema(struct api_monitors *monitors);

/* Notes the size of the store, in a transaction. */
bool api_note_size(struct api_monitors *monitors);

/* Tells, in the log, of a monitor that cannot be read; later, if there is no log yet. */
void api_tell(struct api_monitors *monitors, const char *sentence);
