/* api_notify_test: a test message that a request has sent, and what came back. */
#pragma once

#include "api/monitors/state/transaction.h"
#include "api/notify/notifier.h"

/* The sender fills the last part and calls api_store_job_finish. */
struct api_notify_test {
    struct api_store_job *job;
    struct api_notify_test *next;
    const char *name; /* of the receiver */

    long status;       /* of the answer, or 0 */
    double seconds;    /* that it took */
    char failure[200]; /* why there was no answer, or none of success; empty if it was delivered */
    char answer[300];  /* the first line of the answer's body */
};

/* Takes the tests that wait, oldest first; further ones wait unless `ends`. */
struct api_notify_test *api_notify_tests_take(struct api_notifier *notifier, bool ends);

/* Queues a test for the sender, which is woken; false if it does not run, or too many wait. */
bool api_notify_test_submit(struct api_notify_test *test, struct api_notifier *notifier);
