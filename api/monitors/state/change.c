#include "api/monitors/state/change.h"

#include "api/monitors/rows/mute_rows.h"
#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"

#include <stdlib.h>
#include <string.h>

void api_replacement_free(struct api_replacement *replacement)
{
    free(replacement->name);
    api_config_release(replacement->config);
    api_config_release(replacement->former);
    *replacement = (struct api_replacement){.name = NULL};
}

/* ---- Comparing */

/* Compares with the monitor as it is, or finds that there is none. */
static bool compare(struct api_monitors *monitors, const char *group, struct api_replacement *r)
{
    struct api_monitor *monitor;
    api_config_release(r->former);
    r->former = NULL;
    if (!api_touch_named(monitors, group, r->name, &monitor))
        return false;
    r->is_new = r->changes = r->revises = true;
    r->revision = r->version = 1;
    r->state =
        (struct api_monitor_state){API_INSUFFICIENT,
                                   API_NO_TIME,
                                   API_NO_TIME,
                                   API_NO_TIME,
                                   false,
                                   api_mutes_find(&monitors->mutes, group, r->name, monitors->now)};
    if (!monitor)
        return true;
    r->former = api_config_hold(monitor->config);
    r->is_new = false;
    r->id = monitor->id;
    r->revises = strcmp(r->former->definition, r->config->definition) != 0;
    r->changes = r->revises || strcmp(r->former->others, r->config->others) != 0;
    r->revision = monitor->revision + r->revises;
    r->version = monitor->version + r->changes;
    if (!r->revises)
        r->state = api_monitor_state_of(monitor, &monitors->mutes);
    return true;
}

/* Fails if there were more monitors than are allowed, or than have BYTES of --max-memory each: /metrics shows all of them, at
 * some 1.2 KiB each in each of two formats, and of those with long names three times as much. */
static bool check_number(const struct api_monitors *monitors, size_t n, struct api_problem *problem)
{
    enum { BYTES = 16 << 10 };
    size_t limit = monitors->budget ? monitors->budget->limit : 0;
    if (n > monitors->max_monitors)
        return api_fail(problem, "too_many_monitors",
                        "there would be %zu monitors, and --max-monitors is %zu", n,
                        monitors->max_monitors);
    return limit == 0 || n <= limit / BYTES ||
           api_fail(problem, "out_of_memory",
                    "there would be %zu monitors, and --max-memory allows %zu, one for each 16 KiB",
                    n, limit / BYTES);
}

bool api_check_new_monitors(const struct api_monitors *monitors, size_t n,
                            struct api_problem *problem)
{
    int64_t there = 0;
    return n == 0 || (api_store_number(monitors->store, API_SQL_MONITORS_COUNT, NULL, &there) &&
                      check_number(monitors, (size_t)there + n, problem));
}

static bool check_room(const struct api_monitors *monitors,
                       const struct api_replacement *replacements, size_t n,
                       struct api_problem *problem)
{
    size_t new = 0;
    bool grows = false;
    for (size_t i = 0; i < n; i++) {
        new += replacements[i].is_new;
        grows |= replacements[i].revises;
    }
    return (!grows || api_check_store(monitors, problem)) &&
           api_check_new_monitors(monitors, new, problem);
}

/* ---- Writing */

/* Makes the monitor, instead of one of its name that cannot be read. */
static bool make(struct api_monitors *monitors, const char *group, struct api_replacement *r)
{
    struct api_monitor *monitor;
    size_t n_unreadable = 0;
    if (!api_store_read(monitors->store, API_SQL_MONITOR_DELETE, API_ROW(group, r->name),
                        api_store_count_row, &n_unreadable) ||
        !api_store_number(monitors->store, API_SQL_META_NEXT, API_ROW("monitor"), &r->id) ||
        !api_store_run(monitors->store, API_SQL_MONITOR_NEW,
                       API_ROW(r->id, group, r->name, r->config->others)) ||
        !api_store_run(monitors->store, API_SQL_REVISION_PUT,
                       API_ROW(r->id, 1, r->config->definition)))
        return false;
    monitors->has_orphans |= n_unreadable > 0;
    const struct api_known known = {.id = r->id, .version = 1, .config = r->config};
    if (!api_touch(monitors, r->id, &known, &monitor) || !monitor)
        return false;
    api_touch_all(monitor);
    return api_touch_write(monitors, monitor);
}

/* Closes windows that cannot stay open. */
static bool close_windows(struct api_monitors *monitors, const struct api_replacement *r,
                          struct api_monitor *monitor)
{
    const struct api_monitor_settings *now = &monitor->config->settings,
                                      *next = &r->config->settings;
    bool stay =
        !r->revises && now->window == next->window && now->window_size == next->window_size &&
        api_window_span(now, monitors->now).start == api_window_span(next, monitors->now).start;
    return stay ||
           (api_close_open(monitors, monitor, false) && api_flush_monitor(monitors, monitor));
}

static bool change(struct api_monitors *monitors, struct api_replacement *r)
{
    struct api_monitor *monitor;
    if (!api_touch(monitors, r->id, NULL, &monitor) || !monitor ||
        !close_windows(monitors, r, monitor))
        return false;
    struct api_monitor_status *status = &monitor->status;
    double longer = r->config->settings.grace - monitor->config->settings.grace;
    if (r->revises)
        api_status_restart(status);
    else if (status->next_close < INT64_MAX)
        status->next_close += (int64_t)longer * API_SECOND_US;
    monitor->revision = r->revision;
    monitor->version = r->version;
    api_touch_set_config(monitor, api_config_hold(r->config));
    api_gc_look_again(monitors, r->id);
    if (!api_store_run(monitors->store, API_SQL_MONITOR_SETTINGS,
                       API_ROW(r->config->others, r->id)) ||
        (r->revises && !api_store_run(monitors->store, API_SQL_REVISION_PUT,
                                      API_ROW(r->id, r->revision, r->config->definition))))
        return false;
    r->state = api_monitor_state_of(monitor, &monitors->mutes);
    return api_touch_write(monitors, monitor);
}

bool api_change_configs(struct api_monitors *monitors, const char *group,
                        struct api_replacement *replacements, size_t n, bool is_dry,
                        struct api_problem *problem)
{
    if (!api_mutes_read(monitors, &monitors->mutes))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!compare(monitors, group, &replacements[i]))
            return false;
    if (!check_room(monitors, replacements, n, problem))
        return false;
    for (size_t i = 0; i < n && !is_dry; i++) {
        struct api_replacement *r = &replacements[i];
        if (!(r->is_new ? make(monitors, group, r) : !r->changes || change(monitors, r)))
            return false;
    }
    if (!is_dry)
        api_known_forget(&monitors->known, group);
    return true;
}

/* Appends the members of an object, without its braces. */
static void append_members(struct api_buffer *out, const char *object)
{
    api_append(out, ",", 1);
    api_append(out, object + 1, strlen(object) - 2);
}

void api_config_write(const char *definition, const char *settings, const char *group,
                      const char *name, const struct api_monitor_state *state, int64_t revision,
                      struct api_buffer *out)
{
    api_write_names(out, group, name);
    api_monitor_state_write(state, out);
    api_append_format(out, ",\"revision\":%lld", (long long)revision);
    append_members(out, definition);
    append_members(out, settings);
}
