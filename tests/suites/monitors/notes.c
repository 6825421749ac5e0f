/* Notes: what people say about periods of monitors and groups. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/store.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"
#define TEXT "\"text\":\"Version 3\""
#define PERIOD "\"from\":\"2026-01-02T00:00:00Z\",\"to\":\"2026-01-03T00:00:00Z\""

/* Writes a note at a second of 1970; returns its number. */
static long long write_note(const struct api_service *service, const char *path, int from, int to)
{
    char request[100], body[100];
    snprintf(request, sizeof request, "POST %s/notes", path);
    snprintf(body, sizeof body, "{" TEXT ",\"from\":%d,\"to\":%d}", from, to);
    json_t *note = monitors_get(service, request, body, 201);
    long long id = json_integer_value(json_object_get(note, "id"));
    json_decref(note);
    return id;
}

/* Expects the numbers of the notes that a path lists, such as "3 1 ", and that none follows them. */
static void expect_notes(const struct api_service *service, const char *target,
                         const char *expected)
{
    char request[200], ids[200] = "";
    snprintf(request, sizeof request, "GET %s", target);
    json_t *answer = monitors_get(service, request, NULL, 200), *note;
    size_t i;
    json_array_foreach(json_object_get(answer, "notes"), i, note)
        sprintf(ids + strlen(ids), "%d ", (int)json_integer_value(json_object_get(note, "id")));
    cr_expect_str_eq(ids, expected, "%s lists %s", target, ids);
    expect_at(answer, "next", "null");
    json_decref(answer);
}

Test(monitors_notes, are_listed_as_they_were_written)
{
    struct api_service service = monitors_three();
    json_t *note = monitors_get(&service, "POST /monitors/g/a/notes",
                                "{\"text\":\"\u00e4 \\\"b\\\"\"," PERIOD "}", 201);
    expect_at(note, "id", "1");
    json_t *answer = monitors_get(&service, "GET /monitors/g/a/notes", NULL, 200);
    json_t *listed = json_array_get(json_object_get(answer, "notes"), 0);
    cr_expect(json_equal(note, listed));
    expect_at(listed, "from", "\"2026-01-02T00:00:00Z\"");
    expect_at(listed, "to", "\"2026-01-03T00:00:00Z\"");
    expect_at(listed, "text", "\"\u00e4 \\\"b\\\"\"");
    expect_at(listed, "name", "\"a\"");
    json_decref(answer);
    json_decref(note);
    monitors_end(&service);
}

/* Without times a note is of now, as a deployment writes it. */
Test(monitors_notes, are_of_now_without_a_time)
{
    struct api_service service = monitors_three();
    json_t *note = monitors_get(&service, "POST /groups/g/notes", "{" TEXT ",\"to\":null}", 201);
    cr_expect_str_eq(text_at(note, "from"), text_at(note, "created"));
    cr_expect_str_eq(text_at(note, "to"), text_at(note, "created"));
    expect_at(note, "name", "null");
    json_decref(note);
    monitors_end(&service);
}

/* A monitor has its own and its group's; a group has those of its monitors, too. */
Test(monitors_notes, of_a_group_are_those_of_its_monitors)
{
    struct api_service service = monitors_three();
    write_note(&service, "/monitors/g/a", 10, 20);
    write_note(&service, "/monitors/g/b", 12, 12);
    write_note(&service, "/groups/g", 11, 30);
    write_note(&service, "/monitors/h/a", 10, 20);
    expect_notes(&service, "/monitors/g/a/notes", "3 1 ");
    expect_notes(&service, "/monitors/g/b/notes", "2 3 ");
    expect_notes(&service, "/groups/g/notes", "2 3 1 ");
    expect_notes(&service, "/groups/h/notes", "4 ");
    monitors_refused(&service, "DELETE /monitors/g/a/notes/2", NULL, "note_not_found");
    monitors_refused(&service, "DELETE /monitors/g/a/notes/3", NULL, "note_not_found");
    monitors_expect(&service, "DELETE /groups/g/notes/3", NULL, 204);
    monitors_expect(&service, "DELETE /monitors/g/a/notes/1", NULL, 204);
    monitors_refused(&service, "DELETE /monitors/g/a/notes/1", NULL, "note_not_found");
    monitors_refused(&service, "DELETE /monitors/g/a/notes/x", NULL, "note_not_found");
    expect_notes(&service, "/groups/g/notes", "2 ");
    monitors_end(&service);
}

/* Those that overlap the time from `from` until before `to`, in pages. */
Test(monitors_notes, are_found_by_time)
{
    static const struct {
        const char *query, *ids;
    } cases[] = {{"", "3 2 4 1 "},        {"?from=20", "3 2 4 1 "}, {"?from=21", "3 2 4 "},
                 {"?from=31", "3 4 "},    {"?to=10", ""},           {"?to=11", "4 1 "},
                 {"?from=40&to=41", "3 "}};
    struct api_service service = monitors_three();
    write_note(&service, "/monitors/g/a", 10, 20);
    write_note(&service, "/monitors/g/a", 30, 30);
    write_note(&service, "/monitors/g/a", 40, 50);
    write_note(&service, "/monitors/g/a", 10, 35);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char target[100];
        snprintf(target, sizeof target, "/monitors/g/a/notes%s", cases[i].query);
        expect_notes(&service, target, cases[i].ids);
    }
    json_t *page = monitors_get(&service, "GET /monitors/g/a/notes?limit=3", NULL, 200);
    char rest[100];
    cr_expect_eq(json_array_size(json_object_get(page, "notes")), 3);
    snprintf(rest, sizeof rest, "/monitors/g/a/notes?limit=3&cursor=%s", text_at(page, "next"));
    json_decref(page);
    expect_notes(&service, rest, "1 ");
    monitors_end(&service);
}

