#include "api/tables/arrays.h"

#include "api/json/json_text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* CHARACTER: bytes of a character of numpy's text. MAX_CHARACTERS: maximum of an element. */
enum { CHARACTER = 4, MAX_CHARACTERS = 1 << 24 };

static const struct {
    const char *numpy, *safetensors;
    struct api_array_type type;
} types[] = {
    {"f8", "F64", {API_ARRAY_FLOAT, KL_FLOAT64, 8, false}},
    {"f4", "F32", {API_ARRAY_FLOAT, KL_FLOAT32, 4, false}},
    {"f2", "F16", {API_ARRAY_FLOAT, KL_FLOAT16, 2, false}},
    {"", "BF16", {API_ARRAY_FLOAT, KL_BFLOAT16, 2, false}},
    {"i8", "I64", {API_ARRAY_SIGNED, KL_FLOAT64, 8, false}},
    {"i4", "I32", {API_ARRAY_SIGNED, KL_FLOAT64, 4, false}},
    {"i2", "I16", {API_ARRAY_SIGNED, KL_FLOAT64, 2, false}},
    {"i1", "I8", {API_ARRAY_SIGNED, KL_FLOAT64, 1, false}},
    {"u8", "U64", {API_ARRAY_UNSIGNED, KL_FLOAT64, 8, false}},
    {"u4", "U32", {API_ARRAY_UNSIGNED, KL_FLOAT64, 4, false}},
    {"u2", "U16", {API_ARRAY_UNSIGNED, KL_FLOAT64, 2, false}},
    {"u1", "U8", {API_ARRAY_UNSIGNED, KL_FLOAT64, 1, false}},
    {"b1", "BOOL", {API_ARRAY_BOOL, KL_FLOAT64, 1, false}},
};
#define N_TYPES (sizeof types / sizeof *types)

static bool find_text(const char *digits, struct api_array_type *type)
{
    char *end;
    unsigned long n = strtoul(digits, &end, 10);
    if (!isdigit((unsigned char)*digits) || *end || n > MAX_CHARACTERS)
        return false;
    *type = (struct api_array_type){API_ARRAY_TEXT, KL_FLOAT64, n * CHARACTER, false};
    return true;
}

bool api_array_type_numpy(const char *descr, struct api_array_type *type)
{
    if (!*descr || !strchr("<>=|", *descr))
        return false;
    size_t i = 0;
    while (i < N_TYPES && strcmp(types[i].numpy, descr + 1) != 0)
        i++;
    if (i < N_TYPES && descr[1])
        *type = types[i].type;
    else if (descr[1] != 'U' || !find_text(descr + 2, type))
        return false;
    type->swapped = *descr == '>';
    return true;
}

bool api_array_type_safetensors(const char *name, struct api_array_type *type)
{
    for (size_t i = 0; i < N_TYPES; i++)
        if (strcmp(types[i].safetensors, name) == 0) {
            *type = types[i].type;
            return true;
        }
    return false;
}

static void swap(char *data, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++, data += size)
        for (size_t j = 0; j < size / 2; j++) {
            char byte = data[j];
            data[j] = data[size - 1 - j];
            data[size - 1 - j] = byte;
        }
}

/* Element of an array of integers, rounded to nearest. */
static double integer(const struct api_array_type *type, const char *p)
{
    uint64_t bits = 0;
    unsigned unused = 64 - 8 * (unsigned)type->size;
    memcpy(&bits, p, type->size);
    if (type->kind == API_ARRAY_UNSIGNED)
        return (double)bits;
    return (double)((int64_t)(bits << unused) >> unused);
}

/* Encodes an element of text, without the NULs that pad it; false if it is no Unicode. */
static bool encode(const char *p, size_t size, char *to, struct api_cell *cell)
{
    size_t n = 0;
    uint32_t c;
    for (; size > 0; size -= CHARACTER) {
        memcpy(&c, p + size - CHARACTER, sizeof c);
        if (c)
            break;
    }
    for (const char *end = p + size; p < end; p += CHARACTER) {
        memcpy(&c, p, sizeof c);
        if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
            return false;
        n += api_utf8_write(to + n, (long)c);
    }
    cell->text = to;
    cell->size = n;
    return true;
}

static bool give_cells(const struct api_table *table, const struct api_sink *sink, size_t column,
                       const struct api_array_type *type, const char *data, size_t n, char *text,
                       struct api_problem *problem)
{
    struct api_cell cell = {.kind = type->kind == API_ARRAY_BOOL   ? API_CELL_BOOLEAN
                                    : type->kind == API_ARRAY_TEXT ? API_CELL_STRING
                                                                   : API_CELL_NUMBER};
    for (; cell.row < n; cell.row++, data += type->size) {
        if (type->kind == API_ARRAY_BOOL)
            cell.number = *data != 0;
        else if (type->kind != API_ARRAY_TEXT)
            cell.number = integer(type, data);
        else if (!encode(data, type->size, text, &cell))
            return api_table_fail(table, column, &cell, problem, "value_invalid",
                                  "a text holds an invalid character or a NUL");
        if (!sink->cell(sink->context, column, &cell, problem))
            return false;
    }
    return true;
}

bool api_array_give(const struct api_table *table, const struct api_sink *sink, size_t column,
                    const struct api_array_type *type, char *data, size_t n,
                    struct api_problem *problem)
{
    struct api_buffer text = {.budget = table->budget};
    bool is_text = type->kind == API_ARRAY_TEXT;
    if (type->swapped && is_text)
        swap(data, n * type->size / CHARACTER, CHARACTER);
    else if (type->swapped)
        swap(data, n, type->size);
    if (type->kind == API_ARRAY_FLOAT)
        return sink->numbers(sink->context, column, type->dtype, data, n, problem);
    if (is_text && !api_buffer_reserve(&text, type->size + 1))
        return api_fail_oom(problem);
    bool good = give_cells(table, sink, column, type, data, n, text.data, problem);
    api_buffer_free(&text);
    return good;
}
