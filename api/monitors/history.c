/* GET of windows and events. */
#include "api/monitors/endpoints.h"

#include "api/accept.h"
#include "api/monitors/intake.h"
#include "api/monitors/page.h"
#include "api/monitors/stored.h"
#include "api/response.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event {
    int64_t id, at, window;
    enum api_verdict from, to;
    double kl;
};

struct history {
    struct api_work work;
    struct api_exchange *x;
    struct api_page page;
    bool as_csv;
    int64_t start, id; /* of the last window of the page before; id of its last event */
    struct api_view **views;
    struct event *events;
    size_t n, reserved; /* views, and bytes of the budget for them */
    bool more;
};

static void drop_views(struct history *h)
{
    for (size_t i = 0; h->views && i < h->n; i++)
        api_view_release(h->views[i]);
    free(h->views);
    api_budget_release(h->x->service->budget, h->reserved);
    h->views = NULL;
    h->n = h->reserved = 0;
}

void api_history_end(struct api_exchange *x)
{
    struct history *h = x->state;
    drop_views(h);
    free(h->events);
    api_page_free(&h->page);
    free(h);
}

bool api_history_begin(struct api_exchange *x)
{
    return api_intake_names(x) && api_intake_may_exist(x);
}

/* Begins the state, or goes on after the store has done its work. True with *fresh set if there is
 * still everything to do. */
static bool prepare(struct api_exchange *x, bool *fresh)
{
    struct history *h = x->state;
    *fresh = !h;
    if (!h) {
        h = x->state = calloc(1, sizeof *h);
        if (!h)
            return api_fail_oom(&x->problem);
        h->x = x;
        return true;
    }
    if (x->work && h->work.done) {
        x->work = NULL;
        x->problem = h->work.problem;
    }
    for (size_t i = 0; !x->work && h->views && i < h->n; i++)
        x->cost_ns += api_config_result_ns(h->views[i]->config);
    return !x->problem.code;
}

static bool submit(struct history *h, bool (*run)(struct api_work *, struct api_monitors *))
{
    h->work = (struct api_work){.run = NULL, .collect = run};
    h->x->work = &h->work;
    return true;
}

static struct api_monitor *find(const struct history *h, const struct api_monitors *monitors)
{
    return api_registry_find(&monitors->registry, api_group_of(h->x), api_name_of(h->x));
}

/* ---- Windows */

/* MAX_PLACES: counts of a page of windows, which the thread reads in some 30 ms. */
enum { MAX_PLACES = 100000 };

/* Adds the view of a window, and its bins to *places: a former revision's may be more than the present
 * one's. */
static bool add_view(struct history *h, struct api_monitors *monitors,
                     const struct api_monitor *monitor, struct api_window *window, size_t *places)
{
    struct api_view *view = h->views[h->n] = api_view_of(monitors, monitor, window);
    if (!view)
        return false;
    h->n++;
    size_t size = sizeof *view + view->config->bins.places * 2 * sizeof(double);
    if (!api_budget_reserve(monitors->budget, size))
        return api_fail_oom(&h->work.problem);
    h->reserved += size;
    *places += view->config->bins.places;
    return true;
}

/* Makes a view of each window of a list, up to the page's limit and MAX_PLACES. */
static bool view_all(struct history *h, struct api_monitors *monitors, struct api_monitor *monitor,
                     struct api_window_list *list)
{
    size_t places = 0;
    drop_views(h);
    h->views = calloc(list->n + 1, sizeof(struct api_view *));
    if (!h->views)
        return api_work_out_of_memory(monitors);
    while (h->n < list->n && h->n < h->page.limit && places < MAX_PLACES)
        if (!add_view(h, monitors, monitor, &list->windows[h->n], &places))
            return false;
    h->more = h->n < list->n;
    return true;
}

static bool read_windows(struct api_work *work, struct api_monitors *monitors)
{
    struct history *h = (struct history *)work;
    struct api_monitor *monitor = find(h, monitors);
    struct api_window_list list;
    if (!monitor)
        return api_intake_find(h->x, &work->problem);
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(h->page.from),
                                   API_INTEGER(h->page.to),  API_INTEGER(h->start),
                                   API_INTEGER(h->id),       API_INTEGER(h->page.limit + 1)};
    bool good = api_window_list_run(&list, monitors->store, API_SQL_WINDOWS, of) &&
                view_all(h, monitors, monitor, &list);
    api_window_list_free(&list);
    return good;
}

/* Reads a cursor "start_id". */
static bool read_cursor(struct history *h)
{
    int64_t last[] = {INT64_MAX, INT64_MAX};
    bool good = api_page_cursor(&h->page, last, 2, &h->x->problem);
    h->start = last[0];
    h->id = last[1];
    return good;
}

