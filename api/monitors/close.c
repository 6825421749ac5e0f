/* Windows are written, scored and closed. */
#include "api/monitors/work.h"

#include "api/monitors/write.h"
#include "api/text/json_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t second = 1000000;

/* ---- Views of windows */

static void copy_text(void *context, const struct api_datum *values)
{
    *(char **)context = strndup(values[0].text, values[0].size);
}

/* Reads the config of a former revision. NULL if the store fails, or memory is exhausted: the config
 * was sound when it was written. */
static struct api_config *former_config(struct api_monitors *monitors,
                                        const struct api_monitor *monitor, int64_t revision)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(revision)};
    struct api_problem problem = {0};
    struct api_config *config = NULL;
    char *definition = NULL;
    bool good = api_store_run(monitors->store, API_SQL_REVISION, of,
                              &(struct api_rows){copy_text, &definition});
    if (definition)
        config = api_config_load(definition, monitor->config->others, monitors->budget, &problem);
    if (good && !config)
        api_work_out_of_memory(monitors);
    free(definition);
    return config;
}

/* Sets the settings that a closed window was scored by. */
static bool read_settings(struct api_monitors *monitors, struct api_view *view)
{
    static const char *const none[] = {NULL};
    const char *text = view->window.closed ? view->window.settings : NULL;
    struct api_json json = {.budget = monitors->budget};
    struct api_problem ignored = {0};
    if (text && api_json_load(&json, text, strlen(text)))
        api_settings_from_json(&view->settings, json.root, none, &ignored);
    bool good = !json.out_of_memory;
    api_json_free(&json);
    return good || api_work_out_of_memory(monitors);
}

/* Sets the reference of a view: that of the config, or counts of the windows before. */
static bool refer(struct api_monitors *monitors, int64_t monitor, struct api_view *view)
{
    const struct api_window *window = &view->window;
    size_t places = view->config->bins.places;
    const struct api_datum before[] = {API_INTEGER(monitor), API_INTEGER(window->revision),
                                       API_INTEGER(window->start), API_INTEGER(window->id),
                                       API_INTEGER(view->settings.previous)};
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
    return api_counts_run(view->reference, places, monitors->store, API_SQL_COUNTS_BEFORE, before);
}

struct api_view *api_view_of(struct api_monitors *monitors, const struct api_monitor *monitor,
                             struct api_window *window)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(window->id)};
    struct api_config *config = window->revision == monitor->revision
                                    ? api_config_hold(monitor->config)
                                    : former_config(monitors, monitor, window->revision);
    struct api_view *view = config ? api_view_new(monitor->group, monitor->name, config) : NULL;
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
        api_counts_run(view->counts, view->config->bins.places, monitors->store, API_SQL_COUNTS,
                       of) &&
        refer(monitors, monitor->id, view))
        return view;
    api_view_release(view);
    return NULL;
}

/* ---- Live numbers */

static void summarize(const struct api_window *window, struct api_live *live)
{
    live->has_last = true;
    live->last = (struct api_summary){.id = window->id,
                                      .start = window->start,
                                      .end = window->end,
                                      .restated = window->restated,
                                      .n = window->n,
                                      .kl = window->kl,
                                      .js = window->js,
                                      .psi = window->psi,
                                      .unseen_ratio = window->unseen_ratio,
                                      .missing_ratio = window->missing_ratio};
}

static bool read_recent(struct api_monitors *monitors, const struct api_monitor *monitor,
                        struct api_live *live)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                   API_INTEGER(API_RECENT)};
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_RECENT, of);
    live->n_recent = list.n;
    live->has_last = list.n > 0;
    for (size_t i = 0; i < list.n; i++)
        live->recent[list.n - 1 - i] = list.windows[i].kl;
    live->has_last = false;
    if (list.n > 0)
        summarize(&list.windows[0], live);
    api_window_list_free(&list);
    return good;
}

static bool read_next_close(struct api_monitors *monitors, const struct api_monitor *monitor,
                            struct api_live *live)
{
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision)};
    const struct api_settings *settings = &monitor->config->settings;
    struct api_window_list list;
    live->next_close = INT64_MAX;
    if (settings->window != API_SECONDS)
        return true;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_OPEN, of);
    for (size_t i = 0; i < list.n; i++) {
        int64_t due = list.windows[i].end + (int64_t)settings->grace * second;
        live->next_close = due < live->next_close ? due : live->next_close;
    }
    api_window_list_free(&list);
    return good;
}

