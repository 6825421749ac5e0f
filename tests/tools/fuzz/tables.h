/* Tables of random bytes: all columns in one read and one by one give as many cells, and memory comes
 * back. */
#pragma once

#include "api/tables/field.h"
#include "api/tables/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* tally: counts and a checksum, the same for the same cells. */
struct tally {
    const struct api_table *table;
    size_t cells;
    uint64_t sum;
};

static inline void tally_bytes(struct tally *tally, const void *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
    tally->sum += hash;
}

static inline bool tally_cell(void *context, size_t column, const struct api_cell *cell,
                              struct api_problem *problem)
{
    struct tally *tally = context;
    double number = cell->number;
    if (column >= tally->table->n_columns || !tally->table->columns[column].wanted)
        abort();
    if (cell->kind >= API_CELL_STRING && memchr(cell->text, '\0', cell->size))
        abort();
    if (cell->kind == API_CELL_FIELD) {
        for (int style = API_PLAIN; style < API_STYLES; style++)
            api_cell_number(cell, (enum api_style)style, &number);
        api_style_add(&(struct api_style_tally){.points = 0}, cell);
    }
    tally_bytes(tally, &number, sizeof number);
    tally_bytes(tally, cell->text, cell->size);
    tally->sum += cell->row + cell->line + column;
    tally->cells++;
    return cell->size != 13 ||
           api_table_fail(tally->table, column, cell, problem, "value_invalid", "unlucky");
}

static inline bool tally_numbers(void *context, size_t column, enum kl_dtype dtype,
                                 const void *values, size_t row, size_t n,
                                 struct api_problem *problem)
{
    struct tally *tally = context;
    (void)row, (void)problem;
    tally_bytes(tally, values, n * kl_dtype_size(dtype));
    tally->sum += column;
    tally->cells += n;
    return true;
}

static inline bool read_columns(struct api_table *table, struct tally *tally, bool in_turn,
                                struct api_problem *problem)
{
    const struct api_sink sink = {tally, tally_cell, tally_numbers};
    tally->table = table;
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted = !in_turn;
    if (!in_turn)
        return api_table_read(table, &sink, problem);
    for (size_t i = 0; i < table->n_columns; i++) {
        table->columns[i].wanted = true;
        if (!api_table_read(table, &sink, problem))
            return false;
        table->columns[i].wanted = false;
    }
    return true;
}

static inline void fuzz_table(const char *type, enum api_table_kind kind, const uint8_t *data,
                              size_t size)
{
    /* MANY: columns of tables that are read once. INFLATED: bytes of all entries of an archive. */
    enum { MANY = 50, INFLATED = 4096 };
    struct api_budget budget = {.limit = 64 << 20};
    struct api_problem problem = {0}, other = {0};
    struct tally whole = {0}, in_turn = {0};
    char *body = calloc(1, size + API_PADDING);
    if (!body)
        abort();
    memcpy(body, data, size);
    struct api_table table = {.format = api_table_format(type, &problem),
                              .kind = kind,
                              .content_type = type,
                              .body = body,
                              .size = size,
                              .budget = &budget,
                              .max_inflated = INFLATED};
    bool is_open = api_table_open(&table, &problem);
    if (is_open && table.n_rows > size + INFLATED) /* a row takes a byte at least */
        abort();
    if (is_open && table.n_columns < MANY) {
        bool good = read_columns(&table, &whole, false, &problem);
        if (good && whole.cells != table.n_rows * table.n_columns)
            abort();
        if (good && memcmp(body, data, size) == 0 && !read_columns(&table, &in_turn, true, &other))
            abort();
        if (good && (whole.cells != in_turn.cells || whole.sum != in_turn.sum))
            abort();
    }
    api_table_free(&table);
    if (atomic_load(&budget.used) || (problem.code && api_problem_status(&problem) == 500))
        abort();
    api_budget_trim(&budget, 0);
    free(body);
}
