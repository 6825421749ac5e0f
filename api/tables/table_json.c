/* Tables as JSON, and as JSON Lines. Opening checks every value; a read converts those that are wanted. */
#include "api/json/json_cursor.h"
#include "api/tables/columns.h"
#include "api/tables/table_cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_MEMBERS: bytes of the members that hold no values: 1000 edges, counts and labels, and annotations. */
enum { MAX_MEMBERS = 1 << 20 };

/* Cells that a table of rows may have, present or missing, for each byte of the body: a cell that is
 * missing takes no byte, but the time of one that is there. */
enum { CELLS_PER_BYTE = 16, CELLS_OVERHEAD = 1 << 20 };

/* The JSON Pointer of each layout. */
static const char *const pointers[] = {[API_NO_VALUES] = "#",
                                       [API_COLUMNS] = "#/columns",
                                       [API_ROWS] = "#/rows",
                                       [API_VALUES] = "#/values",
                                       [API_REFERENCE] = "#/reference/values",
                                       [API_ARRAY] = "#",
                                       [API_LINES] = "#"};

struct reader {
    struct api_cells *cells;
    struct api_problem *problem;
    struct api_json_cursor json;
    const char *end;   /* of the values, which begin at cells->at */
    bool is_reference; /* true within the member `reference` */
};

/* Adds or finds the columns of an object of arrays. */
static const char *open_columns(struct reader *r, const char *p)
{
    struct api_cells *cells = r->cells;
    const char *name;
    bool is_end;
    size_t size, n;
    if (*p != '{')
        return api_cells_fail(cells, "#/columns",
                              "it must be an object of arrays, {NAME: [...]}; of pandas, "
                              "df.to_json(orient=\"records\") gives rows, which are read, too");
    p = api_cells_first(p, '}', &is_end);
    while (p && !is_end) {
        size_t column = r->cells->table->names.n;
        p = api_cells_name(cells, p, &name, &size);
        if (!p || !api_table_add(r->cells->table, name, size, r->problem))
            return NULL;
        if (*p != '[') {
            api_table_fail(r->cells->table, column, NULL, r->problem, "value_invalid",
                           "a column must be an array%s", api_json_array_hint(p));
            return NULL;
        }
        api_append(&cells->starts, &p, sizeof p);
        p = api_cells_array(cells, p, column, false, &n);
        if (!p || !api_table_count(r->cells->table, column, n, r->problem))
            return NULL;
        p = api_cells_next(cells, p, '}', &is_end);
    }
    if (cells->starts.failed)
        api_fail_oom(r->problem);
    return cells->starts.failed ? NULL : p;
}

/* Fails if most cells of rows are missing. */
static bool check_density(const struct api_cells *cells)
{
    const struct api_table *table = cells->table;
    size_t max = CELLS_PER_BYTE * table->size + CELLS_OVERHEAD;
    return table->names.n == 0 || table->n_rows <= max / table->names.n ||
           api_fail_at(cells->problem, API_BODY, pointers[cells->layout], "table_too_sparse",
                       "%zu rows of %zu columns lack most of their members: send columns, or CSV",
                       table->n_rows, table->names.n);
}

static const char *open_rows(struct reader *r, const char *p)
{
    p = api_cells_rows(r->cells, p);
    return p && check_density(r->cells) ? p : NULL;
}

static const char *open_values(struct reader *r, const char *p)
{
    static const char name[] = "values";
    return api_table_add(r->cells->table, name, sizeof name - 1, r->problem)
               ? api_cells_array(r->cells, p, 0, false, &r->cells->table->n_rows)
               : NULL;
}

/* member: one that holds values. */
static const struct member {
    const char *name;
    enum api_layout layout;
    const char *(*open)(struct reader *r, const char *p);
} members[] = {{"columns", API_COLUMNS, open_columns},
               {"rows", API_ROWS, open_rows},
               {"values", API_VALUES, open_values}};

/* Finds the row of a member that holds values here: those of a reference can only be `values`. */
static const struct member *member_of(const struct reader *r, const char *name)
{
    for (const struct member *m = members; m < members + sizeof members / sizeof *members; m++)
        if (strcmp(name, m->name) == 0)
            return (m->layout == API_VALUES ? r->cells->table->kind == API_ONE_COLUMN
                                            : !r->is_reference)
                       ? m
                       : NULL;
    return NULL;
}

