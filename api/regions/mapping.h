/* api_mapping: pages of a file that another process may shorten at any time. Touching a page that the file no longer
 * has, or for which no memory is left, raises SIGBUS, which would end the process. Here the pages of the mapping
 * become zeros of this process's own instead, and the mapping is lost: what is read is of no use any more, what is
 * written goes nowhere, and the process goes on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* API_MAPPINGS: maximum number of mappings at a time. */
enum { API_MAPPINGS = 512 };

/* Empty if zeroed. */
struct api_mapping {
    char *data;              /* the byte at the offset that was asked for; NULL if empty */
    void *pages;             /* from the start of the page that this byte is in */
    size_t size;             /* bytes of the pages */
    struct api_watched *own; /* its row of the table that the signal's handler reads */
};

/* Maps `size` bytes of a file from `offset`, both any number, for reading, and for writing if `writes`.
 * The first call sets the process's handler of SIGBUS, which passes on faults that are elsewhere, and
 * signals that are sent.
 * False, with errno set, if there is no memory or too many mappings exist. */
bool api_mapping_open(struct api_mapping *mapping, int fd, size_t offset, size_t size, bool writes);

/* True once a page could not be had. Threads that have touched the pages know it without a lock. */
bool api_mapping_is_lost(const struct api_mapping *mapping);

/* Gives back the memory of the zeros of a lost mapping. Other threads may read and write them. */
void api_mapping_drop(struct api_mapping *mapping);

/* Unmaps it, after the last access of any thread. */
void api_mapping_close(struct api_mapping *mapping);
