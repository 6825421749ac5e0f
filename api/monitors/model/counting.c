#include "api/monitors/model/counting.h"

#include "api/json/format.h"
#include "api/tables/field.h"
#include "api/text/decimal.h"
#include "lib/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Finds the labels that booleans have in any case: `true` and `false`, else as another program writes them; one of
 * them, if it is the only label. */
static void find_booleans(struct api_counting *counting)
{
    static const char *const spellings[][2] = {
        {"false", "true"}, {"False", "True"}, {"FALSE", "TRUE"}};
    const struct api_bins *bins = counting->bins;
    size_t *found = counting->of_booleans, none = bins->n_bins;
    found[0] = found[1] = none;
    for (size_t i = 0; bins->labelled && i < sizeof spellings / sizeof *spellings; i++) {
        for (size_t value = 0; value < 2; value++)
            found[value] = api_bins_find(bins, spellings[i][value], strlen(spellings[i][value]));
        if ((found[0] < none) + (found[1] < none) == (bins->n > 1 ? 2 : 1))
            return;
    }
    found[0] = found[1] = none;
}

bool api_counting_init(struct api_counting *counting, const struct api_bins *bins,
                       struct api_problem *problem)
{
    counting->bins = bins;
    counting->unreadable = (struct api_unreadable){0};
    counting->unseen = (struct api_label_table){.n = 0};
    counting->moments = (struct api_moments){.n = 0};
    counting->buffered = 0;
    find_booleans(counting);
    counting->counts = calloc(bins->n_bins, sizeof *counting->counts);
    return counting->counts || api_fail_oom(problem);
}

void api_counting_free(struct api_counting *counting)
{
    free(counting->counts);
    counting->counts = NULL;
    api_labels_free(&counting->unseen);
}

static void flush(struct api_counting *counting)
{
    if (counting->buffered == 0)
        return;
    kl_bin_counts(counting->bins->edges, counting->bins->n, KL_FLOAT64, counting->buffer,
                  counting->buffered, counting->counts);
    api_moments_take(&counting->moments, counting->bins, counting->buffer, counting->buffered);
    counting->buffered = 0;
}

static void add_number(struct api_counting *counting, double number)
{
    counting->buffer[counting->buffered++] = number;
    if (counting->buffered == API_COUNTED_AT_ONCE)
        flush(counting);
}

static void add_missing(struct api_counting *counting)
{
    counting->counts[api_bins_missing(counting->bins)]++;
    counting->moments.covered++;
}

/* Counts a text that stands for itself; false if it is no label. */
static bool add_label(struct api_counting *counting, const char *text, size_t size)
{
    size_t bin = api_bins_find(counting->bins, text, size);
    if (bin == counting->bins->n_bins)
        return false;
    counting->counts[bin]++;
    return true;
}

static void add_other(struct api_counting *counting, const char *text, size_t size)
{
    counting->counts[api_bins_other(counting->bins)]++;
    api_unseen_add(&counting->unseen, text, size);
}

static void add_number_label(struct api_counting *counting, double number)
{
    char text[API_DECIMAL_MAX];
    size_t size = isnan(number) ? 0 : api_label_of_number(text, number);
    if (isnan(number))
        add_missing(counting);
    else if (!add_label(counting, text, size))
        add_other(counting, text, size);
}

bool api_cell_is_text(const struct api_cell *cell)
{
    return cell->kind == API_CELL_STRING || cell->kind == API_CELL_FIELD;
}

bool api_cell_is_missing(const struct api_cell *cell)
{
    return cell->kind == API_CELL_MISSING ||
           (api_cell_is_text(cell) && api_text_is_missing(cell->text, cell->size));
}

bool api_cell_is_boolean(const struct api_cell *cell, bool *value)
{
    *value = cell->number != 0;
    return cell->kind == API_CELL_BOOLEAN ||
           (api_cell_is_text(cell) && api_text_is_boolean(cell->text, cell->size, value));
}

bool api_cell_number(const struct api_cell *cell, bool decimal_comma, double *number)
{
    *number = cell->number;
    return cell->kind == API_CELL_FIELD    ? api_field_number(cell, decimal_comma, number)
           : cell->kind == API_CELL_STRING ? api_text_infinity(cell->text, cell->size, number)
                                           : cell->kind != API_CELL_MISSING;
}

