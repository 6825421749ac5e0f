/* POSIX shared memory objects (shm_open), by the names that clients call keys. */
#pragma once

#include "api/json/problem.h"

#include <stdbool.h>
#include <sys/stat.h>

/* API_OBJECT_NAME: bytes of a name with its NUL. */
enum { API_OBJECT_NAME = 256 };

/* True if --shared-memory may have this prefix: it has no slash but one at its start, which means nothing. "/" alone
 * is the prefix of all names. */
bool api_object_prefix_is_valid(const char *prefix);

/* Opens the object that a key names, for writing, too, if `writes`; fills *status. Only regular files
 * of /dev/shm itself whose names begin with the prefix are opened. -1 if that fails, with a problem at
 * `location` in the body. */
int api_object_open(const char *prefix, const char *key, bool writes, struct stat *status,
                    const char *location, struct api_problem *problem);

/* Bytes of the pages of some bytes of an open object that have no memory yet. */
size_t api_object_holes(int fd, size_t offset, size_t size);
