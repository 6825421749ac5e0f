#include "api/monitors/state/registry.h"

#include "api/monitors/model/score.h"
#include "api/text/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool api_registry_init(struct api_registry *registry)
{
    pthread_rwlockattr_t attributes;
    *registry = (struct api_registry){.n = 0};
    if (pthread_rwlockattr_init(&attributes) != 0)
        return false;
    /* readers that overlap must not keep the store's thread out */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    bool good = pthread_rwlock_init(&registry->lock, &attributes) == 0;
    pthread_rwlockattr_destroy(&attributes);
    return good;
}

void api_registry_empty(struct api_registry *registry)
{
    for (size_t i = 0; i < registry->n; i++)
        api_monitor_free(registry->monitors[i]);
    free(registry->monitors);
}

void api_registry_free(struct api_registry *registry)
{
    api_registry_empty(registry);
    pthread_rwlock_destroy(&registry->lock);
}

static int compare(const struct api_monitor *monitor, const char *group, const char *name)
{
    int order = strcmp(monitor->group, group);
    return order ? order : strcmp(monitor->name, name);
}

size_t api_registry_lower_bound(const struct api_registry *registry, const char *group,
                                const char *name)
{
    size_t low = 0, high = registry->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(registry->monitors[middle], group, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int compare_both(const void *a, const void *b)
{
    const struct api_monitor *const *first = a, *const *second = b;
    return compare(*first, (*second)->group, (*second)->name);
}

void api_registry_sort(struct api_registry *registry)
{
    if (registry->n > 0)
        qsort(registry->monitors, registry->n, sizeof(struct api_monitor *), compare_both);
}

struct api_monitor *api_registry_find(const struct api_registry *registry, const char *group,
                                      const char *name)
{
    size_t index = api_registry_lower_bound(registry, group, name);
    bool there = index < registry->n && compare(registry->monitors[index], group, name) == 0;
    return there ? registry->monitors[index] : NULL;
}

size_t api_registry_group(const struct api_registry *registry, const char *group, size_t *n)
{
    size_t first = api_registry_lower_bound(registry, group, ""), end = first;
    while (end < registry->n && strcmp(registry->monitors[end]->group, group) == 0)
        end++;
    *n = end - first;
    return first;
}

bool api_registry_reserve(struct api_registry *registry, size_t n)
{
    size_t capacity = registry->capacity ? registry->capacity : 16;
    while (capacity < registry->n + n)
        capacity *= 2;
    if (capacity == registry->capacity)
        return true;
    struct api_monitor **monitors =
        realloc(registry->monitors, capacity * sizeof(struct api_monitor *));
    if (!monitors)
        return false;
    registry->monitors = monitors;
    registry->capacity = capacity;
    return true;
}

void api_registry_add(struct api_registry *registry, struct api_monitor *monitor)
{
    size_t index = api_registry_lower_bound(registry, monitor->group, monitor->name);
    struct api_monitor **at = registry->monitors + index;
    memmove(at + 1, at, (registry->n - index) * sizeof(struct api_monitor *));
    *at = monitor;
    registry->n++;
}

void api_registry_remove(struct api_registry *registry, struct api_monitor *monitor)
{
    size_t index = api_registry_lower_bound(registry, monitor->group, monitor->name);
    struct api_monitor **at = registry->monitors + index;
    registry->n--;
    memmove(at, at + 1, (registry->n - index) * sizeof(struct api_monitor *));
}

struct api_monitor *api_monitor_new(int64_t id, const char *group, const char *name,
                                    struct api_config *config)
{
    struct api_monitor *monitor = calloc(1, sizeof *monitor);
    if (!monitor) {
        api_config_release(config);
        return NULL;
    }
    monitor->id = id;
    monitor->group = strdup(group);
    monitor->name = strdup(name);
    monitor->config = config;
    monitor->status.last_observation = monitor->status.newest_end = API_NO_TIME;
    api_status_restart(&monitor->status);
    if (monitor->group && monitor->name)
        return monitor;
    api_monitor_free(monitor);
    return NULL;
}

void api_monitor_free(struct api_monitor *monitor)
{
    if (!monitor)
        return;
    api_config_release(monitor->config);
    api_snapshot_release(monitor->open);
    api_pool_release(monitor->pool);
    free(monitor->group);
    free(monitor->name);
    free(monitor);
}

/* True if silence since an observation is too long at a time. */
static bool is_silent(const struct api_monitor *monitor, int64_t last, int64_t time)
{
    double stale_after = api_settings_stale_after(&monitor->config->settings);
    return last != API_NO_TIME && ((double)time - (double)last) / API_SECOND_US > stale_after;
}

bool api_monitor_is_stale(const struct api_monitor *monitor)
{
    return isinf(api_settings_stale_after(&monitor->config->settings))
               ? monitor->status.missed >= API_MISSED
               : is_silent(monitor, monitor->status.last_observation, api_now());
}

bool api_monitor_is_long_stale(const struct api_monitor *monitor)
{
    return is_silent(monitor, monitor->status.last_observation, api_now() - API_DAY_US);
}

bool api_monitor_is_muted(const struct api_registry *registry, const struct api_monitor *monitor,
                          int64_t now)
{
    return api_mutes_find(&registry->mutes, monitor->group, monitor->name, now).until !=
           API_NO_TIME;
}

struct api_monitor_state api_monitor_state_of(const struct api_registry *registry,
                                              const struct api_monitor *monitor)
{
    const struct api_monitor_status *status = &monitor->status;
    return (struct api_monitor_state){
        status->state, status->since, status->severity_since, api_monitor_is_stale(monitor),
        api_mutes_find(&registry->mutes, monitor->group, monitor->name, api_now())};
}

void api_monitor_state_write(const struct api_monitor_state *state, struct api_buffer *out)
{
    api_write_json(out, ",'state':%s,'since':%jd,'severity_since':%jd,'stale':%d,'muted':",
                   api_verdict_names[state->state], state->since, state->severity_since,
                   state->stale);
    api_mute_write(&state->mute, out);
}

void api_monitor_see(const struct api_monitor *monitor, struct api_monitor_status *status,
                     int64_t time, int64_t now)
{
    int64_t seen = time < now ? time : now;
    if (status->silence == API_OF_PAST)
        api_status_note_past(status, now);
    if (seen <= status->last_observation && status->last_observation <= now)
        return;
    status->last_observation = seen;
    bool is_past = is_silent(monitor, seen, now);
    if (is_past && status->silence == API_HEARD) {
        status->silence = API_OF_PAST;
        status->past.first = 0;
        api_status_note_past(status, now);
    }
    if (!is_past && (status->silence == API_OF_PAST || status->silence == API_PAST_TOLD))
        status->silence = API_HEARD; /* nobody was told of this monitor */
}

void api_status_note_past(struct api_monitor_status *status, int64_t now)
{
    status->past.last = now;
    if (status->past.first == 0)
        status->past.first = now;
}

void api_status_restart(struct api_monitor_status *status)
{
    status->state = API_INSUFFICIENT;
    status->since = status->severity_since = API_NO_TIME;
    status->turns = API_NO_TURNS;
    status->next_close = INT64_MAX;
    status->last = api_no_window;
    status->sentence_of = 0;
    *status->sentence = '\0';
    status->told = API_NONE_WITHHELD;
    status->n_recent = 0;
}

void api_monitor_etag(int64_t id, int64_t version, char to[API_ETAG])
{
    snprintf(to, API_ETAG, "\"%lld-%lld\"", (long long)id, (long long)version);
}

/* ---- Names */

/* True for the control characters C0, DEL and C1, which UTF-8 writes as C2 80 to C2 9F. */
static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

bool api_text_is_plain(const char *text)
{
    size_t length;
    for (const unsigned char *s = (const unsigned char *)text; *s; s += length) {
        length = api_utf8_length(s);
        if (length == 0 || is_control(s))
            return false;
    }
    return true;
}

bool api_name_check(const char *what, const char *name, struct api_problem *problem)
{
    static const char *const reserved[] = {".", "..", "observations"};
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(name, reserved[i]) == 0)
            return api_fail(problem, "name_invalid", "a %s cannot be called '%s'", what, name);
    if (size < 1 || size > API_MAX_NAME)
        return api_fail(problem, "name_invalid",
                        "the name of a %s has 1 to 128 bytes, and '%.60s' has %zu", what, name,
                        size);
    return api_text_is_plain(name) ||
           api_fail(problem, "name_invalid", "the name of a %s is UTF-8 without control characters",
                    what);
}
