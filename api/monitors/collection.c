#include "api/formats/field.h"
#include "api/monitors/column.h"

#include "api/monitors/labels.h"
#include "api/monitors/write.h"
#include "api/text/decimal.h"
#include "lib/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* FEW: distinct numbers that make labels by the method auto. */
enum { FEW = 20 };

void api_collection_init(struct api_collection *collection, const struct api_table *table,
                         size_t column)
{
    size_t size;
    *collection = (struct api_collection){
        .table = table, .column = column, .numbers.budget = table->budget, .truths_alone = true};
    if (table->n_rows > 0 && !__builtin_mul_overflow(table->n_rows, sizeof(double), &size))
        api_buffer_reserve(&collection->numbers, size); /* without the room that doubling leaves */
}

void api_collection_free(struct api_collection *collection)
{
    api_buffer_free(&collection->numbers);
    api_labels_free(collection->labels);
    collection->labels = NULL;
}

/* ---- Values */

static bool add_number(struct api_collection *collection, double number,
                       struct api_problem *problem)
{
    if (isnan(number)) {
        collection->n_missing++;
        return true;
    }
    collection->n_numbers++;
    api_append(&collection->numbers, &number, sizeof number);
    return !collection->numbers.failed || api_fail_oom(problem);
}

static bool add_label(struct api_collection *collection, const char *text, size_t size,
                      struct api_problem *problem)
{
    return api_labels_add(collection->labels, text, size) || api_fail_oom(problem);
}

/* Collects the label of a value, in the second pass. */
static bool collect_label(struct api_collection *collection, const struct api_cell *cell,
                          struct api_problem *problem)
{
    char text[API_DECIMAL_MAX];
    bool has_text = cell->kind == API_CELL_STRING || cell->kind == API_CELL_FIELD;
    if (cell->kind == API_CELL_MISSING || (has_text && api_text_is_missing(cell->text, cell->size)))
        return true;
    if (has_text && cell->size > API_MAX_LABEL)
        return api_table_fail(collection->table, collection->column, cell, problem,
                              "labels_too_large",
                              "a text becomes a label, which may have %d bytes, and this has %zu",
                              API_MAX_LABEL, cell->size);
    if (has_text)
        return add_label(collection, cell->text, cell->size, problem);
    if (cell->kind == API_CELL_BOOLEAN)
        return add_label(collection, cell->number != 0 ? "true" : "false",
                         cell->number != 0 ? 4 : 5, problem);
    return isnan(cell->number) ||
           add_label(collection, text, api_label_of_number(text, cell->number), problem);
}

static bool collect_text(struct api_collection *collection, const struct api_cell *cell,
                         struct api_problem *problem)
{
    double number;
    collection->truths_alone = false;
    if (api_text_is_missing(cell->text, cell->size)) {
        collection->n_missing++;
        return true;
    }
    if (cell->kind == API_CELL_FIELD ? api_field_number(collection->table, cell, &number)
                                     : api_text_infinity(cell->text, cell->size, &number))
        return add_number(collection, number, problem);
    if (cell->kind == API_CELL_STRING)
        collection->text_for_certain = true;
    else if (collection->unreadable.count++ == 0)
        collection->unreadable.line = cell->line;
    collection->n_texts++;
    return true;
}

bool api_collection_cell(struct api_collection *collection, const struct api_cell *cell,
                         struct api_problem *problem)
{
    if (collection->labels)
        return collect_label(collection, cell, problem);
    collection->rows++;
    switch (cell->kind) {
    case API_CELL_STRING:
    case API_CELL_FIELD:
        return collect_text(collection, cell, problem);
    case API_CELL_MISSING:
        collection->n_missing++;
        return true;
    case API_CELL_NUMBER:
        collection->truths_alone = false;
        break;
    default:
        break;
    }
    return add_number(collection, cell->number, problem);
}

bool api_collection_numbers(struct api_collection *collection, enum kl_dtype dtype,
                            const void *values, size_t n, struct api_problem *problem)
{
    collection->rows += n;
    collection->truths_alone = false;
    for (size_t i = 0; i < n; i++)
        if (!add_number(collection, kl_load(dtype, values, i), problem))
            return false;
    return true;
}

bool api_collection_decide(struct api_collection *collection)
{
    collection->is_text = collection->n_texts > 0 &&
                          (collection->text_for_certain ||
                           2 * collection->n_numbers < collection->n_numbers + collection->n_texts);
    if (!collection->is_text) {
        collection->n_missing += collection->n_texts;
        return false;
    }
    collection->unreadable.count = 0;
    collection->labels = api_labels_new(collection->numbers.budget);
    api_buffer_free(&collection->numbers);
    return true;
}

