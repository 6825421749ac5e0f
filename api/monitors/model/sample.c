#include "api/monitors/model/sample.h"

#include "api/json/format.h"
#include "api/tables/field.h"
#include "api/text/decimal.h"

#include <math.h>
#include <string.h>

/* MANY: values that tell whether most are distinct. */
enum { MANY = 100 };

void api_sample_init(struct api_sample *sample, const struct api_table *table, size_t column)
{
    size_t size;
    *sample = (struct api_sample){.table = table,
                                  .column = column,
                                  .booleans_alone = true,
                                  .only_rises = true,
                                  .only_falls = true,
                                  .last = (double)NAN};
    sample->numbers.budget = sample->commas.budget = table->budget;
    sample->labels.texts.budget = sample->labels.entries.budget = table->budget;
    sample->labels.slots.budget = sample->labels.sorted.budget = table->budget;
    if (table->n_rows > 0 && !__builtin_mul_overflow(table->n_rows, sizeof(double), &size))
        api_buffer_reserve(&sample->numbers, size); /* exactly, where growth would double it */
}

void api_sample_free(struct api_sample *sample)
{
    api_buffer_free(&sample->numbers);
    api_buffer_free(&sample->commas);
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

/* Keeps where the first text is that is too long for a label. */
static void note_length(struct api_sample *sample, const struct api_cell *cell)
{
    if (cell->size <= API_MAX_LABEL || sample->long_text.size > 0)
        return;
    sample->long_text.row = cell->row;
    sample->long_text.line = cell->line;
    sample->long_text.size = cell->size;
}

/* Collects the label of a value, unless that is missing: what is a number in a column of numbers has its label, other
 * texts stand for themselves. */
static bool add_label(struct api_sample *sample, const struct api_cell *cell, enum kl_dtype dtype,
                      struct api_problem *problem)
{
    char text[API_DECIMAL_MAX];
    struct api_cell label = {.text = text};
    bool has_text = api_cell_is_text(cell), value;
    double number;
    if (api_cell_is_missing(cell))
        return true;
    if (cell->kind == API_CELL_BOOLEAN ||
        (sample->booleans_alone && api_cell_is_boolean(cell, &value))) {
        api_cell_is_boolean(cell, &value);
        label = (struct api_cell){.text = value ? "true" : "false", .size = value ? 4 : 5};
    } else if (!(has_text && sample->is_text) && api_cell_number(cell, true, &number)) {
        label.size = isnan(number) ? 0 : api_label_of_value(text, dtype, number);
    } else {
        note_length(sample, cell);
        label = *cell;
        label.size = cell->size < API_MAX_LABEL ? cell->size : API_MAX_LABEL;
    }
    return label.size == 0 ||
           api_labels_add(&sample->labels, label.text, label.size, api_row_chooses(cell->row)) ||
           api_fail_oom(problem);
}

/* pass: one over a table. */
struct pass {
    const atomic_bool *stop;
    struct api_sample *samples; /* one for each column of the table */
};

/* Collects a value that is no number as it stands: a field with a decimal comma may become one. */
static bool sample_text(struct api_sample *sample, const struct api_cell *cell,
                        struct api_problem *problem)
{
    double number;
    sample->text_for_certain |= cell->kind == API_CELL_STRING;
    sample->n_texts++;
    if (!api_cell_number(cell, true, &number)) {
        if (sample->unreadable.count++ == 0)
            sample->unreadable.line = cell->line;
        api_date_add(&sample->dates, cell->text, cell->size);
        return true;
    }
    sample->n_commas++;
    api_append(&sample->commas, &number, sizeof number);
    return !sample->commas.failed || api_fail_oom(problem);
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
    if (!api_cell_number(cell, false, &number))
        return sample_text(sample, cell, problem);
    if (cell->kind == API_CELL_FIELD && !sample->has_point)
        sample->has_point = memchr(cell->text, '.', cell->size) != NULL;
    if (cell->kind == API_CELL_FIELD && !sample->has_code && *cell->text <= '0')
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
    return api_cell_is_missing(cell) || api_cell_number(cell, true, &number) ||
           api_labels_add(&sample->labels, cell->text, cell->size, false) || api_fail_oom(problem);
}

static bool sample_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                           size_t n, struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_sample *sample = &pass->samples[column];
    struct api_cell cell = {.kind = API_CELL_NUMBER};
    sample->booleans_alone = false;
    for (; cell.row < n; cell.row++) {
        cell.number = kl_load(dtype, values, cell.row);
        if (!(sample->pass == API_SAMPLE_LABELS ? add_label(sample, &cell, dtype, problem)
                                                : add_number(sample, cell.number, problem)))
            return false;
    }
    return true;
}

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
            table->columns[i].wanted =
                table->columns[i].wanted && api_sample_decide(&samples[i], method, problem);
            again |= table->columns[i].wanted;
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
           sample->n_commas == 0 && 2 * (changes + 1) > sample->n_numbers;
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
