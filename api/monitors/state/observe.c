#include "api/monitors/state/observe.h"

#include "api/monitors/state/window_load.h"

#include <stdlib.h>
#include <string.h>

static const int64_t second = 1000000;

/* Touches the window of a view, which it takes; the view may be NULL after a failure. */
static struct api_touched *touch_view(struct api_monitors *monitors, struct api_draft *draft,
                                      struct api_view *view)
{
    struct api_touched *touched = view ? calloc(1, sizeof *touched) : NULL;
    if (view && !touched)
        api_work_out_of_memory(monitors);
    if (!touched) {
        api_view_release(view);
        return NULL;
    }
    touched->view = view;
    *draft->last = touched;
    draft->last = &touched->next;
    return touched;
}

/* Touches a window, which it takes. */
static struct api_touched *touch(struct api_monitors *monitors, struct api_draft *draft,
                                 struct api_window *window)
{
    return touch_view(monitors, draft, api_view_of(monitors, draft->monitor, window));
}

/* Touches the open window that was last added to, without reading it from the store. */
static struct api_touched *touch_open(struct api_monitors *monitors, struct api_draft *draft)
{
    struct api_view *copy = api_view_copy(draft->monitor->open);
    if (!copy)
        api_work_out_of_memory(monitors);
    return touch_view(monitors, draft, copy);
}

static struct api_touched *add_window(struct api_monitors *monitors, struct api_draft *draft,
                                      int64_t start, int64_t end)
{
    double nothing = __builtin_nan("");
    struct api_window window = {.id = ++draft->live.last_window,
                                .revision = draft->monitor->revision,
                                .start = start,
                                .end = end,
                                .kl = nothing,
                                .kl_reverse = nothing,
                                .js = nothing,
                                .psi = nothing,
                                .p_value = nothing,
                                .unseen_ratio = nothing,
                                .missing_ratio = nothing,
                                .top = API_TOP_UNKNOWN,
                                .top_share = nothing};
    struct api_touched *touched = touch(monitors, draft, &window);
    if (touched)
        touched->is_new = true;
    return touched;
}

/* Touches the first window of a list, which it empties; NULL without a failure if there is none. */
static bool touch_first(struct api_monitors *monitors, struct api_draft *draft,
                        struct api_window_list *list, struct api_touched **touched)
{
    *touched = list->n > 0 ? touch(monitors, draft, &list->windows[0]) : NULL;
    bool good = list->n == 0 || *touched;
    api_window_list_free(list);
    return good;
}

static int64_t start_of_seconds(const struct api_settings *settings, int64_t time)
{
    int64_t size = (int64_t)settings->window_size * second;
    return time - ((time % size) + size) % size;
}

int64_t api_window_end(const struct api_settings *settings, int64_t time)
{
    int64_t size = (int64_t)settings->window_size * second;
    return settings->window == API_SECONDS ? start_of_seconds(settings, time) + size : time;
}

/* The window of seconds that a time is in: one of this transaction, of the store, or a new one. */
static bool window_of_seconds(struct api_monitors *monitors, struct api_draft *draft, int64_t time,
                              struct api_touched **touched)
{
    const struct api_monitor *monitor = draft->monitor;
    const struct api_settings *settings = &monitor->config->settings;
    int64_t start = start_of_seconds(settings, time), end = api_window_end(settings, time);
    const struct api_datum at[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                   API_INTEGER(start), API_INTEGER(end)};
    struct api_window_list list;
    for (*touched = draft->windows; *touched; *touched = (*touched)->next)
        if ((*touched)->view->window.start == start)
            return true;
    if (monitor->open && monitor->open->window.start == start) {
        *touched = touch_open(monitors, draft);
        return *touched != NULL;
    }
    if (!api_window_list_run(&list, monitors->store, API_SQL_WINDOW_AT, at) ||
        !touch_first(monitors, draft, &list, touched))
        return false;
    if (!*touched)
        *touched = add_window(monitors, draft, start, end);
    return *touched != NULL;
}

/* The window that still counts: the last of this transaction, the open one of the store, or a new
 * one. */
static bool window_of_count(struct api_monitors *monitors, struct api_draft *draft, int64_t time,
                            struct api_touched **touched)
{
    const struct api_monitor *monitor = draft->monitor;
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision)};
    struct api_window_list list;
    *touched = NULL;
    for (struct api_touched *t = draft->windows; t; t = t->next)
        *touched = t;
    if (!*touched && monitor->open) {
        *touched = touch_open(monitors, draft);
        if (!*touched)
            return false;
    }
    if (!*touched && (!api_window_list_run(&list, monitors->store, API_SQL_WINDOW_OPEN, of) ||
                      !touch_first(monitors, draft, &list, touched)))
        return false;
    if (!*touched || (*touched)->closes)
        *touched = add_window(monitors, draft, time, time);
    if (!*touched)
        return false;
    struct api_window *window = &(*touched)->view->window;
    window->start = time < window->start ? time : window->start;
    window->end = time > window->end ? time : window->end;
    return true;
}

static bool find_window(struct api_monitors *monitors, struct api_draft *draft, int64_t time,
                        struct api_touched **touched)
{
    switch ((enum api_window_kind)draft->monitor->config->settings.window) {
    case API_SECONDS:
        return window_of_seconds(monitors, draft, time, touched);
    case API_COUNT:
        return window_of_count(monitors, draft, time, touched);
    default:
        *touched = add_window(monitors, draft, time, time);
        return *touched != NULL;
    }
}

/* Decides what becomes of a window to which was added. */
static void judge_window(const struct api_monitors *monitors, struct api_draft *draft,
                         struct api_touched *touched)
{
    const struct api_settings *settings = &draft->monitor->config->settings;
    struct api_window *window = &touched->view->window;
    int64_t due = window->end + (int64_t)settings->grace * second;
    bool full = settings->window == API_BATCH ||
                (settings->window == API_COUNT && window->n >= settings->window_size) ||
                (settings->window == API_SECONDS && due <= monitors->now);
    if (window->closed)
        window->restated = touched->rescored = true;
    else if (full)
        touched->closes = true;
    else if (settings->window == API_SECONDS && due < draft->live.next_close)
        draft->live.next_close = due;
}

bool api_observe(struct api_monitors *monitors, struct api_monitor *monitor, const uint64_t *counts,
                 int64_t time, struct api_touched **touched)
{
    struct api_draft *draft = api_draft_of(monitors, monitor);
    size_t places = monitor->config->bins.places;
    double n = 0;
    if (!draft || !find_window(monitors, draft, time, touched))
        return false;
    if (!(*touched)->added)
        (*touched)->added = calloc(places, sizeof *(*touched)->added);
    if (!(*touched)->added)
        return api_work_out_of_memory(monitors);
    for (size_t i = 0; i < places; i++) {
        (*touched)->added[i] += (double)counts[i];
        (*touched)->view->counts[i] += (double)counts[i];
        n += (double)counts[i];
    }
    (*touched)->view->window.n += n;
    draft->live.observations += (int64_t)n;
    if (time > draft->live.last_observation)
        draft->live.last_observation = time;
    judge_window(monitors, draft, *touched);
    return true;
}
