/* Texts that are no label of a monitor: how often the most frequent ones occur. */
#pragma once

#include "api/monitors/model/labels.h"

/* API_UNSEEN_KEPT: texts of a request, and of a window, that the store keeps; API_UNSEEN_TOLD: those of a window that
 * results name. API_UNSEEN_BYTES: of a text, which is cut there, where a character ends. */
enum { API_UNSEEN_KEPT = 20, API_UNSEEN_TOLD = 10, API_UNSEEN_BYTES = 256 };

/* Counts a text. Of a request with more than some thousand distinct ones, or where memory is exhausted, only those
 * that came first are counted. */
void api_unseen_add(struct api_label_table *unseen, const char *text, size_t size);

/* Appends a text as an object, after a comma if it is not the first of its array. */
void api_unseen_write(const char *text, size_t size, size_t count, struct api_buffer *out);

/* Appends the most frequent texts of a request. */
void api_unseen_write_top(struct api_label_table *unseen, struct api_buffer *out);
