/* Reference tables: a config for each column, made of its values. */
#include "api/monitors/http/replacing.h"

#include "api/monitors/model/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MIN_BYTES: bytes of values that are collected at once, however small the body is. */
enum { MIN_BYTES = 16 << 20 };

/* choice: what a request says of a column. LABELLED, PRESENCE: it is included, and its monitor has labels, or bins of
 * presence. */
enum choice { NOTHING, INCLUDED, LABELLED, PRESENCE, EXCLUDED };

/* reading: a table that is read. */
struct reading {
    struct api_replacing *d;
    struct api_table *table;
    const json_t *members;
    struct api_problem *problem;
    const enum choice
        *choices; /* one for each column; NULL: the one of a single monitor is included */
};

static enum choice choice_of(const struct reading *r, size_t column)
{
    return r->choices ? r->choices[column] : INCLUDED;
}

static bool is_included(const struct reading *r, size_t column)
{
    enum choice choice = choice_of(r, column);
    return choice == INCLUDED || choice == LABELLED || choice == PRESENCE;
}

/* Columns that are collected at once, so that their values take about a third of the body. */
static size_t columns_at_once(const struct api_table *table)
{
    size_t bytes = table->size / 3 > MIN_BYTES ? table->size / 3 : MIN_BYTES;
    size_t values = bytes / sizeof(double);
    return values > table->n_rows ? values / (table->n_rows + 1) : 1;
}

/* ---- Configs */

/* Makes the config of a monitor from bins and a reference, which it takes over. */
static bool configure(const struct reading *r, const char *name, struct api_bins *bins,
                      struct api_weights *reference)
{
    struct api_config *made =
        api_config_new(&r->d->settings, r->members, bins, reference, r->problem);
    return made && api_replacing_add(r->d, name, made) &&
           api_config_retain(made, r->table->budget, API_MONITOR_BYTES, r->problem);
}

/* ---- Bins of values */

/* Warns of a column that gets no monitor. */
static void leave_out(const struct reading *r, const char *code, const char *name, size_t count,
                      const char *message)
{
    enum { MAX_TOLD = 300 };
    struct api_buffer *left_out = &r->d->left_out;
    api_warn(&r->d->warnings, code, name, count, 0, message);
    if (left_out->size < MAX_TOLD)
        api_append_format(left_out, "%s'%.60s' (%s)", left_out->size ? ", " : "", name, code);
    else if (left_out->data[left_out->size - 1] != '.')
        api_append_text(left_out, " ...");
}

/* Makes a monitor that tells values from missing ones. The missing values of a column of numbers hold its texts, which are
 * present. */
static bool configure_presence(const struct reading *r, const struct api_sample *sample,
                               const char *name)
{
    struct api_bins bins;
    struct api_weights reference = {.n = 0};
    size_t values = sample->n_texts + sample->n_numbers;
    bool texts_are_missing = sample->n_dates == 0 && !sample->is_labelled;
    uint64_t counts[] = {values, 0, sample->n_missing - (texts_are_missing ? sample->n_texts : 0)};
    bool good =
        (api_bins_of_presence(&bins) && api_weights_of_counts(&reference, counts, bins.n_bins)) ||
        api_fail_oom(r->problem);
    good = good && configure(r, name, &bins, &reference);
    api_bins_free(&bins);
    api_weights_free(&reference);
    return good;
}

/* reason: why bins of a column's values would tell nothing about later ones; `include` may ask for them all the same. */
struct reason {
    const char *code, *what;
    size_t count;
    bool may_include;
};

/* Has a column be watched for missing values alone, or leaves it out. */
static bool watch_presence(const struct reading *r, const struct api_sample *sample,
                           const char *name, const struct reason *reason)
{
    char message[500];
    snprintf(message, sizeof message, "%.300s: %s%s", reason->what,
             r->d->leaves_out ? "the column gets no monitor"
                              : "of the column only missing values are watched",
             reason->may_include ? ", unless ?include= names it" : "");
    if (r->d->leaves_out) {
        leave_out(r, reason->code, name, reason->count, message);
        return true;
    }
    api_warn(&r->d->warnings, reason->code, name, reason->count, 0, message);
    return configure_presence(r, sample, name);
}

