/* Bins made of a sample. */
#include "api/monitors/model/sample.h"

#include "api/text/decimal.h"
#include "api/text/number.h"
#include "lib/drift.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds of the method auto. VALUES_EACH: values of the reference for each bin, at least: with more bins the reference
 * itself would have too few observations for a verdict. */
enum { VALUES_EACH = 10, MIN_BINS = 2 };

/* Bounds of labels: SEEN: times that each is seen where nothing is chosen. SEEN_CHOOSING: times in the half that chooses
 * that one needs. MIN_CHOSEN: labels that are chosen in any case. */
enum { SEEN = 10, SEEN_CHOOSING = 5, MIN_CHOSEN = 2 };

static int compare_doubles(const void *a, const void *b)
{
    const double *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

/* Moves finite numbers to the front that are not among n sorted ones; returns how many there are. */
static size_t partition(double *numbers, size_t n_numbers, const double *excluded, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_numbers; i++) {
        double number = numbers[i];
        if (!isfinite(number) ||
            (n > 0 && bsearch(&number, excluded, n, sizeof number, compare_doubles)))
            continue;
        numbers[i] = numbers[kept];
        numbers[kept++] = number;
    }
    return kept;
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

/* How often a text is in the rows that are counted. */
static size_t counted(const struct api_label *label) { return label->count - label->choosing; }

/* Counts texts that got no label as observations count them: one that is a number may have the label of that number. */
static bool count_cut(const struct api_bins *bins, const struct api_label *cut, size_t n,
                      uint64_t *counts, struct api_problem *problem)
{
    char text[API_MAX_LABEL + API_PADDING] = "";
    struct api_counting counting = {.parts = NULL};
    struct api_cell cell = {.kind = API_CELL_FIELD, .text = text};
    if (!api_counting_init(&counting, bins, problem))
        return false;
    for (size_t i = 0; i < n; i++) {
        cell.size = strlen(cut[i].text);
        memcpy(text, cut[i].text, cell.size + 1);
        counts[api_counting_find(&counting, &cell, KL_FLOAT64)] += counted(&cut[i]);
    }
    api_counting_free(&counting);
    return true;
}

/* choice: the labels that have a bin, the first n of all; how many rows chose them, 0 if nothing was chosen, and how many
 * are counted. */
struct choice {
    struct api_label *labels;
    size_t n, choosing, counted;
};

/* True if each text is seen often enough, and there are not too many, for a bin each. */
static bool has_bin_for_each(const struct api_sample *sample)
{
    for (size_t i = 0; i < sample->labels.n; i++)
        if (api_labels_get(&sample->labels, i).count < SEEN)
            return false;
    return sample->labels.n <= API_MAX_BINS;
}

/* Chooses the labels, and counts the rows of both halves. Of very few rows the half that does not choose may have no text:
 * then all are counted, as they are where nothing was chosen. False if memory is exhausted. */
static bool choose(struct api_sample *sample, struct choice *choice)
{
    size_t most = 0, rows = sample->n_missing, texts = 0, n = sample->labels.n;
    bool all = has_bin_for_each(sample);
    struct api_label *labels = api_labels_sort(&sample->labels, !all, API_MAX_BINS, &most);
    *choice = (struct choice){.labels = labels};
    while (choice->n < most &&
           (all || choice->n < MIN_CHOSEN || labels[choice->n].choosing >= SEEN_CHOOSING))
        choice->n++;
    for (size_t i = 0; labels && i < n; i++) {
        rows += labels[i].count;
        texts += counted(&labels[i]);
    }
    for (size_t i = 0; !all && i < rows; i++)
        choice->choosing += api_row_chooses(i);
    choice->counted = rows - choice->choosing;
    if (all || texts == 0) {
        choice->counted = rows;
        for (size_t i = 0; labels && i < n; i++)
            labels[i].choosing = 0;
    }
    return labels != NULL;
}

static bool bins_of_labels(struct api_sample *sample, struct api_bins *bins,
                           struct api_weights *reference, struct api_problem *problem)
{
    uint64_t counts[API_MAX_BINS + 2] = {0};
    struct choice choice;
    size_t size = 0;
    if (sample->too_long.size > 0)
        return api_table_fail(sample->table, sample->column, &sample->too_long, problem,
                              "labels_too_large",
                              "a text that becomes a label may have at most %d bytes; this one has "
                              "%zu",
                              API_MAX_LABEL, sample->too_long.size);
    if (!choose(sample, &choice))
        return api_fail_oom(problem);
    order_numbers(choice.labels, choice.n);
    sample->n_cut = sample->labels.n - choice.n;
    sample->n_chosen = choice.choosing > 0 ? choice.n : 0;
    counts[choice.n + 1] = choice.counted;
    for (size_t i = 0; i < sample->labels.n; i++)
        counts[choice.n + 1] -= counted(&choice.labels[i]);
    for (size_t i = 0; i < choice.n; i++) {
        counts[i] = counted(&choice.labels[i]);
        size += strlen(choice.labels[i].text);
    }
    if (size > API_MAX_LABELS)
        return api_table_fail(sample->table, sample->column, NULL, problem, "labels_too_large",
                              "the texts of column '%.80s' make labels of %zu bytes in all; a "
                              "monitor may have at most %d",
                              sample->table->columns[sample->column].name, size, API_MAX_LABELS);
    if (!api_bins_of_labels(bins, choice.labels, choice.n))
        return api_fail_oom(problem);
    bool good = count_cut(bins, choice.labels + choice.n, sample->n_cut, counts, problem) &&
                (api_weights_of_counts(reference, counts, bins->n_bins) || api_fail_oom(problem));
    reference->choosing = (double)choice.choosing;
    return good;
}

/* ---- Bins of numbers: their edges lie between values, for numbers that come as float32 here and as float64 there */

/* range: minimum and maximum of some numbers; empty if min is above max. */
struct range {
    double min, max;
};
static const struct range empty = {(double)INFINITY, -(double)INFINITY};

/* Range of the forms in which other files may hold a value: itself, its float32, and the shortest decimal of its
 * float32. */
static struct range variants(double value)
{
    char text[API_DECIMAL_MAX + API_PADDING] = "", *end;
    double narrow = (double)(float)value;
    if (!isfinite(narrow) || narrow == floor(narrow))
        return (struct range){fmin(value, isfinite(narrow) ? narrow : value),
                              fmax(value, isfinite(narrow) ? narrow : value)};
    text[api_decimal_write(text, KL_FLOAT32, narrow)] = '\0';
    double decimal = api_strtod(text, &end);
    return (struct range){fmin(value, fmin(narrow, decimal)), fmax(value, fmax(narrow, decimal))};
}

/* A short decimal above `low` and below `high`, near the middle; the middle if there is none. */
static double decimal_between(double low, double high)
{
    char text[40 + API_PADDING], *end;
    double middle = low / 2 + high / 2;
    for (int digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, middle);
        double rounded = api_strtod(text, &end);
        if (rounded > low && rounded < high)
            return rounded;
    }
    return middle;
}

