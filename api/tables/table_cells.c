#include "api/tables/table_cells.h"

#include "api/json/json_cursor.h"
#include "api/text/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *api_cells_malformed(struct api_cells *cells, const char *p, const char *what)
{
    api_json_malformed(cells->table->body, p, NULL, what, cells->problem);
    return NULL;
}

const char *api_cells_fail(struct api_cells *cells, const char *location, const char *detail)
{
    api_fail_at(cells->problem, API_BODY, location, "value_invalid", "%s", detail);
    return NULL;
}

/* ---- Strings */

/* Reads a string; *text lies in the body, or in the buffer if it has escapes. */
static const char *read_string(struct api_cells *cells, const char *p, const char **text,
                               size_t *size)
{
    bool has_escapes = false;
    const char *what = NULL, *end = api_json_check_string(p, &has_escapes, &what);
    if (what)
        return api_cells_malformed(cells, end, what);
    *text = p + 1;
    *size = (size_t)(end - p) - 2;
    if (!has_escapes)
        return end;
    cells->text.size = 0;
    if (!api_buffer_reserve(&cells->text, *size + 1)) {
        api_fail_oom(cells->problem);
        return NULL;
    }
    *size = api_json_unescape(cells->text.data, *text, end - 1);
    *text = cells->text.data;
    return end;
}

const char *api_cells_name(struct api_cells *cells, const char *p, const char **name, size_t *size)
{
    if (*p != '"')
        return api_cells_malformed(cells, p, "expected a name");
    p = read_string(cells, p, name, size);
    if (!p)
        return NULL;
    p = api_json_skip_space(p);
    return *p == ':' ? api_json_skip_space(p + 1) : api_cells_malformed(cells, p, "expected ':'");
}

/* ---- Values */

static const struct word {
    const char *text;
    size_t size;
    enum api_cell_kind kind;
    double number;
} words[] = {{"null", 4, API_CELL_MISSING, 0},
             {"true", 4, API_CELL_BOOLEAN, 1},
             {"false", 5, API_CELL_BOOLEAN, 0},
             {"NaN", 3, API_CELL_NUMBER, (double)NAN},
             {"Infinity", 8, API_CELL_NUMBER, (double)INFINITY},
             {"-Infinity", 9, API_CELL_NUMBER, -(double)INFINITY}};

static const char *read_word(struct api_cells *cells, const char *p, size_t column,
                             struct api_cell *cell)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(p, words[i].text, words[i].size) == 0) {
            cell->kind = words[i].kind;
            cell->number = words[i].number;
            return p + words[i].size;
        }
    if (*p == '[' || *p == '{') {
        api_table_fail(cells->table, column, cell, cells->problem, "value_invalid",
                       "a value must be a number, a string, a boolean or null, not an %s",
                       *p == '[' ? "array" : "object");
        return NULL;
    }
    return api_cells_malformed(cells, p,
                               *p == '-' || (*p >= '0' && *p <= '9')
                                   ? "expected a number as JSON writes it (no leading zero, digits "
                                     "on both sides of the point)"
                                   : "expected a value");
}

/* Skips an array or an object in a column, which can then not be read. It is checked while the table is opened. */
static const char *skip_nested(struct api_cells *cells, const char *p, size_t column)
{
    struct api_json_cursor json;
    if (cells->sink)
        return api_json_skip_value(p);
    api_names_at(&cells->table->names, column)->flaws |= API_NESTED;
    api_json_begin(&json, cells->table->body, cells->table->size, true, cells->problem);
    json.p = p;
    return api_json_skip(&json) ? json.p : NULL;
}

/* Reads the value of a row, and gives it to the sink if `give`. */
static inline const char *read_value(struct api_cells *cells, const char *p, size_t column,
                                     size_t row, bool give)
{
    struct api_cell cell = {.kind = API_CELL_NUMBER, .row = row, .line = cells->line};
    const char *end;
    if (*p == '"') {
        cell.kind = API_CELL_STRING;
        end = read_string(cells, p, &cell.text, &cell.size);
    } else if ((*p == '[' || *p == '{') && !give && cells->table->kind == API_MANY_COLUMNS) {
        end = skip_nested(cells, p, column);
    } else {
        end = give ? api_number_read(p, KL_FLOAT64, &cell.number) : api_number_end(p);
        if (!end)
            end = read_word(cells, p, column, &cell);
    }
    if (!end || !give)
        return end;
    return cells->sink->cell(cells->sink->context, column, &cell, cells->problem) ? end : NULL;
}

const char *api_cells_first(const char *p, char closing, bool *is_end)
{
    p = api_json_skip_space(p + 1);
    *is_end = *p == closing;
    return p + *is_end;
}