/* True for ids, dates and free text. If the request names the column, or it is the only one, for texts that hardly repeat alone. */
static bool tells_nothing(const struct reading *r, const struct api_sample *sample,
                          struct reason *reason)
{
    size_t n = sample->n_texts + sample->n_numbers;
    bool is_wanted = is_included(r, sample->column);
    if (api_sample_repeats_nothing(sample))
        *reason =
            (struct reason){"nearly_unique", "hardly any of the texts occurs twice", n, false};
    else if (sample->n_dates > 0 && !is_wanted)
        *reason = (struct reason){"dates",
                                  "most values are dates or times, of which each later one is new "
                                  "(?time= takes them for the times of the rows)",
                                  sample->n_dates, true};
    else if (!is_wanted && r->table->n_columns > 1 && api_sample_is_nearly_unique(sample))
        *reason = (struct reason){
            "nearly_unique", "most values are distinct, as those of an id or free text", n, true};
    return reason->code != NULL;
}

/* True for a column of numbers with decimal points and others with decimal commas. */
static bool is_mixed(const struct api_sample *sample)
{
    return sample->style == API_EITHER && sample->styles.points > 0 && sample->styles.commas > 0;
}

/* Warns of a column whose values look like another kind of data. */
static void warn_of_values(const struct reading *r, const struct api_sample *sample,
                           const char *name)
{
    struct api_buffer *warnings = &r->d->warnings;
    size_t n = sample->n_texts + sample->n_numbers;
    size_t formatted =
        sample->is_text && !sample->has_code ? api_sample_formatted_numbers(sample) : 0;
    if (formatted > 0 && 2 * formatted >= n)
        api_warn(warnings, "numbers_as_text", name, formatted, 0,
                 "values are numbers written as text, with units, thousands or quotes, and are "
                 "compared as labels; send plain numbers");
    const struct api_style_tally *styles = &sample->styles;
    if (!sample->is_text && is_mixed(sample))
        api_warn(warnings, "decimal_marks_mixed", name, styles->commas + styles->both, 0,
                 "values have a decimal comma among others with a point, and are read as numbers: "
                 "1,234 is 1.234 here");
    if (!sample->is_text && styles->grouped[sample->style] > 0)
        api_warn(warnings, "numbers_grouped", name, styles->grouped[sample->style], 0,
                 sample->style == API_COMMA
                     ? "values have separators of thousands, and are read without them: 1.234,5 is "
                       "1234.5"
                     : "values have separators of thousands, and are read without them: 1,234.5 is "
                       "1234.5");
    if (!is_included(r, sample->column) && api_sample_is_nearly_unique(sample))
        api_warn(warnings, "nearly_unique", name, n, 0,
                 "most values are distinct, as those of an id or free text; the column has a "
                 "monitor because it is the only one");
}

/* Has a column whose labels are too large be watched for missing values alone; false for other problems. */
static bool watch_large(const struct reading *r, const struct api_sample *sample, const char *name)
{
    struct api_problem problem = *r->problem;
    const struct reason reason = {problem.code, problem.detail, 0, false};
    if (!problem.code || strcmp(problem.code, "labels_too_large") != 0)
        return false;
    *r->problem = (struct api_problem){0};
    return watch_presence(r, sample, name, &reason);
}

/* The style of the fields, which the reference keeps: plain if they do not tell, or have both marks. */
static enum api_style style_of(const struct api_sample *sample)
{
    return sample->is_text || sample->style == API_EITHER ? API_PLAIN : sample->style;
}

/* Makes bins and a config of collected values; a column without any is left out, unless it is the only one. */
static bool configure_column(const struct reading *r, struct api_sample *sample,
                             const struct api_monitor_settings *settings, const char *name,
                             bool is_single)
{
    struct api_buffer *warnings = &r->d->warnings;
    struct api_bins bins = {.n = 0};
    struct api_weights reference = {.n = 0};
    bool is_empty = sample->n_dates == 0 && api_sample_is_empty(sample);
    bool is_member = json_is_object(json_object_get(r->members, "reference"));
    if (is_single && is_empty)
        return api_fail_at(r->problem, is_member ? API_BODY : API_NOWHERE, "#/reference",
                           "reference_empty", "the reference has no value from which to make bins");
    if (!*name || is_empty) {
        leave_out(r, *name ? "column_empty" : "column_unnamed", name, 0,
                  *name ? "a column without values gets no monitor"
                        : "a column without a name gets no monitor");
        return true;
    }
    struct reason reason = {.code = NULL};
    if (choice_of(r, sample->column) == PRESENCE)
        return configure_presence(r, sample, name);
    if (api_sample_repeats_nothing(sample) && (is_single || r->table->n_columns == 1))
        return api_fail(r->problem, "nothing_to_compare",
                        "hardly any of the %zu texts of '%.80s' occurs twice: a monitor of "
                        "them could never tell of a change",
                        sample->n_texts + sample->n_numbers, name);
    if (tells_nothing(r, sample, &reason))
        return watch_presence(r, sample, name, &reason);
    warn_of_values(r, sample, name);
    bool good = api_sample_bins(sample, settings, &bins, &reference, r->problem);
    reference.style = style_of(sample);
    good = good && configure(r, name, &bins, &reference);
    api_bins_free(&bins);
    api_weights_free(&reference);
    if (good && sample->n_chosen > 0)
        api_warn(
            warnings, "labels_chosen", name, sample->n_chosen, 0,
            "this number of labels have a bin: the labels that occur at least 5 times in one half "
            "of the rows (from 2 to 1,000 labels); the reference counts the other half. If each "
            "label occurs at least 10 times, and there are at most 1,000, all rows are counted");
    if (good && sample->n_cut > 0)
        api_warn(warnings, "labels_cut", name, sample->n_cut, 0,
                 "this number of distinct texts, the least frequent ones, have no label and are "
                 "counted as other");
    if (good)
        api_warn_of_unreadable(warnings, name, &sample->unreadable);
    return good || (!is_single && watch_large(r, sample, name));
}

