/* Texts that are no label of a monitor: how often the most frequent ones occur. */
#pragma once

#include "api/monitors/model/labels.h"

/* API_UNSEEN_KEPT: texts of a request, and of a window, that the store keeps; API_UNSEEN_TOLD: those of a window that
 * results name. API_UNSEEN_BYTES: of a text, which is cut there, where a character ends. */
enum { API_UNSEEN_KEPT = 20, API_UNSEEN_TOLD = 10, API_UNSEEN_BYTES = 256 };

/* Counts a text. Of a request with more than some thousand distinct ones, or where memory is exhausted, only those
 * that came first are counted. */
void api_unseen_add(struct api_label_table *unseen, const char *text, size_t size);

/* api_unseen: those that a window has most of, as objects with commas between, and the first of them. */
struct api_unseen {
    struct api_buffer objects;
    size_t count; /* of the first; 0 if there is none */
    char first[API_UNSEEN_BYTES + 1];
};

/* Appends a text, the most frequent one first. */
void api_unseen_write(const char *text, size_t size, size_t count, struct api_unseen *unseen);

/* Appends the most frequent texts of a request. */
void api_unseen_write_top(struct api_label_table *unseen, struct api_unseen *out);
