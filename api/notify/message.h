/* api_message: what a receiver is told, as bytes. Pure functions. */
#pragma once

#include "api/notify/receivers.h"

/* api_change: of the state of a monitor. Texts are borrowed. Times are microseconds since 1970. */
struct api_change {
    const char *group, *name, *sentence; /* sentence: because of what; may be empty */
    int64_t monitor;
    int64_t
        at; /* when it changed: the end of the window that made it; of a stale one its newest observation */
    int64_t since;  /* when it left ok; of one that is ok again when it had */
    int64_t queued; /* when it was stored, by the clock */
    int from, to;   /* verdicts, or API_STALE */
    double kl;      /* of the window; NaN if there is none */
};

/* api_message: changes of monitors of one group. The id is that of a repetition, too. */
enum { API_MESSAGE_ID = 17 };
struct api_message {
    char id[API_MESSAGE_ID]; /* 16 hexadecimal digits */
    int64_t sent_at;
    const char *public_url; /* where this server is reached, without a slash at its end; or NULL */
    bool is_test;
    size_t n;
    const struct api_change *changes;
};

/* Appends the body in a format. */
void api_message_write(const struct api_message *message, enum api_notify_format format,
                       struct api_buffer *out);
