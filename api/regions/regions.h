/* api_regions: the parts of shared memory objects that clients have registered by name, as Triton's
 * extension for system shared memory has it. Tensors that are there need not travel. All functions may
 * be called by any thread. */
#ifndef KLDIV_API_REGIONS_REGIONS_H
#define KLDIV_API_REGIONS_REGIONS_H

#include "api/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* API_REGIONS: the most regions at a time; each has a descriptor and up to two mappings. */
enum { API_REGIONS = 256 };

struct api_regions;
struct api_region;

/* Makes an empty table for objects whose names begin with `prefix`, which is borrowed, of at most `most`
 * regions. Memory that objects lack, and get when they are read or written here, counts toward the
 * budget until their region is closed: the kernel counts it as this process's. NULL if memory is
 * exhausted. */
struct api_regions *api_regions_new(const char *prefix, size_t most, struct api_budget *budget);

/* Unregisters all and frees the table, when no call uses a region any more. */
void api_regions_free(struct api_regions *regions);

/* api_region_key: the bytes of an object that a region is. */
struct api_region_key {
    const char *key; /* name of the object, with a slash before it or without */
    size_t offset, byte_size;
};

/* Registers a region and opens its object, for reading. */
bool api_regions_register(struct api_regions *regions, const char *name,
                          const struct api_region_key *key, struct api_problem *problem);

/* Unregisters a region, or all if the name is NULL; one that is not registered is no error. Calls that use
 * it go on. */
void api_regions_unregister(struct api_regions *regions, const char *name);

/* Appends a JSON array of the region of that name, or of all if the name is NULL. False if there is none of
 * that name. */
bool api_regions_write(struct api_regions *regions, const char *name, struct api_buffer *out);

/* Number of regions, and their bytes together. */
size_t api_regions_count(struct api_regions *regions, size_t *bytes);

/* api_slice: bytes of a region that a call reads or writes. Zeroed: none. The caller sets `name`,
 * `offset`, `size`, `writes` and `number` before. */
struct api_slice {
    const char *name;      /* of the region; NULL once the slice has begun */
    size_t offset, size;   /* in the region */
    bool writes;           /* an output's */
    size_t number;         /* of the input or output in the request, for the place of a problem */
    struct api_region *in; /* NULL: none */
    char *data;            /* of any alignment; others may change it meanwhile */
    size_t touched,
        lacks; /* bytes that a call touches; of these without memory before, in the budget */
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
void api_slice_end(struct api_slice *slice);

/* Fails at a parameter of the slice's input or output. */
bool api_slice_fail(const struct api_slice *slice, const char *parameter, const char *code,
                    struct api_problem *problem, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
