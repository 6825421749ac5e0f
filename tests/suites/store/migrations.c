/* Files of former versions are migrated, by the server or apart, and those of a newer one are used if they were made for
 * this one, too. */
#include "api/store/sql.h"
#include "tests/suites/store/schema.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT = 4000 };

/* Makes the file a store of a former version. */
static void make_former(const struct database *database, int64_t version)
{
    sqlite3 *sqlite;
    cr_assert_eq(sqlite3_open(database->path, &sqlite), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(sqlite, "PRAGMA application_id = 0x6b6c6476", NULL, NULL, NULL),
                 SQLITE_OK);
    schema_make(sqlite, version);
    sqlite3_close(sqlite);
}

/* Exit status of kldivd --migrate, whose lines go to `output`. */
static int migrate(const char *location, char *output)
{
    const char *const flags[] = {"--migrate", "--store", location, NULL};
    return run_server(flags, output, OUTPUT);
}

static double schema_of(const struct database *database)
{
    return ask_file(database, "SELECT value FROM kldiv_meta WHERE name = 'schema'");
}

/* Expects a line for each version after `from`, by a format of printf with both numbers and what it is for. */
static void expect_steps(const char *text, const char *format, int64_t from)
{
    for (int64_t n = from; n < schema_newest(); n++) {
        char step[300];
        snprintf(step, sizeof step, format, (int)n, (int)n + 1, api_migrations[n].what);
        cr_expect(strstr(text, step), "no %s in %s", step, text);
        text = strstr(text, step) ? strstr(text, step) : text;
    }
}

static void expect_nothing_to_do(const struct database *database)
{
    char output[OUTPUT], line[200];
    snprintf(line, sizeof line, "%s: schema %lld: nothing to do\n", database->location,
             (long long)schema_newest());
    cr_expect_eq(migrate(database->location, output), 0);
    cr_expect_str_eq(output, line);
}

Test(store_migrations, say_which_servers_may_go_on_beside)
{
    int64_t before = 0;
    for (int64_t n = 1; n <= schema_newest(); n++) {
        const struct api_migration *migration = &api_migrations[n - 1];
        cr_expect(migration->oldest >= before && migration->oldest <= n, "%lld", (long long)n);
        cr_expect(migration->what && *migration->what);
        before = migration->oldest;
    }
}

/* SQLite refuses a row without a value for each column, unless they are named. */
Test(store_migrations, may_add_columns_because_statements_name_theirs)
{
    static const char insert[] = "INSERT INTO ";
    for (size_t i = 0; i < API_STATEMENTS; i++) {
        const char *table = strstr(api_sql[i], insert);
        cr_expect(!table || table[strlen(insert) + strcspn(table + strlen(insert), " ") + 1] == '(',
                  "%s", api_sql[i]);
        cr_expect(!strstr(api_sql[i], "SELECT *"), "%s", api_sql[i]);
    }
}

Test(store_migrations, are_made_apart)
{
    for (int64_t version = 1; version < schema_newest(); version++) {
        struct database database = database_new();
        char output[OUTPUT];
        make_former(&database, version);
        cr_expect_eq(migrate(database.location, output), 0, "%s", output);
        expect_steps(output, ": schema %d \u2192 %d: %s (", version);
        cr_expect_eq(schema_of(&database), schema_newest());
        cr_expect_eq(ask_file(&database, "SELECT value FROM kldiv_meta WHERE name = 'oldest'"),
                     api_migrations[schema_newest() - 1].oldest);
        expect_nothing_to_do(&database);
        struct server server = store_start(&database, NULL);
        free(expect_status(&server, "PUT", "/monitors/g", "a\n1\n", 201));
        cr_expect_eq(server_stop(&server, false), 0);
        database_free(&database);
    }
}

