/* srv_post: one message to a receiver, by libcurl. */
#pragma once

#include "api/notify/message.h"
#include "api/notify/notifier.h"

/* Sends a message, and tells what became of it, within 30 s; about a second after `stops` is true it is broken off. What
 * the receiver answers shows neither its URL, nor its header, nor its secret. Any thread may call it. */
struct api_notify_outcome srv_post(const struct api_receiver *receiver,
                                   const struct api_message *message, struct api_budget *budget,
                                   bool (*stops)(void *context, bool looks_up), void *context);
