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
        api_work_out_of_memory(monitors);
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
static bool read_settings(struct api_monitors *monitors, struct api_view *view)
{
    static const char *const none[] = {NULL};
    const char *text = view->window.closed ? view->window.settings : NULL;
    struct api_json json = {.budget = NULL}; /* as in api_config_load: at most 16 KiB */
    struct api_problem ignored = {0};
    if (text && api_json_load(&json, text, strlen(text)))
        api_settings_from_json(&view->settings, json.root, none, &ignored);
    bool good = !json.out_of_memory;
    api_json_free(&json);
    return good || api_work_out_of_memory(monitors);
}

static bool is_same(const struct api_previous_of *a, const struct api_previous_of *b)
{
    return a->monitor == b->monitor && a->revision == b->revision && a->k == b->k &&
           a->places == b->places;
}

bool api_draft_previous(struct api_monitors *monitors, struct api_draft *draft, bool makes)
{
    const struct api_monitor *monitor = draft->monitor;
    const struct api_previous_of of = {monitor->id, monitor->revision,
                                       (int64_t)monitor->config->settings.previous,
                                       monitor->config->bins.places};
    return of.k == 0 || api_previous_read(&draft->previous, monitors->store, &of, makes);
}

bool api_previous_counts(struct api_monitors *monitors, const struct api_draft *draft,
                         const struct api_previous_of *of, struct api_position before, double *to)
{
    struct api_previous previous = {.n = 0};
    if (draft && draft->previous.is_read && is_same(&draft->previous.of, of))
        return api_previous_add_up(&draft->previous, monitors->store, before, to);
    bool good = api_previous_read(&previous, monitors->store, of, false) &&
                api_previous_add_up(&previous, monitors->store, before, to);
    api_previous_free(&previous);
    return good;
}

bool api_view_compare(struct api_monitors *monitors, int64_t monitor, struct api_draft *draft,
                      struct api_view *view)
{
    const struct api_window *window = &view->window;
    size_t places = view->config->bins.places;
    const struct api_previous_of of = {monitor, window->revision, (int64_t)view->settings.previous,
                                       places};
    free(view->reference);
    view->reference = NULL;
    if (view->settings.previous == 0)
        return api_view_refer(view) || api_work_out_of_memory(monitors);
    view->reference = calloc(places, sizeof *view->reference);
    view->exact = false;
    if (!view->reference)
        return api_work_out_of_memory(monitors);
    if (window->closed && window->reference && window->n_reference == places) {
        memcpy(view->reference, window->reference, places * sizeof *view->reference);
        return true;
    }
    return api_previous_counts(monitors, draft, &of,
                               (struct api_position){window->start, window->id}, view->reference);
}

struct api_view *api_view_of(struct api_monitors *monitors, const struct api_monitor *monitor,
                             struct api_window *window)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(window->id)};
    struct api_config *config = window->revision == monitor->revision
                                    ? api_config_hold(monitor->config)
                                    : former_config(monitors, monitor, window->revision);
    struct api_view *view = config ? api_view_new(config) : NULL;
    if (config && !view)
        api_work_out_of_memory(monitors);
    api_config_release(config);
    if (!view)
        return NULL;
    view->window = *window;
    window->settings = NULL;
    window->reference = NULL;
    view->state = view->window.closed ? view->window.state : monitor->live.state;
    if (read_settings(monitors, view) &&
        (view->window.n == 0 || api_counts_run(view->counts, view->config->bins.places,
                                               monitors->store, API_SQL_COUNTS, of)) &&
        api_view_compare(monitors, monitor->id, monitor->draft, view))
        return view;
    api_view_release(view);
    return NULL;
}
