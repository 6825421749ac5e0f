/* Warnings of reference tables. */
#include "api/monitors/http/replacing.h"

#include "api/tables/field.h"

#include <stdio.h>
#include <string.h>

/* ---- Headers */

static bool is_number(const char *name)
{
    char copy[64 + API_PADDING] = "";
    double number;
    const struct api_cell cell = {.kind = API_CELL_FIELD, .text = copy, .size = strlen(name)};
    if (cell.size > 64)
        return false;
    memcpy(copy, name, cell.size);
    return api_field_number(&cell, API_EITHER, &number);
}

void api_warn_of_header(struct api_buffer *warnings, const struct api_table *table)
{
    size_t numbers = 0, named = 0;
    if (!table->has_header)
        return;
    for (size_t i = 0; i < table->n_columns; i++) {
        named += *table->columns[i].name != '\0';
        numbers += is_number(table->columns[i].name);
    }
    if (2 * numbers > named)
        api_warn(warnings, "header_looks_like_data", "", numbers, 0,
                 "most names of columns are numbers: the first line should be a header with names");
    if (table->has_blanks || (table->n_columns == 1 && strpbrk(table->columns[0].name, "|^~;,\t")))
        api_warn(warnings, "one_column", table->columns[0].name, 0, 0,
                 "the header has one column, and what may be another separator: columns are "
                 "separated by , ; or a tab");
}

/* ---- Counts */

/* True if counts of intervals look cumulative, as Prometheus' buckets are: there are five or more, none is lower than
 * the one before, the last is more than twice the first, and the overflow is 0 or not lower than the last. */
static bool looks_cumulative(const struct api_config *config)
{
    enum { MIN_BINS = 5 };
    const struct api_bins *bins = &config->bins;
    size_t first = api_bins_first(bins), n = bins->n;
    if (config->reference.form != API_COUNTS || bins->labelled || n < MIN_BINS)
        return false;
    const double *counts = config->reference.values + first;
    for (size_t i = 1; i < n; i++)
        if (counts[i] < counts[i - 1])
            return false;
    return counts[n - 1] > 2 * counts[0] && (counts[n] == 0 || counts[n] >= counts[n - 1]);
}

void api_warn_of_counts(struct api_buffer *warnings, const char *name,
                        const struct api_config *config)
{
    if (looks_cumulative(config))
        api_warn(warnings, "looks_cumulative", name, 0, 0,
                 "the counts never fall from bin to bin, as those of a cumulative histogram do: "
                 "each bin takes its own count, without those before it");
}

/* ---- Settings */

static bool is_same(const struct api_field *row, const struct api_monitor_settings *a,
                    const struct api_monitor_settings *b)
{
    return memcmp((const char *)a + row->offset, (const char *)b + row->offset, row->size) == 0;
}

void api_note_given(struct api_replacing *d, const json_t *members)
{
    d->given = d->settings.given;
    for (const struct api_field *row = api_monitor_setting_rows; row->name; row++) {
        const json_t *object = row->parent ? json_object_get(members, row->parent) : members;
        if (json_object_get(object, row->name))
            d->given |= 1U << (row - api_monitor_setting_rows);
    }
    d->gives_annotations = json_object_get(members, "annotations");
}

/* True if a config has annotations; they are the last member. */
static bool is_annotated(const struct api_config *config)
{
    static const char none[] = "\"annotations\":{}}";
    size_t size = strlen(config->others), suffix = sizeof none - 1;
    return size < suffix || strcmp(config->others + size - suffix, none) != 0;
}

/* Warns of settings of the former config that a table does not set, and that have their defaults now. */
static void warn_of_reset(struct api_replacing *d, const struct api_replacement *r)
{
    char names[300] = "", message[500];
    struct api_monitor_settings defaults;
    const struct api_config *known = r->former, *made = r->config;
    size_t n = 0;
    api_settings_init(&defaults);
    for (const struct api_field *row = api_monitor_setting_rows; row->name; row++) {
        bool is_of_bins = row->parent && strcmp(row->parent, "binning") == 0;
        if (is_of_bins || is_same(row, &known->settings, &defaults) ||
            !is_same(row, &made->settings, &defaults) ||
            (d->given >> (row - api_monitor_setting_rows) & 1))
            continue;
        api_append_word(names, sizeof names, row->name);
        n++;
    }
    if (is_annotated(known) && !is_annotated(made) && !d->gives_annotations) {
        api_append_word(names, sizeof names, "annotations");
        n++;
    }
    snprintf(message, sizeof message,
             "set back to defaults, because this request does not give them: %s; POST "
             "/monitors/{group}/reference takes a new reference and keeps settings",
             names);
    if (n > 0)
        api_warn(&d->warnings, "settings_reset", r->name, n, 0, message);
}

static void warn_of_other(struct api_replacing *d, const struct api_replacement *r)
{
    const struct api_config *config = r->config;
    if (config->bins.labelled && config->reference.values &&
        api_counts_sum(config->reference.values, config->bins.n) == 0 &&
        config->reference.values[api_bins_other(&config->bins)] > 0)
        api_warn(&d->warnings, "reference_other", r->name, 0, 0,
                 "the reference holds none of the labels, all of it is other: nothing is ok beside "
                 "it, verdicts are insufficient_data until a label occurs");
}

void api_warn_of_change(struct api_replacing *d, const struct api_replacement *r)
{
    if (r->revises)
        warn_of_other(d, r);
    if (r->former && d->warns_of_reset)
        warn_of_reset(d, r);
}
