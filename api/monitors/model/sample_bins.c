/* Bins made of a sample. */
#include "api/monitors/model/sample.h"

#include "api/monitors/model/edges.h"
#include "api/tables/field.h"
#include "lib/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bounds of the method auto. VALUES_EACH: values of the reference for each bin, at least: with more bins the reference
 * itself would have too few observations for a verdict. MIN_LABELS: labels that texts have in any case, as this many
 * want no more than the least min_observations. */
enum { VALUES_EACH = 10, MIN_BINS = 2, MIN_LABELS = 10 };

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

/* Bins that the method auto may make of n values. */
static size_t max_bins(size_t n, size_t min)
{
    return n / VALUES_EACH > min ? n / VALUES_EACH : min;
}

/* Compares by the numbers that labels are. */
static int compare_numbers(const void *a, const void *b)
{
    const struct api_label *first = a, *second = b;
    double x = 0, y = 0;
    api_label_number(first->text, &x);
    api_label_number(second->text, &y);
    return x != y ? (x < y ? -1 : 1) : strcmp(first->text, second->text);
}

/* Puts labels that are all numbers in their order. */
static void order_numbers(struct api_label *labels, size_t n)
{
    double number;
    for (size_t i = 0; i < n; i++)
        if (!api_label_number(labels[i].text, &number))
            return;
    qsort(labels, n, sizeof *labels, compare_numbers);
}

/* Counts texts that got no label as observations count them: one that is a number may have the label of that number. */
static bool count_cut(const struct api_bins *bins, const struct api_label *cut, size_t n,
                      uint64_t *counts, struct api_problem *problem)
{
    char text[API_MAX_LABEL + API_PADDING] = "";
    struct api_counting counting = {.counts = NULL};
    struct api_cell cell = {.kind = API_CELL_FIELD, .text = text};
    if (!api_counting_init(&counting, bins, problem))
        return false;
    for (size_t i = 0; i < n; i++) {
        cell.size = strlen(cut[i].text);
        memcpy(text, cut[i].text, cell.size + 1);
        counts[api_counting_find(&counting, &cell, KL_FLOAT64)] += cut[i].count;
    }
    api_counting_free(&counting);
    return true;
}

static bool fail_long_text(const struct api_sample *sample, struct api_problem *problem)
{
    const struct api_cell cell = {.row = sample->long_text.row, .line = sample->long_text.line};
    return api_table_fail(sample->table, sample->column, &cell, problem, "labels_too_large",
                          "a text that becomes a label may have at most %d bytes; this one has %zu",
                          API_MAX_LABEL, sample->long_text.size);
}

static bool bins_of_labels(struct api_sample *sample, const struct api_monitor_settings *settings,
                           struct api_bins *bins, struct api_weights *reference,
                           struct api_problem *problem)
{
    const char *texts[API_MAX_BINS];
    uint64_t counts[API_MAX_BINS + 2] = {0};
    size_t n, size = 0, all = sample->labels.n;
    bool is_limited = settings->method == API_AUTO && !sample->booleans_alone &&
                      (sample->is_text || sample->n_texts > 0);
    size_t max =
        is_limited ? max_bins(sample->n_texts + sample->n_numbers, MIN_LABELS) : API_MAX_BINS;
    if (sample->long_text.size > 0)
        return fail_long_text(sample, problem);
    struct api_label *labels =
        api_labels_sort(&sample->labels, max < API_MAX_BINS ? max : API_MAX_BINS, &n);
    if (!labels)
        return api_fail_oom(problem);
    order_numbers(labels, n);
    sample->n_cut = all - n;
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
    counts[n + 1] = sample->n_missing;
    return (api_bins_of_labels(bins, texts, n) || api_fail_oom(problem)) &&
           count_cut(bins, labels + n, all - n, counts, problem) &&
           (api_weights_of_counts(reference, counts, bins->n_bins) || api_fail_oom(problem));
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
    if (settings->method == API_AUTO && wanted > max_bins(finite, MIN_BINS))
        wanted = max_bins(finite, MIN_BINS);
    n = settings->method == API_WIDTH ? kl_width_edges(min, max, wanted, edges)
                                      : kl_quantile_edges(numbers, finite, wanted, edges);
    api_edges_move(edges, n, numbers, finite);
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
    return (sample->is_labelled ? bins_of_labels : bins_of_numbers)(sample, settings, bins,
                                                                    reference, problem);
}
