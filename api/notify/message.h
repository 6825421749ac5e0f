/* api_message: a notification for one receiver, as bytes. Pure functions. */
#pragma once

#include "api/notify/change.h"
#include "api/notify/receivers.h"

/* The trace of the changes that have one, if it is the same for all of them; else NULL. */
const struct api_trace *api_message_trace(const struct api_message *message);

/* Appends the body in a format. */
void api_message_write(const struct api_message *message, enum api_notify_format format,
                       struct api_buffer *out);
