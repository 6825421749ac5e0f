/* api_slice: bytes of a region that a call reads or writes. */
#pragma once

#include "api/json/problem.h"

struct api_region;
struct api_regions;

/* Zeroed: none. The caller sets `name`,
 * `offset`, `size`, `writes` and `number` before. */
struct api_slice {
    const char *name;    /* of the region; NULL once the slice has begun */
    size_t offset, size; /* in the region */
    bool writes;         /* an output's */
    size_t number;       /* of the input or output in the request, for the location of a problem */
    struct api_region *in; /* NULL: none */
    char *data;            /* of any alignment; others may change it meanwhile */
    size_t touched,
        holes; /* bytes that a call touches; of these without memory before, in the budget */
};

/* Begins to use bytes, of which the object must have all. The slice holds on to the region until its
 * end. */
bool api_slice_begin(struct api_slice *slice, struct api_regions *regions,
                     struct api_problem *problem);

/* Counts the memory that the first `size` bytes lack, which the caller is about to touch. False if the
 * budget is exhausted. */
bool api_slice_touch(struct api_slice *slice, size_t size, struct api_problem *problem);

/* True once a page could not be had. */
bool api_slice_is_lost(const struct api_slice *slice);

/* Checks, after the last access, that no byte was missing meanwhile. */
bool api_slice_check(const struct api_slice *slice, struct api_problem *problem);

/* Checks that bytes that are written are not those of another slice. */
bool api_slice_check_apart(const struct api_slice *slice, const struct api_slice *other,
                           struct api_problem *problem);

/* Ends the use; the slice is none. */
void api_slice_release(struct api_slice *slice);
static inline void api_slice_end(struct api_slice *slice)
{
    if (slice->in)
        api_slice_release(slice);
    else
        *slice = (struct api_slice){0};
}

/* Fails at a parameter of the slice's input or output. */
bool api_slice_fail(const struct api_slice *slice, const char *parameter, const char *code,
                    struct api_problem *problem, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
