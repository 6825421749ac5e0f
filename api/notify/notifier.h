/* api_notifier: what the threads that store changes, send them and answer about them share. */
#pragma once

#include "api/notify/receivers.h"

#include <pthread.h>

/* API_MAX_PENDING: changes that wait for a receiver at most; further ones are not told. */
enum { API_MAX_PENDING = 100000 };

/* api_notify_result: what became of an attempt. */
enum api_notify_result {
    API_NOTIFY_DELIVERED,
    API_NOTIFY_FAILED,  /* it is tried again */
    API_NOTIFY_REFUSED, /* the receiver says that the message is wrong: it is given up */
    API_NOTIFY_EXPIRED, /* it could not be delivered for a day, or too many wait: a change is given up */
};
#define API_NOTIFY_RESULTS 4

/* api_notify_outcome: what became of it, and why. */
struct api_notify_outcome {
    enum api_notify_result result;
    long status;        /* of the answer, or 0 */
    double seconds;     /* that it took */
    double retry_after; /* seconds that the receiver asks for, or 0 */
    char failure[200];  /* empty if it was delivered */
    char answer[201];   /* the first line of the answer's body, cut */
};

/* api_receiver_history: how attempts at a receiver went, which the store keeps. Times are microseconds since 1970, or
 * API_NO_TIME. */
struct api_receiver_history {
    int64_t last_success, last_failure, failing_since;
    char failure[200]; /* the last one; empty if there was none */
};

/* api_receiver_status: how a receiver does. */
struct api_receiver_status {
    bool is_served; /* it has a sender */
    size_t pending; /* changes that wait */
    struct api_receiver_history history;
    unsigned long results[API_NOTIFY_RESULTS];
};

struct api_notifier {
    const char *public_url; /* or NULL */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;  /* some of it has changed; by the clock of api_seconds */
    struct api_receivers *receivers;
    struct api_receiver_status status[API_MAX_RECEIVERS];
    struct api_notify_test *tests; /* that wait or are under way, one of a receiver */
    unsigned long news;            /* transactions that have stored changes */
    bool ends_tests, ends;         /* tests are to end; senders are */
};

bool api_notifier_init(struct api_notifier *notifier, const char *public_url);
void api_notifier_free(struct api_notifier *notifier);

/* Lets receivers, which it takes, be those of now; one that keeps its name keeps its status. */
void api_notifier_set(struct api_notifier *notifier, struct api_receivers *receivers);

/* The receivers of now, held. */
struct api_receivers *api_notifier_receivers(struct api_notifier *notifier);

/* The status of a receiver, under the lock; NULL if it is gone. */
struct api_receiver_status *api_notifier_status(struct api_notifier *notifier, const char *name);

/* Has the senders look into the store. */
void api_notifier_wake(struct api_notifier *notifier);

/* Counts an attempt at a receiver, if the receiver is still in the file. */
void api_notifier_note(struct api_notifier *notifier, const char *name,
                       const struct api_notify_outcome *outcome);

/* Notes what the store says of a receiver: changes that wait and that were given up, and how attempts went, unless this
 * server knows of a newer one. */
void api_notifier_learn(struct api_notifier *notifier, const char *name, size_t pending,
                        size_t expired, const struct api_receiver_history *history);

/* Adds a change that waits; false if too many would. */
bool api_notifier_add_pending(struct api_notifier *notifier, const char *name);

/* Appends {"notifications": [...]}; the metrics, as Prometheus text; of the receivers of a token. */
void api_notifier_write(struct api_notifier *notifier, const struct api_token *token,
                        struct api_buffer *out);
void api_notifier_write_metrics(struct api_notifier *notifier, const struct api_token *token,
                                struct api_buffer *out);
