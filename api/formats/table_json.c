/* Tables as JSON. Opening checks every value; a read converts those that are wanted. */
#include "api/formats/columns.h"
#include "api/formats/envelope.h"
#include "api/formats/table_cells.h"
#include "api/text/json_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_ENVELOPE: the most bytes of the body without its values: 1000 edges, counts and labels, and
 * annotations. */
enum { MAX_ENVELOPE = 1 << 20 };

/* Cells that a table of rows may have, present or missing, for each byte of the body: a cell that is
 * missing takes no byte, but the time of one that is there. */
enum { CELLS_PER_BYTE = 16, CELLS_OVERHEAD = 1 << 20 };

struct reader {
    struct api_table *table;
    struct api_cells *cells;
    struct api_envelope envelope;
};

static struct api_problem *problem_of(struct reader *r) { return r->cells->problem; }

/* Adds or finds the columns of an object of arrays. */
static const char *open_columns(struct reader *r, const char *p)
{
    struct api_cells *cells = r->cells;
    const char *name, *end;
    size_t size, n;
    if (*p != '{')
        return api_cells_fail(cells, "#/columns", "it must be an object of arrays");
    for (p = api_json_skip_space(p + 1); *p != '}'; p = api_json_skip_space(p)) {
        size_t column = r->table->names.n;
        p = api_cells_name(cells, p, &name, &size);
        if (!p || !api_table_add(r->table, name, size, false, problem_of(r)))
            return NULL;
        if (*p != '[') {
            api_table_fail(r->table, column, NULL, problem_of(r), "value_invalid",
                           "a column must be an array");
            return NULL;
        }
        api_append(&cells->starts, &p, sizeof p);
        end = api_cells_array(cells, p, column, false, &n);
        if (!end || !api_table_count(r->table, column, n, problem_of(r)))
            return NULL;
        p = api_json_skip_space(end);
        if (*p != ',' && *p != '}')
            return api_cells_expected(cells, p, "',' or '}'");
        if (*p == ',' && *(p = api_json_skip_space(p + 1)) == '}')
            return api_cells_expected(cells, p, "a name");
    }
    if (cells->starts.failed)
        api_fail_oom(problem_of(r));
    return cells->starts.failed ? NULL : p + 1;
}

static const char *open_rows(struct reader *r, const char *p)
{
    struct api_table *table = r->table;
    size_t max = CELLS_PER_BYTE * table->size + CELLS_OVERHEAD;
    p = api_cells_rows(r->cells, p);
    if (!p || table->names.n == 0 || table->n_rows <= max / table->names.n)
        return p;
    api_fail_at(problem_of(r), API_BODY, "#/rows", "table_too_sparse",
                "%zu rows of %zu columns lack most of their members: send columns, or CSV",
                table->n_rows, table->names.n);
    return NULL;
}

