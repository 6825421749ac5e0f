/* Clocks that jump, and servers that start again: windows are closed once, and nothing is lost. */
#include "tests/suites/faults/client.h"
#include "tests/suites/store/schema.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* HOUR: seconds by which the clock jumps. SIZE: seconds of a window. */
enum { HOUR = 3600, SIZE = 2 };

#define MONITOR "/monitors/g/m"

static json_t *get(const struct server *server, const char *target)
{
    char *text = expect_status(server, "GET", target, NULL, 200);
    json_t *json = json_loads(text, 0, NULL);
    cr_assert(json, "%s", text);
    free(text);
    return json;
}

static void observe(const struct server *server, int n, const char *query)
{
    char target[120], body[200] = "{\"values\": [1";
    snprintf(target, sizeof target, MONITOR "/observations%s", query);
    for (int i = 1; i < n; i++)
        strcat(body, ", 1");
    strcat(body, "]}");
    free(expect_status(server, "POST", target, body, 200));
}

/* Waits until so many windows are closed, for twice the time that one is open. */
static void expect_closed(const struct server *server, size_t n)
{
    size_t closed = 0;
    for (double end = now_seconds() + 2 * SIZE + 1; closed < n && now_seconds() < end;
         wait_ms(20)) {
        json_t *json = get(server, MONITOR "/windows"), *window;
        size_t i;
        closed = 0;
        json_array_foreach(json_object_get(json, "windows"), i, window) closed +=
            json_is_true(json_object_get(json_object_get(window, "window"), "closed"));
        json_decref(json);
    }
    cr_expect_eq(closed, n, "%zu of %zu are closed", closed, n);
}

/* Expects windows, newest first, by their counts; `restated` is the number of one, or -1. */
static void expect_windows(const struct server *server, const int *counts, size_t n, int restated)
{
    json_t *json = get(server, MONITOR "/windows"), *windows = json_object_get(json, "windows");
    char *text = json_dumps(json, 0);
    cr_expect_eq(json_array_size(windows), n, "%s", text);
    for (size_t i = 0; i < n; i++) {
        const json_t *result = json_array_get(windows, i);
        const json_t *window = json_object_get(result, "window");
        cr_expect_eq(number_of(json_object_get(result, "n")), counts[i], "%zu: %s", i, text);
        cr_expect_eq(json_is_true(json_object_get(window, "restated")), (int)i == restated, "%s",
                     text);
    }
    free(text);
    json_decref(json);
}

static void set_clock(long seconds) { atomic_store(&faults->clock, seconds); }

/* Each window is told from the others by its count. */
Test(store_times, clocks_that_jump_by_an_hour)
{
    struct database database = database_new();
    char late[40];
    faults_preload();
    set_clock(0);
    struct server server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", MONITOR "?window=2s,0s&min_observations=1",
                       "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [1, 1]}}",
                       201));
    wait_ms(SIZE * 1000 - (long)(1000 * fmod((double)time(NULL), SIZE)));
    snprintf(late, sizeof late, "?timestamp=%ld", time(NULL));
    observe(&server, 2, "");
    expect_closed(&server, 1);

    set_clock(-HOUR);
    observe(&server, 3, "");
    expect_closed(&server, 2);
    expect_windows(&server, (int[]){2, 3}, 2, -1);
    observe(&server, 8, late);
    expect_windows(&server, (int[]){10, 3}, 2, 0);

    set_clock(0);
    observe(&server, 4, "");
    expect_windows(&server, (int[]){4, 10, 3}, 3, 1);
    set_clock(HOUR);
    expect_closed(&server, 3);
    observe(&server, 5, "");
    expect_closed(&server, 4);
    set_clock(0);
    observe(&server, 6, "");
    expect_closed(&server, 5);
    expect_windows(&server, (int[]){5, 6, 4, 10, 3}, 5, 3);
    cr_expect_eq(metric(&server, "kldiv_monitor_observations_total{group=\"g\",monitor=\"m\"} "),
                 28);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&database, "SELECT sum(count_of(counts)) FROM kldiv_windows"), 28);
    faults_unload();
    database_free(&database);
}

