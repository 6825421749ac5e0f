/* POST observations, of a group or of one monitor, and POST evaluate. */
#include "api/monitors/http/endpoints.h"

#include "api/json/format.h"
#include "api/monitors/http/parse.h"
#include "api/monitors/state/window_load.h"
#include "api/request/body.h"
#include "api/request/response.h"

#include <stdlib.h>
#include <string.h>

/* TRIES: how often observations are read again after the monitor was replaced meanwhile. MAX_KEY:
 * characters of an Idempotency-Key. */
enum { TRIES = 20, MAX_KEY = 255 };

void api_post_end(struct api_exchange *x)
{
    struct api_observations *o = x->state;
    api_observations_drop(o);
    api_buffer_free(&o->inflated);
    api_buffer_free(&o->pairs);
    free(o);
}

/* ---- Header */

static bool check_key(struct api_exchange *x)
{
    const char *key = api_request_header(&x->request, "Idempotency-Key");
    return !key || (*key && strlen(key) <= MAX_KEY) ||
           api_fail(&x->problem, "idempotency_key_invalid",
                    "Idempotency-Key must have 1 to 255 characters");
}

bool api_post_begin(struct api_exchange *x)
{
    return api_check_names(x) && api_check_may_exist(x) && check_key(x) && api_check_body(x);
}

/* ---- Evaluation */

/* Makes the snapshot of counts that are not stored, compared with the config's reference. */
static bool snapshot_counts(struct api_observations *o, struct api_observed *observed)
{
    struct api_snapshot *snapshot = api_snapshot_new(observed->held.config);
    observed->snapshot = snapshot;
    if (!snapshot || (snapshot->settings.previous == 0 && !api_snapshot_refer(snapshot)))
        return api_fail_oom(&o->x->problem);
    for (size_t i = 0; i < observed->held.config->bins.n_bins; i++)
        snapshot->counts[i] = (double)observed->counting.counts[i];
    snapshot->window.revision = observed->held.revision;
    snapshot->state = observed->held.state;
    api_unseen_write_top(&observed->counting.unseen, &observed->unseen);
    return true;
}

/* Makes the snapshots of all columns. *needs_store is true if one is compared with windows. */
static bool snapshot_columns(struct api_observations *o, bool *needs_store)
{
    for (size_t i = 0; i < o->n; i++) {
        if (!snapshot_counts(o, &o->observed[i]))
            return false;
        *needs_store |= o->observed[i].snapshot->settings.previous > 0;
    }
    return true;
}

/* Reads the references of an evaluation: the last closed windows before its time. */
static bool run_evaluation(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_observations *o = (struct api_observations *)job;
    const struct api_position before = {o->time, INT64_MAX};
    for (size_t i = 0; i < o->n; i++) {
        struct api_observed *observed = &o->observed[i];
        if (observed->snapshot->settings.previous > 0 &&
            !api_snapshot_compare(monitors, observed->held.id, NULL, before, observed->snapshot))
            return false;
    }
    return true;
}

/* ---- Steps */

/* Makes room for the response before anything is stored: a request that is refused for want of memory must
 * not be counted. */
static bool reserve_response(struct api_observations *o)
{
    enum { OVERHEAD = 200, ESCAPE_FACTOR = 6, WARNING = 1200 };
    size_t size =
        OVERHEAD + WARNING + o->warnings.size + ESCAPE_FACTOR * strlen(api_group_of(o->x));
    for (size_t i = 0; i < o->n; i++)
        size += api_config_result_size(o->observed[i].held.config) +
                ESCAPE_FACTOR * strlen(o->observed[i].name);
    return (api_buffer_reserve(&o->x->response.body, size) &&
            api_buffer_reserve(&o->warnings, o->warnings.size + WARNING)) ||
           api_fail_oom(&o->x->problem);
}

/* True if this server knows the monitor, or a monitor of the group. */
static bool knows(struct api_exchange *x)
{
    struct api_problem ignored = {0};
    return api_find_monitor(x, &ignored);
}

/* True for a problem that bodies have by the monitors that they are for, which may be others by now. */
static bool is_of_monitors(const struct api_problem *problem)
{
    int status = api_problem_status(problem);
    return status == 422 || status == 404;
}

/* Has the store's thread look at what other servers changed, after which the body is read again. */
static bool catch_up(struct api_observations *o)
{
    o->x->problem.code = NULL;
    o->is_read = o->stale = o->caught_up = true;
    o->job = (struct api_store_job){.is_concurrent = true};
    o->x->work = &o->job;
    return true;
}

