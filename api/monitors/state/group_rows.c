#include "api/monitors/state/group_rows.h"

#include <string.h>

bool api_named_read(struct api_named *named, const struct api_datum *values)
{
    return api_named_set(named, values[0].text, values[0].size, values[1].text, values[1].size);
}

/* Reads all rows, of `size` bytes each, by a function that appends one to a list. */
static bool read_rows(struct api_monitors *monitors, enum api_statement statement,
                      api_row_reader *add, size_t size, struct api_named_rows *rows)
{
    rows->list.size = 0;
    if (!api_store_read(monitors->store, statement, NULL, add, &rows->list))
        return false;
    api_named_sort(rows, size);
    rows->is_read = true;
    return !rows->list.failed || api_transaction_fail_oom(monitors);
}

/* ---- Mutes */

static void add_mute(void *context, const struct api_datum *values)
{
    struct api_muted muted = {.mute.until = values[2].integer};
    if (!api_named_read(&muted.of, values) || values[3].size > API_MAX_MUTE_REASON ||
        values[4].size >= sizeof muted.mute.by)
        return;
    memcpy(muted.mute.reason, values[3].text, values[3].size);
    memcpy(muted.mute.by, values[4].text, values[4].size);
    muted.mute.of_group = !*muted.of.name;
    api_append(context, &muted, sizeof muted);
}

bool api_mutes_read(struct api_monitors *monitors, struct api_named_rows *mutes)
{
    return read_rows(monitors, API_SQL_MUTES, add_mute, sizeof(struct api_muted), mutes);
}

bool api_mutes_renew(struct api_monitors *monitors, struct api_named_rows *mutes)
{
    return api_store_run(monitors->store, API_SQL_MUTES_PRUNE, API_ROW(monitors->now)) &&
           api_store_run(monitors->store, API_SQL_META_SET,
                         API_ROW(api_change_of(monitors), "mute")) &&
           api_mutes_read(monitors, mutes);
}

bool api_mutes_is_ok(const struct api_registry *registry, const char *group, const char *name)
{
    size_t n, first = api_registry_group(registry, group, &n);
    for (size_t i = first; i < first + n; i++) {
        const struct api_monitor *monitor = registry->monitors[i];
        bool is_of_it = !*name || strcmp(monitor->name, name) == 0;
        if (is_of_it && (monitor->status.state >= API_WARNING || api_monitor_is_stale(monitor)))
            return false;
    }
    return true;
}

static bool is_over(const struct api_registry *registry, const struct api_muted *muted)
{
    return muted->mute.until == API_UNTIL_OK &&
           api_mutes_is_ok(registry, muted->of.group, muted->of.name);
}

bool api_mutes_are_due(const struct api_registry *registry)
{
    const struct api_muted *list = (const void *)registry->mutes.list.data;
    for (size_t i = 0; i < registry->mutes.list.size / sizeof *list; i++)
        if (is_over(registry, &list[i]))
            return true;
    return false;
}

bool api_mutes_end(struct api_monitors *monitors)
{
    const struct api_muted *list = (const void *)monitors->registry.mutes.list.data;
    bool good = true, any = false;
    for (size_t i = 0; good && i < monitors->registry.mutes.list.size / sizeof *list; i++) {
        const struct api_datum *of = API_ROW(list[i].of.group, list[i].of.name);
        if (!is_over(&monitors->registry, &list[i]))
            continue;
        any = true;
        good = api_store_run(monitors->store, API_SQL_MUTE_DELETE, of);
    }
    return good && (!any || api_mutes_renew(monitors, &monitors->mutes));
}

/* ---- Columns */

void api_columns_add(struct api_buffer *changes, const char *group, const char *name, bool left_out,
                     int64_t missed)
{
    struct api_column_of column = {.left_out = left_out, .missed = missed};
    if (api_named_set(&column.of, group, strlen(group), name, strlen(name)))
        api_append(changes, &column, sizeof column);
}

static void add_column(void *context, const struct api_datum *values)
{
    struct api_column_of column = {.left_out = values[2].integer != 0, .missed = values[3].integer};
    if (api_named_read(&column.of, values))
        api_append(context, &column, sizeof column);
}

bool api_columns_read(struct api_monitors *monitors, struct api_named_rows *columns)
{
    return read_rows(monitors, API_SQL_COLUMNS, add_column, sizeof(struct api_column_of), columns);
}

static bool write(struct api_monitors *monitors, const struct api_column_of *column)
{
    const struct api_datum *row =
        API_ROW(column->of.group, column->of.name, column->left_out, column->missed);
    bool goes = !column->left_out && column->missed >= API_MISSED;
    return api_store_run(monitors->store, goes ? API_SQL_COLUMN_DELETE : API_SQL_COLUMN_PUT, row);
}

bool api_columns_renew(struct api_monitors *monitors, const struct api_buffer *changes,
                       struct api_named_rows *columns)
{
    const struct api_column_of *list = (const void *)changes->data;
    const struct api_named_rows *known = &monitors->registry.columns;
    size_t n = known->list.size / sizeof *list;
    for (size_t i = 0; i < changes->size / sizeof *list; i++) {
        bool is_known = api_columns_find(known, list[i].of.group, list[i].of.name);
        if (!is_known && n++ >= API_MAX_UNMONITORED)
            continue;
        if (!write(monitors, &list[i]))
            return false;
    }
    return api_store_run(monitors->store, API_SQL_COLUMNS_PRUNE, NULL) &&
           api_store_run(monitors->store, API_SQL_META_SET,
                         API_ROW(api_change_of(monitors), "columns")) &&
           api_columns_read(monitors, columns);
}
