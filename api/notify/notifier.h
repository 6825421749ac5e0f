/* api_notifier: what the threads that store changes, send them and answer about them share. */
#pragma once

#include "api/notify/receivers.h"

#include <pthread.h>

/* API_MAX_PENDING: changes that wait for a receiver at most; further ones are not told. */
enum { API_MAX_PENDING = 100000 };

/* API_MAX_TESTS: test messages that wait or are under way at most; API_MAX_TESTS_OF_ONE: of them to one receiver.
 * API_NOTIFY_ANSWER: bytes that are kept of an answer. */
enum { API_MAX_TESTS = 16, API_MAX_TESTS_OF_ONE = 4, API_NOTIFY_ANSWER = 300 };

/* api_notify_result: what became of an attempt. */
enum api_notify_result {
    API_NOTIFY_DELIVERED,
    API_NOTIFY_FAILED,  /* it is tried again */
    API_NOTIFY_REFUSED, /* the receiver says that the message is wrong: it is given up */
    API_NOTIFY_EXPIRED, /* it could not be delivered for a day, or too many wait: a change is given up */
};
#define API_NOTIFY_RESULTS 4

/* api_receiver_history: how attempts at a receiver went, which the store keeps. Times are microseconds since 1970, or
 * API_NO_TIME. */
struct api_receiver_history {
    int64_t last_success, last_failure, failing_since;
    char failure[200]; /* the last one; empty if there was none */
};
extern const struct api_receiver_history api_no_history;

/* api_receiver_status: how a receiver does. */
struct api_receiver_status {
    size_t pending; /* changes that wait */
    size_t n_tests; /* that wait or are under way */
    struct api_receiver_history history;
    unsigned long results[API_NOTIFY_RESULTS];
};

struct api_notifier {
    const char *public_url; /* or NULL */
    void (*wake)(void);     /* has the sender look; any thread may call it */

    pthread_mutex_t lock; /* of what follows */
    struct api_receivers *receivers;
    struct api_receiver_status status[API_MAX_RECEIVERS];
    bool accepts_tests;            /* the sender runs */
    struct api_notify_test *tests; /* that wait */
    size_t n_tests;                /* that wait or are under way */
};

bool api_notifier_init(struct api_notifier *notifier, const char *public_url, void (*wake)(void));
void api_notifier_free(struct api_notifier *notifier);

/* Lets receivers, which it takes, be those of now; one that keeps its name keeps its status. */
void api_notifier_set(struct api_notifier *notifier, struct api_receivers *receivers);

/* The receivers of now, held. */
struct api_receivers *api_notifier_receivers(struct api_notifier *notifier);

/* The status of a receiver, under the lock; NULL if it is gone. */
struct api_receiver_status *api_notifier_status(struct api_notifier *notifier, const char *name);

/* Counts the result of an attempt at a receiver, if the receiver is still in the file; `failure` says why the attempt
 * failed. */
void api_notifier_note(struct api_notifier *notifier, const char *name,
                       enum api_notify_result result, size_t n, const char *failure);

/* Gives how attempts at a receiver went; sets it to what the store has, unless this server knows of a newer attempt. */
struct api_receiver_history api_notifier_history(struct api_notifier *notifier, const char *name);
void api_notifier_learn_history(struct api_notifier *notifier, const char *name,
                                const struct api_receiver_history *history);

/* Sets the changes that wait, or adds to them; false if too many would. */
void api_notifier_set_pending(struct api_notifier *notifier, const char *name, size_t pending);
bool api_notifier_add_pending(struct api_notifier *notifier, const char *name);

/* Appends {"notifications": [...]}; the metrics, as Prometheus text; of the receivers of a token. */
void api_notifier_write(struct api_notifier *notifier, const struct api_token *token,
                        struct api_buffer *out);
void api_notifier_write_metrics(struct api_notifier *notifier, const struct api_token *token,
                                struct api_buffer *out);
