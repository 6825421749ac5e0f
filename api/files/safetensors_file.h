/* The header of a safetensors file (https://github.com/huggingface/safetensors#format): eight bytes with its
 * length, then JSON with the dtype, the shape and the offsets in the data of each tensor. */
#pragma once

#include "api/json/json_cursor.h"
#include "api/json/problem.h"
#include "lib/kldiv.h"

#include <string.h>

/* API_SAFETENSORS_PREFIX: bytes of the header's length, before the header. */
enum { API_SAFETENSORS_PREFIX = 8 };

/* True if the bytes start as a file's do: its length ends with NULs, which no text has, before a member. */
static inline bool api_safetensors_is(const char *bytes, size_t size)
{
    return size >= API_SAFETENSORS_PREFIX + 2 && memcmp(bytes + 5, "\0\0\0{\"", 5) == 0;
}

/* api_span: the bytes of the data that belong to the tensor of a key of the header. */
struct api_span {
    size_t begin, end;
    const char *key;
};

/* api_safetensors: a file whose header is read member by member: begin, next, for each tensor read and
 * fit, end. All fail with a problem, mostly safetensors_malformed. The caller sets the first four. */
struct api_safetensors {
    const char *body; /* API_PADDING zero bytes follow */
    size_t size;
    size_t max_header; /* bytes */
    struct api_problem *problem;
    const char *data; /* after the header */
    size_t data_size;
    struct api_json_cursor json; /* at the value of the current member */
    char name[API_JSON_TEXT];    /* of the current member */
    const char *key;
    bool has_metadata;
    struct api_span few[4]; /* lent to `spans` */
    struct api_buffer spans;
};

/* api_safetensor: the entry of a tensor; its offsets are within the data. */
struct api_safetensor {
    char dtype[API_JSON_TEXT];
    size_t ndim, shape[KL_MAX_DIMS];
    size_t begin, end;
};

/* Finds the header. Memory beyond that of a few tensors is on the budget.
 * Fails with members_too_large, too. */
bool api_safetensors_begin(struct api_safetensors *file, struct api_budget *budget);

/* Moves to the next member, whose value must then be read or skipped; false at the end. */
bool api_safetensors_next(struct api_safetensors *file);

/* Reads the entry of a tensor, the current member. */
bool api_safetensors_read(struct api_safetensors *file, struct api_safetensor *tensor);

/* Checks that elements of `size` bytes fill the bytes of the current member, and notes these. */
bool api_safetensors_fit(struct api_safetensors *file, const struct api_safetensor *tensor,
                         size_t size);

/* Ends the reading, which was `good` so far; then checks that tensors cover the data without gaps. */
bool api_safetensors_end(struct api_safetensors *file, bool good);
