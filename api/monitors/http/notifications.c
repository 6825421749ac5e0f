/* GET of the receivers of notifications, and POST of a test to one. */
#include "api/monitors/http/endpoints.h"

#include "api/json/format.h"
#include "api/monitors/http/request.h"
#include "api/monitors/test.h"

static bool check(struct api_exchange *x)
{
    return api_check_no_query(x) && api_check_available(x);
}

static bool write_receivers(struct api_exchange *x)
{
    struct api_notifier *notifier = x->service->monitors->notifier;
    struct api_buffer *out = api_begin_json(x);
    if (notifier)
        api_notifier_write(notifier, &x->token, out);
    else
        api_append_text(out, "{\"notifications\":[]}\n");
    return true;
}

const struct api_steps api_notifications = {.check = check, .write = write_receivers};

/* ---- Tests */

static bool find(struct api_exchange *x)
{
    const char *name = x->captures.value[0];
    struct api_notifier *notifier = x->service->monitors->notifier;
    struct api_receivers *receivers = notifier ? api_notifier_receivers(notifier) : NULL;
    bool is_there = receivers && api_receivers_find(receivers, name) < receivers->n;
    api_receivers_release(receivers);
    return is_there ||
           api_fail(&x->problem, "not_found", "--notify has no receiver '%.128s'", name);
}

static bool check_test(struct api_exchange *x) { return check(x) && find(x); }

static enum api_outcome parse_test(struct api_exchange *x)
{
    struct api_notify_test *test = x->state;
    test->job = &x->job;
    test->name = x->captures.value[0];
    return API_DONE;
}

static bool write_test(struct api_exchange *x)
{
    const struct api_notify_test *test = x->state;
    const struct api_notify_outcome *outcome = &test->outcome;
    struct api_buffer *out = api_begin_json(x);
    api_write_json(
        out, "{'name':%s,'delivered':%d,'status':%g,'failure':%s,'answer':%s,'seconds':%g}\n",
        test->name, !*outcome->failure, outcome->status ? (double)outcome->status : (double)NAN,
        outcome->failure, outcome->answer, outcome->seconds);
    return true;
}

const struct api_steps api_notify_test = {.place = API_NOTIFIER,
                                          .state = sizeof(struct api_notify_test),
                                          .check = check_test,
                                          .parse = parse_test,
                                          .write = write_test};
