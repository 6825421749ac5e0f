#include "api/monitors/state/replace.h"

#include "api/monitors/state/close.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/state/status.h"

#include <stdlib.h>
#include <string.h>

void api_replacement_free(struct api_replacement *replacement)
{
    free(replacement->name);
    api_config_release(replacement->config);
    api_monitor_free(replacement->made);
    *replacement = (struct api_replacement){.name = NULL};
}

static struct api_monitor *find(const struct api_monitors *monitors,
                                const struct api_replacement *replacement)
{
    return api_registry_find(&monitors->registry, replacement->group, replacement->name);
}

/* ---- Writing */

static bool revises(const struct api_replacement *r, const struct api_monitor *monitor)
{
    return strcmp(monitor->config->definition, r->config->definition) != 0;
}

static bool check_room(struct api_monitors *monitors, const struct api_replacement *replacements,
                       size_t n, struct api_problem *problem)
{
    size_t new = 0;
    bool grows = false;
    for (size_t i = 0; i < n; i++) {
        const struct api_monitor *monitor = find(monitors, &replacements[i]);
        new += !monitor;
        grows |= !monitor || revises(&replacements[i], monitor);
    }
    if (grows && !api_check_store(monitors, problem))
        return false;
    if (new > 0 && monitors->registry.n + new > monitors->max_monitors)
        return api_fail(problem, "too_many_monitors",
                        "there would be %zu monitors, and --max-monitors is %zu",
                        monitors->registry.n + new, monitors->max_monitors);
    pthread_rwlock_wrlock(&monitors->registry.lock);
    bool good = api_registry_reserve(&monitors->registry, new);
    pthread_rwlock_unlock(&monitors->registry.lock);
    return good || api_fail_oom(problem);
}

/* Makes the monitor, which nobody sees yet, instead of one of its name that was left out. */
static bool make(struct api_monitors *monitors, struct api_replacement *r)
{
    size_t left_out = 0;
    r->is_new = r->changes = r->revises = true;
    r->revision = r->version = 1;
    if (!api_gc_delete_left_out(monitors, r->group, r->name, &left_out) ||
        !api_store_number(monitors->store, API_SQL_META_NEXT, API_ROW("monitor"), &r->id))
        return false;
    api_monitor_free(r->made);
    r->made = api_monitor_new(r->id, r->group, r->name, api_config_hold(r->config));
    if (!r->made)
        return api_transaction_fail_oom(monitors);
    r->made->revision = r->made->version = 1;
    return true;
}

/* Compares with the monitor as it is. */
static void compare(struct api_replacement *r, const struct api_monitor *monitor)
{
    const struct api_config *old = monitor->config;
    r->is_new = false;
    r->id = monitor->id;
    r->revises = revises(r, monitor);
    r->changes = r->revises || strcmp(old->others, r->config->others) != 0;
    r->revision = monitor->revision + r->revises;
    r->version = monitor->version + r->changes;
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
    return stay || api_close_open(monitors, monitor, false);
}

static bool write(struct api_monitors *monitors, const struct api_replacement *r)
{
    const struct api_datum *monitor =
        API_ROW(r->id, r->group, r->name, r->revision, r->version, r->config->others,
                r->changes ? api_change_of(monitors) : 0);
    return (!r->changes || api_store_run(monitors->store, API_SQL_MONITOR_PUT, monitor)) &&
           (!r->revises || api_store_run(monitors->store, API_SQL_REVISION_PUT,
                                         API_ROW(r->id, r->revision, r->config->definition)));
}

bool api_replace(struct api_monitors *monitors, struct api_replacement *replacements, size_t n,
                 struct api_problem *problem)
{
    if (!check_room(monitors, replacements, n, problem))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct api_replacement *r = &replacements[i];
        struct api_monitor *monitor = find(monitors, r);
        if (monitor)
            compare(r, monitor);
        if (!(monitor ? close_windows(monitors, r, monitor) : make(monitors, r)) ||
            !write(monitors, r))
            return false;
    }
    return true;
}

bool api_replace_dry_run(struct api_monitors *monitors, struct api_replacement *replacements,
                         size_t n, struct api_problem *problem)
{
    for (size_t i = 0; i < n; i++) {
        struct api_replacement *r = &replacements[i];
        const struct api_monitor *monitor = find(monitors, r);
        r->is_new = !monitor;
        r->revision = 1;
        if (monitor)
            compare(r, monitor);
        r->state =
            monitor && !r->revises
                ? api_monitor_state_of(&monitors->registry, monitor)
                : (struct api_monitor_state){
                      API_INSUFFICIENT, API_NO_TIME, API_NO_TIME, false,
                      api_mutes_find(&monitors->registry.mutes, r->group, r->name, monitors->now)};
    }
    return check_room(monitors, replacements, n, problem);
}

bool api_replace_after_windows(struct api_monitors *monitors, struct api_replacement *replacements,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct api_replacement *r = &replacements[i];
        if (!r->changes || r->is_new)
            continue;
        struct api_pending_monitor *pending = api_pending_of(monitors, find(monitors, r));
        if (!pending)
            return false;
        double longer = r->config->settings.grace - pending->monitor->config->settings.grace;
        if (r->revises)
            api_status_restart(&pending->status);
        else if (pending->status.next_close < INT64_MAX)
            pending->status.next_close += (int64_t)longer * API_SECOND_US;
        if (!api_status_store(monitors, pending))
            return false;
    }
    return true;
}

/* ---- Publishing */

void api_replace_publish(struct api_monitors *monitors, struct api_replacement *replacements,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct api_replacement *r = &replacements[i];
        struct api_monitor *monitor = r->made ? r->made : find(monitors, r);
        if (r->made)
            api_registry_add(&monitors->registry, r->made);
        r->made = NULL;
        if (r->changes) {
            api_snapshot_release(monitor->open);
            monitor->open = NULL;
            api_pool_release(monitor->pool);
            monitor->pool = NULL;
            api_config_release(monitor->config);
            monitor->config = api_config_hold(r->config);
            monitor->revision = r->revision;
            monitor->version = r->version;
            monitor->may_have_expired = true;
        }
        r->state = api_monitor_state_of(&monitors->registry, monitor);
    }
}

/* Appends the members of an object, without its braces. */
static void append_members(struct api_buffer *out, const char *object)
{
    api_append(out, ",", 1);
    api_append(out, object + 1, strlen(object) - 2);
}

void api_config_write(const struct api_config *config, const char *group, const char *name,
                      const struct api_monitor_state *state, int64_t revision,
                      struct api_buffer *out)
{
    api_write_names(out, group, name);
    api_monitor_state_write(state, out);
    api_append_format(out, ",\"revision\":%lld", (long long)revision);
    append_members(out, config->definition);
    append_members(out, config->others);
}