/* A note goes with what it is on: a monitor that is made later under the name has none. Numbers do not come again. */
Test(monitors_notes, go_with_what_they_are_of)
{
    struct api_service service = monitors_three();
    write_note(&service, "/monitors/g/a", 10, 20);
    write_note(&service, "/groups/g", 30, 30);
    write_note(&service, "/monitors/h/a", 40, 50);
    monitors_expect(&service, "DELETE /monitors/g/a", NULL, 204);
    monitors_expect(&service, "PUT /monitors/g/a", CONFIG, 201);
    expect_notes(&service, "/monitors/g/a/notes", "2 ");
    monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
    monitors_expect(&service, "PUT /monitors/g/a", CONFIG, 201);
    expect_notes(&service, "/groups/g/notes", "");
    expect_notes(&service, "/groups/h/notes", "3 ");
    monitors_expect(&service, "DELETE /monitors/h/a/notes/3", NULL, 204);
    cr_expect_eq(write_note(&service, "/monitors/h/a", 1, 1), 4);
    monitors_expect(&service, "PUT /monitors/h/a?warning=0.03", CONFIG, 200);
    expect_notes(&service, "/monitors/h/a/notes", "4 ");
    monitors_end(&service);
}

Test(monitors_notes, outlive_the_process)
{
    struct database database = database_new();
    struct api_service service = monitors_new_at(100, database.location);
    monitors_make_three(&service);
    write_note(&service, "/monitors/g/a", 10, 20);
    write_note(&service, "/groups/h", 10, 20);
    monitors_restart(&service, 100);
    expect_notes(&service, "/monitors/g/a/notes", "1 ");
    expect_notes(&service, "/monitors/h/a/notes", "2 ");
    monitors_end(&service);
    database_free(&database);
}

Test(monitors_notes, of_a_group_have_a_limit)
{
    struct api_service service = monitors_three();
    for (int i = 0; i < 999; i++)
        write_note(&service, "/monitors/g/a", i, i);
    write_note(&service, "/groups/g", 5, 5);
    monitors_refused(&service, "POST /groups/g/notes", "{" TEXT "}", "too_many_notes");
    monitors_refused(&service, "POST /monitors/g/b/notes", "{" TEXT "}", "too_many_notes");
    monitors_expect(&service, "POST /groups/h/notes", "{" TEXT "}", 201);
    monitors_expect(&service, "DELETE /monitors/g/a/notes/1", NULL, 204);
    monitors_expect(&service, "POST /groups/g/notes", "{" TEXT "}", 201);
    monitors_end(&service);
}

Test(monitors_notes, refuse_what_is_no_note)
{
    static const struct {
        const char *body, *problem;
    } cases[] = {{"{}", "option_invalid #/text"},
                 {"[]", "body_not_object #"},
                 {"{", "json_malformed"},
                 {"{\"text\":\"\"}", "option_invalid #/text"},
                 {"{\"text\":7}", "option_invalid #/text"},
                 {"{\"text\":\"a\\nb\"}", "option_invalid #/text"},
                 {"{" TEXT ",\"from\":\"2026-01-01T00:00:00\"}",
                  "timestamp_invalid #/from ~2026-01-01T00:00:00Z"},
                 {"{" TEXT ",\"from\":true}", "timestamp_invalid #/from"},
                 {"{" TEXT ",\"to\":\"later\"}", "timestamp_invalid #/to"},
                 {"{" TEXT ",\"from\":11,\"to\":10}", "timestamp_invalid #/to"},
                 {"{" TEXT ",\"to\":10}", "timestamp_invalid #/to"},
                 {"{" TEXT ",\"until\":10}", "option_unknown #/until"}};
    struct api_service service = monitors_three();
    for (size_t i = 0; i < COUNT(cases); i++) {
        monitors_refused(&service, "POST /monitors/g/a/notes", cases[i].body, cases[i].problem);
        monitors_refused(&service, "POST /groups/g/notes", cases[i].body, cases[i].problem);
    }
    char body[600] = "{\"text\":\"";
    memset(body + strlen(body), 'x', 501);
    strcat(body, "\"}");
    monitors_refused(&service, "POST /groups/g/notes", body, "option_invalid #/text");
    static const char good[] = "{" TEXT "}";
    monitors_refused(&service, "POST /monitors/g/none/notes", good, "monitor_not_found");
    monitors_refused(&service, "GET /monitors/g/none/notes", NULL, "monitor_not_found");
    monitors_refused(&service, "POST /groups/none/notes", good, "group_not_found");
    monitors_refused(&service, "GET /groups/none/notes", NULL, "group_not_found");
    monitors_refused(&service, "DELETE /groups/none/notes/1", NULL, "group_not_found");
    monitors_refused(&service, "POST /groups/g/notes?text=a", good, "option_unknown ?text");
    monitors_refused(&service, "DELETE /groups/g/notes/1?dry_run=1", NULL,
                     "option_unknown ?dry_run");
    monitors_refused(&service, "GET /groups/g/notes?cursor=1", NULL, "cursor_invalid ?cursor");
    expect_notes(&service, "/groups/g/notes", "");
    monitors_end(&service);
}
