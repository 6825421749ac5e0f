#include "api/tables/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool api_table_add(struct api_table *table, const char *name, size_t size, bool unnamed,
                   struct api_problem *problem)
{
    size_t i;
    if (table->names.n == API_MAX_COLUMNS)
        return api_fail(problem, "too_many_columns", "a table may have at most %d columns",
                        API_MAX_COLUMNS);
    if (!(size == 0 && unnamed) && api_names_find(&table->names, name, size, &i))
        return api_fail(problem, "column_repeated", "two columns have the name '%.*s'%s",
                        (int)(size < 200 ? size : 200), name,
                        size > 0 && strspn(name, "0123456789+-.,eE") >= size
                            ? "; the first line must be a header with names"
                            : "");
    return api_names_add(&table->names, name, size) || api_fail_oom(problem);
}

bool api_table_count(struct api_table *table, size_t column, size_t n, struct api_problem *problem)
{
    if (column == 0)
        table->n_rows = n;
    return n == table->n_rows ||
           api_table_fail(table, column, NULL, problem, "columns_unequal",
                          "column '%.80s' has %zu values, and '%.80s' has %zu",
                          api_names_get(&table->names, column), n, api_names_get(&table->names, 0),
                          table->n_rows);
}

bool api_table_fail(const struct api_table *table, size_t column, const struct api_cell *cell,
                    struct api_problem *problem, const char *code, const char *format, ...)
{
    char detail[sizeof problem->detail], location[sizeof problem->location];
    const char *name = api_names_get(&table->names, column);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    if (table->format->location && !(cell && cell->line)) {
        table->format->location(table, column, cell, location, sizeof location);
        return api_fail_at(problem, API_BODY, location, code, "%s", detail);
    }
    if (!cell)
        return api_fail(problem, code, "%s", detail);
    return api_fail(problem, code,
                    cell->line ? "line %zu, column '%.80s': %s" : "row %zu of column '%.80s': %s",
                    cell->line ? cell->line : cell->row, name, detail);
}
