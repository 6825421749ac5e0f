/* Zip archives of .npy files, as numpy.savez writes them, through libzip. */
#pragma once

#include "api/json/problem.h"

#include <zip.h>

/* Opens an archive of at most `max` entries, which borrows the body. NULL with npz_malformed, or with
 * the code `repeated` for two entries of one name. zip_discard closes it. */
zip_t *api_archive_open(const char *body, size_t size, size_t max, const char *repeated,
                        struct api_problem *problem);

/* Describes entry `i`, which must be stored or deflated, and not encrypted. *room is the number of bytes
 * that this and later entries may have, and shrinks. Fails with npz_malformed, body_too_large. */
bool api_archive_stat(zip_t *archive, size_t i, size_t *room, zip_stat_t *stat,
                      struct api_problem *problem);

/* Inflates an entry into an empty buffer, and verifies its checksum. */
bool api_archive_inflate(zip_t *archive, const zip_stat_t *stat, struct api_buffer *to,
                         struct api_problem *problem);

/* Inflates the first *size bytes of an entry, or as many as it has, which becomes *size. */
bool api_archive_peek(zip_t *archive, const zip_stat_t *stat, char *to, size_t *size,
                      struct api_problem *problem);

/* Extracts "input" from "input.npy"; false for other entries and names of more than size - 1 bytes. */
bool api_archive_name(const char *entry, char *to, size_t size);
