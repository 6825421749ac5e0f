/* The frame of a safetensors file: its header's place, and the rule that tensors cover the data. */
#pragma once

#include "api/problem.h"

/* API_SAFETENSORS_PREFIX: bytes of the header's length, before the header. */
enum { API_SAFETENSORS_PREFIX = 8 };

/* Finds the header, which follows the prefix; *size becomes its size in bytes, at most `max`. Fails with
 * safetensors_malformed, members_too_large. */
bool api_safetensors_header(const char *body, size_t body_size, size_t max, size_t *size,
                            struct api_problem *problem);

/* api_span: the bytes of the data that belong to a tensor, which the caller numbers. */
struct api_span {
    size_t begin, end, owner;
};

/* Sorts spans by their place. Returns the first that does not begin at the end of the one before, or of
 * nothing, which is *due; else NULL, and *due is the end of the last. */
const struct api_span *api_spans_check(struct api_span *spans, size_t n, size_t *due);
