#include "api/tables/arrays.h"

#include "api/json/json_text.h"

#include <stdint.h>
#include <string.h>

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
static double integer(const struct api_type *type, const char *p)
{
    uint64_t bits = 0;
    unsigned unused = 64 - 8 * (unsigned)type->size;
    memcpy(&bits, p, type->size);
    if (type->element == API_UNSIGNED)
        return (double)bits;
    return (double)((int64_t)(bits << unused) >> unused);
}

/* Encodes an element of text, without the NULs that pad it; false if it is no Unicode. */
static bool encode(const char *p, size_t size, char *to, struct api_cell *cell)
{
    size_t n = 0;
    uint32_t c;
    for (; size > 0; size -= API_CHARACTER) {
        memcpy(&c, p + size - API_CHARACTER, sizeof c);
        if (c)
            break;
    }
    for (const char *end = p + size; p < end; p += API_CHARACTER) {
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
                       const struct api_type *type, const char *data, char *text,
                       struct api_problem *problem)
{
    struct api_cell cell = {.kind = type->element == API_BOOL         ? API_CELL_BOOLEAN
                                    : type->element == API_CHARACTERS ? API_CELL_STRING
                                                                      : API_CELL_NUMBER};
    for (; cell.row < table->n_rows; cell.row++, data += type->size) {
        if (type->element == API_BOOL)
            cell.number = *data != 0;
        else if (type->element != API_CHARACTERS)
            cell.number = integer(type, data);
        else if (!encode(data, type->size, text, &cell))
            return api_table_fail(table, column, &cell, problem, "value_invalid",
                                  "a text holds an invalid character or a NUL");
        if (!sink->cell(sink->context, column, &cell, problem))
            return false;
    }
    return true;
}

bool api_array_add(struct api_table *table, const struct api_array *array, size_t n,
                   struct api_problem *problem)
{
    api_append(&table->arrays, array, sizeof *array);
    return table->arrays.failed ? api_fail_oom(problem)
                                : api_table_count(table, table->names.n - 1, n, problem);
}

bool api_array_give(const struct api_table *table, const struct api_sink *sink, size_t column,
                    char *file, struct api_problem *problem)
{
    const struct api_array *array = (const struct api_array *)(void *)table->arrays.data + column;
    const struct api_type *type = &array->type;
    struct api_buffer text = {.budget = table->budget};
    char *data = file + array->start;
    size_t n = table->n_rows;
    bool is_text = type->element == API_CHARACTERS;
    if (type->swapped && is_text)
        swap(data, n * type->size / API_CHARACTER, API_CHARACTER);
    else if (type->swapped)
        swap(data, n, type->size);
    if (type->element == API_FLOAT)
        return sink->numbers(sink->context, column, type->dtype, data, 0, n, problem);
    if (is_text && !api_buffer_reserve(&text, type->size + 1))
        return api_fail_oom(problem);
    bool good = give_cells(table, sink, column, type, data, text.data, problem);
    api_buffer_free(&text);
    return good;
}