Test(store_migrations, are_made_by_the_server_which_logs_them)
{
    struct database database = database_new();
    make_former(&database, 1);
    struct server server = store_start(&database, NULL);
    cr_expect(server_logs(&server, " 0 monitors are stored store=", 1));
    char *log = server_log_text(&server);
    expect_steps(log, " info store kind=migration from=%d to=%d what=\"%s\" ms=", 1);
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
    server = store_start(&database, NULL);
    cr_expect(server_logs(&server, " 0 monitors are stored store=", 1));
    log = server_log_text(&server);
    cr_expect(!strstr(log, "kind=migration"), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

Test(store_migrations, log_a_new_store_as_one)
{
    static const char *const flags[] = {"--log-format", "json", NULL};
    struct database database = database_new();
    char member[100], output[OUTPUT];
    struct server server = store_start(&database, flags);
    snprintf(member, sizeof member,
             "\"kind\":\"migration\",\"from\":0,\"to\":%lld,\"what\":\"a new store\",\"ms\":",
             (long long)schema_newest());
    cr_expect(server_logs(&server, member, 1));
    cr_expect_eq(server_stop(&server, false), 0);
    unlink(database.path);
    cr_expect_eq(migrate(database.location, output), 0);
    cr_expect(strstr(output, ": a new store ("), "%s", output);
    expect_nothing_to_do(&database);
    database_free(&database);
}

/* The sixth migration makes a column and two tables before the one that is in its way. */
Test(store_migrations, change_nothing_if_one_fails)
{
    struct database database = database_new();
    char output[OUTPUT], line[300];
    make_former(&database, 4);
    change_file(&database, "CREATE TABLE kldiv_notes (mine)");
    snprintf(line, sizeof line, "kldivd: --migrate: --store %s: table kldiv_notes already exists\n",
             database.location);
    cr_expect_eq(migrate(database.location, output), 1);
    cr_expect_str_eq(output, line);
    cr_expect_eq(schema_of(&database), 4);
    cr_expect_eq(ask_file(&database, "SELECT count(*) FROM sqlite_schema WHERE name IN"
                                     " ('kldiv_unseen', 'kldiv_outbox', 'kldiv_mutes')"),
                 0);
    change_file(&database, "DROP TABLE kldiv_notes");
    cr_expect_eq(migrate(database.location, output), 0);
    expect_steps(output, ": schema %d \u2192 %d: %s (", 4);
    database_free(&database);
}

Test(store_migrations, are_not_of_memory_or_of_a_store_in_use)
{
    struct database database = database_new();
    char output[OUTPUT];
    cr_expect_eq(migrate("memory", output), 1);
    cr_expect(strstr(output, "kldivd: --migrate: --store memory: "), "%s", output);
    struct server server = store_start(&database, NULL);
    cr_expect_eq(migrate(database.location, output), 1);
    cr_expect(strstr(output, "another process has it open\n"), "%s", output);
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

/* ---- Counts, which the twelfth moves to the rows of windows */

/* Answers of the server about windows and monitors. */
static char *tell(const struct server *server)
{
    static const char *const targets[] = {"/monitors/g/m/windows/1", "/monitors/g/m/windows/2",
                                          "/monitors/g/m/windows",   "/monitors/g/m",
                                          "/monitors/g/l/windows/1", "/monitors/g/l"};
    struct api_buffer told = {0};
    for (size_t i = 0; i < COUNT(targets); i++) {
        char *text = expect_status(server, "GET", targets[i], NULL, 200);
        api_append_text(&told, text);
        api_append_text(&told, "\n");
        free(text);
    }
    api_append(&told, "", 1);
    return told.data;
}

Test(store_migrations, move_counts_of_bins_and_servers_to_their_windows)
{
    struct database database = database_new();
    struct server server = store_start(&database, NULL);
    char yesterday[100];
    free(expect_status(&server, "PUT", "/monitors/g/m?window=86400s&compare=previous:1",
                       "{\"bins\": {\"edges\": [0, 1, 2]}}", 201));
    snprintf(yesterday, sizeof yesterday, "/monitors/g/m/observations?timestamp=%ld",
             time(NULL) - 86400);
    free(expect_status(&server, "POST", yesterday, "{\"values\": [0.5, 1.5, 1.6, null, 7, -1]}",
                       200));
    free(expect_status(&server, "POST", "/monitors/g/m/observations",
                       "{\"values\": [0.25, 0.75, 0.5, 1.5, 1.25, 9]}", 200));
    free(expect_status(&server, "PUT", "/monitors/g/l?window=86400s&compare=previous:1",
                       "{\"bins\": {\"labels\": [\"a\", \"b\"]}}", 201));
    free(expect_status(&server, "POST", "/monitors/g/l/observations",
                       "{\"values\": [\"a\", \"a\", \"b\", \"c\", \"c\", \"d\"]}", 200));
    wait_ms(1200); /* until the window of yesterday is closed */
    char *before = tell(&server);
    cr_expect_eq(server_stop(&server, false), 0);
    change_file(&database, SCHEMA_11 BY_TWO_SERVERS);
    cr_expect_eq(ask_file(&database, "SELECT count(*) FROM kldiv_server_counts"), 4);
    server = store_start(&database, NULL);
    char *after = tell(&server);
    cr_expect_str_eq(after, before);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&database, "SELECT sum(count_of(counts)) FROM kldiv_windows"), 18);
    free(before);
    free(after);
    database_free(&database);
}

/* ---- Beside a newer version */

static int copy_text(void *to, int n, char **values, char **names)
{
    (void)names;
    *(char **)to = n > 0 && values[0] ? strdup(values[0]) : NULL;
    return 0;
}

/* Text of SQL that a query makes of the names of all tables but that of receivers, which is written some seconds after a change;
 * the caller frees it. */
static char *write_sql(const struct database *database, const char *of_each, const char *between)
{
    char query[400], *text = NULL;
    sqlite3 *sqlite;
    cr_assert_eq(sqlite3_open(database->path, &sqlite), SQLITE_OK);
    snprintf(query, sizeof query,
             "SELECT group_concat(replace('%s', '@', name), '%s') FROM sqlite_schema"
             " WHERE type = 'table' AND name LIKE 'kldiv%%' AND name <> 'kldiv_receivers'",
             of_each, between);
    cr_assert_eq(sqlite3_exec(sqlite, query, copy_text, &text, NULL), SQLITE_OK);
    cr_assert(text);
    sqlite3_close(sqlite);
    return text;
}

/* Makes of a store one of the version after the newest, which adds all that one may add that older servers use as
 * well: columns of each table, a table, an index, a number. */
static void expand(const struct database *database)
{
    char numbers[300];
    char *columns = write_sql(database,
                              "ALTER TABLE @ ADD COLUMN added TEXT;"
                              "ALTER TABLE @ ADD COLUMN also_added BIGINT NOT NULL DEFAULT 7",
                              ";");
    change_file(database, columns);
    free(columns);
    change_file(database, "CREATE TABLE later (a BIGINT);"
                          "CREATE UNIQUE INDEX later_index ON kldiv_windows (monitor, id, added);"
                          "INSERT INTO kldiv_meta (name, value) VALUES ('later', 1)");
    snprintf(numbers, sizeof numbers,
             "UPDATE kldiv_meta SET value = %lld WHERE name = 'schema';"
             "UPDATE kldiv_meta SET value = %lld WHERE name = 'oldest'",
             (long long)schema_newest() + 1, (long long)schema_newest());
    change_file(database, numbers);
}

static void observe(const struct server *server, const char *target, const char *body)
{
    static const char *const key[] = {"Idempotency-Key: 1", NULL};
    struct fetched f = fetch(server, "POST", target, key, body, strlen(body));
    cr_expect_eq(f.status, 200, "%s: %ld %.300s", target, f.status, f.body.data);
    fetched_free(&f);
}

/* Has a row written into each table: of windows before, of texts that are no labels, of a change of state that somebody
 * is told, of a mute, of a note. */
static void use_all(const struct server *server)
{
    free(expect_status(server, "PUT", "/monitors/g/m?compare=previous:1",
                       "{\"bins\": {\"labels\": [\"a\", \"b\"]}}", 201));
    observe(server, "/monitors/g/m/observations", "{\"counts\": [500, 500]}");
    for (int i = 0; i < 3; i++) {
        free(expect_status(server, "POST", "/monitors/g/m/observations", "{\"counts\": [500, 500]}",
                           200));
        free(expect_status(server, "POST", "/monitors/g/m/observations", "{\"counts\": [900, 10]}",
                           200));
    }
    free(expect_status(server, "POST", "/monitors/g/m/observations", "{\"values\": [\"c\"]}", 200));
    free(expect_status(server, "POST", "/monitors/g/observations", "m,new\na,1\n", 200));
    free(expect_status(server, "POST", "/monitors/g/m/mute", "{\"until\": 4e9}", 200));
    free(expect_status(server, "POST", "/monitors/g/m/notes", "{\"text\": \"n\"}", 201));
}

/* Expects a row in each table that this version has: each statement that writes one has run. */
static void expect_rows(const struct database *database)
{
    char query[3000];
    char *counts = write_sql(database, "SELECT count(*) AS n FROM @", " UNION ALL ");
    snprintf(query, sizeof query, "SELECT min(n) FROM (%s)", counts);
    cr_expect_gt(ask_file(database, query), 0, "%s", counts);
    free(counts);
    cr_expect_eq(ask_file(database, "SELECT min(also_added) FROM kldiv_events"), 7);
}

Test(store_migrations, leave_a_store_that_the_version_before_uses)
{
    struct database database = database_new();
    char receivers[100], line[300], output[OUTPUT];
    snprintf(receivers, sizeof receivers, "%s/notify.json", database.folder);
    write_file(receivers,
               "[{\"name\": \"r\", \"format\": \"json\", \"url\": \"http://127.0.0.1:9/\"}]");
    const char *const flags[] = {"--notify", receivers, NULL};
    struct server server = store_start(&database, NULL);
    cr_expect_eq(server_stop(&server, false), 0);
    expand(&database);
    server = store_start(&database, flags);
    snprintf(line, sizeof line,
             "--store: schema %lld is of a newer version, and may be used by this one, which knows "
             "%lld\n",
             (long long)schema_newest() + 1, (long long)schema_newest());
    cr_expect(server_logs(&server, line, 1));
    use_all(&server);
    server_kill(&server, true);
    expect_rows(&database);
    cr_expect_eq(migrate(database.location, output), 0);
    cr_expect(strstr(output, "nothing to do\n"), "%s", output);
    server = store_start(&database, NULL);
    observe(&server, "/monitors/g/m/observations", "{\"counts\": [500, 500]}");
    char *windows = expect_status(&server, "GET", "/monitors/g/m/windows", NULL, 200);
    cr_expect(strstr(windows, "\"id\":9,") && !strstr(windows, "\"id\":10,"), "%s", windows);
    free(windows);
    free(expect_status(&server, "DELETE", "/monitors/g", NULL, 204));
    wait_ms(2500); /* upkeep sweeps */
    cr_expect_eq(server_stop(&server, true), 0);
    cr_expect_eq(ask_file(&database, "SELECT count(*) FROM kldiv_windows"), 0);
    cr_expect_eq(schema_of(&database), schema_newest() + 1);
    database_free(&database);
}
