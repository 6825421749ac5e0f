#include "api/monitors/model/sample.h"

#include "api/json/format.h"
#include "api/tables/field.h"
#include "api/text/decimal.h"

#include <math.h>
#include <string.h>

/* MANY: values that tell whether most are distinct. */
enum { MANY = 100 };

/* Begins the first pass, or begins it again by a style. */
static void begin_pass(struct api_sample *sample, enum api_style style)
{
    sample->style = style;
    sample->numbers.size = 0;
    sample->n_numbers = sample->n_texts = sample->n_missing = sample->n_marks = 0;
    sample->n_rises = sample->n_falls = 0;
    sample->last = (double)NAN;
    sample->booleans_alone = sample->only_rises = sample->only_falls = true;
    sample->has_code = false;
    sample->unreadable.count = 0;
    sample->dates = (struct api_date_tally){.is_mixed = false};
}

void api_sample_init(struct api_sample *sample, const struct api_table *table, size_t column)
{
    size_t size;
    *sample = (struct api_sample){.table = table, .column = column};
    begin_pass(sample, (enum api_style)table->columns[column].style);
    sample->numbers.budget = table->budget;
    api_labels_set_budget(&sample->labels, table->budget);
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
    bool is_whole = isfinite(number) && number == floor(number);
    sample->only_rises = sample->only_rises && is_whole && !(number < sample->last);
    sample->only_falls = sample->only_falls && is_whole && !(number > sample->last);
    sample->n_rises += number > sample->last;
    sample->n_falls += number < sample->last;
    sample->last = number;
    api_append(&sample->numbers, &number, sizeof number);
    return !sample->numbers.failed || api_fail_oom(problem);
}

/* Collects the label of a value, unless that is missing: what is a number in a column of numbers has its label, other
 * texts stand for themselves. */
static bool add_label(struct api_sample *sample, const struct api_cell *cell, enum kl_dtype dtype,
                      struct api_problem *problem)
{
    char text[API_DECIMAL_MAX];
    struct api_cell label = {.text = text};
    bool has_text = api_cell_is_text(cell), value, chooses = api_row_chooses(sample->n_labelled++);
    double number;
    if (api_cell_is_missing(cell))
        return true;
    if (cell->kind == API_CELL_BOOLEAN ||
        (sample->booleans_alone && api_cell_is_boolean(cell, &value))) {
        api_cell_is_boolean(cell, &value);
        label = (struct api_cell){.text = value ? "true" : "false", .size = value ? 4 : 5};
    } else if (!(has_text && sample->is_text) && api_cell_number(cell, sample->style, &number)) {
        label.size = isnan(number) ? 0 : api_label_of_value(text, dtype, number);
    } else {
        label = *cell;
        if (cell->size > API_MAX_LABEL) {
            label.size = API_MAX_LABEL;
            if (sample->too_long.size == 0)
                sample->too_long = *cell;
        }
    }
    return label.size == 0 || api_labels_add(&sample->labels, label.text, label.size, chooses) ||
           api_fail_oom(problem);
}

/* pass: one over a table. */
struct pass {
    const atomic_bool *stop;
    struct api_sample *samples; /* one for each column of the table */
};

/* Notes a text: what it may be beside one. */
static void note_text(struct api_sample *sample, const struct api_cell *cell)
{
    sample->text_for_certain |= cell->kind == API_CELL_STRING;
    sample->n_texts++;
    if (api_cell_is_mark(cell)) {
        sample->n_marks++;
        return;
    }
    if (sample->style == API_PLAIN && cell->kind == API_CELL_FIELD)
        sample->n_styled += api_style_add(&sample->styles, cell);
    if (sample->unreadable.count++ == 0)
        sample->unreadable.line = cell->line;
    api_date_add(&sample->dates, cell->text, cell->size);
}

static bool sample_value(struct api_sample *sample, const struct api_cell *cell,
                         struct api_problem *problem)
{
    double number;
    bool value;
    if (api_cell_is_missing(cell)) {
        sample->n_missing++;
        return true;
    }
    sample->booleans_alone = sample->booleans_alone && api_cell_is_boolean(cell, &value);
    if (!api_number_or_date(cell, sample->style, sample->zone, &number)) {
        note_text(sample, cell);
        return true;
    }
    bool is_field = cell->kind == API_CELL_FIELD && sample->style < API_DATES;
    if (is_field && sample->style == API_PLAIN &&
        (sample->tallies_all || sample->styles.points == 0) && memchr(cell->text, '.', cell->size))
        api_style_add(&sample->styles, cell);
    if (is_field && !sample->has_code && *cell->text <= '0')
        sample->has_code = api_text_is_code(cell->text, cell->size);
    return add_number(sample, number, problem);
}

