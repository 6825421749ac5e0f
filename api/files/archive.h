/* Zip archives of .npy files, as numpy.savez writes them, through libzip. */
#pragma once

#include "api/json/problem.h"

#include <string.h>
#include <zip.h>

/* API_ENTRY_NAME: the name of an array has fewer bytes. */
enum { API_ENTRY_NAME = 1024 };

/* api_archive: a reader of entries in turn: open, next, read, close. All fail with a problem, mostly npz_malformed.
 * The caller sets the first five. */
struct api_archive {
    const char *body; /* borrowed */
    size_t size;
    size_t room;          /* bytes that later entries may have in all */
    const char *repeated; /* code of a problem: two entries of one name */
    const char *stray;    /* likewise: an entry that is no .npy file */
    zip_t *zip;
    size_t n, next;            /* number of entries; the next one */
    zip_stat_t entry;          /* the current one */
    char name[API_ENTRY_NAME]; /* of its array: "input" of "input.npy" */
};

/* True if the bytes start as those of a ZIP archive that has an entry do. */
static inline bool api_archive_is(const char *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
}

/* Opens an archive of at most `max` entries. */
bool api_archive_open(struct api_archive *archive, size_t max, struct api_problem *problem);

/* Moves to the next entry, which must be stored or deflated, not encrypted, and have room; false at the end, and
 * with a problem. */
bool api_archive_next(struct api_archive *archive, struct api_problem *problem);

/* Reads the first *size bytes of the current entry, or as many as it has, which becomes *size. Verifies the checksum if
 * they are all. */
bool api_archive_read(struct api_archive *archive, char *to, size_t *size,
                      struct api_problem *problem);

/* Reads all of the current entry into an empty buffer. */
bool api_archive_inflate(struct api_archive *archive, struct api_buffer *to,
                         struct api_problem *problem);
void api_archive_close(struct api_archive *archive);
