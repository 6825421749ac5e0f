#include "api/monitors/state/close.h"

#include "api/monitors/state/status.h"
#include "api/monitors/state/state.h"
#include "api/monitors/state/window_load.h"
#include "api/monitors/state/gc.h"
#include "api/monitors/model/format.h"

#include <stdlib.h>
#include <string.h>

static const int64_t second = 1000000;

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
    if (!api_view_compare(monitors, draft->monitor->id, draft, view))
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
    window->top = scores.top;
    window->top_share = scores.top_share;
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

static struct api_position position_of(const struct api_view *view)
{
    return (struct api_position){view->window.start, view->window.id};
}

static bool write_window(struct api_monitors *monitors, struct api_draft *draft,
                         struct api_touched *touched)
{
    struct api_view *view = touched->view;
    if (touched->closes || touched->rescored)
        return score(monitors, draft, view) && api_state_settle(monitors, draft, view) &&
               (!touched->closes || api_previous_close(&draft->previous, monitors->store,
                                                       position_of(view), view->counts));
    view->state = draft->live.state;
    return (view->settings.previous == 0 ||
            api_view_compare(monitors, draft->monitor->id, draft, view)) &&
           write_open(monitors, draft->monitor->id, touched);
}

/* Lets windows go that are too old beside the newest; the rest of many is swept later. A newest window
 * ahead of the clock hides those that follow it, so that each flush has to look. */
static bool expire(struct api_monitors *monitors, struct api_draft *draft, bool *expired)
{
    int64_t newest = draft->live.newest_end;
    for (const struct api_touched *t = draft->windows; t; t = t->next)
        newest = t->view->window.end > newest ? t->view->window.end : newest;
    *expired = false;
    if (newest == draft->live.newest_end && !api_end_is_ahead(monitors, draft->monitor, newest))
        return true;
    draft->live.newest_end = newest;
    return api_expire(monitors, draft, expired);
}

/* Forgets a last window that lies ahead of the clock. */
static bool forget_ahead(struct api_monitors *monitors, struct api_draft *draft)
{
    bool is_ahead = draft->live.has_last && api_start_is_ahead(monitors, draft->live.last.start);
    return !is_ahead || api_live_read_recent(monitors, draft->monitor, &draft->live);
}

/* Reads the sum that windows are compared with, if any are. */
static bool read_previous(struct api_monitors *monitors, struct api_draft *draft)
{
    return !draft->windows || api_draft_previous(monitors, draft, true);
}

static bool write_windows(struct api_monitors *monitors, struct api_draft *draft, bool *closed)
{
    for (const struct api_touched *t = draft->windows; t; t = t->next) {
        if (!write_added(monitors, draft, t))
            return false;
        if (t->rescored && !t->closes && t->added)
            api_previous_restate(&draft->previous, position_of(t->view), t->added);
    }
    for (struct api_touched *t = draft->windows; t; t = t->next) {
        if (!write_window(monitors, draft, t))
            return false;
        *closed |= t->closes;
    }
    return true;
}

static bool flush_draft(struct api_monitors *monitors, struct api_draft *draft)
{
    bool closed = false, expired;
    if (!forget_ahead(monitors, draft) || !read_previous(monitors, draft) ||
        !expire(monitors, draft, &expired))
        return false;
    draft->monitor->sweep |= expired;
    return write_windows(monitors, draft, &closed) &&
           (!closed || api_live_read_next_close(monitors, draft->monitor, &draft->live)) &&
           (!expired || api_live_read_recent(monitors, draft->monitor, &draft->live)) &&
           api_previous_store(&draft->previous, monitors->store) && api_live_store(monitors, draft);
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
    if (good && list.n == 0) /* another window than was thought is due */
        good = api_live_read_next_close(monitors, monitor, &draft->live);
    good = good && (list.n == 0 || api_draft_previous(monitors, draft, true));
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
