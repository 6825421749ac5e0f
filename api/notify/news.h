/* What messages say, as text. */
#pragma once

#include "api/notify/change.h"

/* Appends what the news of a change are of, a monitor or a group: "credit / age". */
void api_news_write_subject(const struct api_change *change, struct api_buffer *out);

/* Appends what has happened: "is critical since 2026-11-20T12:00:00Z: missing 0 % → 12 %". */
void api_news_write(const struct api_change *change, struct api_buffer *out);

/* Appends a line of several changes of monitors of one group: which of the monitors have left ok, since when, and which was first; or if fewer than two have, how many changes
 * of each state there are. True if it was the former. */
bool api_summary_write(const struct api_change *changes, size_t n, struct api_buffer *out);

/* Appends what the message says in a line; true if that is an incident of several monitors. */
bool api_news_write_line(const struct api_message *message, struct api_buffer *out);

/* Appends the address of the page of a monitor, or of a group. */
void api_news_write_url(const struct api_message *message, const struct api_change *change,
                        struct api_buffer *out);