static const char *open_values(struct reader *r, const char *p)
{
    static const char name[] = "values";
    return api_table_add(r->table, name, sizeof name - 1, false, problem_of(r))
               ? api_cells_array(r->cells, p, 0, false, &r->table->n_rows)
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

/* Finds the row of a key that holds values here: those of a reference can only be `values`. */
static const struct member *member_of(const struct reader *r, const char *key, const char *end,
                                      bool is_reference)
{
    for (const struct member *m = members; m < members + sizeof members / sizeof *members; m++)
        if (api_json_is_text(key, end, m->name))
            return (m->layout == API_VALUES ? r->table->kind == API_ONE_COLUMN : !is_reference)
                       ? m
                       : NULL;
    return NULL;
}

/* Reads a member's values, and puts null in their place. */
static const char *open_member(struct reader *r, const struct member *member, const char *value,
                               bool is_reference)
{
    struct api_cells *cells = r->cells;
    enum api_layout layout = is_reference ? API_REFERENCE : member->layout;
    if (cells->layout == layout) {
        api_json_malformed(r->table->body, value, "a member is given twice", problem_of(r));
        return NULL;
    }
    if (cells->layout != API_NO_VALUES)
        return api_cells_fail(
            cells, "#",
            "values may be given only once, as columns, rows, values or in a reference");
    cells->layout = layout;
    cells->at = value;
    if (layout != API_COLUMNS && *value != '[')
        return api_cells_fail(cells, api_layout_pointer[layout], "it must be an array");
    const char *end = member->open(r, value);
    if (!end || !api_envelope_copy(&r->envelope, value))
        return NULL;
    api_append_text(&r->envelope.text, "null");
    api_envelope_cut(&r->envelope, end);
    return end;
}

/* Walks the members of the body, or of its reference. NULL with a problem, or without one where the
 * JSON is malformed, which jansson will tell: *last is the member. */
static const char *walk(struct reader *r, const char *p, bool is_reference, const char **last)
{
    for (p = api_json_skip_space(p + 1); *p != '}'; p = api_json_skip_space(p)) {
        const char *key = *last = p, *end = *p == '"' ? api_json_skip_string(p) : NULL;
        p = end ? api_json_skip_space(end) : NULL;
        if (!p || *p != ':')
            return NULL;
        p = api_json_skip_space(p + 1);
        const struct member *member = member_of(r, key, end, is_reference);
        if (member && strncmp(p, "null", 4) != 0)
            p = open_member(r, member, p, is_reference);
        else if (!is_reference && *p == '{' && api_json_is_text(key, end, "reference"))
            p = walk(r, p, true, last);
        else
            p = api_json_skip_value(p);
        if (!p || problem_of(r)->code)
            return NULL;
        if (p > r->envelope.copied && p - r->envelope.copied > MAX_ENVELOPE) {
            api_envelope_copy(&r->envelope, p);
            return NULL;
        }
        p = api_json_skip_space(p);
        if (*p == ',')
            p++;
        else if (*p != '}')
            return NULL;
    }
    return p + 1;
}

static bool open_body(struct reader *r)
{
    struct api_table *table = r->table;
    const char *p = r->envelope.start, *last = p;
    const char *nul = memchr(table->body, '\0', table->size);
    if (nul)
        return api_fail(problem_of(r), "json_malformed", "there is a NUL at byte %zu",
                        (size_t)(nul - table->body));
    if (*p == '[')
        return api_fail_at(problem_of(r), API_BODY, "#", "body_not_object",
                           "the body must be an object with a member columns, rows or values");
    if (*p != '{')
        return api_json_expected(table->body, p, "'{'", problem_of(r));
    p = walk(r, p, false, &last);
    if (problem_of(r)->code ||
        !api_envelope_finish(&r->envelope, last, table->body + table->size, !p) ||
        !api_envelope_parse(&r->envelope, &r->cells->json))
        return false;
    table->members = r->cells->json.root;
    table->has_values = r->cells->layout != API_NO_VALUES;
    return true;
}

static bool open_json(struct api_table *table, struct api_problem *problem)
{
    struct api_cells *cells = table->state = calloc(1, sizeof *cells);
    const char *start = api_json_start(table->body);
    if (!cells)
        return api_fail_oom(problem);
    cells->table = table;
    cells->problem = problem;
    cells->json.budget = cells->starts.budget = cells->last_row_seen.budget = cells->text.budget =
        table->budget;
    struct reader r = {.table = table,
                       .cells = cells,
                       .envelope = {.body = table->body,
                                    .start = start,
                                    .copied = start,
                                    .max = MAX_ENVELOPE,
                                    .too_large = "members other than values may have at most 1 MiB",
                                    .text.budget = table->budget,
                                    .problem = problem}};
    bool good = open_body(&r);
    api_buffer_free(&r.envelope.text);
    return good;
}

static bool read_columns(struct api_cells *cells)
{
    size_t n;
    for (size_t i = 0; i < cells->table->n_columns; i++) {
        const char *start;
        memcpy(&start, cells->starts.data + i * sizeof start, sizeof start);
        if (cells->table->columns[i].wanted && !api_cells_array(cells, start, i, true, &n))
            return false;
    }
    return true;
}

static bool read_json(struct api_table *table, const struct api_sink *sink,
                      struct api_problem *problem)
{
    struct api_cells *cells = table->state;
    size_t n;
    cells->problem = problem;
    cells->sink = sink;
    switch (cells->layout) {
    case API_COLUMNS:
        return read_columns(cells);
    case API_ROWS:
        return api_cells_rows(cells, cells->at) != NULL;
    case API_VALUES:
    case API_REFERENCE:
        return !table->columns[0].wanted || api_cells_array(cells, cells->at, 0, true, &n);
    default:
        return true;
    }
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
    const char *name = api_names_get(&table->names, column),
               *within = api_layout_pointer[cells->layout];
    size_t used;
    char rows[64];
    switch (cells->layout) {
    case API_ROWS:
        snprintf(rows, sizeof rows, "#/rows/%zu/", cell ? cell->row : 0);
        api_pointer_to_member(to, size, cell ? rows : "#/rows", cell ? name : "");
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
                                                .read = read_json,
                                                .close = close_json,
                                                .location = location};
