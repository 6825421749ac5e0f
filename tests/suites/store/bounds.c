/* A store that must not grow, gives back what it does not need, and is told to be gone when its file is. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT "1M"
#define GONE " was removed or replaced\"\n"

/* BINS: of each monitor, so that a batch takes some 4 KB. WAIT: seconds for what upkeep does. */
enum { BINS = 400, WAIT = 5, MANY = 2000 };

static struct api_buffer make_body(const char *before, const char *after)
{
    struct api_buffer body = {0};
    api_append_text(&body, before);
    for (int i = 0; i <= BINS; i++)
        api_append_format(&body, "%s%d", i ? "," : "", i);
    api_append(&body, after, strlen(after) + 1);
    return body;
}

static long put(const struct server *server, const char *target)
{
    struct api_buffer body =
        make_body("{\"compare\": {\"previous\": 1}, \"bins\": {\"edges\": [", "]}}");
    long status = status_of(server, "PUT", target, body.data);
    api_buffer_free(&body);
    return status;
}

static long post(const struct server *server, const char *target)
{
    struct api_buffer body = make_body("{\"values\": [", "]}");
    long status = status_of(server, "POST", target, body.data);
    api_buffer_free(&body);
    return status;
}

static double size_of(const struct server *server)
{
    return metric(server, "\nkldiv_store_size_bytes ");
}

static double size_of_file(const struct database *database)
{
    struct stat status;
    cr_assert_eq(stat(database->path, &status), 0);
    return (double)status.st_size;
}

/* Posts until the store is full. */
static void fill(const struct server *server)
{
    long status = 200;
    for (int i = 0; i < MANY && status == 200; i++)
        status = post(server, "/monitors/g/m/observations");
    cr_expect_eq(status, 503);
}

static void expect_shrunk(const struct server *server, const struct database *database, double max)
{
    for (double end = now_seconds() + WAIT; size_of_file(database) > max && now_seconds() < end;)
        wait_ms(50);
    cr_expect_leq(size_of_file(database), max, "%g bytes, of which %g are used",
                  size_of_file(database), size_of(server));
}

static void expect_room(const struct server *server)
{
    long status = 503;
    for (double end = now_seconds() + WAIT; status == 503 && now_seconds() < end; wait_ms(50))
        status = post(server, "/monitors/small/m/observations");
    cr_expect_eq(status, 200);
}

Test(store_bounds, keeps_its_store_within_max_store)
{
    static const char *const flags[] = {"--max-store", LIMIT, NULL};
    struct database database = database_new();
    struct server server = store_start(&database, flags);
    char *text;
    cr_expect_eq(put(&server, "/monitors/g/m"), 201);
    cr_expect_eq(put(&server, "/monitors/small/m"), 201);
    fill(&server);
    cr_expect_lt(size_of(&server), (1 << 20) + 100000);
    text = expect_status(&server, "POST", "/monitors/g/m/observations", "{\"values\": [1]}", 503);
    cr_expect(strstr(text, "\"store_full\""), "%s", text);
    free(text);
    cr_expect_eq(put(&server, "/monitors/g/other"), 503);
    cr_expect_eq(put(&server, "/monitors/g/m?retention_days=1"), 200);
    free(expect_status(&server, "GET", "/monitors/g/m/windows", NULL, 200));
    text = expect_status(&server, "GET", "/readyz", NULL, 200);
    cr_expect(strstr(text, "\"store\":\"up\""), "%s", text);
    free(text);
    free(expect_status(&server, "DELETE", "/monitors/g/m", NULL, 204));
    expect_room(&server);
    cr_expect_eq(server_stop(&server, true), 0);
    database_free(&database);
}

/* Fills a store without a limit, and deletes most of it. */
static void expect_to_shrink(const struct database *database, struct server *server)
{
    double max = size_of_file(database);
    cr_expect_geq(max, 2 << 20);
    free(expect_status(server, "DELETE", "/monitors/g/m", NULL, 204));
    expect_shrunk(server, database, max / 2);
    cr_expect_eq(post(server, "/monitors/small/m/observations"), 200);
    cr_expect_eq(server_stop(server, true), 0);
    cr_expect_eq(
        ask_file(database,
                 "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"),
        0);
}

Test(store_bounds, gives_back_what_its_store_does_not_need)
{
    for (int is_former = 0; is_former <= 1; is_former++) {
        struct database database = database_new();
        struct server server = store_start(&database, NULL);
        cr_expect_eq(put(&server, "/monitors/g/m"), 201);
        cr_expect_eq(put(&server, "/monitors/small/m"), 201);
        for (int i = 0; i < 1000; i++)
            cr_expect_eq(post(&server, "/monitors/g/m/observations"), 200);
        cr_expect_eq(server_stop(&server, true), 0);
        if (is_former)
            change_file(&database, "PRAGMA auto_vacuum = NONE; VACUUM");
        server = store_start(&database, NULL);
        expect_to_shrink(&database, &server);
        database_free(&database);
    }
}

/* ---- Files that are gone */

static void expect_store(const struct server *server, const char *state, double is_up)
{
    char *text = NULL;
    bool is_so = false;
    for (double end = now_seconds() + WAIT; !is_so && now_seconds() < end; wait_ms(20)) {
        free(text);
        text = expect_status(server, "GET", "/readyz", NULL, 200);
        is_so = strstr(text, state) != NULL;
    }
    cr_expect(is_so, "%s", text);
    free(text);
    cr_expect_eq(metric(server, "\nkldiv_store_up "), is_up);
}

static void expect_gone(const struct server *server)
{
    char *text =
        expect_status(server, "POST", "/monitors/g/m/observations", "{\"values\": [1]}", 503);
    cr_expect(strstr(text, "\"store_unavailable\""), "%s", text);
    free(text);
    free(expect_status(server, "GET", "/monitors/g/m", NULL, 503));
    cr_expect(server_logs(server, GONE, 1));
}

/* Nothing is asked of the store while its files are away: it is found out all the same. */
Test(store_bounds, tells_that_the_files_of_its_store_are_gone)
{
    static const char *const suffixes[] = {"", "-wal"};
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        struct database database = database_new();
        char from[100], to[120];
        snprintf(from, sizeof from, "%s%s", database.path, suffixes[i]);
        snprintf(to, sizeof to, "%s.away", from);
        struct server server = store_start(&database, NULL);
        cr_expect_eq(put(&server, "/monitors/g/m"), 201);
        cr_expect_eq(post(&server, "/monitors/g/m/observations"), 200);
        cr_assert_eq(rename(from, to), 0);
        expect_gone(&server);
        expect_store(&server, "\"store\":\"down\"", 0);
        write_file(from, "another");
        expect_gone(&server);
        cr_assert_eq(rename(to, from), 0);
        expect_store(&server, "\"store\":\"up\"", 1);
        cr_expect_eq(post(&server, "/monitors/g/m/observations"), 200);
        cr_expect_eq(
            metric(&server, "\nkldiv_monitor_observations_total{group=\"g\",monitor=\"m\"} "),
            2 * (BINS + 1));
        unlink(from);
        expect_store(&server, "\"store\":\"down\"", 0);
        cr_expect(server_logs(&server, GONE, 2));
        server_kill(&server, true);
        database_free(&database);
    }
}
