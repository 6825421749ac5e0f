/* POST observations, of a group or of one monitor, and POST evaluate. */
#include "api/monitors/http/endpoints.h"

#include "api/json/format.h"
#include "api/monitors/http/parse.h"
#include "api/monitors/http/segments.h"
#include "api/monitors/rows/window_load.h"
#include "api/request/response.h"

#include <string.h>

/* MAX_KEY: characters of an Idempotency-Key. */
enum { MAX_KEY = 255 };

static void drop(struct api_exchange *x)
{
    struct api_observations *o = x->state;
    api_observations_drop(o);
    api_buffer_free(&o->pairs);
}

/* ---- Header */

static bool check_key(struct api_exchange *x)
{
    const char *key = api_request_header(&x->request, "Idempotency-Key");
    return !key || (*key && strlen(key) <= MAX_KEY) ||
           api_fail(&x->problem, "idempotency_key_invalid",
                    "Idempotency-Key must have 1 to 255 characters");
}

static bool check(struct api_exchange *x)
{
    return api_check_names(x) && check_key(x) && api_check_body(x);
}

/* ---- Evaluation */

/* Makes the snapshot of counts that are not stored, compared with the config's reference. */
static bool snapshot_counts(struct api_observations *o, struct api_observed *observed)
{
    struct api_snapshot *snapshot = api_snapshot_new(observed->known->config);
    struct api_part *part = observed->counting.parts;
    observed->snapshot = snapshot;
    if (!snapshot || (snapshot->settings.previous == 0 && !api_snapshot_refer(snapshot)))
        return api_fail_oom(&o->x->problem);
    for (size_t i = 0; i < observed->known->config->bins.n_bins; i++)
        snapshot->counts[i] = (double)part->tally.counts[i];
    snapshot->window.moments = part->tally.moments;
    snapshot->window.revision = observed->known->revision;
    api_unseen_write_top(&part->unseen, &observed->unseen);
    snapshot->unseen = observed->unseen.kept;
    return true;
}

bool api_snapshot_columns(struct api_observations *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (!snapshot_counts(o, &o->observed[i]))
            return false;
    return true;
}

/* Reads the states, and the references of an evaluation: the last closed windows before its time. */
static enum api_outcome run_evaluation(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_observations *o = x->state;
    const struct api_position before = {o->time, INT64_MAX};
    bool are_same;
    if (!api_observations_touch(o, monitors, &are_same))
        return API_FAILED;
    if (!are_same)
        return API_PARSE_AGAIN;
    if (!api_check_reads(o))
        return API_FAILED;
    for (size_t i = 0; i < o->n; i++) {
        struct api_observed *observed = &o->observed[i];
        if (observed->monitor->version != observed->known->version)
            return API_PARSE_AGAIN; /* by the settings of before */
        observed->snapshot->state = observed->monitor->status.state;
        if (observed->snapshot->settings.previous > 0 &&
            !api_snapshot_compare(monitors, observed->known->id, before, observed->snapshot))
            return API_FAILED;
    }
    return API_DONE;
}

/* ---- Steps */

/* Makes room for the shortest response before anything is stored: a request that is refused because memory is short must not be
 * counted. */
static bool reserve_response(struct api_exchange *x)
{
    enum { SHORTEST = 2 << 10 };
    return api_buffer_reserve(&x->response.body, SHORTEST) || api_fail_oom(&x->problem);
}

/* Counts of the columns, which the store reads or writes; a former window takes as long as one of these. */
static size_t count_bins(const struct api_observations *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++) {
        const struct api_config *config = o->observed[i].known->config;
        size_t former = (size_t)config->settings.previous;
        n += (config->bins.n_bins + former) * api_observed_windows(&o->observed[i]);
    }
    return n;
}

double api_results_ns(const struct api_observations *o)
{
    double ns = 0;
    for (size_t i = 0; i < o->n; i++)
        ns += api_config_result_ns(o->observed[i].known->config);
    return ns;
}

/* True for a problem that depends on the monitors, which other servers may have changed. */
static bool is_of_monitors(const struct api_problem *problem)
{
    int status = api_problem_status(problem);
    return status == 422 || status == 404;
}

/* Reads the body. If it does not fit the monitors that are in memory, and other servers may have changed them, they are read
 * again, and so is the body. */
static enum api_outcome read_body(struct api_exchange *x, bool is_stored)
{
    struct api_observations *o = x->state;
    o->x = x;
    o->warnings.budget = x->service->budget;
    bool wants_segments = is_stored && api_segments_wanted(x);
    if (x->problem.code)
        return API_FAILED;
    if (api_know(x) == API_REFRESH || (wants_segments && !x->is_refreshed))
        return API_REFRESH;
    if (x->known->n == 0)
        return api_outcome_of(api_fail_missing(x, x->known->has_group));
    bool good = api_parse(o, is_stored);
    if (api_may_be_outdated(x) &&
        (good ? o->unknown > 0 || o->n == 0 : is_of_monitors(&x->problem)))
        return API_REFRESH;
    if (good && is_stored && !x->segments && x->known->has_segments)
        api_warn(&o->warnings, "segments_left_out", "", 0, 0,
                 "the group has segments, and these rows count for the group alone: ?by= names the "
                 "column that makes segments");
    return api_outcome_of(good);
}

