#include "api/monitors/rows/known_rows.h"

#include "api/monitors/model/segment.h"
#include "api/monitors/rows/touch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SHARE: of --max-memory that sets in memory may have; max_bytes: without a limit. */
enum { SHARE = 8 };
static const size_t max_bytes = (size_t)64 << 20;

/* reading: rows of a set, and their names, each with a NUL, in the same order. */
struct reading {
    struct api_buffer rows, names;
};

static void add_row(void *context, const struct api_datum *values)
{
    struct reading *reading = context;
    const struct api_known row = {
        .id = values[0].integer, .revision = values[2].integer, .version = values[3].integer};
    api_append(&reading->names, values[1].text, values[1].size);
    api_append(&reading->names, "", 1);
    api_append(&reading->rows, &row, sizeof row);
}

/* Sets the config of a row: of a monitor in memory, of a former set, or of the store. *good is false if the store or memory
 * fails. */
static bool set_config(struct api_monitors *monitors, const struct api_known_set *former,
                       const struct api_known_set *set, struct api_known *row, bool *good)
{
    const struct api_known *known = former ? api_known_find(former, row->name) : NULL;
    row->config = api_touched_config(monitors, row->id, row->version);
    if (!row->config && known && known->id == row->id && known->version == row->version)
        row->config = api_config_hold(known->config);
    if (row->config)
        return true;
    struct api_monitor monitor = {.id = row->id, .version = row->version};
    snprintf(monitor.group, sizeof monitor.group, "%s", set->group);
    snprintf(monitor.name, sizeof monitor.name, "%s", row->name);
    row->config = api_read_config(monitors, &monitor, good);
    return row->config != NULL;
}

/* Takes rows into a set; monitors that cannot be read are left out. */
static bool take_rows(struct api_monitors *monitors, const struct api_known_set *former,
                      struct api_known_set *set, struct reading *reading)
{
    bool good = !reading->rows.failed && !reading->names.failed;
    size_t n = reading->rows.size / sizeof(struct api_known);
    set->names = reading->names;
    reading->names = (struct api_buffer){.size = 0};
    set->monitors = calloc(n + 1, sizeof *set->monitors);
    if (!good || !set->monitors)
        return api_transaction_fail_oom(monitors);
    const char *name = set->names.data;
    for (size_t i = 0; good && i < n; i++, name += strlen(name) + 1) {
        struct api_known row = ((const struct api_known *)(const void *)reading->rows.data)[i];
        row.name = name;
        if (set_config(monitors, former, set, &row, &good)) {
            set->monitors[set->n++] = row;
            set->bytes += row.config->retained;
        }
    }
    set->bytes += sizeof *set + n * sizeof *set->monitors + set->names.size;
    if (set->n > 0)
        qsort(set->monitors, set->n, sizeof *set->monitors, api_known_compare);
    return good;
}

/* A set without the memory for a name warns of that column once more. */
static void add_left_out(void *context, const struct api_datum *values)
{
    struct api_known_set *set = context;
    if (values[1].integer != 0 &&
        api_labels_add(&set->left_out, values[0].text, values[0].size, true))
        set->bytes += values[0].size + sizeof(struct api_label);
}

static void note_segment(void *context, const struct api_datum *values)
{
    struct api_known_set *set = context;
    char group[API_MAX_NAME + 1];
    snprintf(group, sizeof group, "%.*s", (int)values[0].size, values[0].text);
    set->has_segments = api_segment_parent(group) > 0;
}

/* Reads the columns without a monitor, and whether there are segments. */
static bool read_rest(struct api_monitors *monitors, struct api_known_set *set)
{
    char prefix[API_MAX_NAME + 2];
    size_t n = api_segment_prefix(set->group, NULL, prefix, sizeof prefix);
    return api_store_read(monitors->store, API_SQL_COLUMNS, API_ROW(set->group), add_left_out,
                          set) &&
           api_store_read(monitors->store, API_SQL_SEGMENTS, API_ROW(n, prefix, INT64_C(1)),
                          note_segment, set);
}

struct api_known_set *api_known_read(struct api_monitors *monitors, const char *group,
                                     const char *name)
{
    struct api_known_cache *cache = &monitors->known;
    const struct api_budget *budget = monitors->budget;
    struct api_known_set *former = api_known_get(cache, group, ""),
                         *set = api_known_new(group, name);
    struct reading reading = {.rows.size = 0};
    int64_t n = 0;
    if (!set) {
        api_known_release(former);
        api_transaction_fail_oom(monitors);
        return NULL;
    }
    bool good = api_store_read(monitors->store, *name ? API_SQL_KNOWN : API_SQL_KNOWN_OF_GROUP,
                               API_ROW(group, name), add_row, &reading) &&
                (reading.rows.size > 0 || api_store_number(monitors->store, API_SQL_GROUP_COUNT,
                                                           API_ROW(group, INT64_C(1)), &n)) &&
                take_rows(monitors, former, set, &reading) && (*name || read_rest(monitors, set));
    api_known_release(former);
    api_buffer_free(&reading.rows);
    api_buffer_free(&reading.names);
    if (!good) {
        api_known_release(set);
        return NULL;
    }
    set->has_group = set->n > 0 || n > 0;
    if (set->n > 0)
        api_known_put(cache, set, budget && budget->limit ? budget->limit / SHARE : max_bytes);
    return set;
}
