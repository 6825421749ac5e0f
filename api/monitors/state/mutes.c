#include "api/monitors/state/mutes.h"

#include "api/json/format.h"

#include <stdlib.h>
#include <string.h>

const struct api_mute api_no_mute = {.until = API_NO_TIME};

/* ---- Rows by group and name */

bool api_named_set(struct api_named *named, const char *group, size_t group_size, const char *name,
                   size_t name_size)
{
    *named = (struct api_named){.name = ""};
    if (group_size > API_MAX_NAME || name_size > API_MAX_NAME)
        return false;
    memcpy(named->group, group, group_size);
    memcpy(named->name, name, name_size);
    return true;
}

static int order(const struct api_named *named, const char *group, const char *name)
{
    int of_groups = strcmp(named->group, group);
    return of_groups ? of_groups : strcmp(named->name, name);
}

static int compare(const void *a, const void *b)
{
    const struct api_named *second = b;
    return order(a, second->group, second->name);
}

void api_named_sort(struct api_named_rows *rows, size_t size)
{
    if (rows->list.size > 0)
        qsort(rows->list.data, rows->list.size / size, size, compare);
}

/* The row of an index; NULL behind the last. */
static const struct api_named *row_at(const struct api_named_rows *rows, size_t size, size_t i)
{
    return i < rows->list.size / size ? (const void *)(rows->list.data + i * size) : NULL;
}

/* Index of the first row that is not before a name of a group. */
static size_t lower_bound(const struct api_named_rows *rows, size_t size, const char *group,
                          const char *name)
{
    size_t low = 0, high = rows->list.size / size;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct api_named *row = row_at(rows, size, middle);
        if (row && order(row, group, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const void *api_named_find(const struct api_named_rows *rows, size_t size, const char *group,
                           const char *name)
{
    const struct api_named *row = row_at(rows, size, lower_bound(rows, size, group, name));
    return row && order(row, group, name) == 0 ? row : NULL;
}

const void *api_named_group(const struct api_named_rows *rows, size_t size, const char *group,
                            size_t *n)
{
    size_t first = lower_bound(rows, size, group, "");
    const struct api_named *row;
    for (*n = 0; (row = row_at(rows, size, first + *n)) && strcmp(row->group, group) == 0;)
        ++*n;
    return *n > 0 ? row_at(rows, size, first) : NULL;
}

void api_named_free(struct api_named_rows *rows, struct api_budget *budget)
{
    api_budget_forget(budget, rows->counted);
    api_buffer_free(&rows->list);
    *rows = (struct api_named_rows){.counted = 0};
}

void api_named_move(struct api_named_rows *to, struct api_named_rows *from,
                    struct api_budget *budget)
{
    api_named_free(to, budget);
    *to = *from;
    if (api_budget_retain(budget, to->list.size, true))
        to->counted = to->list.size;
    *from = (struct api_named_rows){.counted = 0};
}

/* ---- Mutes */

struct api_mute api_mutes_find(const struct api_named_rows *mutes, const char *group,
                               const char *name, int64_t now)
{
    const struct api_muted *const both[] = {
        api_named_find(mutes, sizeof(struct api_muted), group, ""),
        name ? api_named_find(mutes, sizeof(struct api_muted), group, name) : NULL};
    struct api_mute last = api_no_mute;
    for (size_t i = 0; i < 2; i++)
        if (both[i] && both[i]->mute.until > now && both[i]->mute.until > last.until)
            last = both[i]->mute;
    return last;
}

void api_mute_write(const struct api_mute *mute, struct api_buffer *out)
{
    if (mute->until == API_NO_TIME) {
        api_append_text(out, "null");
        return;
    }
    if (mute->until == API_UNTIL_OK)
        api_append_text(out, "{\"until\":\"ok\"");
    else
        api_write_json(out, "{'until':%jd", mute->until);
    api_write_json(out, ",'reason':%s", mute->reason);
    if (*mute->by)
        api_write_json(out, ",'by':%s", mute->by);
    api_write_json(out, ",'scope':%s}", mute->of_group ? "group" : "monitor");
}
