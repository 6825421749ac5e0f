/* Archives of .npz around headers and elements of random bytes, so that these get past the directory and
 * the checksums. */
#pragma once

#include "api/memory/buffer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* Appends a .npy file with a header's text and what is left of the data. */
static inline void append_file(struct api_buffer *to, const uint8_t *header, size_t header_size,
                               const uint8_t *data, size_t size)
{
    if (header_size > 0xffff)
        header_size = 0xffff;
    const char length[] = {(char)(header_size & 0xff), (char)(header_size >> 8)};
    api_append(to, "\x93NUMPY\1\0", 8);
    api_append(to, length, sizeof length);
    api_append(to, header, header_size);
    api_append(to, data, size);
}

/* Appends a .npy file. A small first byte selects a dtype; the number of elements follows in 8 bytes, then
 * the elements. Otherwise the header's text is what comes before the first newline. */
static inline void append_npy(struct api_buffer *to, const uint8_t *data, size_t size)
{
    static const char *const dtypes[] = {"<U0", "<U1", ">U2", "<U16777217", "|b1", ">f8", "<f4",
                                         "=f2", "<i8", ">i4", "|i1",        "<u8", ">u2", "|S0"};
    enum { FIXED = 9 };
    uint64_t n;
    char text[100];
    if (size >= FIXED && data[0] < sizeof dtypes / sizeof *dtypes) {
        memcpy(&n, data + 1, sizeof n);
        int length =
            snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%llu,)}",
                     dtypes[data[0]], (unsigned long long)n);
        append_file(to, (const uint8_t *)text, (size_t)length, data + FIXED, size - FIXED);
        return;
    }
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t header = newline ? (size_t)(newline - data) + 1 : size;
    append_file(to, data, header, data + header, size - header);
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