/* Counts a boolean that is no label as it stands. */
static void add_boolean(struct api_counting *counting, const struct api_cell *cell, bool value)
{
    size_t bin = counting->of_booleans[value], size = value ? 4 : 5;
    const char *text = value ? "true" : "false";
    if (cell->kind == API_CELL_BOOLEAN && add_label(counting, text, size))
        return;
    if (bin < counting->bins->n_bins)
        counting->counts[bin]++;
    else
        add_other(counting, text, size);
}

/* A text that is a label counts as that, also if it stands for a missing value or a number. */
static void count_label(struct api_counting *counting, const struct api_cell *cell)
{
    double number;
    bool value;
    if (api_cell_is_text(cell) && add_label(counting, cell->text, cell->size))
        return;
    if (api_cell_is_missing(cell))
        add_missing(counting);
    else if (api_cell_is_boolean(cell, &value))
        add_boolean(counting, cell, value);
    else if (api_cell_number(cell, true, &number))
        add_number_label(counting, number);
    else
        add_other(counting, cell->text, cell->size);
}

bool api_check_cancelled(const atomic_bool *stop, const struct api_cell *cell,
                         struct api_problem *problem)
{
    return (cell->row & 0xfff) != 0xfff || !stop || !atomic_load(stop) ||
           api_fail(problem, "client_left", "the client closed its side");
}

/* pass: one over a table. */
struct pass {
    const struct api_table *table;
    struct api_counting *const *of_columns;
    const atomic_bool *stop;
};

static bool count_cell(void *context, size_t column, const struct api_cell *cell,
                       struct api_problem *problem)
{
    const struct pass *pass = context;
    const struct api_table *table = pass->table;
    struct api_counting *counting = pass->of_columns[column];
    double number;
    if (!api_check_cancelled(pass->stop, cell, problem))
        return false;
    if (counting->bins->labelled) {
        count_label(counting, cell);
        return true;
    }
    if (api_cell_number(cell, true, &number)) {
        add_number(counting, number);
        return true;
    }
    bool is_missing = api_cell_is_missing(cell);
    if (!is_missing && cell->kind == API_CELL_STRING)
        return api_table_fail(table, column, cell, problem, "value_not_number",
                              "the monitor expects numbers, but this is the text '%.*s'",
                              cell->size < 60 ? (int)cell->size : 60, cell->text);
    add_missing(counting);
    if (!is_missing && counting->unreadable.count++ == 0)
        counting->unreadable.line = cell->line;
    return true;
}

/* Adds up an array of numbers of any type. */
static void add_up(struct api_counting *counting, enum kl_dtype dtype, const void *values, size_t n)
{
    double part[API_COUNTED_AT_ONCE];
    for (size_t i = 0, size; i < n; i += size) {
        size = n - i < API_COUNTED_AT_ONCE ? n - i : API_COUNTED_AT_ONCE;
        if (dtype == KL_FLOAT64)
            memcpy(part, (const double *)values + i, size * sizeof *part);
        for (size_t j = 0; dtype != KL_FLOAT64 && j < size; j++)
            part[j] = kl_load(dtype, values, i + j);
        api_moments_take(&counting->moments, counting->bins, part, size);
    }
}

static bool count_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                          size_t n, struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_counting *counting = pass->of_columns[column];
    (void)problem;
    for (size_t i = 0; counting->bins->labelled && i < n; i++)
        add_number_label(counting, kl_load(dtype, values, i));
    if (counting->bins->labelled)
        return true;
    kl_bin_counts(counting->bins->edges, counting->bins->n, dtype, values, n, counting->counts);
    add_up(counting, dtype, values, n);
    return true;
}

static void set_budget(struct api_label_table *labels, struct api_budget *budget)
{
    labels->texts.budget = labels->entries.budget = budget;
    labels->slots.budget = labels->sorted.budget = budget;
}

bool api_counting_table(struct api_counting *const *of_columns, struct api_table *table,
                        const atomic_bool *stop, struct api_problem *problem)
{
    struct pass pass = {table, of_columns, stop};
    const struct api_sink sink = {&pass, count_cell, count_numbers};
    for (size_t i = 0; i < table->n_columns; i++) {
        table->columns[i].wanted = of_columns[i] != NULL;
        if (of_columns[i])
            set_budget(&of_columns[i]->unseen, table->budget);
    }
    bool good = api_table_read(table, &sink, problem);
    for (size_t i = 0; i < table->n_columns; i++)
        if (of_columns[i])
            flush(of_columns[i]);
    return good;
}
