#include "api/monitors/model/sample.h"

#include "api/json/format.h"
#include "api/tables/field.h"
#include "api/text/decimal.h"

#include <math.h>
#include <stdlib.h>
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
                                  .last = -(double)INFINITY};
    sample->numbers.budget = sample->commas.budget = table->budget;
    sample->halves.bits.budget = sample->comma_halves.bits.budget = table->budget;
    sample->labels.texts.budget = sample->labels.entries.budget = table->budget;
    sample->labels.slots.budget = sample->labels.sorted.budget = table->budget;
    if (table->n_rows > 0 && !__builtin_mul_overflow(table->n_rows, sizeof(double), &size))
        api_buffer_reserve(&sample->numbers, size); /* exactly, where growth would double it */
}

void api_sample_free(struct api_sample *sample)
{
    api_buffer_free(&sample->numbers);
    api_buffer_free(&sample->commas);
    api_buffer_free(&sample->halves.bits);
    api_buffer_free(&sample->comma_halves.bits);
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
    sample->only_rises =
        sample->only_rises && isfinite(number) && number == floor(number) && number >= sample->last;
    sample->n_rises += number > sample->last;
    sample->last = number;
    api_append(&sample->numbers, &number, sizeof number);
    return (api_halves_add(&sample->halves, api_row_chooses(sample->n_rows - 1)) &&
            !sample->numbers.failed) ||
           api_fail_oom(problem);
}

bool api_sample_label(struct api_sample *sample, const struct api_cell *cell, bool chooses,
                      struct api_problem *problem)
{
    char number[API_DECIMAL_MAX];
    const char *text = cell->text;
    size_t size = cell->size < API_MAX_LABEL ? cell->size : API_MAX_LABEL;
    bool has_text = api_cell_is_text(cell), value;
    bool is_boolean = api_cell_is_boolean(cell, &value) &&
                      (sample->booleans_alone || cell->kind == API_CELL_BOOLEAN);
    if (api_cell_is_missing(cell) || (!has_text && isnan(cell->number)))
        return true;
    if (is_boolean) {
        text = value ? "true" : "false";
        size = strlen(text);
    } else if (!has_text) {
        text = number;
        size = api_label_of_number(number, cell->number);
    } else if (cell->size > API_MAX_LABEL && sample->long_text.size == 0) {
        sample->long_text.row = cell->row;
        sample->long_text.line = cell->line;
        sample->long_text.size = cell->size;
    }
    return api_labels_add(&sample->labels, text, size, chooses) || api_fail_oom(problem);
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
    if (cell->kind == API_CELL_STRING)
        sample->text_for_certain = true;
    else if (sample->unreadable.count++ == 0)
        sample->unreadable.line = cell->line;
    sample->n_texts++;
    if (!api_cell_number(cell, true, &number))
        return true;
    sample->n_commas++;
    api_append(&sample->commas, &number, sizeof number);
    return (api_halves_add(&sample->comma_halves, api_row_chooses(sample->n_rows - 1)) &&
            !sample->commas.failed) ||
           api_fail_oom(problem);
}

static bool sample_cell(void *context, size_t column, const struct api_cell *cell,
                        struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_sample *sample = &pass->samples[column];
    double number;
    bool value;
    if (!api_check_cancelled(pass->stop, cell, problem))
        return false;
    if (sample->is_text)
        return api_sample_label(sample, cell, api_row_chooses(cell->row), problem);
    sample->n_rows++;
    if (api_cell_is_missing(cell)) {
        sample->n_missing++;
        return true;
    }
    sample->booleans_alone = sample->booleans_alone && api_cell_is_boolean(cell, &value);
    if (!api_cell_number(cell, false, &number))
        return sample_text(sample, cell, problem);
    if (cell->kind == API_CELL_FIELD && !sample->has_point)
        sample->has_point = memchr(cell->text, '.', cell->size) != NULL;
    return add_number(sample, number, problem);
}

static bool sample_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                           size_t n, struct api_problem *problem)
{
    const struct pass *pass = context;
    struct api_sample *sample = &pass->samples[column];
    sample->booleans_alone = false;
    for (size_t i = 0; i < n; i++) {
        sample->n_rows++;
        if (!add_number(sample, kl_load(dtype, values, i), problem))
            return false;
    }
    return true;
}

/* Takes numbers with decimal commas for what they are, if all texts are such and no number has a point. */
static bool read_commas(struct api_sample *sample)
{
    if (sample->n_commas == 0 || sample->n_commas < sample->n_texts || sample->has_point) {
        api_buffer_free(&sample->commas);
        return true;
    }
    api_append(&sample->numbers, sample->commas.data, sample->commas.size);
    api_buffer_free(&sample->commas);
    for (size_t i = 0; i < sample->n_commas; i++)
        if (!api_halves_add(&sample->halves, api_halves_at(&sample->comma_halves, i)))
            return false;
    sample->n_numbers += sample->n_commas;
    sample->n_texts = sample->unreadable.count = 0;
    return !sample->numbers.failed;
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
    api_buffer_free(&sample->halves.bits);
    return true;
}

bool api_sample_table(struct api_sample *samples, size_t first, size_t end, struct api_table *table,
                      const atomic_bool *stop, struct api_problem *problem)
{
    struct pass pass = {stop, samples};
    const struct api_sink sink = {&pass, sample_cell, sample_numbers};
    bool again = false;
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted = i >= first && i < end && !samples[i].is_excluded;
    if (!api_table_read(table, &sink, problem))
        return false;
    for (size_t i = first; i < end; i++) {
        if (!read_commas(&samples[i]))
            return api_fail_oom(problem);
        table->columns[i].wanted = decide(&samples[i]);
        again |= table->columns[i].wanted;
    }
    return !again || api_table_read(table, &sink, problem);
}

bool api_sample_is_empty(const struct api_sample *sample)
{
    const double *numbers = (const void *)sample->numbers.data;
    if (!sample->is_text)
        for (size_t i = 0; i < sample->n_numbers; i++)
            if (isfinite(numbers[i]))
                return false;
    return !sample->is_text;
}

bool api_sample_is_nearly_unique(const struct api_sample *sample)
{
    size_t n = sample->n_texts + sample->n_numbers;
    if (sample->is_text)
        return n >= MANY && 2 * sample->labels.n > n;
    return sample->n_numbers >= MANY && sample->only_rises && sample->n_commas == 0 &&
           2 * sample->n_rises > sample->n_numbers;
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