bool api_live_read(struct api_monitors *monitors, const struct api_monitor *monitor,
                   struct api_live *live)
{
    return read_recent(monitors, monitor, live) && read_next_close(monitors, monitor, live);
}

static bool is_newest(const struct api_live *live, const struct api_window *window)
{
    return !live->has_last || window->start > live->last.start ||
           (window->start == live->last.start && window->id > live->last.id);
}

static void push_recent(struct api_live *live, double kl)
{
    if (live->n_recent == API_RECENT)
        memmove(live->recent, live->recent + 1, (API_RECENT - 1) * sizeof *live->recent);
    else
        live->n_recent++;
    live->recent[live->n_recent - 1] = kl;
}

/* ---- State */

/* history: the last verdicts, in order, of which the state is made. */
struct history {
    size_t fire_after, clear_after, most, n;
    enum api_verdict state;
    enum api_verdict verdicts[1000];
};

static void advance(struct history *history, enum api_verdict verdict)
{
    if (verdict == API_INSUFFICIENT)
        return;
    if (history->n == history->most) {
        memmove(history->verdicts, history->verdicts + 1,
                (history->most - 1) * sizeof *history->verdicts);
        history->n--;
    }
    history->verdicts[history->n++] = verdict;
    history->state = api_state_after(history->state, history->verdicts, history->n,
                                     history->fire_after, history->clear_after);
}

/* Reads the verdicts before a window, and the state after them. */
static bool read_history(struct api_monitors *monitors, const struct api_monitor *monitor,
                         const struct api_window *window, struct history *history)
{
    const struct api_settings *settings = &monitor->config->settings;
    *history = (struct history){.fire_after = (size_t)settings->fire_after,
                                .clear_after = (size_t)settings->clear_after};
    history->most =
        history->fire_after > history->clear_after ? history->fire_after : history->clear_after;
    const struct api_datum before[] = {API_INTEGER(monitor->id), API_INTEGER(window->revision),
                                       API_INTEGER(window->start), API_INTEGER(window->id),
                                       API_INTEGER(history->most)};
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_BEFORE, before);
    history->n = list.n;
    for (size_t i = 0; i < list.n; i++)
        history->verdicts[list.n - 1 - i] = list.windows[i].verdict;
    history->state = list.n > 0 ? list.windows[0].state : API_INSUFFICIENT;
    api_window_list_free(&list);
    return good;
}

/* Writes the event of a change of the state, which a window brought. */
static bool change_state(struct api_monitors *monitors, struct api_draft *draft,
                         enum api_verdict state, const struct api_window *window)
{
    const struct api_datum event[] = {API_INTEGER(draft->monitor->id),
                                      API_INTEGER(window->end),
                                      API_INTEGER(draft->live.state),
                                      API_INTEGER(state),
                                      API_REAL(window->kl),
                                      API_INTEGER(window->id)};
    if (state == draft->live.state)
        return true;
    draft->live.state = state;
    return api_store_run(monitors->store, API_SQL_EVENT_PUT, event, NULL);
}

/* Goes again through the windows from one on, after it came late or was restated. The event names the
 * window that brought the state, or if that was before, the one that took away the other. */
static bool replay(struct api_monitors *monitors, struct api_draft *draft, struct history *history,
                   const struct api_window *from)
{
    const struct api_datum onwards[] = {API_INTEGER(draft->monitor->id),
                                        API_INTEGER(from->revision), API_INTEGER(from->start),
                                        API_INTEGER(from->id)};
    const struct api_window *cause = from;
    struct api_window_list list;
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS_FROM, onwards);
    for (size_t i = 0; good && i < list.n; i++) {
        enum api_verdict before = history->state;
        advance(history, list.windows[i].verdict);
        if (history->state != before)
            cause = &list.windows[i];
        const struct api_datum state[] = {API_INTEGER(history->state),
                                          API_INTEGER(draft->monitor->id),
                                          API_INTEGER(list.windows[i].id)};
        if (list.windows[i].state != history->state)
            good = api_store_run(monitors->store, API_SQL_WINDOW_STATE, state, NULL);
    }
    good = good && change_state(monitors, draft, history->state, cause);
    api_window_list_free(&list);
    return good;
}

