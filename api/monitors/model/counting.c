#include "api/monitors/model/counting.h"
#include "api/formats/field.h"

#include "api/monitors/model/format.h"
#include "api/text/decimal.h"
#include "lib/drift.h"

#include <math.h>
#include <stdlib.h>

bool api_counting_init(struct api_counting *counting, const struct api_bins *bins,
                       struct api_problem *problem)
{
    counting->bins = bins;
    counting->unreadable = (struct api_unreadable){0};
    counting->buffered = 0;
    counting->counts = calloc(bins->n_bins, sizeof *counting->counts);
    return counting->counts || api_fail_oom(problem);
}

void api_counting_free(struct api_counting *counting)
{
    free(counting->counts);
    counting->counts = NULL;
}

void api_counting_finish(struct api_counting *counting)
{
    if (counting->buffered > 0)
        kl_bin_counts(counting->bins->edges, counting->bins->n, KL_FLOAT64, counting->buffer,
                      counting->buffered, counting->counts);
    counting->buffered = 0;
}

static void add_number(struct api_counting *counting, double number)
{
    counting->buffer[counting->buffered++] = number;
    if (counting->buffered == API_COUNTED_AT_ONCE)
        api_counting_finish(counting);
}

static void add_missing(struct api_counting *counting)
{
    counting->counts[api_bins_missing(counting->bins)]++;
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

static void add_number_label(struct api_counting *counting, double number)
{
    char text[API_DECIMAL_MAX];
    if (isnan(number))
        add_missing(counting);
    else if (!add_label(counting, text, api_label_of_number(text, number)))
        counting->counts[api_bins_other(counting->bins)]++;
}

static void add_text(struct api_counting *counting, const struct api_table *table,
                     const struct api_cell *cell)
{
    double number;
    if (add_label(counting, cell->text, cell->size))
        return;
    if (api_text_is_missing(cell->text, cell->size))
        add_missing(counting);
    else if (cell->kind == API_CELL_FIELD ? api_field_number(table, cell, &number)
                                          : api_text_infinity(cell->text, cell->size, &number))
        add_number_label(counting, number);
    else
        counting->counts[api_bins_other(counting->bins)]++;
}

static void count_label(struct api_counting *counting, const struct api_table *table,
                        const struct api_cell *cell)
{
    switch (cell->kind) {
    case API_CELL_NUMBER:
        add_number_label(counting, cell->number);
        break;
    case API_CELL_BOOLEAN:
        if (!add_label(counting, cell->number != 0 ? "true" : "false", cell->number != 0 ? 4 : 5))
            counting->counts[api_bins_other(counting->bins)]++;
        break;
    case API_CELL_STRING:
    case API_CELL_FIELD:
        add_text(counting, table, cell);
        break;
    default:
        add_missing(counting);
    }
}

static void count_field(struct api_counting *counting, const struct api_table *table,
                        const struct api_cell *cell)
{
    double number;
    if (api_field_number(table, cell, &number)) {
        add_number(counting, number);
        return;
    }
    add_missing(counting);
    if (!api_text_is_missing(cell->text, cell->size) && counting->unreadable.count++ == 0)
        counting->unreadable.line = cell->line;
}

bool api_counting_cell(struct api_counting *counting, const struct api_table *table, size_t column,
                       const struct api_cell *cell, struct api_problem *problem)
{
    if (counting->bins->labelled) {
        count_label(counting, table, cell);
        return true;
    }
    double number;
    switch (cell->kind) {
    case API_CELL_FIELD:
        count_field(counting, table, cell);
        return true;
    case API_CELL_STRING:
        if (api_text_infinity(cell->text, cell->size, &number)) {
            add_number(counting, number);
            return true;
        }
        if (!api_text_is_missing(cell->text, cell->size))
            return api_table_fail(table, column, cell, problem, "value_not_number",
                                  "the monitor expects numbers, but this is the text '%.*s'",
                                  cell->size < 60 ? (int)cell->size : 60, cell->text);
        add_missing(counting);
        return true;
    case API_CELL_MISSING:
        add_missing(counting);
        return true;
    default:
        add_number(counting, cell->number);
        return true;
    }
}

bool api_counting_numbers(struct api_counting *counting, enum kl_dtype dtype, const void *values,
                          size_t n, struct api_problem *problem)
{
    (void)problem;
    if (!counting->bins->labelled)
        kl_bin_counts(counting->bins->edges, counting->bins->n, dtype, values, n, counting->counts);
    for (size_t i = 0; counting->bins->labelled && i < n; i++)
        add_number_label(counting, kl_load(dtype, values, i));
    return true;
}
