/* The line that sums up several changes of monitors of one group. */
#pragma once

#include "api/notify/change.h"

/* Appends which of the monitors have left ok, since when, and which was first; or if fewer than two have, how many changes
 * of each state there are. True if it was the former. */
bool api_summary_write(const struct api_change *changes, size_t n, struct api_buffer *out);