/* The edges move outwards by at most so much of a value. */
static const double outwards = 0x1p-20;

static void move_outer(double *edges, size_t bins, struct range all)
{
    struct range first = variants(all.min), last = variants(all.max);
    if (first.min < edges[0])
        edges[0] = decimal_between(first.min - fabs(first.min) * outwards, first.min);
    if (last.max > edges[bins])
        edges[bins] = decimal_between(last.max, last.max + fabs(last.max) * outwards);
}

/* Moves the edge between the values below and those above it, and between its neighbours. */
static void move_inner(double *edge, double below, double above)
{
    double low = variants(below).max, high = variants(above).min;
    if (low < *edge && *edge <= high)
        return;
    low = fmax(low, edge[-1]);
    high = fmin(high, edge[1]);
    double moved = decimal_between(low, high);
    if (low < moved && moved < high)
        *edge = moved;
}

/* The interval of a value within the edges, the last one closed. */
static size_t find(const double *edges, size_t bins, double value)
{
    size_t first = 0, end = bins;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        *(value < edges[middle] ? &end : &first) = middle;
    }
    return first;
}

/* Moves edges that lie so near to a value that the float32 of it, or the decimal that float32 is written as, is on their
 * other side: 0.1 is 0.100000001490116 as float32, and both belong into one bin. They go into the middle between the
 * two values beside them, as a short decimal; the outer ones a little outwards. The n finite values lie within the
 * edges of `bins` intervals, and stay in the intervals that they are in. */
