#include "api/steps.h"

#include "api/memory/freelist.h"
#include "api/monitors/http/segments.h"
#include "api/monitors/monitors.h"
#include "api/monitors/test.h"
#include "api/request/body.h"
#include "api/request/coding.h"
#include "api/text/clock.h"

#include <stdlib.h>
#include <string.h>

/* MAX_REPLACED: how often monitors may be replaced while a request waits; then it ends. */
enum { MAX_REPLACED = 20 };

static const struct api_steps *steps_of(const struct api_exchange *x)
{
    return x->response.endpoint->steps;
}

/* ---- The state */

static bool make_state(struct api_exchange *x)
{
    const struct api_steps *steps = steps_of(x);
    if (steps->state == 0 || x->state)
        return true;
    x->state = steps->kept ? api_freelist_get(steps->kept) : calloc(1, steps->state);
    if (!x->state && steps->kept)
        x->state = malloc(steps->state);
    return x->state || api_fail_oom(&x->problem);
}

static void drop(struct api_exchange *x)
{
    const struct api_steps *steps = steps_of(x);
    api_segments_drop(x);
    if (steps->drop && x->is_parsed)
        steps->drop(x);
    x->is_parsed = false;
}

void api_steps_end(struct api_exchange *x)
{
    if (x->state) {
        drop(x);
        if (steps_of(x)->kept)
            api_freelist_put(steps_of(x)->kept, x->state);
        else
            free(x->state);
        x->state = NULL;
    }
    api_segments_end(x);
    api_known_release(x->known);
    x->known = NULL;
    api_buffer_free(&x->inflated);
}

/* ---- In the store's thread */

static bool run(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_exchange *x = job->x;
    const struct api_steps *steps = steps_of(x);
    x->outcome = steps->run ? steps->run(x, monitors) : API_DONE;
    return x->outcome != API_FAILED;
}

static bool read_back(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_exchange *x = job->x;
    const struct api_steps *steps = steps_of(x);
    return x->outcome != API_DONE || !steps->read_back || steps->read_back(x, monitors);
}

/* Lets the endpoint write its response, which it may have done before in a transaction that failed. */
static bool handle(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_exchange *x = job->x;
    struct api_response *response = &x->response;
    response->body.size = response->n_headers = 0;
    response->body.failed = false;
    x->outcome = API_DONE;
    x->status = 0;
    return steps_of(x)->handle(x, monitors) &&
           (!response->body.failed || api_fail_oom(&x->problem));
}

/* Has the store's thread read the monitors of the path. */
static bool refresh(struct api_store_job *job, struct api_monitors *monitors)
{
    struct api_exchange *x = job->x;
    return x->captures.n == 0 ||
           (api_know_again(x, monitors) && (!x->segments || api_segments_know(x, monitors)));
}

/* Begins to wait: for the steps in the store, or for the monitors of the path. */
static void wait_for_store(struct api_exchange *x)
{
    bool refreshes = x->outcome == API_REFRESH, handles = steps_of(x)->handle != NULL;
    x->cost_ns = 0;
    x->job.done = false;
    x->job.x = x;
    x->job.problem = &x->problem;
    x->job.exclusive = !refreshes && x->place == API_STORE_WRITES;
    x->job.is_probe = x->response.endpoint->flags & API_PROBE;
    x->job.run = refreshes ? refresh : !handles ? run : x->job.exclusive ? handle : NULL;
    x->job.read_back = refreshes ? NULL : !handles ? read_back : x->job.exclusive ? NULL : handle;
    x->work = &x->job;
}

static void parse_again(struct api_exchange *x)
{
    drop(x);
    if (x->state)
        memset(x->state, 0, steps_of(x)->state);
    x->phase = API_ESTIMATE;
}

