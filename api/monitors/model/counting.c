#include "api/monitors/model/counting.h"

#include "api/json/format.h"
#include "api/text/decimal.h"
#include "lib/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Labels */

bool api_label_number(const char *label, double *number)
{
    char text[API_MAX_LABEL + API_PADDING] = "";
    const struct api_cell cell = {.kind = API_CELL_FIELD, .text = text, .size = strlen(label)};
    if (cell.size > API_MAX_LABEL)
        return false;
    memcpy(text, label, cell.size);
    return api_field_number(&cell, API_EITHER, number);
}

/* pairs: spellings of false and true; of the words, WORDS. The first is read in any case beside any labels, the others
 * instead of them. */
static const char *const pairs[][2] = {
    {"false", "true"}, {"False", "True"}, {"FALSE", "TRUE"}, {"f", "t"}, {"F", "T"}, {"no", "yes"},
    {"No", "Yes"},     {"NO", "YES"},     {"n", "y"},        {"N", "Y"}, {"0", "1"}};
enum { WORDS = 3 };
#define PAIRS (sizeof pairs / sizeof *pairs)

/* Reads a text as a boolean, in the first `n` spellings and in any case. */
static bool read_boolean(const char *text, size_t size, size_t n, bool *value)
{
    for (size_t i = 0; i < 2 * n; i++) {
        const char *spelling = pairs[i / 2][i % 2];
        *value = i % 2;
        if (strlen(spelling) == size && strncasecmp(spelling, text, size) == 0)
            return true;
    }
    return false;
}

/* Finds the labels that booleans have: true and false, or another pair such as yes and no. Beside at most one other
 * label, which is no number, they are booleans for certain. */
static void find_booleans(struct api_counting *counting)
{
    enum { MAX_LABELS = 3 };
    const struct api_bins *bins = counting->bins;
    size_t *found = counting->of_booleans, none = bins->n_bins, pair[2];
    double number;
    found[0] = found[1] = none;
    for (size_t i = 0; bins->labelled && i < (size_t)2 * WORDS; i++)
        if (found[i % 2] == none)
            found[i % 2] = api_bins_find(bins, pairs[i / 2][i % 2], strlen(pairs[i / 2][i % 2]));
    if (!bins->labelled || bins->n < 2 || bins->n > MAX_LABELS)
        return;
    memcpy(pair, found, sizeof pair);
    for (size_t i = WORDS; i < PAIRS && (pair[0] == none || pair[1] == none); i++)
        for (size_t value = 0; value < 2; value++)
            pair[value] = api_bins_find(bins, pairs[i][value], strlen(pairs[i][value]));
    bool are_booleans = pair[0] < none && pair[1] < none;
    for (size_t i = 0; i < bins->n; i++)
        are_booleans &=
            i == pair[0] || i == pair[1] || !api_label_number(api_bins_label(bins, i), &number);
    counting->takes_any_booleans = are_booleans;
    if (are_booleans)
        memcpy(found, pair, sizeof pair);
}

static int compare_numbered(const void *a, const void *b)
{
    const struct api_numbered *first = a, *second = b;
    return (first->number > second->number) - (first->number < second->number);
}

/* Sorts out the labels that are numbers, but not as they are written here. */
static bool find_numbered(struct api_counting *counting)
{
    const struct api_bins *bins = counting->bins;
    char text[API_DECIMAL_MAX];
    double number;
    for (size_t i = 0; bins->labelled && i < bins->n; i++) {
        const char *label = api_bins_label(bins, i);
        if (!api_label_number(label, &number))
            continue;
        size_t size = api_label_of_number(text, number);
        if (strlen(label) == size && memcmp(text, label, size) == 0)
            continue;
        if (!counting->numbered)
            counting->numbered = calloc(bins->n, sizeof *counting->numbered);
        if (!counting->numbered)
            return false;
        counting->numbered[counting->n_numbered++] = (struct api_numbered){number, i};
    }
    if (counting->n_numbered > 0)
        qsort(counting->numbered, counting->n_numbered, sizeof *counting->numbered,
              compare_numbered);
    return true;
}

