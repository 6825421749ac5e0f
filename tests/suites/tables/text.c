#include "tests/suites/tables/tables.h"

#include "api/tables/field.h"
#include "tests/suites/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* shelf: the columns as they come, each a buffer. */
struct shelf {
    const struct table_reading *reading;
    const struct api_table *table;
    struct api_buffer *columns;
    size_t *rows;
};

static void add_number(struct api_buffer *to, double number)
{
    if (isfinite(number))
        api_append_format(to, " %.17g", number);
    else
        api_append_text(to, isnan(number) ? " nan" : number > 0 ? " inf" : " -inf");
}

static void add_text(struct api_buffer *to, const char *quotes, const struct api_cell *cell)
{
    api_append_text(to, quotes);
    for (size_t i = 0; i < cell->size; i++) {
        cr_expect(cell->text[i], "a NUL");
        api_append(to, cell->text[i] == '\n' ? "\\" : &cell->text[i], 1);
    }
    api_append(to, quotes + 1, 1);
}

static bool put_cell(void *context, size_t column, const struct api_cell *cell,
                     struct api_problem *problem)
{
    struct shelf *shelf = context;
    struct api_buffer *to = &shelf->columns[column];
    double number;
    cr_expect(shelf->table->columns[column].wanted);
    cr_expect_eq(cell->row, shelf->rows[column], "row %zu of column %zu", cell->row, column);
    shelf->rows[column]++;
    if (cell->kind == API_CELL_FIELD && shelf->reading->numbers &&
        api_field_number(cell, API_EITHER, &number)) {
        add_number(to, number);
    } else if (cell->kind == API_CELL_FIELD) {
        add_text(to, " `", cell);
        if (cell->line != cell->row + 2 && !shelf->reading->no_lines)
            api_append_format(to, "@%zu", cell->line);
    } else if (cell->kind == API_CELL_STRING) {
        add_text(to, " '", cell);
        if (cell->size == 4 && memcmp(cell->text, "FAIL", 4) == 0)
            return api_table_fail(shelf->table, column, cell, problem, "value_invalid", "no");
    } else if (cell->kind == API_CELL_NUMBER) {
        add_number(to, cell->number);
    } else {
        api_append_text(to, cell->kind == API_CELL_MISSING ? " -"
                            : cell->number                 ? " true"
                                                           : " false");
    }
    return true;
}

/* Allocations of the test itself do not fail. */
static bool take_cell(void *context, size_t column, const struct api_cell *cell,
                      struct api_problem *problem)
{
    fail_now(false);
    bool good = put_cell(context, column, cell, problem);
    fail_now(true);
    return good;
}

static bool take_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                         size_t row, size_t n, struct api_problem *problem)
{
    struct shelf *shelf = context;
    (void)problem;
    fail_now(false);
    cr_expect_eq(shelf->rows[column], row);
    shelf->rows[column] = n;
    for (size_t i = 0; i < n; i++)
        add_number(&shelf->columns[column], kl_load(dtype, values, i));
    fail_now(true);
    return true;
}

static bool read_all(struct api_table *table, struct shelf *shelf, struct api_problem *problem)
{
    const struct api_sink sink = {shelf, take_cell, take_numbers};
    const char *only = shelf->reading->only;
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted =
            !shelf->reading->in_turn && (!only || strcmp(table->columns[i].name, only) == 0);
    if (!shelf->reading->in_turn)
        return api_table_read(table, &sink, problem);
    for (size_t i = table->n_columns; i-- > 0;) {
        table->columns[i].wanted = true;
        if (!api_table_read(table, &sink, problem))
            return false;
        table->columns[i].wanted = false;
    }
    return true;
}

/* Joins the columns; those that were read hold as many rows as the table. */
static char *join(const struct api_table *table, const struct shelf *shelf)
{
    struct api_buffer all = {0};
    for (size_t i = 0; i < table->n_columns; i++) {
        api_append_text(&all, i ? "|" : "");
        api_append_text(&all, table->columns[i].name);
        api_append_text(&all, ":");
        api_append(&all, shelf->columns[i].data, shelf->columns[i].size);
        if (!shelf->reading->only)
            cr_expect_eq(shelf->rows[i], table->n_rows, "column %zu", i);
    }
    api_append(&all, "", 1);
    char *text = strdup(all.data);
    api_buffer_free(&all);
    return text;
}

