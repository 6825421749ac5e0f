/* POST and DELETE of the mute of a group or a monitor: until a time nobody is told about it. */
#include "api/monitors/http/endpoints.h"

#include "api/json/format.h"
#include "api/monitors/http/request.h"
#include "api/monitors/silence.h"

#include <string.h>

#define EXAMPLE "{\"seconds\": 3600}"

/* muting: `mute` is the mute to store; its `until` is API_NO_TIME to end the present one. */
struct muting {
    struct api_mute mute;
};

/* ---- Body */

/* Reads the end of a mute, which has not passed: "ok", a time, or seconds from now. */
static bool read_end(const json_t *until, const json_t *seconds, bool of_group, int64_t *end,
                     struct api_problem *problem)
{
    double length = json_number_value(seconds);
    int64_t now = api_now();
    const char *text = json_string_value(until);
    if (!until == !seconds)
        return api_fail_at(problem, API_BODY, "#", "option_invalid",
                           "a mute has either until or seconds, such as " EXAMPLE);
    if (seconds)
        return (json_is_number(seconds) && length >= 1 &&
                api_time_from_seconds((double)now / API_SECOND_US + length, end) && *end > now) ||
               api_fail_at(problem, API_BODY, "#/seconds", "option_invalid",
                           "seconds must be a number from 1 on, before the year 9999");
    if (text && strcmp(text, "ok") == 0) {
        *end = API_UNTIL_OK;
        return !of_group ||
               api_fail_at(problem, API_BODY, "#/until", "option_invalid",
                           "until ok is for one monitor: a group is muted until a time, or for "
                           "seconds");
    }
    if (!api_read_time(until, API_BODY, "until", end, problem))
        return false;
    return *end > now || api_fail_at(problem, API_BODY, "#/until", "timestamp_invalid",
                                     "until has passed by this server's clock");
}

static bool read_body(struct api_exchange *x, struct api_mute *mute)
{
    enum { UNTIL, SECONDS, REASON, MEMBERS };
    const char *const *known = API_NAMES("until", "seconds", "reason");
    const json_t *values[MEMBERS];
    struct api_json json = {.budget = x->service->budget};
    bool good =
        api_load_json(x, &json) &&
        api_read_members(json.root, known, values, EXAMPLE, &x->problem) &&
        read_end(values[UNTIL], values[SECONDS], !api_name_of(x), &mute->until, &x->problem) &&
        (!values[REASON] || api_read_text(values[REASON], known[REASON], API_MAX_MUTE_REASON,
                                          mute->reason, &x->problem));
    mute->of_group = !api_name_of(x);
    memcpy(mute->by, x->token.name, sizeof mute->by);
    api_json_free(&json);
    return good;
}

/* ---- In the store's thread */

/* Writes the body within the transaction. */
static bool write_body(struct api_exchange *x)
{
    const struct muting *m = x->state;
    struct api_buffer *out = &x->response.body;
    out->size = 0;
    api_write_names(out, api_group_of(x), api_name_of(x));
    api_append_text(out, ",\"muted\":");
    api_mute_write(&m->mute, out);
    api_append_text(out, "}\n");
    return !out->failed || api_fail_oom(&x->problem);
}

/* Fails for a mute that would end at once. */
static bool check_ok(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_monitor *monitor = api_monitor_of(x, monitors);
    return monitor && (monitor->status.state >= API_WARNING || api_monitor_is_stale(monitor) ||
                       api_fail(&x->problem, "option_invalid",
                                "until is ok, and it is ok: a mute would end at once"));
}

/* Stores the mute, or deletes the present one. */
static enum api_outcome run(struct api_exchange *x, struct api_monitors *monitors)
{
    const struct muting *m = x->state;
    const struct api_mute *mute = &m->mute;
    const char *group = api_group_of(x), *name = api_stored_name(x);
    bool ends = mute->until == API_NO_TIME;
    monitors->looks_for_silence = true;
    return api_outcome_of(
        api_check_exists(x, monitors) && (mute->until != API_UNTIL_OK || check_ok(x, monitors)) &&
        (ends || api_silence_tell_mute(monitors, group, api_name_of(x), mute)) &&
        api_store_run(monitors->store, ends ? API_SQL_MUTE_DELETE : API_SQL_MUTE_PUT,
                      API_ROW(group, name, mute->until, mute->reason, mute->by)) &&
        (ends || write_body(x)));
}

/* ---- Steps */

static enum api_outcome parse_mute(struct api_exchange *x)
{
    struct muting *m = x->state;
    m->mute = api_no_mute;
    return api_outcome_of(read_body(x, &m->mute));
}

static enum api_outcome parse_unmute(struct api_exchange *x)
{
    struct muting *m = x->state;
    m->mute = api_no_mute;
    return API_DONE;
}

static bool write_mute(struct api_exchange *x)
{
    api_begin_json(x);
    return true;
}

#define MUTES                                                                                      \
    .place = API_STORE_WRITES, .state = sizeof(struct muting), .check = api_check_change, .run = run
const struct api_steps api_mute = {.small = "a mute",
                                   .estimate = api_estimate_documents,
                                   .parse = parse_mute,
                                   .write = write_mute,
                                   MUTES};
const struct api_steps api_unmute = {.parse = parse_unmute, .write = api_write_nothing, MUTES};
