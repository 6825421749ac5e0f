/* A DELETE leaves nothing of texts in the store's files, while the server goes on. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* ERASURE: seconds within which texts are gone. */
enum { WINDOWS = 60, ERASURE = 10 };

/* Each text that clients give begins with this. */
#define PERSON "Erika"

static const struct {
    const char *method, *target, *body;
    long status;
} texts[] = {
    {"PUT", "/monitors/" PERSON,
     "{\"columns\": {\"" PERSON "-c\": [\"" PERSON "-l\", \"" PERSON "-l\", \"b\", \"b\"]},"
     " \"annotations\": {\"who\": \"" PERSON "-a\"}}",
     201},
    {"PUT", "/monitors/" PERSON "/" PERSON "-d",
     "{\"bins\": {\"labels\": [\"" PERSON "-o\", \"b\"]}, \"reference\": {\"counts\": [500, 500]}}",
     201},
    {"POST", "/monitors/" PERSON "/" PERSON "-d/observations", "{\"counts\": [900, 100]}", 200},
    {"POST", "/monitors/" PERSON "/" PERSON "-c/notes", "{\"text\": \"" PERSON "-n\"}", 201},
    {"POST", "/groups/" PERSON "/notes", "{\"text\": \"" PERSON "-g\"}", 201},
    {"POST", "/groups/" PERSON "/mute", "{\"seconds\": 3600, \"reason\": \"" PERSON "-r\"}", 200},
    {"POST", "/monitors/" PERSON "/" PERSON "-c/mute",
     "{\"seconds\": 60, \"reason\": \"" PERSON "-m\"}", 200},
};

/* Number of times that the folder's files have the text. */
static size_t count_texts(const struct database *database)
{
    char pattern[60];
    size_t n = 0;
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", database->folder);
    cr_assert_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        size_t size;
        char *bytes = read_file(found.gl_pathv[i], &size), *at = bytes;
        while ((at = memmem(at, size - (size_t)(at - bytes), PERSON, strlen(PERSON)))) {
            at++;
            n++;
        }
        free(bytes);
    }
    globfree(&found);
    return n;
}

static void define(const struct server *server)
{
    for (size_t i = 0; i < COUNT(texts); i++)
        free(expect_status(server, texts[i].method, texts[i].target, texts[i].body,
                           texts[i].status));
    for (int i = 0; i < WINDOWS; i++) {
        char body[100];
        snprintf(body, sizeof body,
                 "{\"columns\": {\"" PERSON "-c\": [\"" PERSON "-u%d\"],"
                 " \"" PERSON "-new\": [1]}}",
                 i);
        free(expect_status(server, "POST", "/monitors/" PERSON "/observations", body, 200));
    }
}

static void expect_erased(const struct database *database)
{
    for (double end = now_seconds() + ERASURE; count_texts(database) > 0 && now_seconds() < end;)
        wait_ms(100);
    cr_expect_eq(count_texts(database), 0);
}

static void check_erased(bool is_killed)
{
    struct database database = database_new();
    char receivers[sizeof database.folder + 20];
    const char *const flags[] = {"--notify", receivers, NULL};
    snprintf(receivers, sizeof receivers, "%s/notify.json", database.folder);
    write_file(receivers,
               "[{\"name\": \"away\", \"format\": \"json\", \"url\": \"http://127.0.0.1:1/\"}]");
    struct server server = store_start(&database, flags);
    define(&server);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_gt(count_texts(&database), WINDOWS);
    cr_expect_gt(ask_file(&database, "SELECT count(*) FROM kldiv_outbox"), 0);
    server = store_start(&database, flags);
    free(expect_status(&server, "DELETE", "/monitors/" PERSON, NULL, 204));
    if (is_killed) {
        server_kill(&server, false);
        server = store_start(&database, flags);
    }
    expect_erased(&database);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&database, "SELECT count(*) FROM kldiv_windows"), 0);
    database_free(&database);
}

Test(store_erased, texts_of_deleted_monitors_are_overwritten) { check_erased(false); }

Test(store_erased, texts_of_monitors_are_overwritten_if_the_server_is_killed)
{
    check_erased(true);
}

Test(store_erased, texts_of_a_window_and_of_a_note_are_overwritten)
{
    struct database database = database_new();
    struct server server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", "/monitors/g",
                       "{\"columns\": {\"m\": [\"a\", \"a\", \"b\", \"b\"]}}", 201));
    free(expect_status(&server, "POST", "/monitors/g/m/observations",
                       "{\"values\": [\"" PERSON "\"]}", 200));
    free(expect_status(&server, "POST", "/groups/g/notes", "{\"text\": \"" PERSON "\"}", 201));
    cr_expect_gt(count_texts(&database), 0);
    free(expect_status(&server, "DELETE", "/monitors/g/m/windows/1", NULL, 204));
    free(expect_status(&server, "DELETE", "/groups/g/notes/1", NULL, 204));
    expect_erased(&database);
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

/* Labels are in the windows' revision, which goes with the last of its windows. */
Test(store_erased, labels_of_former_bins_are_overwritten_with_their_windows)
{
    static const char *const orders[][2] = {{"PUT", "DELETE"}, {"DELETE", "PUT"}};
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct database database = database_new();
        struct server server = store_start(&database, NULL);
        free(expect_status(&server, "PUT", "/monitors/g",
                           "{\"columns\": {\"m\": [\"" PERSON "\", \"b\", \"b\"]}}", 201));
        free(expect_status(&server, "POST", "/monitors/g/m/observations", "{\"values\": [\"b\"]}",
                           200));
        for (size_t j = 0; j < 2; j++)
            if (strcmp(orders[i][j], "PUT") == 0)
                free(expect_status(&server, "PUT", "/monitors/g",
                                   "{\"columns\": {\"m\": [\"a\", \"b\", \"b\"]}}", 200));
            else
                free(expect_status(&server, "DELETE", "/monitors/g/m/windows/1", NULL, 204));
        expect_erased(&database);
        cr_expect_eq(server_stop(&server, false), 0);
        database_free(&database);
    }
}
