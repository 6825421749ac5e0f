/* Requests as bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct call {
    char *bytes;
    size_t size;
};

/* A GET of a path; a small JSON body; two rows of n float32 each. `head` has header lines or "".
 * False if memory is exhausted. */
bool call_get(struct call *call, const char *path, const char *head);
bool call_small(struct call *call, const char *head);
bool call_rows(struct call *call, size_t n, const char *head);

/* A few KiB whose answer has n by n float32: each of n logits against each of n others. */
bool call_outer(struct call *call, size_t n);

void call_free(struct call *call);