/* Expects observations of now to count, with a warning if they come behind a window ahead of the clock. */
static void expect_taken(const struct server *server, const char *body, const char *state,
                         bool warns)
{
    char *text = expect_status(server, "POST", MONITOR "/observations", body, 200);
    cr_expect_eq(strstr(text, "\"window_ahead\"") != NULL, warns, "%s", text);
    cr_expect(strstr(text, state), "%s", text);
    free(text);
}

/* Lets 20 days pass, and expects that the window of 80 days ago goes by the observations that follow. */
static void expect_expiry(const struct server *server, const char *body)
{
    char target[80];
    snprintf(target, sizeof target, MONITOR "/windows?to=%ld", time(NULL) - 24L * 70 * HOUR);
    json_t *before = get(server, target);
    cr_expect_eq(json_array_size(json_object_get(before, "windows")), 1);
    set_clock(20L * 24 * HOUR);
    expect_taken(server, body, "\"verdict\":\"ok\"", true);
    expect_taken(server, body, "\"verdict\":\"ok\"", true);
    json_t *after = get(server, target);
    cr_expect_eq(json_array_size(json_object_get(after, "windows")), 0);
    set_clock(0);
    json_decref(before);
    json_decref(after);
}

/* The window of a wrong clock neither makes the state, nor is it what retention counts back from. */
Test(store_times, a_clock_that_was_ten_years_ahead)
{
    static const char good[] = "{\"counts\": [500, 500]}", bad[] = "{\"counts\": [900, 100]}";
    static const char config[] = "{\"bins\": {\"edges\": [0, 1, 2]},"
                                 " \"reference\": {\"counts\": [500, 500]}}";
    static const char *const windows[] = {"batch", "3600s,0s", "1000"};
    for (size_t i = 0; i < COUNT(windows); i++) {
        struct database database = database_new();
        char target[100];
        faults_preload();
        set_clock(10L * 365 * 24 * HOUR);
        struct server server = store_start(&database, NULL);
        snprintf(target, sizeof target, MONITOR "?clear_after=1&window=%s", windows[i]);
        free(expect_status(&server, "PUT", target, config, 201));
        expect_taken(&server, bad, "\"verdict\":\"critical\"", false);
        set_clock(0);
        expect_taken(&server, good, "\"verdict\":\"ok\"", true);
        if (i != 1) /* a window of an hour is open */
            expect_taken(&server, good, "\"state\":\"ok\"", true);
        snprintf(target, sizeof target, MONITOR "/observations?timestamp=%ld",
                 time(NULL) - 24L * 80 * HOUR);
        free(expect_status(&server, "POST", target, good, 200));
        snprintf(target, sizeof target, MONITOR "/observations?timestamp=%ld",
                 time(NULL) - 24L * 100 * HOUR);
        free(expect_status(&server, "POST", target, good, 422));
        expect_expiry(&server, good);
        server_kill(&server, false);
        server = store_start(&database, NULL);
        expect_taken(&server, good, "\"verdict\":\"ok\"", true);
        cr_expect_eq(server_stop(&server, false), 0);
        faults_unload();
        database_free(&database);
    }
}

/* ---- Starting again */