static char *refused(const struct api_problem *problem)
{
    char *text;
    cr_assert(problem->code);
    cr_assert_geq(asprintf(&text, "%s %s", problem->code, problem->detail), 0);
    return text;
}

static void read_open(struct api_table *table, struct table_text *result,
                      const struct table_reading *reading)
{
    struct shelf shelf = {.reading = reading, .table = table};
    shelf.columns = calloc(table->n_columns + 1, sizeof *shelf.columns);
    shelf.rows = calloc(table->n_columns + 1, sizeof *shelf.rows);
    cr_assert(shelf.columns && shelf.rows);
    fail_now(true);
    bool good = read_all(table, &shelf, &result->problem);
    fail_now(false);
    cr_expect_eq(good, !result->problem.code);
    result->text = good ? join(table, &shelf) : refused(&result->problem);
    for (size_t i = 0; i < table->n_columns; i++)
        api_buffer_free(&shelf.columns[i]);
    free(shelf.columns);
    free(shelf.rows);
}

struct table_text table_read(const struct table_reading *reading)
{
    static struct api_budget plenty;
    size_t size = reading->size ? reading->size : strlen(reading->body);
    char *body = before_the_edge(size + API_PADDING);
    struct table_text result = {0};
    memcpy(body, reading->body, size);
    memset(body + size, 0, API_PADDING);
    struct api_table table = {.format = api_table_format(reading->content_type, &result.problem),
                              .content_type = reading->content_type,
                              .kind = reading->kind,
                              .body = body,
                              .size = size,
                              .budget = reading->budget ? reading->budget : &plenty,
                              .max_inflated = 1 << 26};
    if (table.format) {
        fail_now(true);
        bool good = api_table_open(&table, &result.problem);
        fail_now(false);
        if (good)
            read_open(&table, &result, reading);
        result.n_rows = table.n_rows;
        result.has_values = table.has_values;
        fail_now(false);
        result.members = table.members ? strdup("") : NULL;
        if (table.members) {
            char members[4096];
            size_t used = json_dumpb(table.members, members, sizeof members - 1, JSON_COMPACT);
            members[used < sizeof members ? used : 0] = '\0';
            free(result.members);
            result.members = strdup(members);
        }
        api_table_free(&table);
    }
    if (!result.text)
        result.text = refused(&result.problem);
    unmap(body, size + API_PADDING);
    cr_expect_eq(atomic_load(&(reading->budget ? reading->budget : &plenty)->used), 0, "leaked: %s",
                 result.text);
    return result;
}

void table_text_free(struct table_text *text)
{
    free(text->text);
    free(text->members);
}

void table_expect(const char *text, const char *expected, const char *body)
{
    bool whole = !strstr(expected, "_malformed") && !strchr(expected, '~');
    size_t size = strcspn(expected, "~");
    cr_expect(whole ? strcmp(text, expected) == 0 : strncmp(text, expected, size) == 0,
              "%s\n  gives    %s\n  and not %s", body, text, expected);
}

/* Reads a body after a byte order mark, which changes nothing. */
static void check_marked(const char *type, enum api_table_kind kind, const struct table_case *c)
{
    char body[500];
    int size = snprintf(body, sizeof body, "\xef\xbb\xbf%s", c->body);
    cr_assert_lt((size_t)size, sizeof body);
    struct table_text result =
        table_read(&(struct table_reading){.content_type = type, .kind = kind, .body = body});
    table_expect(result.text, c->expected, body);
    table_text_free(&result);
}

void table_check(const char *type, enum api_table_kind kind, const struct table_case *cases,
                 size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int in_turn = 0; in_turn <= 1; in_turn++) {
            struct table_text result = table_read(&(struct table_reading){
                .content_type = type, .kind = kind, .body = cases[i].body, .in_turn = in_turn});
            table_expect(result.text, cases[i].expected, cases[i].body);
            table_text_free(&result);
            if (strcmp(type, "application/json") == 0)
                check_marked(type, kind, &cases[i]);
        }
}
