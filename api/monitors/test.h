/* api_notify_test: a test message that a request has sent, and what came back. */
#pragma once

#include "api/monitors/rows/transaction.h"
#include "api/notify/notifier.h"

/* The sender fills the last part and calls api_notify_test_end. */
struct api_notify_test {
    struct api_store_job *job;
    struct api_notify_test *next;
    const char *name; /* of the receiver */

    long status;       /* of the answer, or 0 */
    double seconds;    /* that it took */
    char failure[200]; /* why there was no answer, or none of success; empty if it was delivered */
    char answer[API_NOTIFY_ANSWER]; /* the first line of the answer's body */
};

/* Takes the tests that wait; further ones wait unless `ends`. */
struct api_notify_test *api_notify_tests_take(struct api_notifier *notifier, bool ends);

/* True if nobody waits for a test any more. */
bool api_notify_test_is_left(const struct api_notify_test *test);

/* Ends a test that was taken; it may be freed at once. */
void api_notify_test_end(struct api_notify_test *test, struct api_notifier *notifier);

/* Queues a test for the sender, which is woken; false if it does not run, or API_MAX_TESTS wait or are under
 * way, API_MAX_TESTS_OF_ONE of them to its receiver. */
bool api_notify_test_submit(struct api_notify_test *test, struct api_notifier *notifier);
