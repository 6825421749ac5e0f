/* srv_tests: test messages that requests send, each a transfer of its own. The sender's thread uses them. */
#pragma once

#include "api/monitors/test.h"
#include "server/notify/delivery.h"

struct srv_tests {
    const struct srv_sender *sender;
    struct srv_test {
        struct api_notify_test *test; /* NULL: free */
        const struct api_receiver *receiver;
        struct srv_post post;
    } list[API_MAX_TESTS];
};

/* Begins the tests that wait; if the sender `ends`, none wait from now on. */
void srv_tests_take(struct srv_tests *tests, const struct api_receivers *receivers, bool ends);

/* Ends those whose client has left, and those whose receiver has no address; gives the number of others. */
size_t srv_tests_look(struct srv_tests *tests);

/* Ends the test of a transfer, if it is one; gives the receiver if that took the message. */
const struct api_receiver *srv_tests_finish(struct srv_tests *tests, const CURL *easy,
                                            CURLcode result);

/* Ends all, and tells why. */
void srv_tests_abort(struct srv_tests *tests, const char *why);
