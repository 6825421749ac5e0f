/* GET, POST and DELETE of notes: what people say about periods of a group or a monitor, which its page shows. */
#include "api/monitors/http/endpoints.h"

#include "api/json/format.h"
#include "api/monitors/http/request.h"

#include <string.h>

/* MAX_NOTES: of a group and its monitors, which are deleted in one transaction. MAX_TEXT: bytes. */
enum { MAX_NOTES = 1000, MAX_TEXT = 500 };

#define EXAMPLE "{\"text\": \"Version 3 is live\"}"

/* note: of the time from `from` to `to`, which may be equal. */
struct note {
    int64_t id, from, to, created;
    char text[MAX_TEXT + 1];
};

/* Appends a note of a monitor, or of a group, which has no name. */
static void write_note(const struct note *note, const char *group, const char *name,
                       struct api_buffer *out)
{
    api_write_json(
        out, "{'group':%s,'name':%s,'id':%ld,'from':%jd,'to':%jd,'text':%s,'created':%jd}", group,
        *name ? name : NULL, note->id, note->from, note->to, note->text, note->created);
}

/* ---- List */

static void add_note(void *context, const struct api_datum *values)
{
    enum { ID, NAME, FROM, TO, CREATED, TEXT };
    struct api_page *page = context;
    struct note note = {.id = values[ID].integer,
                        .from = values[FROM].integer,
                        .to = values[TO].integer,
                        .created = values[CREATED].integer};
    if (values[TEXT].size > MAX_TEXT || /* only a damaged store has such a row */
        !api_page_add(page))
        return;
    memcpy(note.text, values[TEXT].text, values[TEXT].size);
    write_note(&note, api_group_of(page->x), values[NAME].text, &page->x->response.body);
    page->last[0] = note.from;
    page->last[1] = note.id;
}

static bool list_notes(struct api_exchange *x, struct api_monitors *monitors)
{
    struct api_page page;
    bool good = api_page_read(x, &page, API_NAMES("from", "to", "limit", "cursor")) &&
                api_page_begin(&page, "notes", 2) && api_check_exists(x, monitors) &&
                api_store_read(monitors->store, API_SQL_NOTES,
                               API_ROW(api_group_of(x), api_stored_name(x), page.to, page.from,
                                       page.after[0], page.after[1], page.limit + 1),
                               add_note, &page);
    return api_page_end(&page, good);
}

const struct api_steps api_notes = {
    .place = API_STORE_READS, .check = api_check_names, .handle = list_notes};

/* ---- Change */

static bool fail_not_found(struct api_exchange *x)
{
    const char *name = api_name_of(x);
    return api_fail(&x->problem, "note_not_found", "there is no note %.40s on '%.128s'",
                    x->captures.value[x->captures.n - 1], name ? name : api_group_of(x));
}

/* Reads the period: from the given time or now, to the other or the same. */
static bool read_period(const json_t *from, const json_t *to, struct note *note,
                        struct api_problem *problem)
{
    note->from = note->created = api_now();
    if (from && !api_read_time(from, API_BODY, "from", &note->from, problem))
        return false;
    note->to = note->from;
    if (to && !api_read_time(to, API_BODY, "to", &note->to, problem))
        return false;
    return note->from <= note->to || api_fail_at(problem, API_BODY, "#/to", "timestamp_invalid",
                                                 "to must not be before from");
}

static bool read_note(struct api_exchange *x, struct note *note)
{
    enum { TEXT, FROM, TO, MEMBERS };
    const char *const *known = API_NAMES("text", "from", "to");
    const json_t *values[MEMBERS];
    struct api_json json = {.budget = x->service->budget};
    bool good = api_load_json(x, &json) &&
                api_read_members(json.root, known, values, EXAMPLE, &x->problem) &&
                api_read_text(values[TEXT], known[TEXT], MAX_TEXT, note->text, &x->problem) &&
                (*note->text || api_fail_at(&x->problem, API_BODY, "#/text", "option_invalid",
                                            "text must not be empty")) &&
                read_period(values[FROM], values[TO], note, &x->problem);
    api_json_free(&json);
    return good;
}

static bool add(struct api_exchange *x, struct api_monitors *monitors)
{
    struct note note = {.id = 0};
    const struct api_datum group = api_datum_text(api_group_of(x));
    int64_t n = 0;
    if (!read_note(x, &note) || !api_check_exists(x, monitors) ||
        !api_check_store(monitors, &x->problem) ||
        !api_store_number(monitors->store, API_SQL_NOTES_COUNT, &group, &n) ||
        (n >= MAX_NOTES &&
         !api_fail(&x->problem, "too_many_notes",
                   "the group '%.128s' and its monitors have %d notes: delete some of them",
                   api_group_of(x), MAX_NOTES)) ||
        !api_store_number(monitors->store, API_SQL_META_NEXT, API_ROW("note"), &note.id))
        return false;
    write_note(&note, api_group_of(x), api_stored_name(x), &x->response.body);
    api_append(&x->response.body, "\n", 1);
    x->status = 201;
    return api_store_run(
        monitors->store, API_SQL_NOTE_PUT,
        API_ROW(note.id, group, api_stored_name(x), note.from, note.to, note.created, note.text));
}

static bool delete_note(struct api_exchange *x, struct api_monitors *monitors)
{
    int64_t id, deleted = 0;
    monitors->log_has_deleted = true;
    return (api_read_numbers(x->captures.value[x->captures.n - 1], &id, 1) || fail_not_found(x)) &&
           api_check_exists(x, monitors) &&
           api_store_number(monitors->store, API_SQL_NOTE_DELETE,
                            API_ROW(api_group_of(x), api_stored_name(x), id), &deleted) &&
           (deleted > 0 || fail_not_found(x));
}

const struct api_steps api_note_add = {
    .place = API_STORE_WRITES, .small = "a note", .check = api_check_change, .handle = add};
const struct api_steps api_note_delete = {
    .place = API_STORE_WRITES, .check = api_check_change, .handle = delete_note};
