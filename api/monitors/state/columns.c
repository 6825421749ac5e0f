#include "api/monitors/state/columns.h"

#include "api/monitors/state/transaction.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct api_column_of *first = a, *second = b;
    int order = strcmp(first->group, second->group);
    return order ? order : strcmp(first->name, second->name);
}

/* Copies names; false if one is too long, as only a damaged store has it. */
static bool set_names(struct api_column_of *column, const char *group, size_t group_size,
                      const char *name, size_t name_size)
{
    *column = (struct api_column_of){.missed = 0};
    if (group_size > API_MAX_NAME || name_size > API_MAX_NAME)
        return false;
    memcpy(column->group, group, group_size);
    memcpy(column->name, name, name_size);
    return true;
}

/* Index of the first column that is not before a name of a group. */
static size_t lower_bound(const struct api_columns *columns, const char *group, const char *name)
{
    const struct api_column_of *list = (const void *)columns->list.data;
    size_t low = 0, high = columns->list.size / sizeof *list;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(list[middle].group, group);
        if (order < 0 || (order == 0 && strcmp(list[middle].name, name) < 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct api_column_of *api_columns_group(const struct api_columns *columns, const char *group,
                                              size_t *n)
{
    const struct api_column_of *list = (const void *)columns->list.data;
    size_t first = lower_bound(columns, group, ""), end = first;
    while (end < columns->list.size / sizeof *list && strcmp(list[end].group, group) == 0)
        end++;
    *n = end - first;
    return *n > 0 ? list + first : NULL;
}

const struct api_column_of *api_columns_find(const struct api_columns *columns, const char *group,
                                             const char *name)
{
    const struct api_column_of *list = (const void *)columns->list.data;
    size_t i = lower_bound(columns, group, name);
    bool is_there = i < columns->list.size / sizeof *list && strcmp(list[i].group, group) == 0 &&
                    strcmp(list[i].name, name) == 0;
    return is_there ? &list[i] : NULL;
}

void api_columns_add(struct api_buffer *changes, const char *group, const char *name, bool left_out,
                     int64_t missed)
{
    struct api_column_of column;
    if (!set_names(&column, group, strlen(group), name, strlen(name)))
        return;
    column.left_out = left_out;
    column.missed = missed;
    api_append(changes, &column, sizeof column);
}

void api_columns_free(struct api_columns *columns, struct api_budget *budget)
{
    api_budget_forget(budget, columns->counted);
    api_buffer_free(&columns->list);
    *columns = (struct api_columns){.counted = 0};
}

/* ---- In the store's thread */

static void add(void *context, const struct api_datum *values)
{
    struct api_column_of column;
    if (!set_names(&column, values[0].text, values[0].size, values[1].text, values[1].size))
        return;
    column.left_out = values[2].integer != 0;
    column.missed = values[3].integer;
    api_append(context, &column, sizeof column);
}

bool api_columns_read(struct api_monitors *monitors, struct api_columns *columns)
{
    struct api_buffer *list = &columns->list;
    list->size = 0;
    if (!api_store_run(monitors->store, API_SQL_COLUMNS, NULL, &(struct api_rows){add, list}))
        return false;
    if (list->size > 0)
        qsort(list->data, list->size / sizeof(struct api_column_of), sizeof(struct api_column_of),
              compare);
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
