/* The kind of a column: numbers with bins, numbers with labels, or texts. */
#include "api/monitors/model/sample.h"

#include <math.h>

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

/* Takes a column for numbers. Both decimal marks are read, as a monitor of numbers reads both in observations. */
static bool take_numbers(struct api_sample *sample, enum api_method method,
                         struct api_problem *problem)
{
    api_append(&sample->numbers, sample->commas.data, sample->commas.size);
    if (sample->numbers.failed)
        return api_fail_oom(problem);
    sample->n_numbers += sample->n_commas;
    sample->n_texts -= sample->n_commas;
    sample->is_labelled = method == API_LABELS ||
                          (method == API_AUTO && (sample->had_labels || sample->booleans_alone ||
                                                  has_few_whole_numbers(sample)));
    if (!sample->is_labelled)
        sample->n_missing += sample->n_texts;
    return sample->is_labelled;
}

/* How many numbers are times since 1970, of one unit, or dates without delimiters, if they vary. */
static size_t count_times(const struct api_sample *sample)
{
    const double *numbers = (const void *)sample->numbers.data;
    enum { FIRST_DATE = 19000101 }; /* below it is none */
    struct api_date date;
    size_t n[API_DATE_FORMS] = {0}, form, most = 0;
    for (size_t i = 0; i < sample->n_numbers; i++)
        if (numbers[i] >= FIRST_DATE && api_date_of_number(numbers[i], &date, &form))
            n[form]++;
    for (form = 0; form < API_DATE_FORMS; form++)
        most = n[form] > most ? n[form] : most;
    return sample->n_rises + sample->n_falls > 0 ? most : 0;
}

/* Counts dates and times, if they are nine tenths of the values. */
static size_t count_dates(const struct api_sample *sample)
{
    const size_t *texts = sample->dates.n;
    size_t n = count_times(sample) + (texts[0] > texts[1] ? texts[0] : texts[1]);
    return 10 * n >= 9 * (sample->n_numbers + sample->n_texts) ? n : 0;
}

/* A column is numeric if at least half of its values that are not missing are numbers, or nine tenths if many texts
 * are seen twice; and none is a string, but for those that stand for infinite numbers, or a whole number with a zero
 * before it. A comma is a decimal point in a column without any. */
bool api_sample_decide(struct api_sample *sample, enum api_method method,
                       struct api_problem *problem)
{
    size_t numbers = sample->n_numbers + (sample->has_point ? 0 : sample->n_commas);
    size_t all = sample->n_numbers + sample->n_texts, others = all - numbers;
    if (sample->pass == API_SAMPLE_LABELS)
        return false;
    sample->n_dates = count_dates(sample);
    if (sample->n_dates > 0 && !sample->is_included)
        return false;
    bool is_in_doubt = 10 * numbers < 9 * all && others / 2 >= REPEATED;
    sample->is_text = sample->text_for_certain || sample->has_code || 2 * numbers < all;
    if (!sample->is_text && is_in_doubt && sample->pass == API_SAMPLE_NUMBERS) {
        sample->pass = API_SAMPLE_TEXTS;
        return true;
    }
    sample->is_text |= sample->pass == API_SAMPLE_TEXTS && has_repeated_texts(sample);
    api_labels_free(&sample->labels);
    sample->is_labelled = sample->is_text || take_numbers(sample, method, problem);
    api_buffer_free(&sample->commas);
    if (!sample->is_labelled)
        return false;
    sample->unreadable.count = 0;
    api_buffer_free(&sample->numbers);
    sample->pass = API_SAMPLE_LABELS;
    return true;
}
