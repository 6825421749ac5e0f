#include "api/monitors/http/references.h"

#include "api/monitors/http/request.h"
#include "api/monitors/model/sample.h"
#include "api/monitors/state/metrics.h"

#include <stdlib.h>
#include <string.h>

/* MIN_BYTES: bytes of values that are collected at once, however small the body is. */
enum { MIN_BYTES = 16 << 20 };

/* pass: the columns from `first` to `end`, which are collected together. */
struct pass {
    const atomic_bool *stop;
    struct api_sample *samples; /* one for each column of the table */
};

static bool sample_cell(void *context, size_t column, const struct api_cell *cell,
                        struct api_problem *problem)
{
    const struct pass *pass = context;
    return api_check_cancelled(pass->stop, cell, problem) &&
           api_sample_cell(&pass->samples[column], cell, problem);
}

static bool sample_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                           size_t n, struct api_problem *problem)
{
    const struct pass *pass = context;
    return api_sample_numbers(&pass->samples[column], dtype, values, n, problem);
}

static void select_columns(struct api_table *table, size_t first, size_t end)
{
    for (size_t i = 0; i < table->n_columns; i++)
        table->columns[i].wanted = i >= first && i < end;
}

/* Reads columns, then those of text once more for their labels. */
static bool sample_table(const struct api_references *references, struct api_table *table,
                         struct api_sample *samples, size_t first, size_t end,
                         struct api_problem *problem)
{
    struct pass pass = {references->stop, samples};
    const struct api_sink sink = {&pass, sample_cell, sample_numbers};
    bool again = false, good = true;
    select_columns(table, first, end);
    if (!api_table_read(table, &sink, problem))
        return false;
    select_columns(table, 0, 0);
    for (size_t i = first; good && i < end; i++) {
        table->columns[i].wanted = api_sample_decide(&samples[i]);
        again |= table->columns[i].wanted;
        good = !table->columns[i].wanted || samples[i].labels || api_fail_oom(problem);
    }
    return good && (!again || api_table_read(table, &sink, problem));
}

/* Columns that are collected at once, so that their values take about a third of the body. */
static size_t columns_at_once(const struct api_table *table)
{
    size_t bytes = table->size / 3 > MIN_BYTES ? table->size / 3 : MIN_BYTES;
    size_t values = bytes / sizeof(double);
    return values > table->n_rows ? values / (table->n_rows + 1) : 1;
}

/* ---- Configs */

static struct api_replacement *add(struct api_references *references, const char *group,
                                   const char *name, struct api_problem *problem)
{
    struct api_replacement *replacement = &references->replacements[references->n];
    *replacement = (struct api_replacement){.group = group, .name = strdup(name)};
    if (!replacement->name) {
        api_fail_oom(problem);
        return NULL;
    }
    references->n++;
    return replacement;
}

static bool are_same(const struct api_config *a, const struct api_config *b)
{
    return strcmp(a->definition, b->definition) == 0 && strcmp(a->others, b->others) == 0;
}

/* Makes the config that a monitor shall have: the one that it has, if that is the same. */
static bool configure(const struct api_references *references, struct api_replacement *replacement,
                      const json_t *members, struct api_bins *bins, struct api_weights *reference,
                      struct api_budget *budget, struct api_problem *problem)
{
    const char *group = replacement->group, *name = replacement->name;
    int64_t id, revision;
    struct api_config *made = api_config_new(members, bins, reference, problem);
    struct api_config *known =
        references->monitors ? api_hold_config(references->monitors, group, name, &id, &revision)
                             : NULL;
    bool is_known = known, is_same = made && known && are_same(made, known);
    replacement->config = is_same ? known : made;
    api_config_release(is_same ? made : known);
    return is_same || (made && api_config_retain(made, budget, api_monitor_size(group, name),
                                                 is_known, problem));
}

/* Makes bins and a config of collected values. */
static bool make_config(struct api_references *references, struct api_sample *sample,
                        const char *group, const char *name, const json_t *members,
                        struct api_problem *problem)
{
    static const char *const known[] = {"reference", "bins",  "annotations", "group",
                                        "name",      "state", "revision",    NULL};
    struct api_monitor_settings settings;
    struct api_bins bins = {.n = 0};
    struct api_weights reference = {.n = 0};
    struct api_replacement *replacement = add(references, group, name, problem);
    struct api_budget *budget = sample->numbers.budget;
    api_settings_init(&settings);
    bool good = replacement && api_settings_from_json(&settings, members, known, problem) &&
                api_sample_bins(sample, &settings, &bins, &reference, problem) &&
                configure(references, replacement, members, &bins, &reference, budget, problem);
    api_bins_free(&bins);
    api_weights_free(&reference);
    if (good)
        api_warn_of_unreadable(&references->warnings, name, &sample->unreadable);
    return good;
}

static bool configure_column(struct api_references *references, struct api_sample *sample,
                             const char *group, const char *name, const json_t *members,
                             struct api_problem *problem)
{
    if (api_sample_is_empty(sample)) {
        api_warn(&references->warnings, "column_empty", name, 0, 0,
                 "a column without values gets no monitor");
        return true;
    }
    return api_name_check("monitor", name, problem) &&
           make_config(references, sample, group, name, members, problem);
}