/* Reads the body, and hands what it holds to the store. */
static bool read_body(struct api_observations *o, double max_ns)
{
    struct api_exchange *x = o->x;
    if (!api_body_undo_coding(x, &o->inflated, max_ns))
        return false;
    if (x->cost_ns <= max_ns)
        x->cost_ns = api_table_cost(x);
    if (x->cost_ns > max_ns)
        return true;
    bool behind = api_cache_may_be_stale(x) && !o->caught_up;
    if (behind && (o->evaluates || !knows(x)))
        return catch_up(o);
    if (!api_parse(o))
        return behind && is_of_monitors(&x->problem) && catch_up(o);
    if (behind && (o->unknown > 0 || o->n == 0))
        return catch_up(o);
    o->is_read = true;
    bool needs_store = !o->evaluates;
    if (o->evaluates && !snapshot_columns(o, &needs_store))
        return false;
    o->job = (struct api_store_job){.is_concurrent = true,
                                    .key = o->has_key ? o->key : NULL,
                                    .run = o->evaluates ? run_evaluation : api_apply_run,
                                    .read_back = o->evaluates ? NULL : api_apply_read_back};
    for (size_t i = 0; i < o->n; i++)
        o->job.counts += o->observed[i].held.config->bins.n_bins;
    if (o->n > 0 && needs_store)
        x->work = &o->job;
    return reserve_response(o);
}

/* Goes on after the store has done its work. */
static bool after_work(struct api_observations *o, double max_ns)
{
    struct api_exchange *x = o->x;
    if (x->problem.code)
        return false;
    if (o->unfinished) {
        x->work = &o->job;
        return true;
    }
    x->is_stored = !o->stale && !o->evaluates;
    if (!o->stale)
        return true;
    if (++o->tries == TRIES)
        return api_fail(&x->problem, "overloaded",
                        "the monitor was replaced too often meanwhile; try again");
    api_observations_drop(o);
    o->is_read = o->stale = false;
    return api_find_monitor(x, &x->problem) && read_body(o, max_ns);
}

static bool prepare(struct api_exchange *x, bool evaluates, double max_ns)
{
    struct api_observations *o = api_request_state(x, sizeof *o);
    if (!o)
        return false;
    o->x = x;
    o->evaluates = evaluates;
    o->inflated.budget = o->warnings.budget = x->service->budget;
    if (api_job_finished(x, &o->job) ? !after_work(o, max_ns)
                                     : !x->work && !o->is_read && !read_body(o, max_ns))
        return false;
    if (o->is_read && !x->work) { /* the response is left to do */
        x->cost_ns = 0;
        for (size_t i = 0; i < o->n; i++)
            x->cost_ns += api_config_result_ns(o->observed[i].held.config);
    }
    return true;
}

bool api_post_prepare(struct api_exchange *x, double max_ns) { return prepare(x, false, max_ns); }

bool api_evaluate_prepare(struct api_exchange *x, double max_ns)
{
    return prepare(x, true, max_ns);
}

/* Tells of monitors whose newest window lies ahead of the clock, as it does after the clock was wrong. */
static void warn_of_windows_ahead(struct api_observations *o)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        if (o->observed[i].is_behind && n++ == 0)
            first = o->observed[i].name;
    if (first)
        api_warn(&o->warnings, "window_ahead", first, n, 0,
                 "the newest window lies more than a day ahead of this server's clock; state and "
                 "retention are those of the windows before it");
}

/* Writes the results; false if there is none for a single monitor. */
static bool write_results(const struct api_observations *o, struct api_buffer *out)
{
    bool single = api_name_of(o->x) != NULL, first = true;
    api_write_names(out, api_group_of(o->x), NULL);
    api_append_text(out, single ? "," : ",\"monitors\":[");
    for (size_t i = 0; i < o->n; i++) {
        if (!o->observed[i].snapshot)
            continue;
        api_append_text(out, single ? "" : first ? "{" : ",{");
        first = false;
        api_append_text(out, "\"name\":");
        api_append_json_string(out, o->observed[i].name);
        api_append(out, ",", 1);
        api_snapshot_write(o->observed[i].snapshot, true, &o->observed[i].unseen, out);
        api_append(out, "}", !single);
    }
    api_append_text(out, single ? ",\"warnings\":[" : "],\"warnings\":[");
    api_append(out, o->warnings.data, o->warnings.size);
    api_append_text(out, "]}\n");
    return !single || !first;
}

/* Writes the response of a request that is stored, without results: memory was exhausted after the commit. What
 * was reserved has room for it. */
static void cut_results(const struct api_observations *o, struct api_buffer *out)
{
    out->size = 0;
    out->failed = false;
    api_write_names(out, api_group_of(o->x), NULL);
    if (!api_name_of(o->x))
        api_append_text(out, ",\"monitors\":[]");
    api_append_text(out,
                    ",\"warnings\":[{\"code\":\"results_cut\",\"message\":\"stored; memory was "
                    "exhausted before the results were written\",\"column\":\"\","
                    "\"count\":null,\"line\":null}]}\n");
}

bool api_post(struct api_exchange *x)
{
    struct api_observations *o = x->state;
    api_begin_json(x);
    if (o->replayed)
        api_response_header(&x->response, "Idempotent-Replayed", "true");
    warn_of_windows_ahead(o);
    if (!write_results(o, &x->response.body))
        return api_fail(&x->problem, "window_not_found",
                        "the request was stored before, but its window has been deleted");
    if (x->response.body.failed && x->is_stored)
        cut_results(o, &x->response.body);
    x->response.elements = 0;
    return true;
}
