/* Tables as safetensors: a tensor with one axis for each column, read where it lies. */
#include "api/formats/arrays.h"
#include "api/formats/columns.h"
#include "api/formats/safetensors_file.h"
#include "api/text/json_load.h"

#include <stdlib.h>
#include <string.h>

/* MAX_HEADER: limit in bytes; a tensor takes about 80 and its name. */
enum { MAX_HEADER = 1 << 20 };

/* tensors: the state of a table. `spans` are in order of their place once they are checked, `columns`
 * in that of the header. */
struct tensors {
    struct api_buffer columns, spans;
};

struct column {
    struct api_array_type type;
    size_t begin; /* offset in the body */
};

struct reader {
    struct api_table *table;
    struct tensors *tensors;
    size_t data, data_size; /* the data's offset in the body */
    struct api_problem *problem;
};

static bool malformed(struct reader *r, size_t column, const char *what)
{
    return api_table_fail(r->table, column, NULL, r->problem, "safetensors_malformed", "%s", what);
}

static bool read_size(const json_t *value, size_t *size)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *size = (size_t)json_integer_value(value);
    return true;
}

static bool read_dtype(struct reader *r, size_t column, const json_t *info,
                       struct api_array_type *type)
{
    const char *name = json_string_value(json_object_get(info, "dtype"));
    if (!name)
        return malformed(r, column, "it has no dtype, or one that is not a string");
    return api_array_type_safetensors(name, type) ||
           api_table_fail(
               r->table, column, NULL, r->problem, "dtype_unsupported",
               "dtype %.20s is not one of F64, F32, F16, BF16, I8 to I64, U8 to U64, BOOL", name);
}

static bool read_tensor(struct reader *r, size_t i, const json_t *info)
{
    const json_t *shape = json_object_get(info, "shape"),
                 *offsets = json_object_get(info, "data_offsets");
    struct column column = {.type.size = 1};
    size_t begin, end, n;
    if (!read_dtype(r, i, info, &column.type))
        return false;
    if (!json_is_array(shape))
        return malformed(r, i, "it has no shape, which must be an array");
    if (json_array_size(shape) != 1)
        return api_table_fail(r->table, i, NULL, r->problem, "shape_invalid",
                              "it has %zu axes, but a column has one", json_array_size(shape));
    if (json_array_size(offsets) != 2 || !read_size(json_array_get(offsets, 0), &begin) ||
        !read_size(json_array_get(offsets, 1), &end) || !read_size(json_array_get(shape, 0), &n))
        return malformed(r, i, "shape and data_offsets must be arrays of non-negative integers");
    if (begin > end || end > r->data_size)
        return malformed(r, i, "data_offsets are not within the data");
    if ((end - begin) / column.type.size != n || (end - begin) % column.type.size != 0)
        return malformed(r, i, "shape and dtype do not fit the bytes between data_offsets");
    column.begin = r->data + begin;
    const struct api_span span = {begin, end, i};
    api_append(&r->tensors->columns, &column, sizeof column);
    api_append(&r->tensors->spans, &span, sizeof span);
    if (r->tensors->columns.failed || r->tensors->spans.failed)
        return api_fail_oom(r->problem);
    return api_table_count(r->table, i, n, r->problem);
}

static bool check_coverage(struct reader *r)
{
    struct api_buffer *spans = &r->tensors->spans;
    size_t due, n = spans->size / sizeof(struct api_span);
    const struct api_span *wrong = api_spans_check((struct api_span *)(void *)spans->data, n, &due);
    if (wrong)
        return malformed(r, wrong->owner, "tensors must neither overlap nor leave gaps");
    return due == r->data_size ||
           api_fail(r->problem, "safetensors_malformed",
                    "the tensors end at byte %zu of the data, but the data has %zu bytes", due,
                    r->data_size);
}

static bool read_header(struct reader *r, json_t *root)
{
    const char *name;
    json_t *info;
    json_object_foreach(root, name, info)
    {
        size_t i = r->table->names.n;
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (!api_table_add(r->table, name, strlen(name), false, r->problem) ||
            !read_tensor(r, i, info))
            return false;
    }
    return check_coverage(r);
}

static bool load_header(struct reader *r, size_t size)
{
    struct api_json json = {.budget = r->table->budget};
    const char *text = r->table->body + API_SAFETENSORS_PREFIX;
    bool good = api_json_load(&json, text, size);
    if (good)
        good = read_header(r, json.root);
    else if (json.out_of_memory)
        api_fail_oom(r->problem);
    else
        api_fail(r->problem, "safetensors_malformed", "the header is not JSON: byte %d: %s",
                 json.error.position, json.error.text);
    api_json_free(&json);
    return good;
}

static bool open_safetensors(struct api_table *table, struct api_problem *problem)
{
    struct tensors *tensors = table->state = calloc(1, sizeof *tensors);
    size_t size = 0;
    if (!tensors)
        return api_fail_oom(problem);
    tensors->columns.budget = tensors->spans.budget = table->budget;
    if (!api_safetensors_header(table->body, table->size, MAX_HEADER, &size, problem))
        return false;
    size_t data = API_SAFETENSORS_PREFIX + size;
    struct reader r = {.table = table,
                       .tensors = tensors,
                       .data = data,
                       .data_size = table->size - data,
                       .problem = problem};
    table->has_values = true;
    return load_header(&r, size);
}

static bool read_safetensors(struct api_table *table, const struct api_sink *sink,
                             struct api_problem *problem)
{
    const struct tensors *tensors = table->state;
    for (size_t i = 0; i < table->n_columns; i++) {
        struct column column;
        memcpy(&column, tensors->columns.data + i * sizeof column, sizeof column);
        if (table->columns[i].wanted &&
            !api_array_give(table, sink, i, &column.type, (char *)table->body + column.begin,
                            table->n_rows, problem))
            return false;
    }
    return true;
}

static void close_safetensors(struct api_table *table)
{
    struct tensors *tensors = table->state;
    if (!tensors)
        return;
    api_buffer_free(&tensors->columns);
    api_buffer_free(&tensors->spans);
    free(tensors);
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
                                                       .read = read_safetensors,
                                                       .close = close_safetensors,
                                                       .location = location};