static void move_edges(double *edges, size_t bins, const double *values, size_t n)
{
    struct range of[KL_MAX_BINS + 1];
    double below = -(double)INFINITY, above[KL_MAX_BINS + 2] = {0};
    for (size_t i = 0; i <= KL_MAX_BINS; i++)
        of[i] = empty;
    for (size_t i = 0; i < n; i++) {
        struct range *range = &of[find(edges, bins, values[i])];
        range->min = values[i] < range->min ? values[i] : range->min;
        range->max = values[i] > range->max ? values[i] : range->max;
    }
    above[bins] = (double)INFINITY;
    for (size_t i = bins; i-- > 0;)
        above[i] = fmin(above[i + 1], of[i].min);
    for (size_t i = 1; i < bins; i++) {
        below = fmax(below, of[i - 1].max);
        if (isfinite(below) && isfinite(above[i]))
            move_inner(&edges[i], below, above[i]);
    }
    below = fmax(below, of[bins - 1].max);
    move_outer(edges, bins, (struct range){above[0], below});
}

/* ---- Quantiles beside values that are repeated */

/* Values that have a bin of their own, among the edges of n intervals; gives how many. */
static size_t find_repeated(const double *edges, size_t n, double *repeated)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (edges[i + 1] == nextafter(edges[i], (double)INFINITY) && edges[i + 1] < DBL_MAX)
            repeated[found++] = edges[i];
    return found;
}

/* Makes edges of quantiles. Where values are so frequent that they have bins of their own, the quantiles of all values lie on
 * them, and leave few bins, or one, for the others: these are cut by themselves, into as many bins as are left, at least
 * half of those that are wanted, but at most a tenth of their number. */
static size_t quantile_edges(double *values, size_t n, size_t wanted, double min, double max,
                             double edges[API_MAX_BINS + 2])
{
    double repeated[API_MAX_BINS + 1], inner[API_MAX_BINS + 2], all[3 * API_MAX_BINS + 6];
    size_t made = kl_quantile_edges(values, n, wanted, edges), n_all = 0, unique = 0;
    size_t n_repeated = find_repeated(edges, made, repeated);
    size_t others = n_repeated ? partition(values, n, repeated, n_repeated) : 0;
    if (others == 0)
        return made;
    size_t left = wanted > n_repeated ? wanted - n_repeated : 0;
    left = left > wanted / 2 ? left : wanted / 2;
    left = left < others / VALUES_EACH ? left : others / VALUES_EACH;
    left = kl_quantile_edges(values, others, left > 0 ? left : 1, inner);
    all[n_all++] = min + 0.0; /* -0 becomes 0 */
    for (size_t i = 1; i < left; i++)
        all[n_all++] = inner[i];
    for (size_t i = 0; i < n_repeated; i++) {
        all[n_all++] = repeated[i];
        all[n_all++] = nextafter(repeated[i], (double)INFINITY);
    }
    all[n_all++] = max;
    qsort(all, n_all, sizeof *all, compare_doubles);
    for (size_t i = 0; i < n_all; i++)
        if (unique == 0 || all[i] > all[unique - 1])
            all[unique++] = all[i];
    if (unique - 1 > API_MAX_BINS)
        return made;
    memcpy(edges, all, unique * sizeof *all);
    return unique - 1;
}

bool api_sample_bins(struct api_sample *sample, const struct api_monitor_settings *settings,
                     struct api_bins *bins, struct api_weights *reference,
                     struct api_problem *problem)
{
    if (sample->is_labelled)
        return bins_of_labels(sample, bins, reference, problem);
    double edges[API_MAX_BINS + 2];
    uint64_t counts[API_MAX_BINS + 3] = {0};
    double *numbers = (void *)sample->numbers.data, min = (double)INFINITY, max = -min;
    size_t finite = partition(numbers, sample->n_numbers, NULL, 0);
    size_t wanted = (size_t)settings->bins, n;
    for (size_t i = 0; i < finite; i++) {
        min = fmin(min, numbers[i]);
        max = fmax(max, numbers[i]);
    }
    size_t most = finite / VALUES_EACH > MIN_BINS ? finite / VALUES_EACH : MIN_BINS;
    if (settings->method == API_AUTO && wanted > most)
        wanted = most;
    n = settings->method == API_WIDTH ? kl_width_edges(min, max, wanted, edges)
                                      : quantile_edges(numbers, finite, wanted, min, max, edges);
    move_edges(edges, n, numbers, finite);
    kl_bin_counts(edges, n, KL_FLOAT64, numbers, sample->n_numbers, counts);
    counts[n + 2] += sample->n_missing;
    if (!api_bins_of_edges(bins, edges, n) ||
        !api_weights_of_counts(reference, counts, bins->n_bins))
        return api_fail_oom(problem);
    struct api_moments moments = {.n = 0};
    api_moments_take(&moments, bins, numbers, finite);
    api_weights_set_spread(reference, api_moments_spread(&moments, bins, (double)finite));
    return true;
}
