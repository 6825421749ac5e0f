/* Texts that are no label of a monitor: how often the most frequent ones occur. */
#pragma once

#include "api/monitors/model/labels.h"

/* API_UNSEEN_KEPT: texts of a request, and of a window, that the store keeps; API_UNSEEN_TOLD: those of a window that
 * results name. API_UNSEEN_BYTES: of a text, which is cut there, where a character ends. */
enum { API_UNSEEN_KEPT = 20, API_UNSEEN_TOLD = 10, API_UNSEEN_BYTES = 256 };

/* Counts a text. Of a request with more than some thousand distinct ones, or where memory is exhausted, only those
 * that came first are counted. */
void api_unseen_add(struct api_label_table *unseen, const char *text, size_t size);

/* api_unseen_counts: how often the texts that a window has most of occur, by a hash of each, which few bytes keep apart.
 * Without those that were cut, which may be several. */
struct api_unseen_count {
    uint64_t hash;
    double count;
};
struct api_unseen_counts {
    size_t n;
    struct api_unseen_count labels[API_UNSEEN_KEPT];
};

uint64_t api_unseen_hash(const char *text, size_t size);

/* Adds a text, unless that was cut, or there are as many as are kept. */
void api_unseen_keep(const char *text, size_t size, double count, struct api_unseen_counts *kept);

/* api_unseen: those that a window has most of, as objects with commas between, and the first of them. */
struct api_unseen {
    struct api_buffer objects;
    size_t told;  /* objects */
    size_t count; /* of the first; 0 if there is none */
    char first[API_UNSEEN_BYTES + 1];
    struct api_unseen_counts kept;
};

/* Forgets all texts. */
void api_unseen_clear(struct api_unseen *unseen);

/* Appends a text, the most frequent one first, to what is told and kept. */
void api_unseen_write(const char *text, size_t size, size_t count, struct api_unseen *unseen);

/* Appends the most frequent texts of a request. */
void api_unseen_write_top(struct api_label_table *unseen, struct api_unseen *out);
