/* Senders: each receiver has a thread of its own, which waits, asks the store for the next message, sends it and notes what
 * became of it. So a receiver that hangs, also in the look-up of its name, holds up itself alone. */
#pragma once

#include "api/monitors/monitors.h"
#include "api/notify/notifier.h"

#include <stdatomic.h>

struct srv_sender;

/* srv_senders: all of them, and what they share. */
struct srv_senders {
    struct api_notifier notifier;
    struct api_monitors *monitors;
    struct api_budget *budget;
    int64_t server;            /* tells this one from others on the store */
    struct srv_sender *first;  /* under the lock of the notifier */
    atomic_bool is_unanswered; /* the last job of the store failed */
};

/* Starts a thread for each receiver that has none; false if one cannot be started. Those of receivers that are gone end by
 * themselves. */
bool srv_senders_start(struct srv_senders *all);

/* Ends tests, those under way too, within a second or so. */
void srv_senders_end_tests(struct srv_senders *all);

/* Ends all within two seconds, and lets another server send; what was not sent stays in the store. False if some are left,
 * as the store does not answer, which go on to use all of this. */
bool srv_senders_stop(struct srv_senders *all);
