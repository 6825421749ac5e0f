/* What a message of several changes says in a line. */
#pragma once

#include "api/notify/message.h"

/* Appends which monitors of the group have left ok, since when, and which was first; or if fewer than two have, how many
 * changes of each state there are. True if it was the former. */
bool api_summary_write(const struct api_message *message, struct api_buffer *out);
