/* api_notify_test: a test message that a request has sent, and what came back. */
#pragma once

#include "api/monitors/rows/transaction.h"
#include "api/notify/notifier.h"

struct api_notify_test {
    struct api_store_job *job;
    struct api_notify_test *next;
    const char *name;                  /* of the receiver */
    struct api_notify_outcome outcome; /* of the attempt, which the sender sets */
};

/* Queues a test for the sender of its receiver; false if there is none, or another test of the receiver waits or is under
 * way. */
bool api_notify_test_submit(struct api_notify_test *test, struct api_notifier *notifier);

/* The test of a receiver, or NULL; under the notifier's lock. */
struct api_notify_test *api_notify_test_of(const struct api_notifier *notifier, const char *name);

/* True if nobody waits for a test any more. */
bool api_notify_test_is_left(const struct api_notify_test *test);

/* Ends a test; it may be freed at once. */
void api_notify_test_end(struct api_notify_test *test, struct api_notifier *notifier);
