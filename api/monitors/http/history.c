/* GET of windows. */
#include "api/monitors/http/endpoints.h"

#include "api/monitors/http/request.h"
#include "api/monitors/rows/window_load.h"

#include <string.h>

/* MAX_PAGE_BINS: counts of a page of windows, which the thread reads in some 30 ms. No window has more than
 * MAX_BINS: a former revision's may have more than the present one's. */
enum { MAX_PAGE_BINS = 100000, MAX_BINS = API_MAX_BINS + KL_OUTER_BINS };

/* Writes the counts of a window; null for one of another revision, whose bins are others. */
static void write_counts(const struct api_monitor *monitor, const struct api_snapshot *snapshot,
                         struct api_buffer *out)
{
    api_append_text(out, ",\"counts\":");
    if (snapshot->window.revision == monitor->revision)
        api_write_numbers(out, snapshot->counts, snapshot->config->bins.n_bins);
    else
        api_append_text(out, "null");
}

/* Writes a window, whose snapshot it takes, as members. */
static bool write_window(struct api_monitors *monitors, const struct api_monitor *monitor,
                         struct api_snapshot *snapshot, bool in_full, bool with_counts,
                         struct api_buffer *out)
{
    struct api_unseen unseen = {.objects.budget = monitors->budget};
    bool good = api_unseen_read(monitors->store, monitor->id, snapshot, &unseen);
    api_snapshot_write(snapshot, in_full, &unseen, out);
    if (with_counts)
        write_counts(monitor, snapshot, out);
    api_snapshot_release(snapshot);
    api_buffer_free(&unseen.objects);
    return good;
}

/* Writes windows of a list, up to the page's limit and MAX_PAGE_BINS. */
static bool write_page(struct api_page *page, struct api_monitors *monitors,
                       struct api_monitor *monitor, struct api_window_list *list, bool with_counts)
{
    struct api_buffer *out = &page->x->response.body;
    size_t n_bins = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct api_snapshot *snapshot;
        page->more = n_bins + MAX_BINS > MAX_PAGE_BINS;
        if (page->more || !api_page_add(page))
            return true;
        page->last[0] = list->windows[i].start;
        page->last[1] = list->windows[i].id;
        snapshot = api_snapshot_of(monitors, monitor, &list->windows[i]);
        if (!snapshot)
            return false;
        n_bins += snapshot->config->bins.n_bins;
        api_append(out, "{", 1);
        if (!write_window(monitors, monitor, snapshot, false, with_counts, out))
            return false;
        api_append(out, "}", 1);
    }
    return true;
}

static bool list_windows(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_page page;
    struct api_monitor *monitor = NULL;
    struct api_window_list list = {.n = 0};
    bool good = api_page_read(x, &page, API_NAMES("from", "to", "limit", "cursor", "counts")) &&
                api_page_begin(&page, "windows", 2);
    const char *counts = api_page_text(&page, "counts");
    bool with_counts = counts && strcmp(counts, "true") == 0;
    good = good &&
           (!counts || with_counts || strcmp(counts, "false") == 0 ||
            api_fail_at(&x->problem, API_QUERY, "counts", "option_invalid",
                        "counts must be true or false")) &&
           (monitor = api_monitor_of(x, monitors)) != NULL &&
           api_window_list_run(&list, monitors->store, API_SQL_WINDOWS,
                               API_ROW(monitor->id, page.from, page.to, page.after[0],
                                       page.after[1], page.limit + 1)) &&
           write_page(&page, monitors, monitor, &list, with_counts);
    api_window_list_free(&list);
    return api_page_end(&page, good);
}

static bool show_window(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_buffer *out = &x->response.body;
    struct api_monitor *monitor;
    struct api_snapshot *snapshot;
    const char *which = x->captures.value[2];
    bool latest = strcmp(which, "latest") == 0, current = strcmp(which, "current") == 0;
    int64_t id = 0;
    if (!latest && !current && !api_read_numbers(which, &id, 1))
        return api_fail(&x->problem, "window_not_found",
                        "there is no window '%.40s'; use latest, current or an id", which);
    if (!api_page_read_none(x) || !(monitor = api_monitor_of(x, monitors)) ||
        !api_snapshot_read(monitors, monitor,
                           latest    ? API_SQL_WINDOW_LATEST
                           : current ? API_SQL_WINDOW_OPEN
                                     : API_SQL_WINDOW,
                           API_ROW(monitor->id, latest || current ? monitor->revision : id),
                           &snapshot))
        return false;
    if (!snapshot)
        return api_fail(&x->problem, "window_not_found", "there is no %s%.40s of '%.128s'",
                        latest    ? "closed window"
                        : current ? "open window"
                                  : "window ",
                        latest || current ? "" : which, monitor->name);
    api_write_names(out, api_group_of(x), api_name_of(x));
    api_append(out, ",", 1);
    bool good = write_window(monitors, monitor, snapshot, true, false, out);
    api_append_text(out, "}\n");
    return good;
}

const struct api_steps api_windows = {
    .place = API_STORE_READS, .check = api_check_names, .handle = list_windows};
const struct api_steps api_window = {
    .place = API_STORE_READS, .check = api_check_names, .handle = show_window};