/* Decides between JSON and CSV, by ?format or by Accept. */
static bool choose_format(struct history *h)
{
    struct api_exchange *x = h->x;
    const char *format = api_page_text(&h->page, "format");
    const char *accept = api_request_header(&x->request, "Accept");
    if (format && strcmp(format, "csv") != 0 && strcmp(format, "json") != 0)
        return api_fail_at(&x->problem, API_QUERY, "format", "option_invalid",
                           "format must be json or csv");
    h->as_csv = format ? strcmp(format, "csv") == 0
                       : accept && api_accept_quality(accept, "text/csv") >
                                       api_accept_quality(accept, "application/json");
    return true;
}

bool api_windows_prepare(struct api_exchange *x, double most_ns)
{
    static const char *const known[] = {"from", "to", "limit", "cursor", "format", NULL};
    bool fresh;
    (void)most_ns;
    if (!prepare(x, &fresh))
        return false;
    struct history *h = x->state;
    return !fresh || (api_page_read(&h->page, x->request.query, known, &x->problem) &&
                      read_cursor(h) && choose_format(h) && submit(h, read_windows));
}

static void write_cell(struct api_buffer *out, double number)
{
    api_append(out, ",", 1);
    if (isinf(number))
        api_append_text(out, "+Inf");
    else if (!isnan(number))
        api_write_number(out, number);
}

static void write_row(const struct api_view *view, struct api_buffer *out)
{
    struct api_scores scores;
    const struct api_window *window = &view->window;
    api_view_score(view, &scores, NULL);
    api_append_format(out, "%" PRId64 ",", window->id);
    api_write_bare_time(out, window->start);
    api_append(out, ",", 1);
    api_write_bare_time(out, window->end);
    api_append_format(out, ",%s,%s,%" PRId64, window->closed ? "true" : "false",
                      window->restated ? "true" : "false", window->revision);
    write_cell(out, scores.drift.n);
    write_cell(out, scores.drift.kl);
    write_cell(out, scores.drift.kl_reverse);
    write_cell(out, scores.drift.js);
    write_cell(out, scores.drift.psi);
    write_cell(out, scores.drift.p_value);
    api_append_format(out, ",%s\r\n", api_verdict_names[scores.verdict]);
}

/* Writes the cursor of the next page, where there is one. */
static void write_next(const struct history *h, struct api_buffer *out)
{
    const struct api_window *last = h->n > 0 ? &h->views[h->n - 1]->window : NULL;
    if (h->more && last)
        api_append_format(out, "\"%" PRId64 "_%" PRId64 "\"", last->start, last->id);
    else
        api_append_text(out, "null");
}

static bool write_csv(struct api_exchange *x, const struct history *h)
{
    struct api_buffer *out = &x->response.body;
    const struct api_window *last = h->n > 0 ? &h->views[h->n - 1]->window : NULL;
    x->response.content_type = "text/csv; charset=utf-8; header=present";
    if (h->more && last) {
        snprintf(x->response.header_text, sizeof x->response.header_text, "%" PRId64 "_%" PRId64,
                 last->start, last->id);
        api_response_header(&x->response, "Next-Cursor", x->response.header_text);
    }
    api_append_text(
        out, "id,start,end,closed,restated,revision,n,kl,kl_reverse,js,psi,p_value,verdict\r\n");
    for (size_t i = 0; i < h->n; i++)
        write_row(h->views[i], out);
    return true;
}

bool api_windows(struct api_exchange *x)
{
    const struct history *h = x->state;
    struct api_buffer *out = &x->response.body;
    api_response_header(&x->response, "Vary", "Accept");
    if (h->as_csv)
        return write_csv(x, h);
    api_intake_response(x);
    api_append_text(out, "{\"windows\":[");
    for (size_t i = 0; i < h->n; i++) {
        api_append_text(out, i ? ",{" : "{");
        api_view_write(h->views[i], false, out);
        api_append(out, "}", 1);
    }
    api_append_text(out, "],\"next\":");
    write_next(h, out);
    api_append_text(out, "}\n");
    return true;
}

/* ---- One window */