static const struct {
    const char *method, *target, *body;
    long status;
} history[] = {
    {"PUT", "/monitors/wine?min_observations=1&fire_after=2",
     "od280/od315,colour,\xc3\xbc\n1.5,red,1\n2.5,white,2\n3.5,red,3\n,rose,4\n", 201},
    {"POST", "/monitors/wine/observations?timestamp=1700000000",
     "od280/od315,colour,\xc3\xbc\n9,blue,1\n8,blue,2\n7,red,\n", 200},
    {"POST", "/monitors/wine/observations?timestamp=1700003600", "colour\nblue\nblue\n", 200},
    {"POST", "/monitors/wine/observations?timestamp=1600003600", "colour\nred\n", 422},
    {"POST", "/monitors/wine/observations?timestamp=1699990000", "colour\nred\nwhite\n", 200},
    {"PUT", "/monitors/g/exact",
     "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"probabilities\": [0.5, 0.5]},"
     " \"pseudocount\": 0, \"min_observations\": 1, \"annotations\": {\"owner\": \"risk\"}}",
     201},
    {"POST", "/monitors/g/exact/observations", "{\"counts\": [3, 4], \"overflow\": 1}", 200},
    {"PUT", "/monitors/g/hours?window=3600s&min_observations=1",
     "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [5, 5]}}", 201},
    {"POST", "/monitors/g/hours/observations?timestamp=1700000000", "{\"values\": [0, 1, 1]}", 200},
    {"POST", "/monitors/g/hours/observations?timestamp=1700007200", "{\"values\": [0, 1, 1]}", 200},
    {"POST", "/monitors/g/hours/observations?timestamp=1700000001", "{\"values\": [7, 7]}", 200},
    {"PUT", "/monitors/g/last?window=3&compare=previous:2&min_observations=1",
     "{\"bins\": {\"labels\": [\"a\", \"b\"]}}", 201},
    {"POST", "/monitors/g/last/observations", "{\"values\": [\"a\", \"b\", \"a\", \"c\"]}", 200},
    {"POST", "/monitors/g/last/observations", "{\"values\": [\"a\", null, \"a\"]}", 200},
    {"POST", "/monitors/g/last/observations", "{\"values\": [\"b\", \"b\"]}", 200},
    {"PUT", "/monitors/g/gone", "{\"reference\": {\"values\": [1, 2, 3]}}", 201},
    {"DELETE", "/monitors/g/gone", NULL, 204},
    {"PUT", "/monitors/g/twice", "{\"reference\": {\"values\": [1, 2, 3, 4.5, 5]}}", 201},
    {"POST", "/monitors/g/twice/observations", "{\"values\": [1, 2, 3]}", 200},
    {"PUT", "/monitors/g/twice?critical=0.5", "{\"reference\": {\"values\": [1, 2, 3, 4, 5]}}",
     200},
    {"PUT", "/monitors/g/twice?critical=0.6", "{\"reference\": {\"values\": [1, 2, 3, 4, 5]}}",
     200},
    {"POST", "/monitors/g/twice/observations", "{\"values\": [1, 2, 3]}", 200},
    {"PUT", "/monitors/g/anew?min_observations=1", "{\"reference\": {\"values\": [1, 2, 3]}}", 201},
    {"POST", "/monitors/g/anew/observations", "{\"values\": [9, 9]}", 200},
    {"PUT", "/monitors/g/anew", "{\"reference\": {\"values\": [8, 9]}}", 200},
    {"PUT", "/monitors/g/back?window=3600s&min_observations=1",
     "{\"reference\": {\"values\": [1, 2, 3]}}", 201},
    {"POST", "/monitors/g/back/observations?timestamp=1700000000", "{\"values\": [1, 2]}", 200},
    {"PUT", "/monitors/g/back?window=3600s&min_observations=9",
     "{\"reference\": {\"values\": [1, 2, 3]}}", 200},
    {"POST", "/monitors/g/back/observations?timestamp=1700000000", "{\"values\": [9]}", 200},
};

static const char *const views[] = {"/monitors",
                                    "/monitors?limit=3",
                                    "/monitors?q=o&state=critical",
                                    "/monitors/wine",
                                    "/monitors/g",
                                    "/monitors/wine/od280%2Fod315",
                                    "/monitors/wine/colour",
                                    "/monitors/wine/colour/windows",
                                    "/monitors/wine/colour/windows?limit=1",
                                    "/monitors/wine/colour/windows/1",
                                    "/monitors/wine/colour/windows/latest",
                                    "/monitors/wine/colour/events",
                                    "/monitors/wine/%C3%BC/windows",
                                    "/monitors/g/exact",
                                    "/monitors/g/exact/windows/latest",
                                    "/monitors/g/exact/events",
                                    "/monitors/g/hours/windows",
                                    "/monitors/g/hours/windows/1",
                                    "/monitors/g/hours/windows/current",
                                    "/monitors/g/last/windows",
                                    "/monitors/g/last/windows/current",
                                    "/monitors/g/last/windows/latest",
                                    "/monitors/g/last/events",
                                    "/monitors/g/twice",
                                    "/monitors/g/twice/windows",
                                    "/monitors/g/twice/windows/1",
                                    "/monitors/g/anew/events",
                                    "/monitors/g/back/events",
                                    "/metrics"};