/* Tells what is wrong with a column; true if it can be read all the same. */
static bool check_column(const struct reading *r, const struct api_column *column)
{
    struct api_problem why = {0};
    if (column->flaws & API_NESTED) {
        leave_out(r, "values_nested", column->name, 0, api_nested_message);
        return false;
    }
    if (*column->name && !api_name_check("monitor", column->name, &why)) {
        leave_out(r, "name_invalid", column->name, 0, why.detail);
        return false;
    }
    api_warn_of_name(&r->d->warnings, column);
    return true;
}

/* Collects the columns from `first` to `end`; `name` is that of a single monitor, or NULL. */
static bool sample_columns(const struct reading *r, size_t first, size_t end, const char *name)
{
    struct api_table *table = r->table;
    struct api_buffer memory = {.budget = table->budget};
    struct api_sample *samples = api_buffer_zeros(&memory, table->n_columns * sizeof *samples);
    if (!samples)
        return api_fail_oom(r->problem);
    for (size_t i = first; i < end; i++) {
        api_sample_init(&samples[i], table, i);
        samples[i].is_excluded =
            choice_of(r, i) == EXCLUDED || (!name && !check_column(r, &table->columns[i]));
        samples[i].is_included = is_included(r, i);
        samples[i].had_labels = choice_of(r, i) == LABELLED;
    }
    struct api_monitor_settings settings = r->d->settings;
    bool good = api_settings_from_json(&settings, r->members, api_config_members, r->problem);
    for (size_t i = first; i < end; i++)
        samples[i].zone = settings.zone;
    good = good && api_sample_table(samples, first, end, table, (enum api_method)settings.method,
                                    r->d->x->stop, r->problem);
    for (size_t i = first; good && i < end; i++)
        good =
            samples[i].is_excluded ||
            configure_column(r, &samples[i], &settings, name ? name : table->columns[i].name, name);
    for (size_t i = first; i < end; i++)
        api_sample_free(&samples[i]);
    api_buffer_free(&memory);
    return good;
}

/* ---- Columns by name */

bool api_names_take(const char *list, const char *parameter, const char *none,
                    bool (*take)(void *context, const char *name, size_t size), void *context,
                    struct api_problem *problem)
{
    const char *p = list;
    while (*p) {
        size_t size = strlen(p);
        if (p != list || !take(context, p, size))
            for (size = strcspn(p, ","); !take(context, p, size);
                 size += 1 + strcspn(p + size + 1, ","))
                if (!p[size])
                    return api_fail_at(problem, API_QUERY, parameter, "column_missing",
                                       "%s '%.128s'", none, p);
        p += size + (p[size] == ',');
    }
    return true;
}

/* choosing: what a list says of the columns that it names. */
struct choosing {
    const struct api_table *table;
    enum choice choice, *choices;
};

static bool take_column(void *context, const char *name, size_t size)
{
    const struct choosing *c = context;
    size_t i;
    if (!api_names_find(&c->table->names, name, size, &i))
        return false;
    c->choices[i] = c->choice;
    return true;
}

static bool choose(const struct api_table *table, const char *parameter, const char *text,
                   enum choice choice, enum choice *choices, struct api_problem *problem)
{
    struct choosing choosing = {table, choice, choices};
    return !text || api_names_take(text, parameter, "the table has no column", take_column,
                                   &choosing, problem);
}

/* Chooses the columns that have a monitor, and warns of the others; all columns that are included must have one. */
static bool choose_known(const struct reading *r, enum choice *choices)
{
    const struct api_table *table = r->table;
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = table->columns[i].name;
        if (choices[i] == EXCLUDED)
            continue;
        const struct api_known *known = api_known_find(r->d->x->known, name);
        choices[i] = !known                            ? EXCLUDED
                     : known->config->bins.is_presence ? PRESENCE
                     : known->config->bins.labelled    ? LABELLED
                                                       : INCLUDED;
        if (!known && r->d->include)
            return api_fail_at(r->problem, API_QUERY, "include", "column_missing",
                               "the group has no monitor '%.128s'", name);
        if (!known)
            api_warn_of_unknown(&r->d->warnings, name);
    }
    return true;
}

