/* GET of events: changes of the state of one monitor, or of all. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/state.h"

#include "api/monitors/http/paged.h"
#include "api/monitors/http/request.h"
#include "api/request/response.h"

#include <inttypes.h>
#include <stdint.h>

/* events: rows are formatted as they are read. Of one monitor they are in the order of their ids; of all in
 * that of times, monitors, ids. */
struct events {
    struct api_paged paged;
    struct api_buffer rows;
    size_t n;
    int64_t last
        [3]; /* the key of the last event of the page before, then of this one: id, or time, monitor, id */
};

void api_events_end(struct api_exchange *x)
{
    struct events *events = x->state;
    api_buffer_free(&events->rows);
    api_paged_end(x);
}

/* The columns that api_sql gives of an event; those from MONITOR on only if it is one of all. */
enum { ID, AT, FROM, TO, KL, WINDOW, MONITOR, GROUP, NAME };

static bool is_of_one(const struct events *events) { return events->paged.x->captures.n > 0; }

static void add_event(void *context, const struct api_datum *values)
{
    struct events *events = context;
    struct api_buffer *out = &events->rows;
    if (events->n == events->paged.page.limit) {
        events->paged.more = true;
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
                                    .from = api_verdict_of(values[FROM].integer),
                                    .to = api_verdict_of(values[TO].integer),
                                    .kl = api_datum_number(&values[KL]),
                                    .window = values[WINDOW].integer};
    api_event_write(&event, out);
    api_append(out, "}", 1);
}

static bool read_events(struct events *events, struct api_monitors *monitors,
                        enum api_statement statement, const struct api_datum *parameters)
{
    events->rows.size = events->n = 0;
    events->paged.more = false;
    if (!api_store_run(monitors->store, statement, parameters,
                       &(struct api_rows){add_event, events}))
        return false;
    return !events->rows.failed || api_fail_oom(&events->paged.job.problem);
}

/* ---- Of one monitor */

static bool read_of_monitor(struct api_store_job *job, struct api_monitors *monitors)
{
    struct events *events = (struct events *)job;
    const struct api_monitor *monitor = api_monitor_of(events->paged.x, monitors, &job->problem);
    if (!monitor)
        return false;
    const struct api_datum of[] = {API_INTEGER(monitor->id), API_INTEGER(events->last[0]),
                                   API_INTEGER(events->paged.page.limit + 1)};
    return read_events(events, monitors, API_SQL_EVENTS, of);
}

static bool check_of_monitor(struct api_paged *paged)
{
    struct events *events = (struct events *)paged;
    events->rows.budget = paged->x->service->budget;
    events->last[0] = INT64_MAX;
    return api_pagination_cursor(&paged->page, events->last, 1, &paged->x->problem);
}

bool api_events_prepare(struct api_exchange *x, double max_ns)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    (void)max_ns;
    return api_paged_prepare(x, sizeof(struct events), known, check_of_monitor, read_of_monitor);
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

static bool read_of_all(struct api_store_job *job, struct api_monitors *monitors)
{
    struct events *events = (struct events *)job;
    const struct api_pagination *page = &events->paged.page;
    const char *group = api_pagination_text(page, "group");
    struct api_datum of[5 + 2 * API_TOKEN_PATTERNS + 1] = {
        API_INTEGER(page->from), API_INTEGER(events->last[0]), API_INTEGER(events->last[1]),
        API_INTEGER(events->last[2]), API_TEXT_DATUM(group ? group : "")};
    for (size_t i = 0; i < API_TOKEN_PATTERNS; i++)
        set_pattern(&events->paged.x->token, i, &of[5 + 2 * i]);
    of[5 + 2 * API_TOKEN_PATTERNS] = (struct api_datum)API_INTEGER(page->limit + 1);
    return read_events(events, monitors, API_SQL_EVENTS_OF_ALL, of);
}

static bool check_of_all(struct api_paged *paged)
{
    struct events *events = (struct events *)paged;
    events->rows.budget = paged->x->service->budget;
    for (size_t i = 0; i < 3; i++)
        events->last[i] = INT64_MAX;
    return api_pagination_cursor(&paged->page, events->last, 3, &paged->x->problem);
}

bool api_all_events_begin(struct api_exchange *x) { return api_check_available(x); }

bool api_all_events_prepare(struct api_exchange *x, double max_ns)
{
    static const char *const known[] = {"group", "since", "limit", "cursor", NULL};
    (void)max_ns;
    return api_paged_prepare(x, sizeof(struct events), known, check_of_all, read_of_all);
}

/* ---- Response */

bool api_events(struct api_exchange *x)
{
    const struct events *events = x->state;
    struct api_buffer *out = &x->response.body;
    api_begin_json(x);
    api_append_text(out, "{\"events\":[");
    api_append(out, events->rows.data, events->rows.size);
    api_append_text(out, "],\"next\":");
    if (!events->paged.more)
        api_append_text(out, "null");
    else if (is_of_one(events))
        api_append_format(out, "\"%" PRId64 "\"", events->last[0]);
    else
        api_append_format(out, "\"%" PRId64 "_%" PRId64 "_%" PRId64 "\"", events->last[0],
                          events->last[1], events->last[2]);
    api_append_text(out, "}\n");
    return true;
}
