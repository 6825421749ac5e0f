#include "api/monitors/rows/mutes.h"

#include "api/json/format.h"
#include "api/monitors/model/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct api_mute api_no_mute = {.until = API_NO_TIME};

/* ---- Finding */

int api_mutes_compare(const void *a, const void *b)
{
    const struct api_muted *first = a, *second = b;
    int of_groups = strcmp(first->group, second->group);
    return of_groups ? of_groups : strcmp(first->name, second->name);
}

static int compare_key(const void *key, const void *row)
{
    const char *const *names = key;
    const struct api_muted *muted = row;
    int of_groups = strcmp(names[0], muted->group);
    return of_groups ? of_groups : strcmp(names[1], muted->name);
}

static const struct api_muted *find(const struct api_mutes *mutes, const char *group,
                                    const char *name)
{
    const char *const names[] = {group, name};
    size_t size = sizeof(struct api_muted);
    return mutes->rows.size == 0
               ? NULL
               : bsearch(names, mutes->rows.data, mutes->rows.size / size, size, compare_key);
}

/* The mute of the group whose segment a group is; NULL if there is none. */
static const struct api_muted *find_of_parent(const struct api_mutes *mutes, const char *group)
{
    char parent[API_MAX_NAME + 1];
    size_t size = api_segment_parent(group);
    snprintf(parent, sizeof parent, "%.*s", (int)size, group);
    return size > 0 ? find(mutes, parent, "") : NULL;
}

struct api_mute api_mutes_find(const struct api_mutes *mutes, const char *group, const char *name,
                               int64_t now)
{
    const struct api_muted *const found[] = {find_of_parent(mutes, group), find(mutes, group, ""),
                                             name ? find(mutes, group, name) : NULL};
    struct api_mute last = api_no_mute;
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (found[i] && found[i]->mute.until > now && found[i]->mute.until > last.until)
            last = found[i]->mute;
    return last;
}

void api_mute_write(const struct api_mute *mute, struct api_buffer *out)
{
    if (mute->until == API_NO_TIME) {
        api_append_text(out, "null");
        return;
    }
    api_write_json(out, "{'until':%jd,'reason':%s", mute->until, mute->reason);
    if (*mute->by)
        api_write_json(out, ",'by':%s", mute->by);
    api_write_json(out, ",'scope':%s}", mute->of_group ? "group" : "monitor");
}