static bool choose_columns(const struct reading *r, enum choice *choices)
{
    const struct api_table *table = r->table;
    for (size_t i = 0; r->d->include && i < table->n_columns; i++)
        choices[i] = EXCLUDED;
    return choose(table, "include", r->d->include, INCLUDED, choices, r->problem) &&
           choose(table, "exclude", r->d->exclude, EXCLUDED, choices, r->problem) &&
           choose(table, "by", r->d->segment_by, EXCLUDED, choices, r->problem) &&
           (!r->d->x->known || choose_known(r, choices));
}

/* ---- All columns */

static bool read_columns(const struct reading *r)
{
    struct api_table *table = r->table;
    size_t n = table->n_columns;
    api_warn_of_header(&r->d->warnings, table);
    for (size_t first = 0, end; first < n; first = end) {
        bool is_unknown = first == 0 && table->n_rows == 0 && table->size > MIN_BYTES;
        size_t at_once = is_unknown ? 1 : columns_at_once(table);
        end = n - first > at_once ? first + at_once : n;
        if (!sample_columns(r, first, end, NULL))
            return false;
    }
    return true;
}

bool api_references_read(struct api_replacing *d, struct api_table *table, const json_t *members)
{
    enum choice *choices = calloc(table->n_columns + 1, sizeof *choices);
    const struct reading reading = {d, table, members, &d->x->problem, choices};
    bool good = choices ? choose_columns(&reading, choices) && read_columns(&reading)
                        : api_fail_oom(&d->x->problem);
    free(choices);
    return good;
}

bool api_fail_empty_reference(const struct api_replacing *d, const struct api_table *table)
{
    struct api_problem *problem = &d->x->problem;
    if (d->left_out.size > 0)
        return api_fail(
            problem, "reference_empty",
            "no column gets a monitor: %.*s; ?include= names columns that shall have one",
            (int)d->left_out.size, d->left_out.data);
    return api_fail(problem, "reference_empty",
                    table->has_values
                        ? "the table has no columns"
                        : "the body has neither columns nor rows: a table is {\"columns\": "
                          "{NAME: [...]}}, {\"rows\": [{...}]} or [{...}]");
}

/* ---- One monitor */

/* Counts the reference by bins that the body has. */
static bool count_reference(const struct reading *r, size_t column, const char *name)
{
    struct api_counting counting = {.parts = NULL};
    struct api_counting **of_columns = calloc(r->table->n_columns, sizeof *of_columns);
    struct api_bins bins = {.n = 0};
    struct api_weights reference = {.n = 0};
    if (!of_columns)
        return api_fail_oom(r->problem);
    of_columns[column] = &counting;
    bool good = api_bins_from_json(&bins, json_object_get(r->members, "bins"), r->problem) &&
                api_counting_init(&counting, &bins, r->problem) &&
                api_counting_table(of_columns, r->table, r->d->x->stop, r->problem) &&
                (api_weights_of_counts(&reference, counting.parts->tally.counts, bins.n_bins) ||
                 api_fail_oom(r->problem));
    const struct api_moments *sums = good ? &counting.parts->tally.moments : NULL;
    if (sums)
        api_weights_set_spread(&reference, api_moments_spread(sums, &bins, sums->covered));
    good = good && configure(r, name, &bins, &reference);
    if (good)
        api_warn_of_unreadable(&r->d->warnings, name, &counting.unreadable);
    free(of_columns);
    api_counting_free(&counting);
    api_bins_free(&bins);
    api_weights_free(&reference);
    return good;
}

bool api_reference_read(struct api_replacing *d, struct api_table *table, const json_t *members)
{
    const struct reading reading = {d, table, members, &d->x->problem, NULL};
    const json_t *given = json_object_get(members, "bins");
    const char *name = api_name_of(d->x);
    struct api_bins bins = {.n = 0};
    struct api_weights none = {.n = 0};
    size_t column = 0;
    if (!table->has_values) {
        bool good = configure(&reading, name, &bins, &none);
        if (good)
            api_warn_of_counts(&d->warnings, name, d->replacements->config);
        return good;
    }
    if (!api_find_column(table, name, &column, &d->x->problem))
        return false;
    return given && !json_is_null(given) ? count_reference(&reading, column, name)
                                         : sample_columns(&reading, column, column + 1, name);
}