/* The bin of the only label that is this number. */
static size_t find_by_number(const struct api_counting *counting, double number)
{
    const struct api_numbered key = {.number = number}, *found, *end;
    if (counting->n_numbered == 0)
        return api_bins_other(counting->bins);
    end = counting->numbered + counting->n_numbered;
    found = bsearch(&key, counting->numbered, counting->n_numbered, sizeof key, compare_numbered);
    bool is_only = found && (found == counting->numbered || found[-1].number != number) &&
                   (found + 1 == end || found[1].number != number);
    return is_only ? found->bin : api_bins_other(counting->bins);
}

static size_t find_number(const struct api_counting *counting, double number, enum kl_dtype dtype)
{
    char text[API_DECIMAL_MAX];
    const struct api_bins *bins = counting->bins;
    if (isnan(number) || bins->is_presence)
        return isnan(number) ? api_bins_missing(bins) : 0;
    size_t bin = api_bins_find(bins, text, api_label_of_value(text, dtype, number));
    if (bin < bins->n_bins)
        return bin;
    if (counting->takes_any_booleans && (number == 0 || number == 1))
        return counting->of_booleans[number != 0];
    return find_by_number(counting, number);
}

/* Reads a value as a number, a text of JSON as a field of CSV; by the style of the column, else as one alone. */
static bool read_number(const struct api_cell *cell, enum api_style style, double *number)
{
    struct api_cell field = *cell;
    char text[API_MAX_LABEL + API_PADDING];
    if (cell->kind == API_CELL_STRING) {
        if (cell->size > API_MAX_LABEL)
            return false;
        memcpy(text, cell->text, cell->size);
        memset(text + cell->size, 0, API_PADDING);
        field.kind = API_CELL_FIELD;
        field.text = text;
    }
    return api_cell_number(&field, style, number) || api_cell_number(&field, API_EITHER, number);
}

size_t api_counting_find(const struct api_counting *counting, const struct api_cell *cell,
                         enum kl_dtype dtype)
{
    const struct api_bins *bins = counting->bins;
    bool is_text = api_cell_is_text(cell), is_boolean = cell->kind == API_CELL_BOOLEAN;
    bool value = cell->number != 0;
    size_t bin =
        is_text && !bins->is_presence ? api_bins_find(bins, cell->text, cell->size) : bins->n_bins;
    double number;
    if (bin < bins->n_bins)
        return bin;
    if (api_cell_is_missing(cell))
        return api_bins_missing(bins);
    if (bins->is_presence && cell->kind != API_CELL_NUMBER)
        return 0;
    if (is_boolean)
        bin = api_bins_find(bins, value ? "true" : "false", value ? 4 : 5);
    if (bin == bins->n_bins &&
        (is_boolean || (is_text && read_boolean(cell->text, cell->size,
                                                counting->takes_any_booleans ? PAIRS : 1, &value))))
        bin = counting->of_booleans[value];
    if (bin < bins->n_bins)
        return bin;
    return !is_boolean && read_number(cell, counting->style, &number)
               ? find_number(counting, number, dtype)
               : api_bins_other(bins);
}

/* ---- Counts */

/* AT_ONCE: numbers that are counted at once, of one part and of each of many. */
enum { AT_ONCE = 256, AT_ONCE_OF_MANY = 16 };

static size_t at_once(size_t n) { return n > 1 ? AT_ONCE_OF_MANY : AT_ONCE; }

size_t api_counting_size(const struct api_bins *bins, size_t n)
{
    return n * (sizeof(struct api_part) + bins->n_bins * sizeof(uint64_t) +
                (bins->labelled ? 0 : at_once(n) * sizeof(double)));
}

static void free_parts(struct api_counting *counting)
{
    for (size_t i = 0; i < counting->n_parts; i++)
        api_labels_free(&counting->parts[i].unseen);
    free(counting->parts);
}

bool api_counting_split(struct api_counting *counting, size_t n, const uint32_t *part_of_row,
                        struct api_problem *problem)
{
    const struct api_bins *bins = counting->bins;
    size_t size = api_counting_size(bins, n);
    free_parts(counting);
    counting->parts = calloc(1, size > 0 ? size : 1);
    counting->n_parts = counting->parts ? n : 0;
    counting->part_of_row = part_of_row;
    if (!counting->parts)
        return api_fail_oom(problem);
    uint64_t *counts = (uint64_t *)(counting->parts + n);
    double *waiting = (double *)(void *)(counts + n * bins->n_bins);
    for (size_t i = 0; i < n; i++)
        counting->parts[i].tally =
            (struct api_tally){.counts = counts + i * bins->n_bins,
                               .waiting = waiting + (bins->labelled ? 0 : i * at_once(n)),
                               .max_waiting = at_once(n)};
    return true;
}

