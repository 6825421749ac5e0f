/* Tables as safetensors: a tensor with one axis for each column, read where it lies. */
#include "api/files/safetensors_file.h"
#include "api/tables/arrays.h"
#include "api/tables/columns.h"

#include <stdlib.h>
#include <string.h>

/* MAX_HEADER: limit in bytes; a tensor takes about 80 and its name. */
enum { MAX_HEADER = 1 << 20 };

/* column: the elements of a tensor. The state of a table is a buffer of them, in order of the header. */
struct column {
    struct api_array_type type;
    char *data;
};

static bool read_tensor(struct api_table *table, struct api_safetensors *file)
{
    struct api_buffer *columns = table->state;
    struct api_problem *problem = file->problem;
    struct api_safetensor tensor;
    struct column column = {.type.size = 1};
    size_t i = table->names.n, size = strlen(file->name), other;
    if (api_names_find(&table->names, file->name, size, &other))
        return api_json_repeated(&file->json);
    if (!api_table_add(table, file->name, size, false, problem) ||
        !api_safetensors_read(file, &tensor))
        return false;
    if (!api_array_type_safetensors(tensor.dtype, &column.type))
        return api_table_fail(
            table, i, NULL, problem, "dtype_unsupported",
            "dtype %.20s is not one of F64, F32, F16, BF16, I8 to I64, U8 to U64, BOOL",
            tensor.dtype);
    if (tensor.ndim != 1)
        return api_table_fail(table, i, NULL, problem, "shape_invalid",
                              "it has %zu axes, but a column has one", tensor.ndim);
    column.data = (char *)file->data + tensor.begin;
    api_append(columns, &column, sizeof column);
    if (columns->failed)
        return api_fail_oom(problem);
    return api_safetensors_fit(file, &tensor, column.type.size) &&
           api_table_count(table, i, tensor.shape[0], problem);
}

static bool open_safetensors(struct api_table *table, struct api_problem *problem)
{
    struct api_buffer *columns = table->state = calloc(1, sizeof *columns);
    struct api_safetensors file = {
        .body = table->body, .size = table->size, .max_header = MAX_HEADER, .problem = problem};
    if (!columns)
        return api_fail_oom(problem);
    columns->budget = table->budget;
    table->has_values = true;
    bool good = api_safetensors_begin(&file, table->budget);
    while (good && api_safetensors_next(&file))
        good = strcmp(file.name, "__metadata__") == 0 ? api_json_skip(&file.json)
                                                      : read_tensor(table, &file);
    return api_safetensors_end(&file, good);
}

static bool read_column(struct api_table *table, size_t i, const struct api_sink *sink,
                        struct api_problem *problem)
{
    const struct api_buffer *columns = table->state;
    const struct column *column = (const struct column *)(const void *)columns->data + i;
    return api_array_give(table, sink, i, &column->type, column->data, table->n_rows, problem);
}

static void close_safetensors(struct api_table *table)
{
    if (table->state)
        api_buffer_free(table->state);
    free(table->state);
}

static void location(const struct api_table *table, size_t column, const struct api_cell *cell,
                     char *to, size_t size)
{
    (void)cell;
    api_pointer_to_member(to, size, "#/", api_names_get(&table->names, column));
}

static const char *const media_types[] = {
    "application/vnd.safetensors", "application/x-safetensors", "application/safetensors", NULL};
const struct api_table_format api_table_safetensors = {.media_types = media_types,
                                                       .open = open_safetensors,
                                                       .read_column = read_column,
                                                       .close = close_safetensors,
                                                       .location = location};
