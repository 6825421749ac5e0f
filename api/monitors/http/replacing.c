/* Common steps of requests that make or replace monitors. */
#include "api/monitors/http/replacing.h"

#include "api/monitors/http/segments.h"
#include "api/monitors/model/settings.h"
#include "api/monitors/rows/columns.h"
#include "api/monitors/state/rejudge.h"
#include "api/request/response.h"

#include <stdlib.h>
#include <string.h>

/* ---- State */

bool api_replacing_begin(struct api_exchange *x, const char *const *known, bool takes_settings)
{
    struct api_replacing *d = x->state;
    d->x = x;
    d->list.budget = d->warnings.budget = d->columns.budget = x->service->budget;
    api_settings_init(&d->settings);
    d->parameters = api_settings_from_query(takes_settings ? &d->settings : NULL, x->request.query,
                                            known, &x->problem);
    d->include = json_string_value(json_object_get(d->parameters, "include"));
    d->exclude = json_string_value(json_object_get(d->parameters, "exclude"));
    const char *presence = json_string_value(json_object_get(d->parameters, "presence"));
    d->leaves_out = presence && strcmp(presence, "no") == 0;
    if (presence && !d->leaves_out && strcmp(presence, "yes") != 0)
        return api_fail_at(&x->problem, API_QUERY, "presence", "option_invalid",
                           "presence must be yes or no");
    const char *dry = json_string_value(json_object_get(d->parameters, "dry_run"));
    d->is_dry = dry && strcmp(dry, "true") == 0;
    if (d->is_dry)
        x->place = API_STORE_READS;
    return d->parameters && (!dry || d->is_dry || strcmp(dry, "false") == 0 ||
                             api_fail_at(&x->problem, API_QUERY, "dry_run", "option_invalid",
                                         "dry_run must be true or false"));
}

bool api_replacing_add(struct api_replacing *d, const char *name, struct api_config *config)
{
    static const struct api_replacement none = {.name = NULL};
    api_append(&d->list, &none, sizeof none);
    if (d->list.failed) {
        api_config_release(config);
        return api_fail_oom(&d->x->problem);
    }
    d->replacements = (void *)d->list.data;
    struct api_replacement *r = &d->replacements[d->n++];
    r->config = config;
    r->name = strdup(name);
    return r->name || api_fail_oom(&d->x->problem);
}

void api_replacing_clear(struct api_replacing *d)
{
    for (size_t i = 0; i < d->n; i++)
        api_replacement_free(&d->replacements[i]);
    d->n = d->list.size = 0;
}

void api_replacing_drop(struct api_exchange *x)
{
    struct api_replacing *d = x->state;
    api_replacing_clear(d);
    api_buffer_free(&d->list);
    api_buffer_free(&d->warnings);
    api_buffer_free(&d->left_out);
    api_buffer_free(&d->columns);
    json_decref(d->parameters);
}

/* ---- Response */

static void write_replaced(const struct api_replacing *d, size_t i, struct api_buffer *out)
{
    const struct api_replacement *r = &d->replacements[i];
    api_config_write(r->config->definition, r->config->others, api_group_of(d->x), r->name,
                     &r->state, r->revision, out);
}

/* Replays the windows of the one monitor of the path with its new settings. */
static bool write_preview(const struct api_replacing *d, struct api_monitors *monitors,
                          struct api_buffer *out)
{
    struct api_replay replay = {.n_events = 0};
    struct api_monitor *monitor = api_monitor_of(d->x, monitors);
    bool good = monitor && api_replay_windows(monitors, monitor, d->replacements->config, &replay);
    if (good)
        api_replay_write(&replay, out);
    api_replay_free(&replay);
    return good;
}

bool api_replacing_end_segment(struct api_replacing *d, bool is_read)
{
    static const char *const without_one[] = {"reference_empty", "nothing_to_compare",
                                              "columns_unknown", "column_missing", NULL};
    const char *code = d->x->problem.code;
    d->warnings.size = 0;
    json_decref(d->parameters); /* it is in the memory of the table's JSON */
    d->parameters = NULL;
    return is_read || (d->n == 0 && code && api_setting_is_among(code, without_one));
}

static size_t count_new(const struct api_replacing *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->replacements[i].is_new;
    return n;
}