static double *numbers_of(const struct api_collection *collection)
{
    return (void *)collection->numbers.data;
}

/* Moves finite numbers to the front; returns how many there are. */
static size_t partition(struct api_collection *collection)
{
    double *numbers = numbers_of(collection);
    size_t finite = 0;
    for (size_t i = 0; i < collection->n_numbers; i++)
        if (isfinite(numbers[i])) {
            double number = numbers[i];
            numbers[i] = numbers[finite];
            numbers[finite++] = number;
        }
    return finite;
}

bool api_collection_is_empty(const struct api_collection *collection)
{
    const double *numbers = numbers_of(collection);
    for (size_t i = 0; i < collection->n_numbers && !collection->is_text; i++)
        if (isfinite(numbers[i]))
            return false;
    return !collection->is_text;
}

/* ---- Bins */

/* True if at most FEW distinct numbers are there. */
static bool has_few_numbers(const struct api_collection *collection)
{
    double seen[FEW];
    const double *numbers = numbers_of(collection);
    size_t n = 0;
    for (size_t i = 0; i < collection->n_numbers; i++) {
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
static bool label_numbers(struct api_collection *collection, struct api_problem *problem)
{
    const double *numbers = numbers_of(collection);
    collection->labels = api_labels_new(collection->numbers.budget);
    bool good = collection->labels || api_fail_oom(problem);
    for (size_t i = 0; good && i < collection->n_numbers; i++) {
        const struct api_cell cell = {.kind = collection->truths_alone ? API_CELL_BOOLEAN
                                                                       : API_CELL_NUMBER,
                                      .number = numbers[i]};
        good = collect_label(collection, &cell, problem);
    }
    return good;
}

static bool bins_of_labels(struct api_collection *collection, struct api_bins *bins,
                           struct api_weights *reference, struct api_problem *problem)
{
    const char *texts[API_MAX_BINS];
    double counts[API_MAX_BINS + 2] = {0};
    size_t n, size = 0, all = api_labels_count(collection->labels);
    const struct api_label *labels = api_labels_sort(collection->labels, API_MAX_BINS, &n);
    if (!labels)
        return api_fail_oom(problem);
    for (size_t i = 0; i < n; i++) {
        texts[i] = labels[i].text;
        counts[i] = labels[i].count;
        size += strlen(texts[i]);
    }
    if (size > API_MAX_LABELS)
        return api_table_fail(
            collection->table, collection->column, NULL, problem, "labels_too_large",
            "the texts of column '%.80s' make labels of %zu bytes in all, and "
            "a monitor may have %d",
            collection->table->columns[collection->column].name, size, API_MAX_LABELS);
    for (size_t i = n; i < all; i++)
        counts[n] += labels[i].count;
    counts[n + 1] = (double)collection->n_missing;
    return (api_bins_of_labels(bins, texts, n) &&
            api_weights_of_counts(reference, counts, bins->places)) ||
           api_fail_oom(problem);
}

static bool bins_of_numbers(struct api_collection *collection, const struct api_settings *settings,
                            struct api_bins *bins, struct api_weights *reference,
                            struct api_problem *problem)
{
    double edges[API_MAX_BINS + 2], counts[API_MAX_BINS + 3];
    uint64_t counted[API_MAX_BINS + 3] = {0};
    double *numbers = numbers_of(collection), least = (double)INFINITY, greatest = -least;
    size_t finite = partition(collection), wanted = (size_t)settings->bins, n;
    for (size_t i = 0; i < finite; i++) {
        least = fmin(least, numbers[i]);
        greatest = fmax(greatest, numbers[i]);
    }
    n = settings->method == API_WIDTH ? kl_width_edges(least, greatest, wanted, edges)
                                      : kl_quantile_edges(numbers, finite, wanted, edges);
    kl_bin_counts(edges, n, KL_FLOAT64, numbers, collection->n_numbers, counted);
    counted[n + 2] += collection->n_missing;
    for (size_t i = 0; i < n + 3; i++)
        counts[i] = (double)counted[i];
    return (api_bins_of_edges(bins, edges, n) &&
            api_weights_of_counts(reference, counts, bins->places)) ||
           api_fail_oom(problem);
}

bool api_collection_bins(struct api_collection *collection, const struct api_settings *settings,
                         struct api_bins *bins, struct api_weights *reference,
                         struct api_problem *problem)
{
    if (collection->is_text)
        return bins_of_labels(collection, bins, reference, problem);
    bool labelled =
        settings->method == API_LABELS ||
        (settings->method == API_AUTO && (collection->truths_alone || has_few_numbers(collection)));
    if (labelled)
        return label_numbers(collection, problem) &&
               bins_of_labels(collection, bins, reference, problem);
    return bins_of_numbers(collection, settings, bins, reference, problem);
}