/* Settles the state after a window, which is written. */
static bool settle(struct api_monitors *monitors, struct api_draft *draft, struct api_view *view)
{
    struct api_window *window = &view->window;
    struct history history = {.fire_after = 1, .clear_after = 1, .most = 1};
    const struct api_settings *settings = &draft->monitor->config->settings;
    bool newest = is_newest(&draft->live, window);
    bool alone = newest && settings->fire_after == 1 && settings->clear_after == 1;
    if (!alone && !read_history(monitors, draft->monitor, window, &history))
        return false;
    if (!newest) {
        if (!api_window_store(monitors->store, draft->monitor->id, window) ||
            !replay(monitors, draft, &history, window) ||
            !read_recent(monitors, draft->monitor, &draft->live))
            return false;
        view->state = window->state = draft->live.state;
        return true;
    }
    history.state = draft->live.state;
    advance(&history, window->verdict);
    view->state = window->state = history.state;
    summarize(window, &draft->live);
    push_recent(&draft->live, window->kl);
    return change_state(monitors, draft, history.state, window) &&
           api_window_store(monitors->store, draft->monitor->id, window);
}

/* ---- Scores */

static bool keep_settings(struct api_view *view)
{
    struct api_buffer text = {0};
    api_append_text(&text, "{\"compare\":");
    api_write_compare(&view->settings, &text);
    api_write_member(&text, "pseudocount", view->settings.pseudocount);
    api_write_member(&text, "min_observations", view->settings.min_observations);
    api_append_text(&text, ",\"thresholds\":");
    api_write_thresholds(&view->settings, &text);
    api_append(&text, "}", 2);
    free(view->window.settings);
    view->window.settings = text.failed ? NULL : strdup(text.data);
    api_buffer_free(&text);
    return view->window.settings != NULL;
}

static bool keep_reference(struct api_view *view)
{
    struct api_window *window = &view->window;
    size_t places = view->config->bins.places;
    free(window->reference);
    window->reference = NULL;
    if (view->settings.previous == 0 || !view->reference)
        return true;
    window->reference = malloc(places * sizeof *window->reference);
    window->n_reference = places;
    if (window->reference)
        memcpy(window->reference, view->reference, places * sizeof *window->reference);
    return window->reference != NULL;
}

/* Scores a window that closes, or is restated, by the settings that hold now. */
static bool score(struct api_monitors *monitors, struct api_draft *draft, struct api_view *view)
{
    struct api_scores scores;
    struct api_window *window = &view->window;
    view->settings = draft->monitor->config->settings;
    window->closed = false; /* so that windows before are counted as they are now */
    if (!refer(monitors, draft->monitor->id, view))
        return false;
    window->closed = true;
    api_view_score(view, &scores, NULL);
    window->kl = scores.drift.kl;
    window->kl_reverse = scores.drift.kl_reverse;
    window->js = scores.drift.js;
    window->psi = scores.drift.psi;
    window->p_value = scores.drift.p_value;
    window->unseen_ratio = scores.drift.unseen_ratio;
    window->missing_ratio = scores.missing_ratio;
    window->verdict = scores.verdict;
    return (keep_settings(view) && keep_reference(view)) || api_work_out_of_memory(monitors);
}

/* ---- Writing */

/* Runs the statement for as many rows as it takes. */
static bool add_rows(struct api_monitors *monitors, const struct api_datum *row, size_t n)
{
    enum api_statement statement = n == 16  ? API_SQL_COUNT_ADD_16
                                   : n == 4 ? API_SQL_COUNT_ADD_4
                                            : API_SQL_COUNT_ADD;
    return api_store_run(monitors->store, statement, row, NULL);
}

static bool write_added(struct api_monitors *monitors, const struct api_draft *draft,
                        const struct api_touched *touched)
{
    enum { MOST = 16 };
    const struct api_view *view = touched->view;
    struct api_datum row[2 + 2 * MOST] = {API_INTEGER(draft->monitor->id),
                                          API_INTEGER(view->window.id)};
    size_t places = touched->added ? view->config->bins.places : 0, n = 0;
    for (size_t i = 0; i < places; i++) {
        if (touched->added[i] > 0) {
            row[2 + 2 * n] = API_INTEGER(i);
            row[3 + 2 * n++] = API_INTEGER(touched->added[i]);
        }
        if (n == MOST) {
            if (!add_rows(monitors, row, n))
                return false;
            n = 0;
        }
    }
    for (size_t part; n > 0; n -= part) {
        part = n >= 4 ? 4 : 1;
        if (!add_rows(monitors, row, part))
            return false;
        memmove(row + 2, row + 2 + 2 * part, 2 * (n - part) * sizeof *row);
    }
    return true;
}

