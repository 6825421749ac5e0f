#include "api/formats/table_formats.h"

#include "api/accept.h"
#include "api/text/json_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct api_table_format *const formats[] = {&api_table_csv, &api_table_json,
                                                         &api_table_npz, &api_table_safetensors};
#define N_FORMATS (sizeof formats / sizeof *formats)

/* guessed: the format of bodies whose Content-Type is one that clients make up. */
static const char *const unspecific[] = {"application/x-www-form-urlencoded", "text/plain",
                                         "application/octet-stream", NULL};
static const struct api_table_format guessed = {.media_types = unspecific};

static bool has_type(const struct api_table_format *format, const char *value, size_t length)
{
    for (const char *const *type = format->media_types; *type; type++)
        if (strlen(*type) == length && strncasecmp(value, *type, length) == 0)
            return true;
    return false;
}

const struct api_table_format *api_table_format(const char *content_type,
                                                struct api_problem *problem)
{
    const char *value = content_type ? content_type + strspn(content_type, " \t") : "";
    size_t length = api_essence_length(value);
    char readable[300];
    if (length == 0 || has_type(&guessed, value, length))
        return &guessed;
    for (size_t i = 0; i < N_FORMATS; i++)
        if (has_type(formats[i], value, length))
            return formats[i];
    api_table_list_formats(readable, sizeof readable);
    api_fail(problem, "media_type_unsupported",
             "Content-Type '%.80s' is not supported for tables; use one of: %s", content_type,
             readable);
    return NULL;
}

void api_table_list_formats(char *to, size_t size)
{
    size_t used = 0;
    *to = '\0';
    for (size_t i = 0; i < N_FORMATS; i++)
        for (const char *const *type = formats[i]->media_types; *type && used < size; type++)
            used += (size_t)snprintf(to + used, size - used, used ? ", %s" : "%s", *type);
}

/* Guesses by the first bytes. No text begins with those of an archive, and the length of a
 * safetensors header ends with NULs. */
static const struct api_table_format *guess(const char *body, size_t size)
{
    if (size >= 4 && memcmp(body, "PK\3\4", 4) == 0)
        return &api_table_npz;
    if (size >= 10 && memcmp(body + 5, "\0\0\0{\"", 5) == 0)
        return &api_table_safetensors;
    return *api_json_start(body) == '{' ? &api_table_json : &api_table_csv;
}

bool api_table_open(struct api_table *table, struct api_problem *problem)
{
    table->names.text.budget = table->names.starts.budget = table->names.order.budget =
        table->memory.budget = table->budget;
    if (table->format == &guessed)
        table->format = guess(table->body, table->size);
    return table->format->open(table, problem) && api_table_finish(table, problem);
}

bool api_table_read(struct api_table *table, const struct api_sink *sink,
                    struct api_problem *problem)
{
    return table->format->read(table, sink, problem);
}

void api_table_free(struct api_table *table)
{
    if (table->format && table->format->close)
        table->format->close(table);
    api_names_free(&table->names);
    api_buffer_free(&table->memory);
    *table = (struct api_table){0};
}

bool api_table_add(struct api_table *table, const char *name, size_t size, bool unnamed,
                   struct api_problem *problem)
{
    size_t i;
    if (table->names.n == API_MOST_COLUMNS)
        return api_fail(problem, "too_many_columns", "a table may have at most %d columns",
                        API_MOST_COLUMNS);
    if (!(size == 0 && unnamed) && api_names_find(&table->names, name, size, &i))
        return api_fail(problem, "column_repeated", "two columns have the name '%.*s'",
                        (int)(size < 200 ? size : 200), name);
    return api_names_add(&table->names, name, size) || api_fail_for_memory(problem);
}

bool api_table_finish(struct api_table *table, struct api_problem *problem)
{
    size_t n = table->names.n;
    if (!api_buffer_reserve(&table->memory, n * sizeof *table->columns + 1))
        return api_fail_for_memory(problem);
    table->columns = (struct api_column *)(void *)table->memory.data;
    table->n_columns = n;
    for (size_t i = 0; i < n; i++)
        table->columns[i] = (struct api_column){.name = api_names_get(&table->names, i)};
    return true;
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
    char detail[sizeof problem->detail], place[sizeof problem->place];
    const char *name = api_names_get(&table->names, column);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    if (table->format->place) {
        table->format->place(table, column, cell, place, sizeof place);
        return api_fail_at(problem, API_BODY, place, code, "%s", detail);
    }
    if (!cell)
        return api_fail(problem, code, "%s", detail);
    return api_fail(problem, code,
                    cell->line ? "line %zu, column '%.80s': %s" : "row %zu of column '%.80s': %s",
                    cell->line ? cell->line : cell->row, name, detail);
}
