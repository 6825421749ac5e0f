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

/* ---- Names */

struct api_name *api_names_at(const struct api_names *names, size_t i)
{
    return (struct api_name *)(void *)names->list.data + i;
}

const char *api_names_get(const struct api_names *names, size_t i)
{
    return names->text.data + api_names_at(names, i)->start;
}

static size_t size_of(const struct api_names *names, size_t i)
{
    size_t end = i + 1 < names->n ? api_names_at(names, i + 1)->start : names->text.size;
    return end - api_names_at(names, i)->start - 1;
}

bool api_names_is(const struct api_names *names, size_t i, const char *name, size_t size)
{
    return size_of(names, i) == size && memcmp(api_names_get(names, i), name, size) == 0;
}

static int compare(const struct api_names *names, size_t i, const char *name, size_t size)
{
    size_t own = size_of(names, i);
    int order = memcmp(api_names_get(names, i), name, own < size ? own : size);
    return order ? order : (own > size) - (own < size);
}

static size_t *order_of(const struct api_names *names)
{
    return (size_t *)(void *)names->order.data;
}

/* Place in `order` of the first name that is not before this one. */
static size_t slot_of(const struct api_names *names, const char *name, size_t size)
{
    size_t from = 0, to = names->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare(names, order_of(names)[middle], name, size) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool api_names_find(const struct api_names *names, const char *name, size_t size, size_t *i)
{
    size_t slot = slot_of(names, name, size);
    if (slot == names->n)
        return false;
    *i = order_of(names)[slot];
    return api_names_is(names, *i, name, size);
}

/* Adds a name, present or not, at the end; false if memory is exhausted. Moves n numbers at most: meant for
 * API_MAX_COLUMNS names. */
static bool add_name(struct api_names *names, const char *name, size_t size, unsigned flaws)
{
    const struct api_name added = {.start = names->text.size, .flaws = flaws};
    size_t i = names->n, slot = slot_of(names, name, size);
    if (!api_buffer_room(&names->text, size + 1) || !api_buffer_room(&names->list, sizeof added) ||
        !api_buffer_room(&names->order, sizeof i))
        return false;
    api_append(&names->text, name, size);
    api_append(&names->text, "", 1);
    api_append(&names->list, &added, sizeof added);
    api_append(&names->order, &i, sizeof i);
    memmove(order_of(names) + slot + 1, order_of(names) + slot, (i - slot) * sizeof i);
    order_of(names)[slot] = i;
    names->n++;
    return true;
}

/* ---- Columns */

/* Makes the name of a column that has that of column i: the first of name.1, name.2, ... that is free. */
static size_t make_name(const struct api_names *names, size_t i, char *to, size_t size)
{
    size_t length, other;
    do
        length = (size_t)snprintf(to, size, "%s.%u", api_names_get(names, i),
                                  ++api_names_at(names, i)->repeats);
    while (api_names_find(names, to, length, &other));
    return length;
}

bool api_table_add(struct api_table *table, const char *name, size_t size,
                   struct api_problem *problem)
{
    char made[MAX_NAME + 20];
    size_t i, before = size;
    if (table->names.n == API_MAX_COLUMNS)
        return api_fail(problem, "too_many_columns", "a table may have at most %d columns",
                        API_MAX_COLUMNS);
    api_name_trim(&name, &size);
    unsigned flaws = size < before ? API_NAME_BLANK : 0;
    if (size > 0 && size <= MAX_NAME && api_names_find(&table->names, name, size, &i)) {
        size = make_name(&table->names, i, made, sizeof made);
        name = made;
        flaws |= API_NAME_REPEATED;
    }
    return add_name(&table->names, name, size, flaws) || api_fail_oom(problem);
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