/* Writes an open window: all of it if it is new, else what observations change. */
static bool write_open(struct api_monitors *monitors, int64_t monitor,
                       const struct api_touched *touched)
{
    const struct api_window *window = &touched->view->window;
    const struct api_datum row[] = {API_INTEGER(window->start), API_INTEGER(window->end),
                                    API_INTEGER(window->n), API_INTEGER(monitor),
                                    API_INTEGER(window->id)};
    if (touched->is_new)
        return api_window_store(monitors->store, monitor, window);
    return api_store_run(monitors->store, API_SQL_WINDOW_N, row, NULL);
}

static bool write_window(struct api_monitors *monitors, struct api_draft *draft,
                         struct api_touched *touched)
{
    struct api_view *view = touched->view;
    if (touched->closes || touched->rescored)
        return score(monitors, draft, view) && settle(monitors, draft, view);
    view->state = draft->live.state;
    return (view->settings.previous == 0 || refer(monitors, draft->monitor->id, view)) &&
           write_open(monitors, draft->monitor->id, touched);
}

bool api_live_store(struct api_monitors *monitors, const struct api_draft *draft)
{
    const struct api_live *live = &draft->live;
    struct api_datum last = API_INTEGER(live->last_observation);
    if (live->last_observation == API_NO_TIME)
        last.kind = API_SQL_NULL;
    const struct api_datum row[] = {API_INTEGER(live->state), API_INTEGER(live->observations), last,
                                    API_INTEGER(live->last_window),
                                    API_INTEGER(draft->monitor->id)};
    return api_store_run(monitors->store, API_SQL_MONITOR_LIVE, row, NULL);
}

/* Lets windows go that are too old beside the newest; the rest of many is swept later. */
static bool expire(struct api_monitors *monitors, struct api_draft *draft, size_t *n)
{
    int64_t newest = draft->live.newest_end;
    for (const struct api_touched *t = draft->windows; t; t = t->next)
        newest = t->view->window.end > newest ? t->view->window.end : newest;
    *n = 0;
    if (newest == draft->live.newest_end)
        return true;
    draft->live.newest_end = newest;
    return api_expire(monitors, draft->monitor, newest, n);
}

static bool flush_draft(struct api_monitors *monitors, struct api_draft *draft)
{
    bool closed = false;
    size_t expired;
    if (!expire(monitors, draft, &expired))
        return false;
    draft->monitor->sweep |= expired > 0;
    for (const struct api_touched *t = draft->windows; t; t = t->next)
        if (!write_added(monitors, draft, t))
            return false;
    for (struct api_touched *t = draft->windows; t; t = t->next) {
        if (!write_window(monitors, draft, t))
            return false;
        closed |= t->closes;
    }
    return (!closed || read_next_close(monitors, draft->monitor, &draft->live)) &&
           (expired == 0 || read_recent(monitors, draft->monitor, &draft->live)) &&
           api_live_store(monitors, draft);
}

bool api_flush(struct api_monitors *monitors)
{
    bool good = true;
    for (struct api_draft *draft = monitors->drafts; good && draft; draft = draft->next)
        good = flush_draft(monitors, draft);
    return good;
}

bool api_close_open(struct api_monitors *monitors, struct api_monitor *monitor, bool due_alone)
{
    int64_t end = monitors->now - (int64_t)monitor->config->settings.grace * second;
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(monitor->revision),
                                   API_INTEGER(end)};
    struct api_window_list list;
    struct api_draft *draft = api_draft_of(monitors, monitor);
    bool good =
        draft && api_window_list_run(&list, monitors->store,
                                     due_alone ? API_SQL_WINDOWS_DUE : API_SQL_WINDOWS_OPEN, of);
    if (!draft)
        return false;
    for (size_t i = 0; good && i < list.n; i++) {
        struct api_touched *touched = calloc(1, sizeof *touched);
        struct api_view *view = touched ? api_view_of(monitors, monitor, &list.windows[i]) : NULL;
        good = view != NULL;
        if (!view) {
            free(touched);
            break;
        }
        *touched = (struct api_touched){.view = view, .closes = true};
        *draft->last = touched;
        draft->last = &touched->next;
    }
    api_window_list_free(&list);
    return good;
}
