#include "tests/suites/tables/files.h"

#include "lib/kldiv.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* Width of a text's element in characters. */
enum { CHARACTERS = 64 };

static void append_bytes(struct api_buffer *to, const void *bytes, size_t size, bool swapped)
{
    for (size_t i = 0; i < size; i++)
        api_append(to, (const char *)bytes + (swapped ? size - 1 - i : i), 1);
}

/* Decodes valid UTF-8. */
static const char *next_character(const char *p, uint32_t *c)
{
    size_t length = api_utf8_length((const unsigned char *)p);
    cr_assert(length);
    *c = length == 1 ? (unsigned char)*p : (unsigned char)*p & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        *c = *c << 6 | ((unsigned char)p[i] & 0x3f);
    return p + length;
}

static void append_text(struct api_buffer *to, const char *text, bool swapped)
{
    for (size_t i = 0; i < CHARACTERS; i++) {
        uint32_t c = 0;
        if (*text)
            text = next_character(text, &c);
        append_bytes(to, &c, sizeof c, swapped);
    }
}

static void append_elements(struct api_buffer *to, const struct tables_array *array)
{
    size_t size = (size_t)atoi(array->dtype + 1);
    for (size_t i = 0; i < array->n; i++) {
        char bytes[8];
        double number = array->numbers ? array->numbers[i] : 0;
        int64_t integer = fabs(number) < 0x1p63 ? (int64_t)number : 0;
        if (*array->dtype == 'U') {
            append_text(to, array->texts + i * array->text_size, array->swapped);
            continue;
        }
        if (*array->dtype == 'f')
            kl_store(size == 8   ? KL_FLOAT64
                     : size == 4 ? KL_FLOAT32
                                 : KL_FLOAT16,
                     bytes, 0, number);
        else if (*array->dtype == 'u' && size == 8)
            memcpy(bytes, &(uint64_t){(uint64_t)number}, size);
        else
            memcpy(bytes, &integer, size);
        append_bytes(to, bytes, size, array->swapped);
    }
}

static void append_npy(struct api_buffer *to, const struct tables_array *array)
{
    char shape[40], width[8] = "";
    size_t start = to->size;
    snprintf(shape, sizeof shape, "(%zu,)", array->n);
    if (strcmp(array->dtype, "U") == 0)
        snprintf(width, sizeof width, "%d", CHARACTERS);
    api_append(to, "\x93NUMPY\1\0\166\0", 10);
    api_append_format(to, "{'descr': '%c%s%s', 'fortran_order': False, 'shape': %s, }",
                      array->swapped ? '>' : '<', array->dtype, width,
                      array->shape ? array->shape : shape);
    while (to->size - start < 127)
        api_append_text(to, " ");
    api_append_text(to, "\n");
    append_elements(to, array);
}

void tables_npz(struct api_buffer *to, const struct tables_array *arrays, size_t n, bool deflated)
{
    struct api_buffer *files = calloc(n + 1, sizeof *files);
    zip_source_t *written = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *archive = zip_open_from_source(written, ZIP_TRUNCATE, NULL);
    char name[100];
    zip_stat_t stat;
    cr_assert(files && archive);
    zip_source_keep(written);
    for (size_t i = 0; i < n; i++) {
        append_npy(&files[i], &arrays[i]);
        zip_source_t *source = zip_source_buffer(archive, files[i].data, files[i].size, 0);
        snprintf(name, sizeof name, "%s.npy", arrays[i].name);
        zip_int64_t index = zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8);
        cr_assert_geq(index, 0);
        zip_set_file_compression(archive, (zip_uint64_t)index,
                                 deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 1);
    }
    cr_assert_eq(zip_close(archive), 0);
    cr_assert(zip_source_stat(written, &stat) == 0 && api_buffer_room(to, stat.size) &&
              zip_source_open(written) == 0);
    zip_source_read(written, to->data + to->size, stat.size);
    to->size += stat.size;
    zip_source_close(written);
    zip_source_free(written);
    for (size_t i = 0; i < n; i++)
        api_buffer_free(&files[i]);
    free(files);
}

void tables_safetensors(struct api_buffer *to, const struct tables_array *arrays, size_t n,
                        size_t padding)
{
    static const char *const names[][2] = {
        {"f8", "F64"}, {"f4", "F32"}, {"f2", "F16"}, {"i1", "I8"},  {"i2", "I16"}, {"i4", "I32"},
        {"i8", "I64"}, {"u1", "U8"},  {"u2", "U16"}, {"u4", "U32"}, {"u8", "U64"}, {"b1", "BOOL"}};
    struct api_buffer header = {0}, data = {0};
    api_append_text(&header, "{");
    for (size_t i = 0; i < n; i++) {
        struct tables_array array = arrays[i];
        size_t begin = data.size, row = 0;
        array.swapped = false;
        append_elements(&data, &array);
        while (strcmp(names[row][0], array.dtype) != 0)
            row++;
        api_append_format(&header,
                          "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
                          i ? "," : "", array.name, names[row][1], array.n, begin, data.size);
    }
    api_append_text(&header, "}");
    while (padding-- > 0)
        api_append_text(&header, " ");
    uint64_t size = header.size;
    api_append(to, &size, sizeof size);
    api_append(to, header.data, header.size);
    api_append(to, data.data, data.size);
    api_buffer_free(&header);
    api_buffer_free(&data);
}
