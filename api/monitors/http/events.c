/* GET of events: changes of the state of one monitor, or of all. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/state.h"

#include "api/monitors/http/request.h"
#include "api/request/response.h"

#include <inttypes.h>
#include <stdint.h>

/* events: rows are formatted as they are read. Events of one monitor are in the order of their ids; events of all
 * monitors in the order of times, then monitors, then ids. */
struct events {
    const struct api_exchange *x;
    struct api_pagination page;
    bool more; /* rows follow this page */
    struct api_buffer rows;
    size_t n;
    int64_t last
        [3]; /* the key of the last event of the page before, then of this one: id, or time, monitor, id */
};

static void drop(struct api_exchange *x)
{
    struct events *events = x->state;
    api_buffer_free(&events->rows);
    api_pagination_free(&events->page);
}

/* The columns that api_sql gives of an event; those from MONITOR on only if it is one of all. */
enum { ID, AT, FROM, TO, KL, WINDOW, MONITOR, GROUP, NAME };

static bool is_of_one(const struct events *events) { return events->x->captures.n > 0; }

/* A state of an event; one that a later version has made is taken as the one that is not known. */
static int state_of(const struct api_datum *value)
{
    return value->integer == API_STALE ? API_STALE : (int)api_verdict_of(value->integer);
}

static void add_event(void *context, const struct api_datum *values)
{
    struct events *events = context;
    struct api_buffer *out = &events->rows;
    if (events->n == events->page.limit) {
        events->more = true;
        return;
    }
    api_append(out, ",", events->n++ > 0);
    if (is_of_one(events)) {
        events->last[0] = values[ID].integer;
        api_append(out, "{", 1);
    } else {
        events->last[0] = values[AT].integer;
        events->last[1] = values[MONITOR].integer;
        events->last[2] = values[ID].integer;
        api_write_names(out, values[GROUP].text, values[NAME].text);
        api_append(out, ",", 1);
    }
    const struct api_event event = {.at = values[AT].integer,
                                    .from = state_of(&values[FROM]),
                                    .to = state_of(&values[TO]),
                                    .kl = api_datum_number(&values[KL]),
                                    .window = values[WINDOW].integer};
    api_event_write(&event, out);
    api_append(out, "}", 1);
}

static bool read_events(struct api_exchange *x, struct api_monitors *monitors,
                        enum api_statement statement, const struct api_datum *parameters)
{
    struct events *events = x->state;
    events->rows.size = events->n = 0;
    events->more = false;
    if (!api_store_run(monitors->store, statement, parameters,
                       &(struct api_rows){add_event, events}))
        return false;
    return !events->rows.failed || api_fail_oom(&x->problem);
}

/* ---- Of one monitor */

static bool read_of_monitor(struct api_exchange *x, struct api_monitors *monitors)
{
    const struct events *events = x->state;
    const struct api_monitor *monitor = api_monitor_of(x, monitors, &x->problem);
    if (!monitor)
        return false;
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(events->last[0]),
                                   API_INTEGER(events->page.limit + 1)};
    return read_events(x, monitors, API_SQL_EVENTS, of);
}

/* Reads the query, and a cursor of `n` numbers. */
static enum api_outcome parse(struct api_exchange *x, const char *const *known, size_t n)
{
    struct events *events = x->state;
    events->x = x;
    events->rows.budget = x->service->budget;
    if (!api_pagination_read(&events->page, x->request.query, known, &x->problem))
        return API_FAILED;
    for (size_t i = 0; i < n; i++)
        events->last[i] = i > 0 || events->page.to == INT64_MAX ? INT64_MAX : events->page.to - 1;
    return api_outcome_of(api_pagination_check_group(&events->page, x) &&
                          api_pagination_cursor(&events->page, events->last, n, &x->problem));
}

static enum api_outcome parse_of_monitor(struct api_exchange *x)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    return parse(x, known, 1);
}

/* ---- Of all monitors */

/* Sets the characters that are compared, and with what, by pattern `i` of a token. */
static void set_pattern(const struct api_token *token, size_t i, struct api_datum to[2])
{
    const char *text = i < token->n_patterns ? token->groups + token->patterns[i].at : "";
    bool is_all = !api_token_is_bound(token), is_prefix = is_all;
    size_t n = 0;
    if (i < token->n_patterns)
        is_prefix = token->patterns[i].is_prefix;
    for (const char *p = text; *p; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80; /* characters of UTF-8 */
    to[0] = (struct api_datum)API_INTEGER(is_prefix ? n : API_MAX_NAME + 1);
    to[1] = (struct api_datum)API_TEXT_DATUM(text);
}

static bool read_of_all(struct api_exchange *x, struct api_monitors *monitors)
{
    const struct events *events = x->state;
    const struct api_pagination *page = &events->page;
    const char *group = api_pagination_text(page, "group");
    struct api_datum of[5 + 2 * API_TOKEN_PATTERNS + 1] = {
        API_INTEGER(page->from), API_INTEGER(events->last[0]), API_INTEGER(events->last[1]),
        API_INTEGER(events->last[2]), API_TEXT_DATUM(group ? group : "")};
    for (size_t i = 0; i < API_TOKEN_PATTERNS; i++)
        set_pattern(&x->token, i, &of[5 + 2 * i]);
    of[5 + 2 * API_TOKEN_PATTERNS] = (struct api_datum)API_INTEGER(page->limit + 1);
    return read_events(x, monitors, API_SQL_EVENTS_OF_ALL, of);
}

static enum api_outcome parse_of_all(struct api_exchange *x)
{
    static const char *const known[] = {"group", "since", "to", "limit", "cursor", NULL};
    return parse(x, known, 3);
}

/* ---- Response */

static bool write_events(struct api_exchange *x)
{
    const struct events *events = x->state;
    struct api_buffer *out = &x->response.body;
    api_begin_json(x);
    api_append_text(out, "{\"events\":[");
    api_append(out, events->rows.data, events->rows.size);
    api_append_text(out, "],\"next\":");
    if (!events->more)
        api_append_text(out, "null");
    else if (is_of_one(events))
        api_append_format(out, "\"%" PRId64 "\"", events->last[0]);
    else
        api_append_format(out, "\"%" PRId64 "_%" PRId64 "_%" PRId64 "\"", events->last[0],
                          events->last[1], events->last[2]);
    api_append_text(out, "}\n");
    return true;
}

const struct api_steps api_events = {.place = API_STORE_READS,
                                     .state = sizeof(struct events),
                                     .check = api_check_monitor,
                                     .parse = parse_of_monitor,
                                     .read_back = read_of_monitor,
                                     .write = write_events,
                                     .drop = drop};
const struct api_steps api_all_events = {.place = API_STORE_READS,
                                         .state = sizeof(struct events),
                                         .check = api_check_available,
                                         .parse = parse_of_all,
                                         .read_back = read_of_all,
                                         .write = write_events,
                                         .drop = drop};
