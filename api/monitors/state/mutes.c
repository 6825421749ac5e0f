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

/* key: names that are looked for; all of a group if `name` is NULL. */
struct key {
    const char *group, *name;
};

static int order(const void *key, const void *row)
{
    const struct key *k = key;
    const struct api_named *named = row;
    int of_groups = strcmp(k->group, named->group);
    return of_groups || !k->name ? of_groups : strcmp(k->name, named->name);
}

static int compare(const void *a, const void *b)
{
    const struct api_named *first = a;
    return order(&(struct key){first->group, first->name}, b);
}

void api_named_sort(struct api_named_rows *rows, size_t size)
{
    if (rows->list.size > 0)
        qsort(rows->list.data, rows->list.size / size, size, compare);
}

const void *api_named_find(const struct api_named_rows *rows, size_t size, const char *group,
                           const char *name)
{
    const struct key key = {group, name};
    return rows->list.size > 0 ? bsearch(&key, rows->list.data, rows->list.size / size, size, order)
                               : NULL;
}

const void *api_named_group(const struct api_named_rows *rows, size_t size, const char *group,
                            size_t *n)
{
    const struct key key = {group, NULL};
    const char *first = api_named_find(rows, size, group, NULL);
    *n = 0;
    if (!first)
        return NULL;
    while (first > rows->list.data && order(&key, first - size) == 0)
        first -= size;
    for (const char *row = first; row < rows->list.data + rows->list.size && order(&key, row) == 0;
         row += size)
        ++*n;
    return first;
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