const char *api_cells_next(struct api_cells *cells, const char *p, char closing, bool *is_end)
{
    p = api_json_skip_space(p);
    *is_end = *p == closing;
    if (!*is_end && *p != ',')
        return api_cells_malformed(cells, p,
                                   closing == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
    return *is_end ? p + 1 : api_json_skip_space(p + 1);
}

const char *api_cells_array(struct api_cells *cells, const char *p, size_t column, bool give,
                            size_t *n)
{
    bool is_end;
    *n = 0;
    p = api_cells_first(p, ']', &is_end);
    while (p && !is_end) {
        p = read_value(cells, p, column, (*n)++, give);
        p = p ? api_cells_next(cells, p, ']', &is_end) : NULL;
    }
    return p;
}

/* ---- Rows */

static size_t *last_rows_seen(struct api_cells *cells)
{
    return (size_t *)(void *)cells->last_row_seen.data;
}

/* Finds the column of a member, which is most often the one after the last; adds it while the table is
 * opened. */
static bool find_column(struct api_cells *cells, const char *name, size_t size, size_t *column)
{
    struct api_table *table = cells->table;
    static const size_t never = 0;
    const char *trimmed = name;
    size_t length = size;
    api_name_trim(&trimmed, &length);
    if ((*column < table->names.n && api_names_is(&table->names, *column, trimmed, length)) ||
        api_names_find(&table->names, trimmed, length, column))
        return true;
    *column = table->names.n;
    api_append(&cells->last_row_seen, &never, sizeof never);
    if (cells->last_row_seen.failed)
        return api_fail_oom(cells->problem);
    return api_table_add(table, name, size, cells->problem);
}

static bool give_missing(struct api_cells *cells, size_t row)
{
    const struct api_table *table = cells->table;
    const struct api_cell cell = {.kind = API_CELL_MISSING, .row = row};
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].wanted && last_rows_seen(cells)[i] != row + 1 &&
            !cells->sink->cell(cells->sink->context, i, &cell, cells->problem))
            return false;
    return true;
}

static const char *read_member(struct api_cells *cells, const char *p, size_t row, size_t *column)
{
    const char *name;
    size_t size;
    p = api_cells_name(cells, p, &name, &size);
    if (!p || !find_column(cells, name, size, column))
        return NULL;
    if (last_rows_seen(cells)[*column] == row + 1) {
        const struct api_cell cell = {.row = row, .line = cells->line};
        api_table_fail(cells->table, *column, &cell, cells->problem, "column_repeated",
                       "a row has this member twice");
        return NULL;
    }
    last_rows_seen(cells)[*column] = row + 1;
    return read_value(cells, p, *column, row, cells->sink && cells->table->columns[*column].wanted);
}

static const char *read_row(struct api_cells *cells, const char *p, size_t row)
{
    char location[40];
    bool is_end;
    size_t seen = 0, column = 0;
    if (*p != '{') {
        snprintf(location, sizeof location, cells->layout == API_ARRAY ? "#/%zu" : "#/rows/%zu",
                 row);
        return cells->line || strchr("],}", *p)
                   ? api_cells_malformed(cells, p, "expected '{'")
                   : api_cells_fail(cells, location, "a row must be an object");
    }
    p = api_cells_first(p, '}', &is_end);
    for (; p && !is_end; seen++, column++) {
        p = read_member(cells, p, row, &column);
        p = p ? api_cells_next(cells, p, '}', &is_end) : NULL;
    }
    if (p && cells->sink && seen < cells->table->n_columns && !give_missing(cells, row))
        return NULL;
    return p;
}

static void begin_rows(struct api_cells *cells)
{
    if (cells->last_row_seen.size)
        memset(cells->last_row_seen.data, 0, cells->last_row_seen.size);
}

const char *api_cells_rows(struct api_cells *cells, const char *p)
{
    bool is_end;
    size_t row = 0;
    begin_rows(cells);
    p = api_cells_first(p, ']', &is_end);
    while (p && !is_end) {
        p = read_row(cells, p, row++);
        if (!p)
            return NULL;
        cells->table->n_rows = row;
        p = api_cells_next(cells, p, ']', &is_end);
    }
    return p;
}

/* Skips white space between rows; counts the lines that end from `from` on. */
static const char *next_row(struct api_cells *cells, const char *from, const char *p)
{
    const char *next = api_json_skip_space(p);
    while ((from = memchr(from, '\n', (size_t)(next - from)))) {
        cells->line++;
        from++;
    }
    return next;
}

const char *api_cells_lines(struct api_cells *cells, const char *p)
{
    size_t row = 0;
    begin_rows(cells);
    cells->line = 1;
    p = next_row(cells, cells->table->body, p);
    while (*p) {
        const char *start = p;
        size_t line = cells->line;
        p = read_row(cells, p, row++);
        if (!p)
            return NULL;
        cells->table->n_rows = row;
        const char *end = p;
        p = next_row(cells, start, p);
        if (*p && (cells->line == line || !memchr(end, '\n', (size_t)(p - end))))
            return api_cells_malformed(cells, p, "expected a line end");
    }
    return p;
}
