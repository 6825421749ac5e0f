#include "api/monitors/model/sample.h"

#include "api/monitors/model/format.h"
#include "api/text/decimal.h"
#include "lib/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* FEW: distinct numbers that make labels by the method auto. */
enum { FEW = 20 };

void api_sample_init(struct api_sample *sample, const struct api_table *table, size_t column)
{
    size_t size;
    *sample = (struct api_sample){.table = table, .column = column, .truths_alone = true};
    sample->numbers.budget = table->budget;
    sample->labels.texts.budget = sample->labels.entries.budget = table->budget;
    sample->labels.slots.budget = sample->labels.sorted.budget = table->budget;
    if (table->n_rows > 0 && !__builtin_mul_overflow(table->n_rows, sizeof(double), &size))
        api_buffer_reserve(&sample->numbers, size); /* exactly, where growth would double it */
}

void api_sample_free(struct api_sample *sample)
{
    api_buffer_free(&sample->numbers);
    api_labels_free(&sample->labels);
}

/* ---- Values */

static bool add_number(struct api_sample *sample, double number, struct api_problem *problem)
{
    if (isnan(number)) {
        sample->n_missing++;
        return true;
    }
    sample->n_numbers++;
    api_append(&sample->numbers, &number, sizeof number);
    return !sample->numbers.failed || api_fail_oom(problem);
}

static bool add_label(struct api_sample *sample, const char *text, size_t size,
                      struct api_problem *problem)
{
    return api_labels_add(&sample->labels, text, size) || api_fail_oom(problem);
}

/* Collects the label of a value, in the second pass. */
static bool sample_label(struct api_sample *sample, const struct api_cell *cell,
                         struct api_problem *problem)
{
    char text[API_DECIMAL_MAX];
    bool has_text = api_cell_is_text(cell);
    if (api_cell_is_missing(cell))
        return true;
    if (has_text && cell->size > API_MAX_LABEL)
        return api_table_fail(
            sample->table, sample->column, cell, problem, "labels_too_large",
            "a text that becomes a label may have at most %d bytes; this one has %zu",
            API_MAX_LABEL, cell->size);
    if (has_text)
        return add_label(sample, cell->text, cell->size, problem);
    if (cell->kind == API_CELL_BOOLEAN)
        return add_label(sample, cell->number != 0 ? "true" : "false", cell->number != 0 ? 4 : 5,
                         problem);
    return isnan(cell->number) ||
           add_label(sample, text, api_label_of_number(text, cell->number), problem);
}

/* pass: one over a table. */
struct pass {
    const atomic_bool *stop;
    struct api_sample *samples; /* one for each column of the table */
};

static bool sample_cell(void *context, size_t column, const struct api_cell *cell,
                        struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_sample *sample = &pass->samples[column];
    double number;
    if (!api_check_cancelled(pass->stop, cell, problem))
        return false;
    if (sample->is_text)
        return sample_label(sample, cell, problem);
    sample->truths_alone &= cell->kind == API_CELL_BOOLEAN || cell->kind == API_CELL_MISSING;
    if (api_cell_is_missing(cell)) {
        sample->n_missing++;
        return true;
    }
    if (api_cell_number(sample->table, cell, &number))
        return add_number(sample, number, problem);
    if (cell->kind == API_CELL_STRING)
        sample->text_for_certain = true;
    else if (sample->unreadable.count++ == 0)
        sample->unreadable.line = cell->line;
    sample->n_texts++;
    return true;
}

static bool sample_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                           size_t n, struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_sample *sample = &pass->samples[column];
    sample->truths_alone = false;
    for (size_t i = 0; i < n; i++)
        if (!add_number(sample, kl_load(dtype, values, i), problem))
            return false;
    return true;
}

/* Decides after the first pass; true if a second one is needed, which collects labels. A column is numeric if
 * at least half of its values that are not missing are numbers, and none is a string but for those that stand
 * for infinite numbers. */
static bool decide(struct api_sample *sample)
{
    sample->is_text =
        sample->n_texts > 0 &&
        (sample->text_for_certain || 2 * sample->n_numbers < sample->n_numbers + sample->n_texts);
    if (!sample->is_text) {
        sample->n_missing += sample->n_texts;
        return false;
    }
    sample->unreadable.count = 0;
    api_buffer_free(&sample->numbers);
    return true;
}

bool api_sample_table(struct api_sample *samples, size_t first, size_t end, struct api_table *table,
                      const atomic_bool *stop, struct api_problem *problem)
{
    struct pass pass = {stop, samples};
    const struct api_sink sink = {&pass, sample_cell, sample_numbers};
    bool again = false;
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted = i >= first && i < end;
    if (!api_table_read(table, &sink, problem))
        return false;
    for (size_t i = first; i < end; i++) {
        table->columns[i].wanted = decide(&samples[i]);
        again |= table->columns[i].wanted;
    }
    return !again || api_table_read(table, &sink, problem);
}

