#include "api/monitors/rows/mute_rows.h"

#include <stdlib.h>
#include <string.h>

/* Copies a text into an array of `size` bytes; false if it is too long, as only a damaged store has it. */
static bool copy(const struct api_datum *text, size_t size, char *to)
{
    if (text->size >= size)
        return false;
    memcpy(to, text->text, text->size);
    return true;
}

/* Adds a mute that has an end: former versions had others, until a monitor was ok, which are over. */
static void add_mute(void *context, const struct api_datum *values)
{
    struct api_muted muted = {.mute.until = values[2].integer};
    if (muted.mute.until == INT64_MAX || !copy(&values[0], sizeof muted.group, muted.group) ||
        !copy(&values[1], sizeof muted.name, muted.name) ||
        !copy(&values[3], sizeof muted.mute.reason, muted.mute.reason) ||
        !copy(&values[4], sizeof muted.mute.by, muted.mute.by))
        return;
    muted.mute.of_group = !*muted.name;
    api_append(context, &muted, sizeof muted);
}

bool api_mutes_read(struct api_monitors *monitors, struct api_mutes *mutes)
{
    if (mutes->is_read)
        return true;
    mutes->rows.size = 0;
    if (!api_store_read(monitors->store, API_SQL_MUTES, NULL, add_mute, &mutes->rows))
        return false;
    if (mutes->rows.size > 0)
        qsort(mutes->rows.data, mutes->rows.size / sizeof(struct api_muted),
              sizeof(struct api_muted), api_mutes_compare);
    mutes->is_read = !mutes->rows.failed;
    return mutes->is_read || api_transaction_fail_oom(monitors);
}

bool api_mutes_end(struct api_monitors *monitors)
{
    return api_store_run(monitors->store, API_SQL_MUTES_END, API_ROW(monitors->now));
}