/* The ETag of a config's version. A weak one is of the body, which is told itself. */
static const char *version_of(const struct fetched *f, char *value, size_t size)
{
    const char *etag = header_in(f, "ETag", value, size);
    return strncmp(etag, "W/", 2) == 0 ? "" : etag;
}

/* Lines of monitors alone, of the metrics. */
static void keep_monitors(struct api_buffer *text, char *metrics)
{
    for (char *line; (line = strtok_r(metrics, "\n", &metrics));)
        if (strstr(line, "kldiv_monitor_"))
            api_append_format(text, "%s\n", line);
}

/* Removes the part of a text from a mark on, up to the next end. */
static void cut(struct api_buffer *text, const char *mark, const char *end)
{
    for (char *at = text->data; (at = strstr(at, mark));) {
        char *from = at + strlen(mark), *to = strstr(from, end);
        memmove(from, to, (size_t)(text->data + text->size - to));
        text->size -= (size_t)(to - from);
        at = from;
    }
}

/* All that the server tells of its monitors; the caller frees it. */
static struct api_buffer look(const struct server *server)
{
    struct api_buffer text = {0};
    for (size_t i = 0; i < COUNT(views); i++) {
        char value[60];
        struct fetched f = fetch(server, "GET", views[i], NULL, NULL, 0);
        bool is_metrics = strcmp(views[i], "/metrics") == 0;
        api_append_format(&text, "%s %ld %s\n", views[i], f.status,
                          version_of(&f, value, sizeof value));
        if (is_metrics)
            keep_monitors(&text, f.body.data);
        else
            api_append_text(&text, f.body.data);
        fetched_free(&f);
    }
    api_append(&text, "", 1);
    return text;
}

/* Shows the first difference. */
static void expect_same(const struct api_buffer *a, const struct api_buffer *b)
{
    size_t i = 0;
    while (i + 1 < a->size && i + 1 < b->size && a->data[i] == b->data[i])
        i++;
    size_t from = i < 150 ? 0 : i - 150;
    cr_expect(a->size == b->size && i + 1 == a->size, "before: %.300s\nafter: %.300s",
              a->data + from, b->data + from);
}

/* Members that only the newest version keeps. */
static void forget_values(struct api_buffer *told)
{
    cut(told, "\"pooled\":{", "}");
    cut(told, "\"mean\":", ",");
    cut(told, "\"sd\":", ",");
    cut(told, "\"noise_floor\":", ",");
    cut(told, "\"began\":", ",");
}

/* Starts a server, which tells the same as one before, and stops or kills it. */
static void expect_same_after_start(const struct database *database,
                                    const struct api_buffer *before, bool is_former, bool kills)
{
    struct server server = store_start(database, NULL);
    struct api_buffer after = look(&server);
    if (is_former)
        forget_values(&after);
    expect_same(before, &after);
    api_buffer_free(&after);
    if (kills)
        server_kill(&server, false);
    else
        cr_expect_eq(server_stop(&server, false), 0);
}

