/* Archives of .npz around headers and elements of random bytes, so that these get past the directory and
 * the checksums. */
#ifndef KLDIV_TESTS_FUZZ_ARCHIVE_H
#define KLDIV_TESTS_FUZZ_ARCHIVE_H

#include "api/memory/buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { MAX_NPY_HEADER = 0xffff };

/* Appends a .npy file: the header's text is what comes before the first newline, the elements are what
 * comes after it. */
static inline void append_npy(struct api_buffer *to, const uint8_t *data, size_t size)
{
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t header = newline ? (size_t)(newline - data) + 1 : size;
    if (header > MAX_NPY_HEADER)
        header = MAX_NPY_HEADER;
    const char length[] = {(char)(header & 0xff), (char)(header >> 8)};
    api_append(to, "\x93NUMPY\1\0", 8);
    api_append(to, length, sizeof length);
    api_append(to, data, size);
}

static inline void add_entry(zip_t *archive, const char *name, const struct api_buffer *npy)
{
    zip_source_t *source = zip_source_buffer(archive, npy->data, npy->size, 0);
    zip_int64_t index = zip_file_add(archive, name, source, 0);
    if (index < 0 || zip_set_file_compression(archive, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0)
        abort();
}

/* Makes an archive of the entries a.npy and b.npy: the first byte is the size of the first as a share of
 * the rest; the second is left out if it is empty. */
static inline void make_archive(struct api_buffer *to, const uint8_t *data, size_t size)
{
    struct api_buffer npy[2] = {{0}};
    size_t first = size > 1 ? (size - 1) * (data[0] + 1u) / 256 : 0;
    zip_source_t *written = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *archive = zip_open_from_source(written, ZIP_TRUNCATE, NULL);
    zip_stat_t stat;
    append_npy(&npy[0], data + (size > 0), first);
    append_npy(&npy[1], data + (size > 0) + first, size > 0 ? size - 1 - first : 0);
    if (!archive)
        abort();
    zip_source_keep(written);
    add_entry(archive, "a.npy", &npy[0]);
    if (npy[1].size > 10)
        add_entry(archive, "b.npy", &npy[1]);
    if (zip_close(archive) != 0 || zip_source_stat(written, &stat) != 0 ||
        !api_buffer_reserve(to, stat.size) || zip_source_open(written) != 0)
        abort();
    zip_source_read(written, to->data, stat.size);
    to->size = stat.size;
    zip_source_close(written);
    zip_source_free(written);
    api_buffer_free(&npy[0]);
    api_buffer_free(&npy[1]);
}

#endif