/* Collects columns in turn, from `first` on, as many as fit into memory; *end becomes the next. */
static bool sample_columns(struct api_references *references, struct api_table *table, size_t first,
                           size_t *end, const char *group, const json_t *members,
                           struct api_problem *problem)
{
    struct api_sample *samples = calloc(table->n_columns, sizeof *samples);
    size_t at_once =
        first == 0 && table->n_rows == 0 && table->size > MIN_BYTES ? 1 : columns_at_once(table);
    *end = table->n_columns - first > at_once ? first + at_once : table->n_columns;
    if (!samples)
        return api_fail_oom(problem);
    for (size_t i = first; i < *end; i++)
        api_sample_init(&samples[i], table, i);
    bool good = sample_table(references, table, samples, first, *end, problem);
    for (size_t i = first; good && i < *end; i++)
        if (*table->columns[i].name)
            good = configure_column(references, &samples[i], group, table->columns[i].name, members,
                                    problem);
        else
            api_warn(&references->warnings, "column_unnamed", "", 0, 0,
                     "a column without a name gets no monitor");
    for (size_t i = first; i < *end; i++)
        api_sample_free(&samples[i]);
    free(samples);
    return good;
}

static bool reserve(struct api_references *references, size_t n, struct api_problem *problem)
{
    references->replacements = calloc(n + 1, sizeof *references->replacements);
    return references->replacements || api_fail_oom(problem);
}

bool api_references_read(struct api_references *references, struct api_table *table,
                         const char *group, const json_t *members, struct api_problem *problem)
{
    if (!reserve(references, table->n_columns, problem))
        return false;
    for (size_t first = 0, end; first < table->n_columns; first = end)
        if (!sample_columns(references, table, first, &end, group, members, problem))
            return false;
    return true;
}

/* ---- One monitor */

/* counted: the column of a reference whose bins are given. */
struct counted {
    struct api_counting counting;
    const struct api_table *table;
};

static bool count_cell(void *context, size_t column, const struct api_cell *cell,
                       struct api_problem *problem)
{
    struct counted *counted = context;
    return api_counting_cell(&counted->counting, counted->table, column, cell, problem);
}

static bool count_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                          size_t n, struct api_problem *problem)
{
    struct counted *counted = context;
    (void)column;
    return api_counting_numbers(&counted->counting, dtype, values, n, problem);
}

/* Counts the reference by bins that the body has. */
static bool count_reference(struct api_references *references, struct api_table *table,
                            size_t column, const json_t *members,
                            struct api_replacement *replacement, struct api_problem *problem)
{
    struct counted counted = {.table = table};
    const struct api_sink sink = {&counted, count_cell, count_numbers};
    struct api_bins bins = {.n = 0};
    struct api_weights reference = {.n = 0};
    select_columns(table, column, column + 1);
    bool good = api_bins_from_json(&bins, json_object_get(members, "bins"), problem) &&
                api_counting_init(&counted.counting, &bins, problem) &&
                api_table_read(table, &sink, problem);
    if (good)
        api_counting_finish(&counted.counting);
    if (good && !api_weights_of_counts(&reference, counted.counting.counts, bins.n_bins))
        good = api_fail_oom(problem);
    good = good &&
           configure(references, replacement, members, &bins, &reference, table->budget, problem);
    api_warn_of_unreadable(&references->warnings, replacement->name, &counted.counting.unreadable);
    api_counting_free(&counted.counting);
    api_bins_free(&bins);
    api_weights_free(&reference);
    return good;
}

static bool sample_reference(struct api_references *references, struct api_table *table,
                             size_t column, const char *group, const char *name,
                             const json_t *members, struct api_problem *problem)
{
    struct api_sample *samples = calloc(table->n_columns, sizeof *samples);
    if (!samples)
        return api_fail_oom(problem);
    api_sample_init(&samples[column], table, column);
    bool good = sample_table(references, table, samples, column, column + 1, problem);
    if (good && api_sample_is_empty(&samples[column]))
        good = api_fail_at(problem, API_BODY, "#/reference", "reference_empty",
                           "the reference has no value from which to make bins");
    good = good && make_config(references, &samples[column], group, name, members, problem);
    api_sample_free(&samples[column]);
    free(samples);
    return good;
}

bool api_reference_read(struct api_references *references, struct api_table *table,
                        const char *group, const char *name, const json_t *members,
                        struct api_problem *problem)
{
    const json_t *given = json_object_get(members, "bins");
    struct api_bins bins = {.n = 0};
    struct api_weights none = {.n = 0};
    size_t column = 0;
    if (!reserve(references, 1, problem))
        return false;
    if (table->has_values && !api_find_column(table, name, &column, problem))
        return false;
    if (table->has_values && (!given || json_is_null(given)))
        return sample_reference(references, table, column, group, name, members, problem);
    struct api_replacement *replacement = add(references, group, name, problem);
    if (replacement && table->has_values)
        return count_reference(references, table, column, members, replacement, problem);
    return replacement &&
           configure(references, replacement, members, &bins, &none, table->budget, problem);
}

void api_references_free(struct api_references *references)
{
    for (size_t i = 0; i < references->n; i++)
        api_replacement_free(&references->replacements[i]);
    free(references->replacements);
    api_buffer_free(&references->warnings);
    *references = (struct api_references){.n = 0};
}
