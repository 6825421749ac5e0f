/* GET of events: changes of the state of one monitor, or of all. */
#include "api/monitors/http/endpoints.h"
#include "api/monitors/model/state.h"

#include "api/monitors/http/request.h"
#include "api/monitors/rows/window_rows.h"

#include <stdint.h>

/* Events of one monitor are in the order of their ids, events of all monitors in the order of times, then monitors, then
 * ids: so are the numbers of the page's key. */

/* The columns that api_sql gives of an event; those from MONITOR on only if it is one of all. */
enum { ID, AT, FROM, TO, KL, WINDOW, BEGAN, MONITOR, GROUP, NAME };

/* A state of an event; one that a later version has made is taken as the one that is not known. */
static int state_of(const struct api_datum *value)
{
    return value->integer == API_STALE ? API_STALE : (int)api_verdict_of(value->integer);
}

static void add_event(void *context, const struct api_datum *values)
{
    struct api_page *page = context;
    struct api_buffer *out = &page->x->response.body;
    if (!api_page_add(page))
        return;
    if (page->key == 1) {
        page->last[0] = values[ID].integer;
        api_append(out, "{", 1);
    } else {
        page->last[0] = values[AT].integer;
        page->last[1] = values[MONITOR].integer;
        page->last[2] = values[ID].integer;
        api_write_names(out, values[GROUP].text, values[NAME].text);
        api_append(out, ",", 1);
    }
    const struct api_event event = {.at = values[AT].integer,
                                    .from = state_of(&values[FROM]),
                                    .to = state_of(&values[TO]),
                                    .kl = api_datum_number(&values[KL]),
                                    .window = values[WINDOW].integer,
                                    .began = api_time_of(&values[BEGAN])};
    api_event_write(&event, out);
    api_append(out, "}", 1);
}

static bool list_of_monitor(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_page page;
    const struct api_monitor *monitor = NULL;
    bool good =
        api_page_read(x, &page, API_NAMES("limit", "cursor")) &&
        api_page_begin(&page, "events", 1) && (monitor = api_monitor_of(x, monitors)) != NULL &&
        api_store_read(monitors->store, API_SQL_EVENTS,
                       API_ROW(monitor->id, page.after[0], page.limit + 1), add_event, &page);
    return api_page_end(&page, good);
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

static bool list_of_all(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_page page;
    if (!api_page_read(x, &page, API_NAMES("group", "since", "to", "limit", "cursor")) ||
        !api_page_begin(&page, "events", 3))
        return api_page_end(&page, false);
    if (page.is_first && page.to < INT64_MAX)
        page.after[0] = page.to - 1;
    const char *group = api_page_text(&page, "group");
    struct api_datum of[5 + 2 * API_TOKEN_PATTERNS + 1] = {
        API_INTEGER(page.from), API_INTEGER(page.after[0]), API_INTEGER(page.after[1]),
        API_INTEGER(page.after[2]), api_datum_text(group ? group : "")};
    for (size_t i = 0; i < API_TOKEN_PATTERNS; i++)
        set_pattern(&x->token, i, &of[5 + 2 * i]);
    of[5 + 2 * API_TOKEN_PATTERNS] = (struct api_datum)API_INTEGER(page.limit + 1);
    return api_page_end(
        &page, api_store_read(monitors->store, API_SQL_EVENTS_OF_ALL, of, add_event, &page));
}

const struct api_steps api_events = {
    .place = API_STORE_READS, .check = api_check_names, .handle = list_of_monitor};
const struct api_steps api_all_events = {
    .place = API_STORE_READS, .check = api_check_available, .handle = list_of_all};