/* Makes the file one of the first version of the schema. */
static void make_first(const struct database *database)
{
    change_file(database, SCHEMA_11 "DROP TABLE kldiv_server_counts");
    change_file(
        database,
        "DROP INDEX kldiv_events_by_time; DROP TABLE kldiv_unseen;"
        "UPDATE kldiv_monitors SET settings = replace(replace(settings, ',\"pool\":16', ''),"
        " ',\"stale_after\":null', ''); UPDATE kldiv_monitors SET settings = replace(settings,"
        " ',\"ratio\":null,\"volume\":null', '');"
        "ALTER TABLE kldiv_monitors DROP COLUMN rose_at;"
        "ALTER TABLE kldiv_monitors DROP COLUMN rose_window;"
        "ALTER TABLE kldiv_windows DROP COLUMN pooled_bins;"
        "ALTER TABLE kldiv_windows DROP COLUMN pooled_ratio;"
        "ALTER TABLE kldiv_windows DROP COLUMN moments;"
        "ALTER TABLE kldiv_monitors DROP COLUMN since; ALTER TABLE kldiv_monitors DROP COLUMN "
        "pool_from;"
        "ALTER TABLE kldiv_monitors DROP COLUMN severity_since;"
        "ALTER TABLE kldiv_windows DROP COLUMN pooled_windows;"
        "ALTER TABLE kldiv_windows DROP COLUMN pooled_n; ALTER TABLE kldiv_windows DROP COLUMN "
        "pooled_kl;"
        "ALTER TABLE kldiv_windows DROP COLUMN pooled_p_value;"
        "ALTER TABLE kldiv_windows DROP COLUMN pooled_noise_floor;"
        "ALTER TABLE kldiv_windows DROP COLUMN reference_spread;"
        "ALTER TABLE kldiv_windows DROP COLUMN top;"
        "ALTER TABLE kldiv_windows DROP COLUMN top_share;"
        "ALTER TABLE kldiv_monitors DROP COLUMN newest_end;"
        "ALTER TABLE kldiv_monitors DROP COLUMN changed;"
        "ALTER TABLE kldiv_monitors DROP COLUMN missed; ALTER TABLE kldiv_monitors DROP COLUMN "
        "told; DROP TABLE kldiv_columns; DROP TABLE kldiv_receivers;"
        "DELETE FROM kldiv_meta WHERE name IN ('change', 'deletion', 'mute', 'note', 'server',"
        " 'notify_owner', 'notify_until', 'columns');"
        "DROP TABLE kldiv_mutes; DROP TABLE kldiv_notes; DROP TABLE kldiv_outbox;"
        "ALTER TABLE kldiv_monitors DROP COLUMN sentence;"
        "ALTER TABLE kldiv_monitors DROP COLUMN sentence_of;"
        "ALTER TABLE kldiv_monitors DROP COLUMN stale_told;"
        "UPDATE kldiv_meta SET value = 1 WHERE name = 'schema';"
        "DROP TABLE kldiv_sums; ALTER TABLE kldiv_meta RENAME TO meta;"
        "ALTER TABLE kldiv_monitors RENAME TO monitors;"
        "ALTER TABLE kldiv_revisions RENAME TO revisions;"
        "ALTER TABLE kldiv_windows RENAME TO windows;"
        "ALTER TABLE kldiv_counts RENAME TO counts; ALTER TABLE kldiv_events RENAME TO events;"
        "ALTER TABLE kldiv_keys RENAME TO keys;");
}

/* Replaces a text by one that is not longer, wherever it is. */
static void replace(struct api_buffer *text, const char *from, const char *to)
{
    size_t longer = strlen(from) - strlen(to);
    for (char *at = text->data; (at = strstr(at, from)); at += strlen(to)) {
        memcpy(at, to, strlen(to));
        char *rest = at + strlen(to);
        memmove(rest, rest + longer, (size_t)(text->data + text->size - rest) - longer);
        text->size -= longer;
    }
}

/* Has what was told be as a store of a former version has it: its monitors judge each window alone, and no text that
 * is no label is known; nor what bins were joined, nor means. */
static void make_former(struct api_buffer *told)
{
    cut(told, "\"pool\":1", ",");
    cut(told, "\"unseen\":[", "]");
    forget_values(told);
    cut(told, "\"sentence\":\"mean ", "; ");
    replace(told, "\"sentence\":\"mean ; ", "\"sentence\":\"");
    replace(told, "“blue”, never seen before, is", "other labels: 0 % →");
}

