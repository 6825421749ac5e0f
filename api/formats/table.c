#include "api/formats/table.h"

#include "api/accept.h"
#include "api/text/json_text.h"
#include "api/text/nearest.h"

#include <string.h>

/* A row for each format: a table_*.c. */
extern const struct api_table_format api_table_csv, api_table_json, api_table_npz,
    api_table_safetensors;

static const struct api_table_format *const formats[] = {&api_table_csv, &api_table_json,
                                                         &api_table_npz, &api_table_safetensors};
#define N_FORMATS (sizeof formats / sizeof *formats)

/* guessed: the format of bodies whose Content-Type is one that clients make up. */
static const char *const unspecific[] = {"", "application/x-www-form-urlencoded", "text/plain",
                                         "application/octet-stream", NULL};
static const struct api_table_format guessed = {.media_types = unspecific};

const struct api_table_format *api_table_format(const char *content_type,
                                                struct api_problem *problem)
{
    char readable[300];
    if (!content_type || api_is_media_type(content_type, unspecific))
        return &guessed;
    for (size_t i = 0; i < N_FORMATS; i++)
        if (api_is_media_type(content_type, formats[i]->media_types))
            return formats[i];
    api_table_list_formats(readable, sizeof readable);
    api_fail(problem, "media_type_unsupported",
             "Content-Type '%.80s' is not supported for tables; use one of: %s", content_type,
             readable);
    return NULL;
}

void api_table_list_formats(char *to, size_t size)
{
    *to = '\0';
    for (size_t i = 0; i < N_FORMATS; i++)
        for (const char *const *type = formats[i]->media_types; *type; type++)
            api_append_word(to, size, *type);
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

/* Makes table->columns of the names that were added. */
static bool finish(struct api_table *table, struct api_problem *problem)
{
    size_t n = table->names.n;
    if (!api_buffer_reserve(&table->memory, n * sizeof *table->columns + 1))
        return api_fail_oom(problem);
    table->columns = (struct api_column *)(void *)table->memory.data;
    table->n_columns = n;
    for (size_t i = 0; i < n; i++)
        table->columns[i] = (struct api_column){.name = api_names_get(&table->names, i)};
    return true;
}

bool api_table_open(struct api_table *table, struct api_problem *problem)
{
    table->names.text.budget = table->names.starts.budget = table->names.order.budget =
        table->memory.budget = table->budget;
    if (table->format == &guessed)
        table->format = guess(table->body, table->size);
    return table->format->open(table, problem) && finish(table, problem);
}

bool api_table_read(struct api_table *table, const struct api_sink *sink,
                    struct api_problem *problem)
{
    if (table->is_rows)
        return table->format->read_rows(table, sink, problem);
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].wanted && !table->format->read_column(table, i, sink, problem))
            return false;
    return true;
}

void api_table_free(struct api_table *table)
{
    if (table->format && table->format->close)
        table->format->close(table);
    api_names_free(&table->names);
    api_buffer_free(&table->memory);
    *table = (struct api_table){0};
}
