#include "api/monitors/state/window_load.h"

#include "api/text/json_load.h"

#include <stdlib.h>
#include <string.h>

static void copy_text(void *context, const struct api_datum *values)
{
    *(char **)context = strndup(values[0].text, values[0].size);
}

/* Reads the config of a former revision, by which all windows are closed: they bring their settings.
 * NULL if the store fails, or memory is exhausted. */
static struct api_config *former_config(struct api_monitors *monitors,
                                        const struct api_monitor *monitor, int64_t revision)
{
    static const char any_settings[] = "{\"compare\":{\"previous\":1}}"; /* needs no reference */
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(revision)};
    if (monitors->former && monitors->former_monitor == monitor->id &&
        monitors->former_revision == revision)
        return api_config_hold(monitors->former);
    struct api_problem problem = {0};
    struct api_config *config = NULL;
    char *definition = NULL;
    bool good = api_store_run(monitors->store, API_SQL_REVISION, of,
                              &(struct api_rows){copy_text, &definition});
    if (definition)
        config = api_config_load(definition, any_settings, monitors->budget, &problem);
    if (good && !config)
        api_transaction_fail_oom(monitors);
    free(definition);
    if (config) {
        api_config_release(monitors->former);
        monitors->former = api_config_hold(config);
        monitors->former_monitor = monitor->id;
        monitors->former_revision = revision;
    }
    return config;
}

/* Sets the settings that a closed window was scored by. */
static bool read_settings(struct api_monitors *monitors, struct api_snapshot *snapshot)
{
    static const char *const none[] = {NULL};
    const char *text = snapshot->window.closed ? snapshot->window.settings : NULL;
    struct api_json json = {.budget = NULL}; /* as in api_config_load: at most 16 KiB */
    struct api_problem ignored = {0};
    if (text && api_json_load(&json, text, strlen(text)))
        api_settings_from_json(&snapshot->settings, json.root, none, &ignored);
    bool good = !json.out_of_memory;
    api_json_free(&json);
    return good || api_transaction_fail_oom(monitors);
}

bool api_pending_previous(struct api_monitors *monitors, struct api_pending_monitor *pending,
                          bool may_build)
{
    const struct api_monitor *monitor = pending->monitor;
    const struct api_previous_of of = {monitor->id, monitor->revision,
                                       (int64_t)monitor->config->settings.previous,
                                       monitor->config->bins.n_bins};
    return of.k == 0 || api_previous_read(&pending->previous, monitors->store, &of, may_build);
}

bool api_snapshot_compare(struct api_monitors *monitors, int64_t monitor,
                          const struct api_pending_monitor *pending, struct api_position at,
                          struct api_snapshot *snapshot)
{
    const struct api_window *window = &snapshot->window;
    size_t n_bins = snapshot->config->bins.n_bins;
    const struct api_previous_of of = {monitor, window->revision,
                                       (int64_t)snapshot->settings.previous, n_bins};
    free(snapshot->reference);
    snapshot->reference = NULL;
    if (snapshot->settings.previous == 0)
        return api_snapshot_refer(snapshot) || api_transaction_fail_oom(monitors);
    snapshot->reference = calloc(n_bins, sizeof *snapshot->reference);
    snapshot->exact = false;
    if (!snapshot->reference)
        return api_transaction_fail_oom(monitors);
    if (window->closed && window->reference && window->n_reference == n_bins) {
        memcpy(snapshot->reference, window->reference, n_bins * sizeof *snapshot->reference);
        return true;
    }
    struct api_previous previous = {.n = 0};
    _Static_assert(sizeof of == 4 * sizeof(int64_t), "it has no padding");
    if (pending && pending->previous.is_read && memcmp(&pending->previous.of, &of, sizeof of) == 0)
        return api_previous_add_up(&pending->previous, monitors->store, at, snapshot->reference);
    bool good = api_previous_read(&previous, monitors->store, &of, false) &&
                api_previous_add_up(&previous, monitors->store, at, snapshot->reference);
    api_previous_free(&previous);
    return good;
}

struct api_snapshot *api_snapshot_of(struct api_monitors *monitors,
                                     const struct api_monitor *monitor, struct api_window *window)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(window->id)};
    struct api_config *config = window->revision == monitor->revision
                                    ? api_config_hold(monitor->config)
                                    : former_config(monitors, monitor, window->revision);
    struct api_snapshot *snapshot = config ? api_snapshot_new(config) : NULL;
    if (config && !snapshot)
        api_transaction_fail_oom(monitors);
    api_config_release(config);
    if (!snapshot)
        return NULL;
    snapshot->window = *window;
    window->settings = NULL;
    window->reference = NULL;
    snapshot->state = snapshot->window.closed ? snapshot->window.state : monitor->status.state;
    if (read_settings(monitors, snapshot) &&
        (snapshot->window.n == 0 || api_counts_run(snapshot->counts, snapshot->config->bins.n_bins,
                                                   monitors->store, API_SQL_COUNTS, of)) &&
        api_snapshot_compare(monitors, monitor->id, monitor->pending,
                             api_position_of(&snapshot->window), snapshot))
        return snapshot;
    api_snapshot_release(snapshot);
    return NULL;
}
