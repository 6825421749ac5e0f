/* Tables as .npz: an entry for each column, inflated when it is read. */
#include "api/files/archive.h"
#include "api/files/npy_header.h"
#include "api/tables/arrays.h"
#include "api/tables/columns.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* MEMORY_EACH: bytes that libzip allocates for an entry, beside the budget. */
enum { MEMORY_EACH = 512 };

/* USUAL_HEADER: bytes before the elements of an array with one axis, as numpy pads them. */
enum { USUAL_HEADER = 128 };

/* state: of a table whose column i is entry i. */
struct state {
    struct api_archive archive;
    size_t reserved;
};

/* Checks that an entry's array is a column, and finds its type. */
static bool check(const zip_stat_t *entry, const struct api_npy *npy, struct api_type *type,
                  struct api_problem *problem)
{
    if (!api_type_find(API_NUMPY, npy->descr, type))
        return api_fail(problem, "dtype_unsupported",
                        "entry %.100s: numpy's dtype '%s' is not one of float64, float32, float16, "
                        "int8 to int64, uint8 to uint64, bool, str%s",
                        entry->name, npy->descr,
                        strchr(npy->descr, 'O') ? ": Python objects are not supported" : "");
    if (npy->ndim != 1)
        return api_fail(problem, "shape_invalid", "entry %.100s has %zu axes, but a column has one",
                        entry->name, npy->ndim);
    size_t size = entry->size - npy->start, n = type->size ? size / type->size : 0;
    if (type->size == 0 && npy->shape[0] > 0) /* rows that take no byte have no bound */
        return api_fail(
            problem, "dtype_unsupported",
            "entry %.100s: elements of numpy's dtype '%s' have no bytes, so the column has no rows",
            entry->name, npy->descr);
    if (npy->shape[0] != n || n * type->size != size)
        return api_fail(problem, "npy_malformed",
                        "entry %.100s: shape and descr do not fit the %zu bytes of data after the "
                        "header",
                        entry->name, size);
    return true;
}

static bool add_column(struct api_table *table, struct api_archive *archive,
                       struct api_problem *problem)
{
    char header[API_NPY_PREFIX + API_NPY_HEADER];
    const zip_stat_t *entry = &archive->entry;
    struct api_npy npy;
    struct api_problem why = {0};
    size_t n = USUAL_HEADER;
    if (!api_archive_read(archive, header, &n, problem))
        return false;
    if (n == USUAL_HEADER && api_npy_is(header, n) && api_npy_start(header) > n) {
        n = sizeof header;
        if (!api_archive_read(archive, header, &n, problem))
            return false;
    }
    if (!api_npy_parse(header, n, &npy, &why))
        return api_fail(problem, why.code, "entry %.100s: %s", entry->name, why.detail);
    struct api_array array = {.start = npy.start};
    return check(entry, &npy, &array.type, problem) &&
           api_table_add(table, archive->name, strlen(archive->name), problem) &&
           api_array_add(table, &array, npy.shape[0], problem);
}

static bool open_npz(struct api_table *table, struct api_problem *problem)
{
    struct state *state = table->state = calloc(1, sizeof *state);
    if (!state)
        return api_fail_oom(problem);
    struct api_archive *archive = &state->archive;
    *archive = (struct api_archive){.body = table->body,
                                    .size = table->size,
                                    .room = table->max_inflated,
                                    .repeated = "column_repeated",
                                    .stray = "npz_malformed"};
    if (!api_archive_open(archive, API_MAX_COLUMNS, problem))
        return false;
    if (!api_budget_reserve(table->budget, archive->n * MEMORY_EACH))
        return api_fail_oom(problem);
    state->reserved = archive->n * MEMORY_EACH;
    table->has_values = true;
    while (api_archive_next(archive, problem) && add_column(table, archive, problem))
        ;
    return !problem->code;
}

static bool read_column(struct api_table *table, size_t i, const struct api_sink *sink,
                        struct api_problem *problem)
{
    struct api_archive *archive = &((struct state *)table->state)->archive;
    struct api_buffer file = {.budget = table->budget};
    archive->next = i;
    archive->room = SIZE_MAX;
    bool good = api_archive_next(archive, problem) &&
                api_archive_inflate(archive, &file, problem) &&
                api_array_give(table, sink, i, file.data, problem);
    api_buffer_free(&file);
    return good;
}

static void close_npz(struct api_table *table)
{
    struct state *state = table->state;
    if (!state)
        return;
    api_archive_close(&state->archive);
    api_budget_release(table->budget, state->reserved);
    free(state);
}

static const char *const media_types[] = {"application/x-npz", NULL};
const struct api_table_format api_table_npz = {
    .media_types = media_types, .open = open_npz, .read_column = read_column, .close = close_npz};
