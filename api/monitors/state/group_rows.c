#include "api/monitors/state/group_rows.h"

#include <string.h>

/* Copies a text of a row; false if it is too long, as only a damaged store has it. */
static bool copy(char *to, size_t size, const struct api_datum *datum)
{
    if (datum->size >= size)
        return false;
    memcpy(to, datum->text, datum->size);
    to[datum->size] = '\0';
    return true;
}

static void add(void *context, const struct api_datum *values)
{
    struct api_muted muted = {.mute.until = values[2].integer};
    if (!copy(muted.group, sizeof muted.group, &values[0]) ||
        !copy(muted.name, sizeof muted.name, &values[1]) ||
        !copy(muted.mute.reason, sizeof muted.mute.reason, &values[3]) ||
        !copy(muted.mute.by, sizeof muted.mute.by, &values[4]))
        return;
    muted.mute.of_group = !*muted.name;
    api_append(context, &muted, sizeof muted);
}

bool api_mutes_read(struct api_monitors *monitors, struct api_mutes *mutes)
{
    struct api_buffer *list = &mutes->list;
    list->size = 0;
    if (!api_store_run(monitors->store, API_SQL_MUTES, NULL, &(struct api_rows){add, list}))
        return false;
    api_mutes_sort(mutes);
    mutes->is_read = true;
    return !list->failed || api_transaction_fail_oom(monitors);
}

bool api_mutes_renew(struct api_monitors *monitors, struct api_mutes *mutes)
{
    const struct api_datum now[] = {API_INTEGER(monitors->now)};
    const struct api_datum change[] = {API_INTEGER(api_change_of(monitors))};
    return api_store_run(monitors->store, API_SQL_MUTES_PRUNE, now, NULL) &&
           api_store_run(monitors->store, API_SQL_MUTE_SET, change, NULL) &&
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
           api_mutes_is_ok(registry, muted->group, muted->name);
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
        const struct api_datum of[] = {API_TEXT_DATUM(list[i].group), API_TEXT_DATUM(list[i].name)};
        if (!is_over(&monitors->registry, &list[i]))
            continue;
        any = true;
        good = api_store_run(monitors->store, API_SQL_MUTE_DELETE, of, NULL);
    }
    return good && (!any || api_mutes_renew(monitors, &monitors->mutes));
}

void api_mutes_publish(struct api_monitors *monitors, struct api_mutes *mutes)
{
    struct api_mutes *former = &monitors->registry.mutes;
    api_mutes_free(former, monitors->budget);
    *former = *mutes;
    if (api_budget_retain(monitors->budget, former->list.size, true))
        former->counted = former->list.size;
    *mutes = (struct api_mutes){.counted = 0};
}

/* ---- Columns */

static void add_column(void *context, const struct api_datum *values)
{
    struct api_column_of column;
    if (!api_column_set(&column, values[0].text, values[0].size, values[1].text, values[1].size))
        return;
    column.left_out = values[2].integer != 0;
    column.missed = values[3].integer;
    api_append(context, &column, sizeof column);
}

bool api_columns_read(struct api_monitors *monitors, struct api_columns *columns)
{
    struct api_buffer *list = &columns->list;
    list->size = 0;
    if (!api_store_run(monitors->store, API_SQL_COLUMNS, NULL,
                       &(struct api_rows){add_column, list}))
        return false;
    api_columns_sort(columns);
    return !list->failed || api_transaction_fail_oom(monitors);
}

static bool write(struct api_monitors *monitors, const struct api_column_of *column)
{
    const struct api_datum row[] = {API_TEXT_DATUM(column->group), API_TEXT_DATUM(column->name),
                                    API_INTEGER(column->left_out), API_INTEGER(column->missed)};
    bool goes = !column->left_out && column->missed >= API_MISSED;
    return api_store_run(monitors->store, goes ? API_SQL_COLUMN_DELETE : API_SQL_COLUMN_PUT, row,
                         NULL);
}

bool api_columns_renew(struct api_monitors *monitors, const struct api_buffer *changes,
                       struct api_columns *columns)
{
    const struct api_column_of *list = (const void *)changes->data;
    const struct api_columns *known = &monitors->registry.columns;
    size_t n = known->list.size / sizeof *list;
    for (size_t i = 0; i < changes->size / sizeof *list; i++) {
        bool is_known = api_columns_find(known, list[i].group, list[i].name);
        if (!is_known && n++ >= API_MAX_UNMONITORED)
            continue;
        if (!write(monitors, &list[i]))
            return false;
    }
    const struct api_datum change[] = {API_INTEGER(api_change_of(monitors))};
    return api_store_run(monitors->store, API_SQL_COLUMNS_PRUNE, NULL, NULL) &&
           api_store_run(monitors->store, API_SQL_COLUMNS_SET, change, NULL) &&
           api_columns_read(monitors, columns);
}

void api_columns_publish(struct api_monitors *monitors, struct api_columns *columns)
{
    struct api_columns *former = &monitors->registry.columns;
    api_columns_free(former, monitors->budget);
    *former = *columns;
    if (api_budget_retain(monitors->budget, former->list.size, true))
        former->counted = former->list.size;
    *columns = (struct api_columns){.counted = 0};
}