bool api_counting_init(struct api_counting *counting, const struct api_bins *bins,
                       struct api_problem *problem)
{
    *counting = (struct api_counting){.bins = bins};
    find_booleans(counting);
    return api_counting_split(counting, 1, NULL, problem) &&
           (find_numbered(counting) || api_fail_oom(problem));
}

void api_counting_free(struct api_counting *counting)
{
    free_parts(counting);
    free(counting->numbered);
    *counting = (struct api_counting){.n_parts = 0};
}

/* The part of a row; NULL if it goes to none. */
static struct api_part *part_of(const struct api_counting *counting, size_t row)
{
    uint32_t i = counting->part_of_row ? counting->part_of_row[row] : 0;
    return i == API_NO_PART ? NULL : &counting->parts[i];
}

/* Counts what has no label as the label that it would be. */
static void add_unseen(struct api_label_table *unseen, const struct api_cell *cell,
                       enum api_style style, enum kl_dtype dtype)
{
    char text[API_DECIMAL_MAX];
    double number;
    bool value;
    if (api_cell_is_boolean(cell, &value))
        api_unseen_add(unseen, value ? "true" : "false", value ? 4 : 5);
    else if (!(api_cell_is_text(cell) && api_text_is_code(cell->text, cell->size)) &&
             (api_cell_number(cell, style, &number) || api_cell_number(cell, API_EITHER, &number)))
        api_unseen_add(unseen, text, api_label_of_value(text, dtype, number));
    else
        api_unseen_add(unseen, cell->text, cell->size);
}

static void count_label(struct api_counting *counting, struct api_part *part,
                        const struct api_cell *cell, enum kl_dtype dtype)
{
    size_t bin = api_counting_find(counting, cell, dtype);
    double ignored;
    part->tally.counts[bin]++;
    if (bin != api_bins_other(counting->bins))
        return;
    if (cell->kind == API_CELL_FIELD && !api_field_number(cell, counting->style, &ignored))
        api_style_add(&counting->styles, cell);
    add_unseen(&part->unseen, cell, counting->style, dtype);
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

/* Counts a value that is no number by the style of the column. */
static bool count_other(const struct pass *pass, size_t column, const struct api_cell *cell,
                        struct api_part *part, struct api_problem *problem)
{
    struct api_counting *counting = pass->of_columns[column];
    bool is_missing = api_cell_is_missing(cell) || api_cell_is_mark(cell);
    if (!is_missing && cell->kind == API_CELL_STRING)
        return api_table_fail(pass->table, column, cell, problem, "value_not_number",
                              "the monitor expects numbers, but this is the text '%.*s'",
                              cell->size < 60 ? (int)cell->size : 60, cell->text);
    api_tally_missing(&part->tally, counting->bins);
    if (is_missing)
        return true;
    if (cell->kind == API_CELL_FIELD && counting->style < API_DATES)
        api_style_add(&counting->styles, cell);
    if (counting->unreadable.count++ == 0)
        counting->unreadable.line = cell->line;
    return true;
}

static bool count_cell(void *context, size_t column, const struct api_cell *cell,
                       struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_counting *counting = pass->of_columns[column];
    struct api_part *part = part_of(counting, cell->row);
    double number;
    if (!api_check_cancelled(pass->stop, cell, problem))
        return false;
    if (!part)
        return true;
    if (counting->only_looks) {
        if (cell->kind == API_CELL_FIELD && !api_cell_is_missing(cell))
            api_style_add(&counting->styles, cell);
        return true;
    }
    if (counting->bins->labelled) {
        count_label(counting, part, cell, KL_FLOAT64);
        return true;
    }
    if (!api_number_or_date(cell, counting->style, counting->zone, &number))
        return count_other(pass, column, cell, part, problem);
    api_tally_number(&part->tally, counting->bins, number);
    return true;
}

/* Adds up an array of numbers of any type. */
static void add_up(const struct api_counting *counting, enum kl_dtype dtype, const void *values,
                   size_t n)
{
    double part[AT_ONCE];
    for (size_t i = 0, size; i < n; i += size) {
        size = n - i < AT_ONCE ? n - i : AT_ONCE;
        if (dtype == KL_FLOAT64)
            memcpy(part, (const double *)values + i, size * sizeof *part);
        for (size_t j = 0; dtype != KL_FLOAT64 && j < size; j++)
            part[j] = kl_load(dtype, values, i + j);
        api_moments_take(&counting->parts->tally.moments, counting->bins, part, size);
    }
}

static bool count_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                          size_t row, size_t n, struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_counting *counting = pass->of_columns[column];
    struct api_cell cell = {.kind = API_CELL_NUMBER};
    (void)problem;
    bool is_whole =
        !counting->bins->labelled && !counting->part_of_row && counting->style < API_DATES;
    for (size_t i = 0; !is_whole && i < n; i++) {
        struct api_part *of_row = part_of(counting, row + i);
        cell.number = kl_load(dtype, values, i);
        if (counting->style >= API_DATES &&
            !api_cell_date(&cell, counting->style, counting->zone, &cell.number))
            cell.number = (double)NAN;
        if (of_row && counting->bins->labelled)
            count_label(counting, of_row, &cell, dtype);
        else if (of_row)
            api_tally_number(&of_row->tally, counting->bins, cell.number);
    }
    if (!is_whole)
        return true;
    kl_bin_counts(counting->bins->edges, counting->bins->n, dtype, values, n,
                  counting->parts->tally.counts);
    add_up(counting, dtype, values, n);
    return true;
}

