/* api_change: a change of the state of a monitor, which receivers are told; api_message: changes that they are told together. */
#pragma once

#include "api/monitors/model/state.h"
#include "api/text/trace.h"

/* Texts are borrowed. Times are microseconds since 1970. */
struct api_change {
    const char *group, *name, *sentence; /* sentence: because of what; may be empty */
    int64_t monitor;
    int64_t
        at; /* when it changed: the end of the window that made it; of a stale one its newest observation */
    int64_t since; /* when it left ok; of one that is ok again when it had */
    int64_t
        began; /* when the drift began that lasts, or has ended; API_NO_TIME if that is not known */
    int64_t queued; /* when it was stored, by the clock */
    int from,
        to; /* verdicts, or API_STALE; the same of what lasts, which an Alertmanager is told again */
    double kl;              /* of the window; NaN if there is none */
    struct api_trace trace; /* of the request that made it; empty if there is none */
};

/* api_message: changes of monitors of one group; or what lasts, of all. A repetition has the same id. */
enum { API_MESSAGE_ID = 17 };
struct api_message {
    char id[API_MESSAGE_ID]; /* 16 hexadecimal digits */
    int64_t sent_at;
    const char *public_url; /* where this server is reached, without a slash at its end; or NULL */
    bool is_test;
    size_t n;
    const struct api_change *changes;
};