/* Reads a member's values; returns the position after them. */
static const char *open_member(struct reader *r, const struct member *member, const char *value)
{
    struct api_cells *cells = r->cells;
    enum api_layout layout = r->is_reference ? API_REFERENCE : member->layout;
    if (cells->layout == layout)
        return api_cells_malformed(cells, value, "a member is given twice");
    if (cells->layout != API_NO_VALUES)
        return api_cells_fail(
            cells, "#",
            "values may be given only once, as columns, rows, values or in a reference");
    cells->layout = layout;
    cells->at = value;
    if (layout != API_COLUMNS && *value != '[') {
        char detail[200];
        snprintf(detail, sizeof detail, "it must be an array%s", api_json_array_hint(value));
        return api_cells_fail(cells, pointers[layout], detail);
    }
    return member->open(r, value);
}

static bool read_object(struct reader *r);

/* Reads a member, or skips one without values: jansson checks it. */
static bool read_member(struct reader *r, const char *name)
{
    struct api_json_cursor *c = &r->json;
    const struct member *member = member_of(r, name);
    const char first = api_json_peek(c);
    if (member && first != 'n') {
        c->p = r->end = open_member(r, member, c->p);
        return c->p;
    }
    if (!r->is_reference && first == '{' && strcmp(name, "reference") == 0) {
        r->is_reference = true;
        bool good = read_object(r);
        r->is_reference = false;
        return good;
    }
    const char *end = api_json_skip_value(c->p);
    c->p = end ? end : c->end;
    return end || api_json_wrong(c, "expected the end of a value");
}

static bool read_object(struct reader *r)
{
    char name[API_JSON_TEXT];
    if (!api_json_open(&r->json, '{'))
        return false;
    while (api_json_member(&r->json, name))
        if (!read_member(r, name))
            return false;
    return !r->problem->code;
}

/* Parses the body with null in the place of its values. */
static bool parse_members(struct reader *r, struct api_buffer *text)
{
    struct api_cells *cells = r->cells;
    struct api_json *json = &cells->json;
    const char *start = api_json_start(r->json.text), *end = r->json.end;
    size_t before = (size_t)((r->end ? cells->at : end) - start);
    size_t after = r->end ? (size_t)(end - r->end) : 0;
    if (before + after > MAX_MEMBERS)
        return api_fail(r->problem, "members_too_large",
                        "members other than values may have at most 1 MiB; a table is "
                        "{\"columns\": {NAME: [...]}}, {\"rows\": [{...}]} or [{...}]");
    api_append(text, start, before);
    api_append_text(text, r->end ? "null" : "");
    api_append(text, r->end, after);
    if (text->failed)
        return api_fail_oom(r->problem);
    if (api_json_load(json, text->data, text->size)) {
        cells->table->members = json->root;
        return true;
    }
    if (json->out_of_memory)
        return api_fail_oom(r->problem);
    if (json_error_code(&json->error) == json_error_numeric_overflow)
        return api_fail(r->problem, "number_too_large", "a number of the options is too large");
    size_t at = json->error.position > 0 ? (size_t)json->error.position : 0;
    return api_cells_malformed(cells, at > before ? end - (text->size - at) : start + at,
                               json->error.text);
}

/* Opens a body that is rows alone. */
static bool open_rows_alone(struct api_cells *cells, const char *start)
{
    cells->at = start;
    const char *p =
        cells->layout == API_LINES ? api_cells_lines(cells, start) : api_cells_rows(cells, start);
    if (p && *(p = api_json_skip_space(p)))
        return api_cells_malformed(cells, p, "expected the end of the body");
    return p && check_density(cells);
}

/* Opens a body that is an object. */
static bool open_object(struct api_cells *cells)
{
    const struct api_table *table = cells->table;
    struct reader r = {.cells = cells, .problem = cells->problem};
    struct api_buffer text = {.budget = table->budget};
    api_json_begin(&r.json, table->body, table->size, true, r.problem);
    if (api_json_peek(&r.json) == '[')
        return api_fail_at(r.problem, API_BODY, "#", "body_not_object",
                           "the body must be an object with a member columns, rows or values, or "
                           "an array of rows");
    bool good = read_object(&r) && api_json_end(&r.json) && parse_members(&r, &text);
    api_buffer_free(&text);
    return good;
}

