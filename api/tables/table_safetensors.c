/* Tables as safetensors: a tensor with one axis for each column, read where it lies. */
#include "api/files/safetensors_file.h"
#include "api/tables/arrays.h"
#include "api/tables/columns.h"

#include <string.h>

/* MAX_HEADER: limit in bytes; a tensor takes about 80 and its name. */
enum { MAX_HEADER = 1 << 20 };

static bool read_tensor(struct api_table *table, struct api_safetensors *file)
{
    struct api_problem *problem = file->problem;
    struct api_safetensor tensor;
    struct api_array array;
    size_t i = table->names.n, size = strlen(file->name), other;
    if (api_names_find(&table->names, file->name, size, &other))
        return api_json_repeated(&file->json);
    if (!api_table_add(table, file->name, size, problem) || !api_safetensors_read(file, &tensor))
        return false;
    if (!api_type_find(API_SAFETENSORS, tensor.dtype, &array.type))
        return api_table_fail(
            table, i, NULL, problem, "dtype_unsupported",
            "dtype %.20s is not one of F64, F32, F16, BF16, I8 to I64, U8 to U64, BOOL",
            tensor.dtype);
    if (tensor.ndim != 1)
        return api_table_fail(table, i, NULL, problem, "shape_invalid",
                              "it has %zu axes, but a column has one", tensor.ndim);
    array.start = (size_t)(file->data - table->body) + tensor.begin;
    return api_safetensors_fit(file, &tensor, array.type.size) &&
           api_array_add(table, &array, tensor.shape[0], problem);
}

static bool open_safetensors(struct api_table *table, struct api_problem *problem)
{
    struct api_safetensors file = {
        .body = table->body, .size = table->size, .max_header = MAX_HEADER, .problem = problem};
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
    return api_array_give(table, sink, i, (char *)table->body, problem);
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
                                                       .location = location};