Test(store_times, tells_the_same_of_its_monitors_after_a_start)
{
    struct database database = database_new();
    struct server server = store_start(&database, NULL);
    char ahead[100];
    for (size_t i = 0; i < COUNT(history); i++)
        free(expect_status(&server, history[i].method, history[i].target, history[i].body,
                           history[i].status));
    snprintf(ahead, sizeof ahead, "/monitors/g/hours/observations?timestamp=%ld",
             time(NULL) + 12 * HOUR); /* stays open while this test runs */
    free(expect_status(&server, "POST", ahead, "{\"values\": [0, 1]}", 200));
    while (status_of(&server, "GET", "/monitors/g/hours/windows/1", NULL) == 200)
        wait_ms(20); /* years before the newest, it is swept */
    struct api_buffer before = look(&server);
    cr_expect_eq(server_stop(&server, false), 0);

    expect_same_after_start(&database, &before, false, true);
    expect_same_after_start(&database, &before, false, false);
    make_first(&database);
    make_former(&before);
    expect_same_after_start(&database, &before, true, false);
    expect_same_after_start(&database, &before, true, true);
    api_buffer_free(&before);
    database_free(&database);
}

/* A clock that was ahead hides silence no longer than until the server looks again. */
Test(store_times, of_a_clock_that_was_ahead_are_corrected)
{
    struct database database = database_new();
    struct server server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", MONITOR "?stale_after=1",
                       "{\"bins\": {\"edges\": [0, 1]}, \"reference\": {\"counts\": [5]}}", 201));
    free(expect_status(&server, "POST", MONITOR "/observations", "{\"values\": [0.5]}", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    change_file(&database,
                "UPDATE kldiv_monitors SET last_observation = last_observation + 864000000000");
    server = store_start(&database, NULL);
    bool stale = false;
    for (int waited = 0; waited < 200 && !stale; waited++) {
        char *config = expect_status(&server, "GET", MONITOR, NULL, 200);
        stale = strstr(config, "\"stale\":true");
        free(config);
        wait_ms(50);
    }
    cr_expect(stale);
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

/* ---- Time zones */

/* Copies the file of a zone below a folder, under a name of its own. */
static void install_zone(const char *folder, const char *name)
{
    size_t size;
    char path[100], *bytes = read_file("/usr/share/zoneinfo/Europe/Berlin", &size);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    cr_assert(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
}

/* The server reads zones while it is locked in. A name that goes leaves its rule. */
Test(store_times, a_zone_that_is_not_there_any_more)
{
    struct database database = database_new();
    char folder[] = "/tmp/zones-XXXXXX", path[100];
    cr_assert(mkdtemp(folder));
    chmod(folder, 0755);
    install_zone(folder, "Here");
    snprintf(path, sizeof path, "%s/Here", folder);
    setenv("TZDIR", folder, 1);
    struct server server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", MONITOR "?window=1d&timezone=Here",
                       "{\"bins\": {\"labels\": [\"a\"]}, \"reference\": {\"counts\": [9]}}", 201));
    char *refused = expect_status(&server, "PUT", MONITOR "?timezone=Hera",
                                  "{\"bins\": {\"labels\": [\"a\"]}}", 422);
    cr_expect(strstr(refused, "did you mean 'Here'?"), "%s", refused);
    free(refused);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_assert_eq(unlink(path), 0);
    server = store_start(&database, NULL);
    cr_expect(server_logs(&server, "there is no time zone 'Here'", 1));
    char *result = expect_status(&server, "POST", MONITOR "/observations?timestamp=1751400000",
                                 "{\"values\": [\"a\"]}", 200);
    cr_expect(strstr(result, "\"start\":\"2025-06-30T22:00:00Z\""), "%s", result);
    free(result);
    char *config = expect_status(&server, "GET", MONITOR, NULL, 200);
    cr_expect(strstr(config, "\"timezone_rule\":\"CET-1CEST,M3.5.0,M10.5.0/3\""), "%s", config);
    free(expect_status(&server, "PUT", MONITOR, config, 200));
    free(config);
    cr_expect_eq(server_stop(&server, true), 0);
    rmdir(folder);
    database_free(&database);
}
