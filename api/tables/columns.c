#include "api/tables/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* MAX_NAME: bytes of names that are made to differ; longer ones are none of a monitor. */
enum { MAX_NAME = 128 };

void api_name_trim(const char **name, size_t *size)
{
    static const char blanks[] = " \t\r\n";
    while (*size > 0 && memchr(blanks, **name, sizeof blanks - 1)) {
        ++*name;
        --*size;
    }
    while (*size > 0 && memchr(blanks, (*name)[*size - 1], sizeof blanks - 1))
        --*size;
}

struct api_note *api_table_note(const struct api_table *table, size_t column)
{
    return (struct api_note *)(void *)table->notes.data + column;
}

/* Makes the name of a column that has that of column i: the first of name.1, name.2, ... that is free. */
static size_t make_name(const struct api_table *table, size_t i, char *to, size_t size)
{
    struct api_note *note = api_table_note(table, i);
    const char *name = api_names_get(&table->names, i);
    size_t length, other;
    do
        length = (size_t)snprintf(to, size, "%s.%u", name, ++note->repeats);
    while (api_names_find(&table->names, to, length, &other));
    return length;
}

bool api_table_add(struct api_table *table, const char *name, size_t size,
                   struct api_problem *problem)
{
    char made[MAX_NAME + 20];
    struct api_note note = {0};
    size_t i, before = size;
    if (table->names.n == API_MAX_COLUMNS)
        return api_fail(problem, "too_many_columns", "a table may have at most %d columns",
                        API_MAX_COLUMNS);
    api_name_trim(&name, &size);
    note.flaws = size < before ? API_NAME_BLANK : 0;
    if (size > 0 && size <= MAX_NAME && api_names_find(&table->names, name, size, &i)) {
        size = make_name(table, i, made, sizeof made);
        name = made;
        note.flaws |= API_NAME_REPEATED;
    }
    api_append(&table->notes, &note, sizeof note);
    return (!table->notes.failed && api_names_add(&table->names, name, size)) ||
           api_fail_oom(problem);
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
