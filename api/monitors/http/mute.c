/* POST and DELETE of the mute of a group or a monitor: until a time nobody is told about it. */
#include "api/monitors/http/endpoints.h"

#include "api/json/format.h"
#include "api/monitors/http/request.h"

#include <string.h>

#define EXAMPLE "{\"seconds\": 3600}"

/* Reads the end of a mute, which has not passed: a time, or seconds from now. */
static bool read_end(const json_t *until, const json_t *seconds, int64_t *end,
                     struct api_problem *problem)
{
    double length = json_number_value(seconds);
    int64_t now = api_now();
    if (!until == !seconds)
        return api_fail_at(problem, API_BODY, "#", "option_invalid",
                           "a mute has either until or seconds, such as " EXAMPLE);
    if (seconds)
        return (json_is_number(seconds) && length >= 1 &&
                api_time_from_seconds((double)now / API_SECOND_US + length, end) && *end > now) ||
               api_fail_at(problem, API_BODY, "#/seconds", "option_invalid",
                           "seconds must be a number from 1 on, before the year 9999");
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
    bool good = api_load_json(x, &json) &&
                api_read_members(json.root, known, values, EXAMPLE, &x->problem) &&
                read_end(values[UNTIL], values[SECONDS], &mute->until, &x->problem) &&
                (!values[REASON] || api_read_text(values[REASON], known[REASON],
                                                  API_MAX_MUTE_REASON, mute->reason, &x->problem));
    mute->of_group = !api_name_of(x);
    memcpy(mute->by, x->token.name, sizeof mute->by);
    api_json_free(&json);
    return good;
}

static bool mute(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_mute mute = api_no_mute;
    struct api_buffer *out = &x->response.body;
    const char *group = api_group_of(x), *name = api_name_of(x);
    monitors->looks_for_silence = true;
    if (!read_body(x, &mute) || !api_check_exists(x, monitors))
        return false;
    api_write_names(out, group, name);
    api_append_text(out, ",\"muted\":");
    api_mute_write(&mute, out);
    api_append_text(out, "}\n");
    return api_store_run(monitors->store, API_SQL_MUTE_PUT,
                         API_ROW(group, api_stored_name(x), mute.until, mute.reason, mute.by));
}

static bool unmute(struct api_exchange *x, struct api_monitors *monitors)
{
    monitors->looks_for_silence = true;
    return api_check_exists(x, monitors) &&
           api_store_run(monitors->store, API_SQL_MUTE_DELETE,
                         API_ROW(api_group_of(x), api_stored_name(x)));
}

const struct api_steps api_mute = {
    .place = API_STORE_WRITES, .small = "a mute", .check = api_check_change, .handle = mute};
const struct api_steps api_unmute = {
    .place = API_STORE_WRITES, .check = api_check_change, .handle = unmute};
