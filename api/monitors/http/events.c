/* GET of events: changes of the state of one monitor, or of all. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/state.h"

#include "api/monitors/http/request.h"
#include "api/request/response.h"

#include <stdint.h>

/* Events of one monitor are in the order of their ids, events of all monitors in the order of times, then monitors, then
 * ids: so are the numbers of the page's key. */

/* The columns that api_sql gives of an event; those from MONITOR on only if it is one of all. */
enum { ID, AT, FROM, TO, KL, WINDOW, MONITOR, GROUP, NAME };

static bool is_of_one(const struct api_row_page *events) { return events->x->captures.n > 0; }

/* A state of an event; one that a later version has made is taken as the one that is not known. */
static int state_of(const struct api_datum *value)
{
    return value->integer == API_STALE ? API_STALE : (int)api_verdict_of(value->integer);
}

static void add_event(void *context, const struct api_datum *values)
{
    struct api_row_page *events = context;
    struct api_buffer *out = &events->rows;
    if (!api_row_page_add(events))
        return;
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

/* ---- Of one monitor */

static bool read_of_monitor(struct api_exchange *x, struct api_monitors *monitors)
{
    const struct api_row_page *events = x->state;
    struct api_monitor *monitor = api_monitor_of(x, monitors);
    if (!monitor)
        return false;
    const struct api_datum *of = API_ROW(monitor->id, events->after[0], events->page.limit + 1);
    return api_row_page_run(x, monitors, API_SQL_EVENTS, of, add_event);
}

static enum api_outcome parse_of_monitor(struct api_exchange *x)
{
    return api_row_page_parse(x, "events", 1, API_NAMES("limit", "cursor"));
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
    to[1] = (struct api_datum)api_datum_text(text);
}

static bool read_of_all(struct api_exchange *x, struct api_monitors *monitors)
{
    const struct api_row_page *events = x->state;
    const struct api_pagination *page = &events->page;
    const char *group = api_pagination_text(page, "group");
    struct api_datum of[5 + 2 * API_TOKEN_PATTERNS + 1] = {
        API_INTEGER(page->from), API_INTEGER(events->after[0]), API_INTEGER(events->after[1]),
        API_INTEGER(events->after[2]), api_datum_text(group ? group : "")};
    for (size_t i = 0; i < API_TOKEN_PATTERNS; i++)
        set_pattern(&x->token, i, &of[5 + 2 * i]);
    of[5 + 2 * API_TOKEN_PATTERNS] = (struct api_datum)API_INTEGER(page->limit + 1);
    return api_row_page_run(x, monitors, API_SQL_EVENTS_OF_ALL, of, add_event);
}

static enum api_outcome parse_of_all(struct api_exchange *x)
{
    const char *const *known = API_NAMES("group", "since", "to", "limit", "cursor");
    struct api_row_page *events = x->state;
    if (api_row_page_parse(x, "events", 3, known) == API_FAILED)
        return API_FAILED;
    if (!*events->page.cursor && events->page.to < INT64_MAX)
        events->after[0] = events->page.to - 1;
    return API_DONE;
}

const struct api_steps api_events = {.check = api_check_names,
                                     .parse = parse_of_monitor,
                                     .read_back = read_of_monitor,
                                     API_LISTS_ROWS};
const struct api_steps api_all_events = {
    .check = api_check_available, .parse = parse_of_all, .read_back = read_of_all, API_LISTS_ROWS};