static double *numbers_of(const struct api_sample *sample) { return (void *)sample->numbers.data; }

/* Moves finite numbers to the front; returns how many there are. */
static size_t partition(struct api_sample *sample)
{
    double *numbers = numbers_of(sample);
    size_t finite = 0;
    for (size_t i = 0; i < sample->n_numbers; i++)
        if (isfinite(numbers[i])) {
            double number = numbers[i];
            numbers[i] = numbers[finite];
            numbers[finite++] = number;
        }
    return finite;
}

bool api_sample_is_empty(const struct api_sample *sample)
{
    const double *numbers = numbers_of(sample);
    if (!sample->is_text)
        for (size_t i = 0; i < sample->n_numbers; i++)
            if (isfinite(numbers[i]))
                return false;
    return !sample->is_text;
}

/* ---- Bins */

/* True if at most FEW distinct numbers are there. */
static bool has_few_numbers(const struct api_sample *sample)
{
    double seen[FEW];
    const double *numbers = numbers_of(sample);
    size_t n = 0;
    for (size_t i = 0; i < sample->n_numbers; i++) {
        size_t j = 0;
        while (j < n && seen[j] != numbers[i])
            j++;
        if (j < n)
            continue;
        if (n == FEW)
            return false;
        seen[n++] = numbers[i];
    }
    return true;
}

/* Makes labels of the numbers, or of truths. */
static bool label_numbers(struct api_sample *sample, struct api_problem *problem)
{
    const double *numbers = numbers_of(sample);
    bool good = true;
    for (size_t i = 0; good && i < sample->n_numbers; i++) {
        const struct api_cell cell = {.kind =
                                          sample->truths_alone ? API_CELL_BOOLEAN : API_CELL_NUMBER,
                                      .number = numbers[i]};
        good = sample_label(sample, &cell, problem);
    }
    return good;
}

static bool bins_of_labels(struct api_sample *sample, struct api_bins *bins,
                           struct api_weights *reference, struct api_problem *problem)
{
    const char *texts[API_MAX_BINS];
    uint64_t counts[API_MAX_BINS + 2] = {0};
    size_t n, size = 0, all = sample->labels.n;
    const struct api_label *labels = api_labels_sort(&sample->labels, API_MAX_BINS, &n);
    if (!labels)
        return api_fail_oom(problem);
    for (size_t i = 0; i < n; i++) {
        texts[i] = labels[i].text;
        counts[i] = labels[i].count;
        size += strlen(texts[i]);
    }
    if (size > API_MAX_LABELS)
        return api_table_fail(
            sample->table, sample->column, NULL, problem, "labels_too_large",
            "the texts of column '%.80s' make labels of %zu bytes in all; a monitor may have at "
            "most %d",
            sample->table->columns[sample->column].name, size, API_MAX_LABELS);
    for (size_t i = n; i < all; i++)
        counts[n] += labels[i].count;
    counts[n + 1] = sample->n_missing;
    return (api_bins_of_labels(bins, texts, n) &&
            api_weights_of_counts(reference, counts, bins->n_bins)) ||
           api_fail_oom(problem);
}

static bool bins_of_numbers(struct api_sample *sample, const struct api_monitor_settings *settings,
                            struct api_bins *bins, struct api_weights *reference,
                            struct api_problem *problem)
{
    double edges[API_MAX_BINS + 2];
    uint64_t counts[API_MAX_BINS + 3] = {0};
    double *numbers = numbers_of(sample), min = (double)INFINITY, max = -min;
    size_t finite = partition(sample), wanted = (size_t)settings->bins, n;
    for (size_t i = 0; i < finite; i++) {
        min = fmin(min, numbers[i]);
        max = fmax(max, numbers[i]);
    }
    n = settings->method == API_WIDTH ? kl_width_edges(min, max, wanted, edges)
                                      : kl_quantile_edges(numbers, finite, wanted, edges);
    kl_bin_counts(edges, n, KL_FLOAT64, numbers, sample->n_numbers, counts);
    counts[n + 2] += sample->n_missing;
    return (api_bins_of_edges(bins, edges, n) &&
            api_weights_of_counts(reference, counts, bins->n_bins)) ||
           api_fail_oom(problem);
}

bool api_sample_bins(struct api_sample *sample, const struct api_monitor_settings *settings,
                     struct api_bins *bins, struct api_weights *reference,
                     struct api_problem *problem)
{
    if (sample->is_text)
        return bins_of_labels(sample, bins, reference, problem);
    bool labelled =
        settings->method == API_LABELS ||
        (settings->method == API_AUTO && (sample->truths_alone || has_few_numbers(sample)));
    if (labelled)
        return label_numbers(sample, problem) && bins_of_labels(sample, bins, reference, problem);
    return bins_of_numbers(sample, settings, bins, reference, problem);
}