static enum api_outcome parse_observations(struct api_exchange *x)
{
    struct api_observations *o = x->state;
    enum api_outcome outcome = read_body(x, true);
    if (outcome != API_DONE)
        return outcome;
    x->job.counts = count_bins(o);
    x->place = o->n == 0                    ? API_HERE
               : o->is_timed || x->segments ? API_STORE_WRITES
                                            : API_STORE_ADDS;
    return api_outcome_of(api_list_touches(o) && reserve_response(x));
}

static enum api_outcome parse_evaluation(struct api_exchange *x)
{
    struct api_observations *o = x->state;
    enum api_outcome outcome = read_body(x, false);
    if (outcome != API_DONE)
        return outcome;
    x->job.counts = count_bins(o);
    return api_outcome_of(api_snapshot_columns(o));
}

/* ---- Segments */

/* running: a step of segments in the store's thread. */
struct running {
    struct api_monitors *monitors;
    enum api_outcome outcome; /* of the last segment */
    double reads;
};

static bool touch_segment(struct api_exchange *x, void *context)
{
    struct running *running = context;
    bool are_same, good = api_observations_touch(x->state, running->monitors, &are_same);
    running->outcome = !good ? API_FAILED : are_same ? API_DONE : API_PARSE_AGAIN;
    return running->outcome == API_DONE;
}

static bool run_segment(struct api_exchange *x, void *context)
{
    struct running *running = context;
    struct api_observations *o = x->state;
    o->reads_before = running->reads;
    running->outcome = api_apply_run(x, running->monitors);
    running->reads = o->reads;
    return running->outcome == API_DONE;
}

static bool read_segment_back(struct api_exchange *x, void *context)
{
    const struct running *running = context;
    return api_apply_read_back(x, running->monitors);
}

/* Nothing is stored before it is known that the monitors of all segments are the same. */
static enum api_outcome run_observations(struct api_exchange *x, struct api_monitors *monitors)
{
    struct running running = {.monitors = monitors, .outcome = API_DONE};
    if (!api_segments_each(x, NULL, touch_segment, &running))
        return running.outcome;
    enum api_outcome outcome = api_apply_run(x, monitors);
    running.reads = ((const struct api_observations *)x->state)->reads;
    if (outcome == API_DONE && !api_segments_each(x, NULL, run_segment, &running))
        return running.outcome;
    return outcome;
}

static bool count_cost(struct api_exchange *x, void *whole)
{
    ((struct api_exchange *)whole)->cost_ns += api_results_ns(x->state);
    return true;
}

static bool read_back(struct api_exchange *x, struct api_monitors *monitors)
{
    struct running running = {.monitors = monitors};
    x->cost_ns = api_results_ns(x->state);
    api_segments_each(x, NULL, count_cost, x);
    return (x->place != API_STORE_ADDS && x->place != API_STORE_WRITES) ||
           (api_apply_read_back(x, monitors) &&
            api_segments_each(x, NULL, read_segment_back, &running));
}

static bool is_ahead(const struct api_observed *observed) { return observed->is_window_ahead; }

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
        api_write_json(out, "'name':%s,", o->observed[i].known->name);
        api_snapshot_write(o->observed[i].snapshot, true, &o->observed[i].unseen, out);
        api_append(out, "}", !single);
    }
    api_append_text(out, single ? "" : "]");
    if (o->is_timed)
        api_timed_write(o, out);
    api_write_warnings(&o->warnings, out);
    api_append_text(out, "}\n");
    return !single || !first;
}

/* Writes the response of a request that is stored, without results, because memory ran out after the commit. The
 * memory that was reserved before has room for it. */
static void cut_results(const struct api_observations *o, struct api_buffer *out)
{
    out->size = 0;
    out->failed = false;
    api_write_names(out, api_group_of(o->x), NULL);
    if (!api_name_of(o->x))
        api_append_text(out, ",\"monitors\":[]");
    api_append_text(
        out, ",\"warnings\":[{\"code\":\"results_cut\",\"message\":\"stored; memory was exhausted "
             "before the results were written\",\"column\":\"\",\"count\":null,\"line\":null}]}\n");
}

static bool write_segment(struct api_exchange *x, void *whole)
{
    (void)whole;
    x->response.body.size = 0;
    write_results(x->state, &x->response.body);
    return true;
}

static bool write_response(struct api_exchange *x)
{
    struct api_observations *o = x->state;
    api_begin_json(x);
    if (o->replayed)
        api_response_header(&x->response, "Idempotent-Replayed", "true");
    api_warn_of_some(o, is_ahead, "window_ahead",
                     "the newest window lies more than a day ahead of this server's clock; state "
                     "and retention are those of the windows before it");
    if (!write_results(o, &x->response.body))
        return api_fail(&x->problem, "window_not_found",
                        "the request was stored before, but its window has been deleted");
    if (x->segments && api_segments_each(x, NULL, write_segment, NULL))
        api_segments_write(x);
    if (x->response.body.failed && x->is_stored)
        cut_results(o, &x->response.body);
    x->response.elements = 0;
    return true;
}

#define TAKES_A_TABLE                                                                              \
    .max_body = API_WHOLE_BODY, .state = sizeof(struct api_observations), .check = check,          \
    .estimate = api_estimate_table, .read_back = read_back, .write = write_response, .drop = drop
const struct api_steps api_observations = {
    .place = API_STORE_ADDS, .parse = parse_observations, .run = run_observations, TAKES_A_TABLE};
const struct api_steps api_evaluate = {
    .place = API_STORE_READS, .parse = parse_evaluation, .run = run_evaluation, TAKES_A_TABLE};