static bool read_window(struct api_work *work, struct api_monitors *monitors)
{
    struct history *h = (struct history *)work;
    struct api_monitor *monitor = find(h, monitors);
    struct api_window_list list;
    const char *which = h->x->captures.value[2];
    if (!monitor)
        return api_intake_find(h->x, &work->problem);
    const struct api_datum by_id[] = {API_INTEGER(monitor->id), API_INTEGER(h->id)},
                           by_revision[] = {API_INTEGER(monitor->id),
                                            API_INTEGER(monitor->revision)};
    bool latest = strcmp(which, "latest") == 0, current = strcmp(which, "current") == 0;
    bool good = api_window_list_run(&list, monitors->store,
                                    latest    ? API_SQL_WINDOW_LATEST
                                    : current ? API_SQL_WINDOW_OPEN
                                              : API_SQL_WINDOW,
                                    latest || current ? by_revision : by_id) &&
                view_all(h, monitors, monitor, &list);
    if (good && list.n == 0)
        good =
            api_fail(&work->problem, "window_not_found", "there is no %swindow%s%.40s of '%.128s'",
                     latest    ? "closed "
                     : current ? "open "
                               : "",
                     latest || current ? "" : " ", latest || current ? "" : which, monitor->name);
    api_window_list_free(&list);
    return good;
}

bool api_window_prepare(struct api_exchange *x, double most_ns)
{
    static const char *const known[] = {NULL};
    const char *which = x->captures.value[2];
    bool fresh;
    (void)most_ns;
    if (!prepare(x, &fresh))
        return false;
    struct history *h = x->state;
    if (!fresh)
        return true;
    if (!api_page_numbers(which, &h->id, 1) && strcmp(which, "latest") != 0 &&
        strcmp(which, "current") != 0)
        return api_fail(&x->problem, "window_not_found",
                        "there is no window '%.40s'; there are latest, current, and numbers",
                        which);
    return api_page_read(&h->page, x->request.query, known, &x->problem) && submit(h, read_window);
}

bool api_window_show(struct api_exchange *x)
{
    const struct history *h = x->state;
    struct api_buffer *out = &x->response.body;
    api_intake_response(x);
    api_append_text(out, "{\"group\":");
    api_append_json_string(out, api_group_of(x));
    api_append_text(out, ",\"name\":");
    api_append_json_string(out, api_name_of(x));
    api_append(out, ",", 1);
    api_view_write(h->views[0], true, out);
    api_append_text(out, "}\n");
    return true;
}

/* ---- Events */

static void add_event(void *context, const struct api_datum *values)
{
    struct history *h = context;
    h->events[h->n++] = (struct event){.id = values[0].integer,
                                       .at = values[1].integer,
                                       .from = api_verdict_of(values[2].integer),
                                       .to = api_verdict_of(values[3].integer),
                                       .kl = api_datum_number(&values[4]),
                                       .window = values[5].integer};
}

static bool read_events(struct api_work *work, struct api_monitors *monitors)
{
    struct history *h = (struct history *)work;
    const struct api_monitor *monitor = find(h, monitors);
    if (!monitor)
        return api_intake_find(h->x, &work->problem);
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(h->id),
                                   API_INTEGER(h->page.limit + 1)};
    free(h->events);
    h->events = calloc(h->page.limit + 1, sizeof *h->events);
    h->n = 0;
    if (!h->events)
        return api_work_out_of_memory(monitors);
    if (!api_store_run(monitors->store, API_SQL_EVENTS, of, &(struct api_rows){add_event, h}))
        return false;
    h->more = h->n > h->page.limit;
    h->n -= h->more;
    return true;
}

bool api_events_prepare(struct api_exchange *x, double most_ns)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    bool fresh;
    (void)most_ns;
    if (!prepare(x, &fresh))
        return false;
    struct history *h = x->state;
    if (!fresh)
        return true;
    h->id = INT64_MAX;
    return api_page_read(&h->page, x->request.query, known, &x->problem) &&
           api_page_cursor(&h->page, &h->id, 1, &x->problem) && submit(h, read_events);
}

bool api_events(struct api_exchange *x)
{
    const struct history *h = x->state;
    struct api_buffer *out = &x->response.body;
    api_intake_response(x);
    api_append_text(out, "{\"events\":[");
    for (size_t i = 0; i < h->n; i++) {
        const struct event *event = &h->events[i];
        api_append_text(out, i ? ",{\"at\":" : "{\"at\":");
        api_write_time(out, event->at);
        api_append_format(out, ",\"from\":\"%s\",\"to\":\"%s\"", api_verdict_names[event->from],
                          api_verdict_names[event->to]);
        api_write_member(out, "kl", event->kl);
        api_append_format(out, ",\"infinite\":%s,\"window\":%" PRId64 "}",
                          isinf(event->kl) ? "true" : "false", event->window);
    }
    api_append_text(out, "],\"next\":");
    if (h->more && h->n > 0)
        api_append_format(out, "\"%" PRId64 "\"", h->events[h->n - 1].id);
    else
        api_append_text(out, "null");
    api_append_text(out, "}\n");
    return true;
}
