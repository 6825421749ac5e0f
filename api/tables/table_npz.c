/* Tables as .npz: an entry for each column, inflated when it is read. */
#include "api/files/archive.h"
#include "api/files/npy_header.h"
#include "api/tables/arrays.h"
#include "api/tables/columns.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* MEMORY_EACH: bytes that libzip allocates for an entry, beside the budget. */
enum { MEMORY_EACH = 512, MAX_NAME = 1024 };

/* USUAL_HEADER: bytes before the elements of an array with one axis, as numpy pads them. */
enum { USUAL_HEADER = 128 };

/* archive: the state of a table. Column i is entry i. */
struct archive {
    zip_t *zip;
    size_t reserved;
};

static bool fail_entry(const char *name, struct api_problem *problem, const struct api_problem *why)
{
    return api_fail(problem, why->code, "entry %.100s: %s", name, why->detail);
}

/* Parses the header of an entry's array, of `size` bytes in all, and checks that it is a column. */
static bool parse(const char *bytes, size_t available, const zip_stat_t *stat, struct api_npy *npy,
                  struct api_array_type *type, struct api_problem *problem)
{
    struct api_problem why = {0};
    if (!api_npy_parse(bytes, available, npy, &why))
        return fail_entry(stat->name, problem, &why);
    if (!api_array_type_numpy(npy->descr, type))
        return api_fail(problem, "dtype_unsupported",
                        "entry %.100s: numpy's dtype '%s' is not one of float64, float32, float16, "
                        "int8 to int64, uint8 to uint64, bool, str%s",
                        stat->name, npy->descr,
                        strchr(npy->descr, 'O') ? ": Python objects are not supported" : "");
    if (npy->ndim != 1)
        return api_fail(problem, "shape_invalid", "entry %.100s has %zu axes, but a column has one",
                        stat->name, npy->ndim);
    size_t size = stat->size - npy->start, n = type->size ? size / type->size : 0;
    if (type->size == 0 && npy->shape[0] > 0) /* rows that take no byte have no bound */
        return api_fail(
            problem, "dtype_unsupported",
            "entry %.100s: elements of numpy's dtype '%s' have no bytes, so the column has no rows",
            stat->name, npy->descr);
    if (npy->shape[0] != n || n * type->size != size)
        return api_fail(problem, "npy_malformed",
                        "entry %.100s: shape and descr do not fit the %zu bytes of data after the "
                        "header",
                        stat->name, size);
    return true;
}

static bool open_entry(struct api_table *table, size_t i, size_t *room, struct api_problem *problem)
{
    const struct archive *archive = table->state;
    char header[API_NPY_PREFIX + API_NPY_HEADER], name[MAX_NAME];
    struct api_npy npy;
    struct api_array_type type;
    zip_stat_t stat;
    if (!api_archive_stat(archive->zip, i, room, &stat, problem))
        return false;
    if (!api_archive_name(stat.name, name, sizeof name))
        return api_fail(problem, "npz_malformed", "entry '%.100s' is not a .npy file", stat.name);
    size_t n = USUAL_HEADER;
    if (!api_archive_peek(archive->zip, &stat, header, &n, problem))
        return false;
    if (n == USUAL_HEADER && api_npy_is(header, n) && api_npy_start(header) > n) {
        n = sizeof header;
        if (!api_archive_peek(archive->zip, &stat, header, &n, problem))
            return false;
    }
    return parse(header, n, &stat, &npy, &type, problem) &&
           api_table_add(table, name, strlen(name), false, problem) &&
           api_table_count(table, i, npy.shape[0], problem);
}

static bool open_npz(struct api_table *table, struct api_problem *problem)
{
    struct archive *archive = table->state = calloc(1, sizeof *archive);
    size_t room = table->max_inflated;
    if (!archive)
        return api_fail_oom(problem);
    archive->zip =
        api_archive_open(table->body, table->size, API_MAX_COLUMNS, "column_repeated", problem);
    if (!archive->zip)
        return false;
    size_t n = (size_t)zip_get_num_entries(archive->zip, 0), memory = n * MEMORY_EACH;
    if (!api_budget_reserve(table->budget, memory))
        return api_fail_oom(problem);
    archive->reserved = memory;
    table->has_values = true;
    for (size_t i = 0; i < n; i++)
        if (!open_entry(table, i, &room, problem))
            return false;
    return true;
}

static bool read_column(struct api_table *table, size_t i, const struct api_sink *sink,
                        struct api_problem *problem)
{
    const struct archive *archive = table->state;
    struct api_buffer bytes = {.budget = table->budget};
    size_t room = SIZE_MAX;
    struct api_npy npy;
    struct api_array_type type;
    zip_stat_t stat;
    bool good =
        api_archive_stat(archive->zip, i, &room, &stat, problem) &&
        api_archive_inflate(archive->zip, &stat, &bytes, problem) &&
        parse(bytes.data, bytes.size, &stat, &npy, &type, problem) &&
        api_array_give(table, sink, i, &type, bytes.data + npy.start, npy.shape[0], problem);
    api_buffer_free(&bytes);
    return good;
}

static void close_npz(struct api_table *table)
{
    struct archive *archive = table->state;
    if (!archive)
        return;
    if (archive->zip)
        zip_discard(archive->zip);
    api_budget_release(table->budget, archive->reserved);
    free(archive);
}

static const char *const media_types[] = {"application/x-npz", NULL};
const struct api_table_format api_table_npz = {
    .media_types = media_types, .open = open_npz, .read_column = read_column, .close = close_npz};