/* ---- Tables */

static void set_budget(struct api_counting *counting, struct api_budget *budget)
{
    for (size_t i = 0; i < counting->n_parts; i++)
        api_labels_set_budget(&counting->parts[i].unseen, budget);
}

static bool has_separators(const struct api_style_tally *styles)
{
    return styles->points + styles->commas + styles->grouped[API_POINT] > 0;
}

/* The style that a column is read by at first; of a part of the rows at last, too, if that of all is known. */
static void begin_style(struct api_counting *counting, const struct api_table *table, size_t column)
{
    enum api_style of_all = (enum api_style)table->columns[column].style;
    counting->style_is_known = table->part_of_row && of_all != API_PLAIN;
    if (counting->style_is_known)
        counting->style = of_all;
    else if (counting->style == API_PLAIN && counting->bins->labelled)
        counting->style = table->delimiter == ';' ? API_EITHER : API_POINT;
}

/* Reads the columns that are contradicted, as fields of them are numbers by another style than theirs, or have looked; the
 * others are not wanted. */
static bool read_again(struct api_counting *const *of_columns, struct api_table *table,
                       const struct api_sink *sink, bool looks, struct api_problem *problem)
{
    bool any = false;
    for (size_t i = 0; i < table->n_columns; i++) {
        struct api_counting *counting = of_columns[i];
        table->columns[i].wanted =
            counting && !counting->style_is_known &&
            (looks ? has_separators(&counting->styles) : counting->only_looks);
        if (!table->columns[i].wanted)
            continue;
        any = true;
        counting->only_looks = looks;
        if (looks) {
            counting->styles = (struct api_style_tally){.points = 0};
            continue;
        }
        counting->style = api_style_decide(&counting->styles, counting->style, table->delimiter);
        counting->unreadable.count = 0;
        if (!api_counting_split(counting, counting->n_parts, counting->part_of_row, problem))
            return false;
        set_budget(counting, table->budget);
    }
    return !any || api_table_read(table, sink, problem);
}

bool api_counting_table(struct api_counting *const *of_columns, struct api_table *table,
                        const atomic_bool *stop, struct api_problem *problem)
{
    struct pass pass = {table, of_columns, stop};
    const struct api_sink sink = {&pass, count_cell, count_numbers};
    for (size_t i = 0; i < table->n_columns; i++) {
        table->columns[i].wanted = of_columns[i] != NULL;
        if (!of_columns[i])
            continue;
        begin_style(of_columns[i], table, i);
        set_budget(of_columns[i], table->budget);
    }
    bool good = api_table_read(table, &sink, problem) &&
                read_again(of_columns, table, &sink, true, problem) &&
                read_again(of_columns, table, &sink, false, problem);
    for (size_t i = 0; !table->part_of_row && i < table->n_columns; i++)
        if (of_columns[i])
            table->columns[i].style = of_columns[i]->style;
    for (size_t i = 0; i < table->n_columns; i++)
        for (size_t j = 0; of_columns[i] && j < of_columns[i]->n_parts; j++)
            api_tally_flush(&of_columns[i]->parts[j].tally, of_columns[i]->bins);
    return good;
}
