/* Files of the pages, built in and compressed. `make assets` packs them: those of this folder, and
 * those of npm's packages that package-lock.json names. */
#pragma once

#include <stddef.h>

struct api_file {
    const char *path; /* "dashboard/index.html" */
    const unsigned char *gzip, *end;
};

/* NULL if there is none; in a build without pages there are none at all. */
const struct api_file *api_file_find(const char *path);

/* Content-Type by the name's extension; text/plain for others. */
const char *api_file_type(const struct api_file *file);

/* Formats the entity tag of a file, quoted, from its content's CRC-32 and size, which end the gzip
 * format (RFC 1952). It is weak: the coded form and the plain one share it. */
enum { API_FILE_ETAG = 24 };
void api_file_etag(const struct api_file *file, char to[API_FILE_ETAG]);
