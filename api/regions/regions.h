/* api_regions: the parts of shared memory objects that clients have registered by name, as Triton's
 * extension for system shared memory has it. Tensors that are there need not travel. All functions may
 * be called by any thread. */
#pragma once

#include "api/json/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* API_REGIONS: maximum number of regions at a time; each has a descriptor and up to two mappings. */
enum { API_REGIONS = 256 };

struct api_regions;
struct api_region;
struct api_region_key;

/* Makes an empty table for objects whose names begin with `prefix`, which is borrowed, of at most `max`
 * regions. Memory that objects lack, and get when they are read or written here, counts toward the
 * budget until their region is closed: the kernel counts it as this process's. NULL if memory is
 * exhausted. */
struct api_regions *api_regions_new(const char *prefix, size_t max, struct api_budget *budget);

/* Unregisters all and frees the table, when no call uses a region any more. */
void api_regions_free(struct api_regions *regions);

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

/* Finds a region and refers to it; NULL if there is none. api_region_release drops the reference. */
struct api_region *api_regions_find(struct api_regions *regions, const char *name);
