/* Messages to Slack, as its incoming webhooks take them. */
#pragma once

#include "api/notify/change.h"

/* Appends the body: `text`, which notifications of desktops show, and blocks. */
void api_slack_write(const struct api_message *message, struct api_buffer *out);
