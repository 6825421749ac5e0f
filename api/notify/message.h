/* api_message: a notification for one receiver, as bytes. Pure functions. */
#pragma once

#include "api/notify/change.h"
#include "api/notify/receivers.h"

/* api_message: changes of monitors of one group; or, as a reminder, monitors of all groups that have a state, from which and
 * to which they "change". A repetition has the same id. */
enum { API_MESSAGE_ID = 17 };
struct api_message {
    char id[API_MESSAGE_ID]; /* 16 hexadecimal digits */
    int64_t sent_at;
    const char *public_url; /* where this server is reached, without a slash at its end; or NULL */
    bool is_test, is_reminder;
    size_t n;
    const struct api_change *changes;
};

/* The trace of the changes that have one, if it is the same for all of them; else NULL. */
const struct api_trace *api_message_trace(const struct api_message *message);

/* Appends the body in a format. */
void api_message_write(const struct api_message *message, enum api_notify_format format,
                       struct api_buffer *out);