static bool sample_cell(void *context, size_t column, const struct api_cell *cell,
                        struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_sample *sample = &pass->samples[column];
    double number;
    if (!api_check_cancelled(pass->stop, cell, problem))
        return false;
    if (sample->pass == API_SAMPLE_LABELS)
        return add_label(sample, cell, KL_FLOAT64, problem);
    if (sample->pass == API_SAMPLE_NUMBERS)
        return sample_value(sample, cell, problem);
    return api_cell_is_missing(cell) || api_cell_is_mark(cell) ||
           api_cell_number(cell, sample->style, &number) ||
           api_labels_add(&sample->labels, cell->text, cell->size, false) || api_fail_oom(problem);
}

static bool sample_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                           size_t row, size_t n, struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_sample *sample = &pass->samples[column];
    struct api_cell cell = {.kind = API_CELL_NUMBER};
    sample->booleans_alone = false;
    for (size_t i = 0; i < n; i++) {
        cell.row = row + i;
        cell.number = kl_load(dtype, values, i);
        if (sample->style >= API_DATES &&
            !api_cell_date(&cell, sample->style, sample->zone, &cell.number))
            cell.number = (double)NAN;
        if (!(sample->pass == API_SAMPLE_LABELS ? add_label(sample, &cell, dtype, problem)
                                                : add_number(sample, cell.number, problem)))
            return false;
    }
    return true;
}

/* ---- The kind of a column: numbers with bins, numbers with labels, or texts */

/* FEW: distinct whole numbers that make labels, by the method auto. VALUES_EACH: values of the reference for each label
 * at least. REPEATED: distinct texts, each seen at least twice, that make a column of texts, unless nine tenths are
 * numbers. */
enum { FEW = 20, VALUES_EACH = 10, MIN_LABELS = 2, REPEATED = 5 };

/* True if all numbers are whole, and few are distinct. */
static bool has_few_whole_numbers(const struct api_sample *sample)
{
    double seen[FEW];
    const double *numbers = (const void *)sample->numbers.data;
    size_t n = 0, max = sample->n_numbers / VALUES_EACH;
    max = max < MIN_LABELS ? MIN_LABELS : max < FEW ? max : FEW;
    for (size_t i = 0; i < sample->n_numbers; i++) {
        size_t j = 0;
        if (!isfinite(numbers[i]) || numbers[i] != floor(numbers[i]))
            return false;
        while (j < n && seen[j] != numbers[i])
            j++;
        if (j < n)
            continue;
        if (n == max)
            return false;
        seen[n++] = numbers[i];
    }
    return true;
}

/* True if so many texts were seen twice that they are categories of their own. */
static bool has_repeated_texts(const struct api_sample *sample)
{
    size_t n = 0;
    for (size_t i = 0; i < sample->labels.n && n < REPEATED; i++)
        n += api_labels_get(&sample->labels, i).count >= 2;
    return n == REPEATED;
}

/* True if a column of numbers has labels. */
static bool has_labels(const struct api_sample *sample, enum api_method method)
{
    return sample->style < API_DATES &&
           (method == API_LABELS ||
            (method == API_AUTO &&
             (sample->had_labels || sample->booleans_alone || has_few_whole_numbers(sample))));
}

/* Counts dates and times, if they are nine tenths of the values; of numbers that vary, times since 1970 of one unit, and dates
 * without delimiters. */
static size_t count_dates(const struct api_sample *sample)
{
    const double *numbers = (const void *)sample->numbers.data;
    const size_t *texts = sample->dates.n;
    enum { FIRST_DATE = 190001 }; /* below it is none */
    struct api_date date;
    size_t times[API_DATE_FORMS] = {0}, form, most = 0;
    for (size_t i = 0; sample->n_rises + sample->n_falls > 0 && i < sample->n_numbers; i++)
        if (numbers[i] >= FIRST_DATE && api_date_of_number(numbers[i], &date, &form)) {
            times[form]++;
            most = times[form] > most ? times[form] : most;
        }
    size_t n = most + (texts[0] > texts[1] ? texts[0] : texts[1]);
    size_t all = sample->n_numbers + sample->n_texts - sample->n_marks;
    return 10 * n >= 9 * all ? n : 0;
}

/* Begins the first pass again by the style that the fields show. If they show both, first one that counts the fields of each. */
static void begin_pass_by_style(struct api_sample *sample)
{
    bool is_mixed = sample->styles.points > 0 && sample->styles.commas > 0;
    if (!is_mixed || sample->tallies_all) {
        begin_pass(sample, api_style_decide(&sample->styles, API_PLAIN, sample->table->delimiter));
        return;
    }
    sample->tallies_all = true;
    sample->n_styled = 0;
    sample->styles = (struct api_style_tally){.points = 0};
    begin_pass(sample, API_PLAIN);
}