static bool write_response(const struct api_replacing *d, struct api_monitors *monitors)
{
    struct api_exchange *x = d->x;
    const char *name = api_name_of(x);
    struct api_buffer *out = &x->response.body;
    bool good = true;
    if (name)
        write_replaced(d, 0, out);
    else
        api_write_names(out, api_group_of(x), NULL);
    api_append_text(out, name ? "" : ",\"monitors\":[");
    for (size_t i = 0; !name && i < d->n; i++) {
        api_append(out, ",", i > 0);
        write_replaced(d, i, out);
        api_append(out, "}", 1);
    }
    api_append_text(out, name ? "" : "]");
    if (!name || d->warnings.size > 0)
        api_write_warnings(&d->warnings, out);
    if (d->is_dry && d->previews) {
        api_append_text(out, name ? ",\"preview\":" : ",\"preview\":null");
        good = !name || write_preview(d, monitors, out);
    }
    api_append_text(out, "}\n");
    x->status = count_new(d) > 0 && !d->is_dry ? 201 : 200;
    if (!name || d->is_dry)
        return good;
    api_monitor_etag(d->replacements->id, d->replacements->version, x->response.header_text);
    api_response_header(&x->response, "ETag", x->response.header_text);
    return good;
}

/* ---- In the store's thread */

static bool change(struct api_replacing *d, struct api_monitors *monitors)
{
    struct api_exchange *x = d->x;
    const char *group = api_group_of(x), *name = api_name_of(x);
    struct api_monitor *monitor = NULL;
    bool good = !d->make ? !name || api_touch_named(monitors, group, name, &monitor)
                : name   ? (monitor = api_monitor_of(x, monitors)) != NULL
                         : api_check_exists(x, monitors);
    if (!good || !api_check_conditions(x, monitor) || (d->make && !d->make(d, monitors)))
        return false;
    if (x->outcome == API_PARSE_AGAIN)
        return true;
    if (!api_change_configs(monitors, group, d->replacements, d->n, d->is_dry, &x->problem))
        return false;
    for (size_t i = 0; i < d->n; i++)
        api_warn_of_change(d, &d->replacements[i]);
    if (d->problem.code && (d->replacements->is_new || d->replacements->revises)) {
        x->problem = d->problem; /* labels of before they had a limit may stay */
        return false;
    }
    return d->make || d->is_dry || name ||
           (api_columns_leave_out(monitors, group, &d->columns) && api_columns_prune(monitors));
}

/* handling: segments of a request. */
struct handling {
    struct api_monitors *monitors;
    struct api_replacing *of_group;
    int status;   /* 201 if a monitor of one is new */
    size_t n_new; /* monitors */
};

static bool handle_segment(struct api_exchange *x, void *context)
{
    const struct api_replacing *d = x->state;
    struct handling *handling = context;
    x->response.body.size = 0;
    x->status = handling->status;
    bool good = d->n == 0 || api_replacing_handle(x, handling->monitors);
    handling->n_new += count_new(d);
    if (x->status > handling->status)
        handling->status = x->status;
    if (x->outcome == API_PARSE_AGAIN)
        handling->of_group->x->outcome = API_PARSE_AGAIN;
    return good;
}

/* Has a segment follow a change of its group. One without a window in the period stays as it is. */
static bool follow(struct api_exchange *x, void *context)
{
    struct handling *handling = context;
    struct api_replacing *d = x->state;
    bool good = x->response.endpoint->steps->parse(x) == API_DONE;
    d->counts_left = handling->of_group->counts_left;
    d->known_of_group = handling->of_group->x->known;
    good = good && api_replacing_handle(x, handling->monitors);
    handling->of_group->counts_left = d->counts_left;
    if (!good && x->problem.code && strcmp(x->problem.code, "windows_missing") == 0) {
        x->response.body.size = 0;
        good = true;
    }
    return good;
}

bool api_replacing_handle(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_replacing *d = x->state;
    size_t size = d->warnings.size; /* of those that parse made */
    bool good =
        change(d, monitors) && (x->outcome == API_PARSE_AGAIN || write_response(d, monitors));
    d->warnings.size = size;
    bool has_by = x->segments && x->segments->by, follows = d->reaches_segments && !api_name_of(x);
    if (!good || (!has_by && !follows))
        return good;
    struct handling handling = {monitors, d, x->status, count_new(d)};
    if (!(has_by ? api_segments_each(x, NULL, handle_segment, &handling)
                 : api_segments_follow(x, monitors, follow, &handling)) ||
        (d->is_dry && !api_check_new_monitors(monitors, handling.n_new, &x->problem)))
        return false;
    x->status = handling.status;
    api_segments_write(x);
    return true;
}