/* Goes on after the job is done. */
static bool take_back(struct api_exchange *x)
{
    x->work = NULL;
    if (x->problem.code && !x->job.is_probe)
        return false;
    x->problem = (struct api_problem){0}; /* a probe is answered without the store */
    switch (x->outcome) {
    case API_REFRESH:
        x->is_refreshed = true;
        parse_again(x);
        return true;
    case API_PARSE_AGAIN:
        if (x->captures.n > 0)
            api_forget_known(x);
        x->is_refreshed = false;
        parse_again(x);
        return ++x->replaced < MAX_REPLACED ||
               api_fail(&x->problem, "overloaded",
                        "the monitor was replaced too often meanwhile; try again");
    default:
        x->is_stored = x->place == API_STORE_ADDS || x->place == API_STORE_WRITES;
        x->phase = API_WRITE;
        return true;
    }
}

/* ---- Steps */

/* Undoes the coding of the body, after which a small one may be too large. */
static bool begin(struct api_exchange *x, double max_ns)
{
    api_body_find_coding(x);
    bool is_coded = !api_coding_is_none(x->coding);
    double start = is_coded ? api_seconds() : 0;
    x->cost_ns = 0;
    x->inflated.budget = x->service->budget;
    if (is_coded && !api_body_undo_coding(x, &x->inflated, max_ns))
        return false;
    if (is_coded)
        x->response.decode_ms += 1e3 * (api_seconds() - start);
    if (x->cost_ns > max_ns)
        return true;
    x->phase = API_ESTIMATE;
    return api_body_check_small(x, x->request.body_size);
}

static bool parse(struct api_exchange *x)
{
    const struct api_steps *steps = steps_of(x);
    x->cost_ns = 0;
    x->place = steps->place;
    x->is_parsed = true;
    x->job.key = NULL;
    x->job.counts = x->job.n_touches = 0;
    x->outcome = steps->parse ? steps->parse(x) : API_DONE;
    if (x->outcome == API_REFRESH)
        wait_for_store(x);
    else
        x->phase = API_RUN;
    return x->outcome != API_FAILED;
}

static bool run_here(struct api_exchange *x)
{
    const struct api_steps *steps = steps_of(x);
    x->cost_ns = 0;
    x->phase = API_WRITE;
    return !steps->run || steps->place != API_HERE || steps->run(x, NULL) == API_DONE;
}

static bool take_step(struct api_exchange *x, double max_ns)
{
    const struct api_steps *steps = steps_of(x);
    switch (x->phase) {
    case API_BEGIN:
        return make_state(x) && begin(x, max_ns);
    case API_ESTIMATE:
        x->cost_ns = 0;
        x->phase = API_PARSE;
        return !steps->estimate || steps->estimate(x);
    case API_PARSE:
        return parse(x);
    case API_RUN:
        if (x->place == API_HERE)
            return run_here(x);
        wait_for_store(x);
        return true;
    case API_WRITE:
        break;
    }
    return true;
}

bool api_steps_take(struct api_exchange *x, double max_ns)
{
    bool is_heavy = x->response.endpoint->flags & API_HEAVY;
    if (x->work && x->job.done && !take_back(x))
        return false;
    while (!x->work && x->phase != API_WRITE && x->cost_ns <= max_ns)
        if (!take_step(x, max_ns))
            return false;
    if (x->phase == API_WRITE && is_heavy && x->cost_ns < 2 * API_LIGHT_NS)
        x->cost_ns = 2 * API_LIGHT_NS;
    return true;
}

bool api_steps_write(struct api_exchange *x)
{
    struct api_response *response = &x->response;
    if (!steps_of(x)->handle)
        return steps_of(x)->write(x);
    bool is_empty = response->body.size == 0;
    response->status = x->status ? x->status : is_empty ? 204 : 200;
    response->content_type = is_empty ? NULL : "application/json";
    return true;
}

bool api_steps_submit(struct api_exchange *x)
{
    struct api_monitors *monitors = x->service->monitors;
    if (x->place == API_NOTIFIER && x->outcome != API_REFRESH)
        return api_notify_test_submit(x->state, monitors->notifier);
    return api_monitors_submit(monitors, &x->job);
}