/* A column is numeric if at least half of its values that are not missing are numbers, or nine tenths if many texts
 * are seen twice; and none is a string, but for those that stand for infinite numbers, or a whole number with a zero
 * before it. True if another pass is needed. */
static bool decide(struct api_sample *sample, enum api_method method)
{
    if (sample->pass == API_SAMPLE_LABELS)
        return false;
    if (sample->n_styled > 0 && sample->style == API_PLAIN) {
        begin_pass_by_style(sample);
        return true;
    }
    size_t numbers = sample->n_numbers, others = sample->n_texts - sample->n_marks;
    size_t all = numbers + others;
    if (sample->style < API_DATES)
        sample->n_dates = count_dates(sample);
    if (sample->n_dates > 0 && !sample->is_included)
        return false;
    if (sample->n_dates > 0 && sample->style < API_DATES) {
        enum api_date_order order;
        api_date_decide(&sample->dates, &order);
        begin_pass(sample, order == API_MONTH_FIRST ? API_DATES_MONTH_FIRST : API_DATES);
        return true;
    }
    bool is_in_doubt = 10 * numbers < 9 * all && others / 2 >= REPEATED;
    sample->is_text = sample->text_for_certain || sample->has_code || 2 * numbers < all ||
                      (numbers == 0 && sample->n_marks > 0);
    if (!sample->is_text && is_in_doubt && sample->pass == API_SAMPLE_NUMBERS) {
        sample->pass = API_SAMPLE_TEXTS;
        return true;
    }
    sample->is_text |= sample->pass == API_SAMPLE_TEXTS && has_repeated_texts(sample);
    api_labels_free(&sample->labels);
    sample->is_labelled = sample->is_text || has_labels(sample, method);
    if (!sample->is_labelled) {
        sample->n_missing += sample->n_texts;
        return false;
    }
    sample->unreadable.count = 0;
    api_buffer_free(&sample->numbers);
    sample->pass = API_SAMPLE_LABELS;
    return true;
}

/* ---- All values */

bool api_sample_table(struct api_sample *samples, size_t first, size_t end, struct api_table *table,
                      enum api_method method, const atomic_bool *stop, struct api_problem *problem)
{
    struct pass pass = {stop, samples};
    const struct api_sink sink = {&pass, sample_cell, sample_numbers};
    bool again = false;
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted = i >= first && i < end && !samples[i].is_excluded;
    do {
        if (!api_table_read(table, &sink, problem))
            return false;
        again = false;
        for (size_t i = first; i < end; i++) {
            table->columns[i].wanted = table->columns[i].wanted && decide(&samples[i], method);
            again |= table->columns[i].wanted;
            if (!table->part_of_row)
                table->columns[i].style = samples[i].style;
        }
    } while (again && !problem->code);
    return !problem->code;
}

bool api_sample_is_empty(const struct api_sample *sample)
{
    const double *numbers = (const void *)sample->numbers.data;
    if (sample->is_labelled)
        return sample->labels.n == 0;
    for (size_t i = 0; i < sample->n_numbers; i++)
        if (isfinite(numbers[i]))
            return false;
    return true;
}

bool api_sample_is_nearly_unique(const struct api_sample *sample)
{
    size_t n = sample->n_texts + sample->n_numbers;
    if (sample->is_text)
        return n >= MANY && 2 * sample->labels.n > n;
    size_t changes = sample->only_rises ? sample->n_rises : sample->n_falls;
    return sample->n_numbers >= MANY && (sample->only_rises || sample->only_falls) &&
           sample->style == API_PLAIN && 2 * (changes + 1) > sample->n_numbers;
}

bool api_sample_repeats_nothing(const struct api_sample *sample)
{
    enum { FEW_VALUES = 4, SEEN_OF_FEW = 2, SEEN = 5 };
    size_t n = 0, max = 0;
    for (size_t i = 0; i < sample->labels.n; i++) {
        size_t count = api_labels_get(&sample->labels, i).count;
        n += count;
        max = count > max ? count : max;
    }
    return sample->is_text && n > FEW_VALUES && max < (n >= MANY ? SEEN : SEEN_OF_FEW);
}

size_t api_sample_formatted_numbers(const struct api_sample *sample)
{
    size_t n = 0;
    for (size_t i = 0; i < sample->labels.n; i++) {
        const struct api_label label = api_labels_get(&sample->labels, i);
        n += api_text_is_formatted_number(label.text, strlen(label.text)) ? label.count : 0;
    }
    return n;
}
