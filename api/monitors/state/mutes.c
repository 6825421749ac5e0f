#include "api/monitors/state/mutes.h"

#include "api/json/format.h"

#include <stdlib.h>
#include <string.h>

const struct api_mute api_no_mute = {.until = API_NO_TIME};

static int compare(const void *a, const void *b)
{
    const struct api_muted *first = a, *second = b;
    int order = strcmp(first->group, second->group);
    return order ? order : strcmp(first->name, second->name);
}

void api_mutes_sort(struct api_mutes *mutes)
{
    if (mutes->list.size > 0)
        qsort(mutes->list.data, mutes->list.size / sizeof(struct api_muted),
              sizeof(struct api_muted), compare);
}

static const struct api_muted *find(const struct api_mutes *mutes, const char *group,
                                    const char *name)
{
    struct api_muted key = {.mute = {0}};
    if (mutes->list.size == 0)
        return NULL;
    strncpy(key.group, group, API_MAX_NAME);
    strncpy(key.name, name, API_MAX_NAME);
    return bsearch(&key, mutes->list.data, mutes->list.size / sizeof key, sizeof key, compare);
}

struct api_mute api_mutes_find(const struct api_mutes *mutes, const char *group, const char *name,
                               int64_t now)
{
    const struct api_muted *const both[] = {find(mutes, group, ""),
                                            name ? find(mutes, group, name) : NULL};
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
    api_append_text(out, "{\"until\":");
    if (mute->until == API_UNTIL_OK)
        api_append_text(out, "\"ok\"");
    else
        api_write_time(out, mute->until);
    api_append_text(out, ",\"reason\":");
    api_append_json_string(out, mute->reason);
    if (*mute->by) {
        api_append_text(out, ",\"by\":");
        api_append_json_string(out, mute->by);
    }
    api_append_format(out, ",\"scope\":\"%s\"}", mute->of_group ? "group" : "monitor");
}

void api_mutes_free(struct api_mutes *mutes, struct api_budget *budget)
{
    api_budget_forget(budget, mutes->counted);
    api_buffer_free(&mutes->list);
    *mutes = (struct api_mutes){.counted = 0};
}
