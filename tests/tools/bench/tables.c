/* Reading of tables: prints the seconds that one reading of FILE took, all of its numbers summed up, and
 * the sum.
 * Usage: tables FILE TYPE */
#include "api/tables/field.h"
#include "api/tables/table.h"

#include "tests/tools/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sum {
    const struct api_table *table;
    double numbers;
    size_t texts;
};

static bool add_cell(void *context, size_t column, const struct api_cell *cell,
                     struct api_problem *problem)
{
    struct sum *sum = context;
    double number = cell->number;
    (void)column, (void)problem;
    if (cell->kind == API_CELL_FIELD && !api_field_number(cell, API_EITHER, &number))
        sum->texts++;
    sum->numbers += number;
    return true;
}

static bool add_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                        size_t row, size_t n, struct api_problem *problem)
{
    struct sum *sum = context;
    (void)column, (void)row, (void)problem;
    for (size_t i = 0; i < n; i++)
        sum->numbers += kl_load(dtype, values, i);
    return true;
}

static double read_table(const char *type, const char *body, size_t size)
{
    struct api_problem problem = {0};
    struct api_table table = {.format = api_table_format(type, &problem),
                              .body = body,
                              .size = size,
                              .max_inflated = SIZE_MAX};
    struct sum sum = {.table = &table};
    const struct api_sink sink = {&sum, add_cell, add_numbers};
    bool good = table.format && api_table_open(&table, &problem);
    for (size_t i = 0; good && i < table.n_columns; i++)
        table.columns[i].wanted = true;
    if (!good || !api_table_read(&table, &sink, &problem)) {
        fprintf(stderr, "%s: %s\n", type, problem.detail);
        exit(1);
    }
    api_table_free(&table);
    return sum.numbers;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return 1;
    size_t size = (size_t)ftell(file);
    char *body = calloc(1, size + API_PADDING);
    rewind(file);
    if (!body || fread(body, 1, size, file) != size)
        return 1;
    fclose(file);
    double start = now_ns();
    double sum = read_table(argv[2], body, size);
    printf("%.9f %.17g\n", (now_ns() - start) / 1e9, sum);
    free(body);
    return 0;
}
