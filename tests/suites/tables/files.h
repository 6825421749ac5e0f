/* Writers of tables as .npz and safetensors, for tests. */
#pragma once

#include "api/memory/buffer.h"

/* tables_array: a column. `dtype` is numpy's, without its byte order: f2 to f8, i1 to i8, u1 to u8, b1, U, and
 * U0 without elements. Texts are UTF-8, each in `text_size` bytes. */
struct tables_array {
    const char *name, *dtype;
    bool swapped; /* big-endian; of .npz alone */
    size_t n;
    const double *numbers;
    const char *texts;
    size_t text_size;
    const char *shape; /* NULL: "(n,)" */
};

/* Appends files. `padding` are spaces after the header of safetensors, which move the data. */
void tables_npz(struct api_buffer *to, const struct tables_array *arrays, size_t n, bool deflated);
void tables_safetensors(struct api_buffer *to, const struct tables_array *arrays, size_t n,
                        size_t padding);