static bool open_layout(struct api_table *table, enum api_layout layout,
                        struct api_problem *problem)
{
    struct api_cells *cells = table->state = calloc(1, sizeof *cells);
    const char *start = api_json_start(table->body), *nul = memchr(table->body, '\0', table->size);
    if (!cells)
        return api_fail_oom(problem);
    if (nul)
        return api_fail(problem, "json_malformed", "there is a NUL at byte %zu",
                        (size_t)(nul - table->body));
    cells->table = table;
    cells->problem = problem;
    cells->layout = layout;
    cells->json.budget = cells->starts.budget = cells->last_row_seen.budget = cells->text.budget =
        table->budget;
    bool good = layout == API_NO_VALUES ? open_object(cells) : open_rows_alone(cells, start);
    table->has_values = cells->layout != API_NO_VALUES;
    table->is_rows = cells->layout == API_ROWS || cells->layout >= API_ARRAY;
    return good;
}

/* True if the first line is an object, and another begins after it: what no single object has. */
static bool has_lines(const char *body, size_t size)
{
    const char *start = api_json_start(body), *p = memchr(body, '\n', size), *next = p;
    if (*start != '{' || !p || p < start)
        return false;
    while (p > start && (p[-1] == ' ' || p[-1] == '\t' || p[-1] == '\r'))
        p--;
    return p[-1] == '}' && *api_json_skip_space(next) == '{';
}

static bool open_json(struct api_table *table, struct api_problem *problem)
{
    const char *start = api_json_start(table->body);
    bool is_array = *start == '[' && strchr("{]", *api_json_skip_space(start + 1));
    return open_layout(table,
                       is_array                              ? API_ARRAY
                       : has_lines(table->body, table->size) ? API_LINES
                                                             : API_NO_VALUES,
                       problem);
}

static bool open_json_lines(struct api_table *table, struct api_problem *problem)
{
    return open_layout(table, API_LINES, problem);
}

static bool read_column(struct api_table *table, size_t i, const struct api_sink *sink,
                        struct api_problem *problem)
{
    struct api_cells *cells = table->state;
    const char *start = cells->at;
    size_t n;
    cells->problem = problem;
    cells->sink = sink;
    if (cells->layout == API_COLUMNS)
        memcpy(&start, cells->starts.data + i * sizeof start, sizeof start);
    return api_cells_array(cells, start, i, true, &n);
}

static bool read_rows(struct api_table *table, const struct api_sink *sink,
                      struct api_problem *problem)
{
    struct api_cells *cells = table->state;
    cells->problem = problem;
    cells->sink = sink;
    return (cells->layout == API_LINES ? api_cells_lines : api_cells_rows)(cells, cells->at) !=
           NULL;
}

static void close_json(struct api_table *table)
{
    struct api_cells *cells = table->state;
    if (!cells)
        return;
    api_json_free(&cells->json);
    api_buffer_free(&cells->starts);
    api_buffer_free(&cells->last_row_seen);
    api_buffer_free(&cells->text);
    free(cells);
}

static void location(const struct api_table *table, size_t column, const struct api_cell *cell,
                     char *to, size_t size)
{
    const struct api_cells *cells = table->state;
    const char *name = api_names_get(&table->names, column), *within = pointers[cells->layout];
    size_t used;
    char rows[64];
    switch (cells->layout) {
    case API_ROWS:
    case API_ARRAY:
        snprintf(rows, sizeof rows, "%s/%zu/", within, cell ? cell->row : 0);
        api_pointer_to_member(to, size, cell ? rows : within, cell ? name : "");
        break;
    case API_COLUMNS:
        api_pointer_to_member(to, size, "#/columns/", name);
        used = strlen(to);
        if (cell)
            snprintf(to + used, size - used, "/%zu", cell->row);
        break;
    default:
        snprintf(to, size, cell ? "%s/%zu" : "%s", within, cell ? cell->row : 0);
    }
}

static const char *const media_types[] = {"application/json", NULL};
const struct api_table_format api_table_json = {.media_types = media_types,
                                                .open = open_json,
                                                .read_rows = read_rows,
                                                .read_column = read_column,
                                                .close = close_json,
                                                .location = location};

static const char *const lines_types[] = {"application/x-ndjson", "application/jsonl",
                                          "application/ndjson", "application/jsonlines", NULL};
const struct api_table_format api_table_json_lines = {.media_types = lines_types,
                                                      .open = open_json_lines,
                                                      .read_rows = read_rows,
                                                      .close = close_json,
                                                      .location = location};
