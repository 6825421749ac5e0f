#include "api/monitors/state/columns.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct api_column_of *first = a, *second = b;
    int order = strcmp(first->group, second->group);
    return order ? order : strcmp(first->name, second->name);
}

bool api_column_set(struct api_column_of *column, const char *group, size_t group_size,
                    const char *name, size_t name_size)
{
    *column = (struct api_column_of){.missed = 0};
    if (group_size > API_MAX_NAME || name_size > API_MAX_NAME)
        return false;
    memcpy(column->group, group, group_size);
    memcpy(column->name, name, name_size);
    return true;
}

void api_columns_sort(struct api_columns *columns)
{
    if (columns->list.size > 0)
        qsort(columns->list.data, columns->list.size / sizeof(struct api_column_of),
              sizeof(struct api_column_of), compare);
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
    if (!api_column_set(&column, group, strlen(group), name, strlen(name)))
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
