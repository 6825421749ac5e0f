/* Files that are no store, or cannot be written: the server says so in a line, ends, and leaves them as
 * they are. Where no file can be made, it serves from memory if told. */
#include "tests/suites/store/schema.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_STORE "%s is not a store of kldiv, and is left as it is"
#define DAMAGED "%s is damaged, and is left as it is"

/* OTHER: a user without rights. */
enum { OTHER = 65534, PAGE = 4096 };

/* Expects the line, with the path of the store in it. */
static void expect_line(const struct database *database, const char *format)
{
    char line[400];
    snprintf(line, sizeof line, format, database->path);
    expect_refused(database, database->location, line);
}

/* Makes a store with two columns and some hundred batches, which has dozens of pages. */
static void make_store(const struct database *database)
{
    struct api_buffer request = {0};
    struct response response = {0};
    struct server server = store_start(database, NULL);
    free(expect_status(&server, "PUT", "/monitors/g", "a,b\n1,2\n2,3\n3,1\n", 201));
    int fd = dial(&server);
    for (int i = 0; i < 300; i++) {
        write_post(&request, "/monitors/g/observations", "", "a,b\n1,2\n");
        cr_assert(converse_on(fd, &request, &response));
        cr_assert_eq(response.status, 200);
    }
    close(fd);
    api_buffer_free(&request);
    api_buffer_free(&response.bytes);
    cr_expect_eq(server_stop(&server, false), 0);
}

static void overwrite(const struct database *database, off_t at, size_t size)
{
    char bytes[PAGE];
    int fd = open(database->path, O_WRONLY);
    memset(bytes, 0xa5, sizeof bytes);
    cr_assert_eq(pwrite(fd, bytes, size, at), (ssize_t)size);
    close(fd);
}

static off_t size_of(const struct database *database)
{
    struct stat status;
    cr_assert_eq(stat(database->path, &status), 0);
    return status.st_size;
}

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZER = 1 }; /* LeakSanitizer fails in a process that has changed its user */
#else
enum { SANITIZER = 0 };
#endif

/* Becomes a user without rights, if it is root; false if that user cannot run the server. */
static bool give_up_rights(void)
{
    const char *other = getenv("KLDIV_SERVER");
    if (geteuid() == 0 && (SANITIZER || setegid(OTHER) != 0 || seteuid(OTHER) != 0))
        return false;
    return faccessat(AT_FDCWD, other ? other : KLDIV_BINARY, X_OK, AT_EACCESS) == 0;
}

/* ---- No store */

Test(store_files, leaves_files_that_are_no_store_as_they_are)
{
    struct database database = database_new();
    static const char *const texts[] = {"a,b\n1,2\n", "SQLite format 3",
                                        "SQLite format 3 and then something else, which is longer "
                                        "than the hundred bytes that begin a database of SQLite"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        write_file(database.path, texts[i]);
        expect_line(&database, NO_STORE);
    }
    unlink(database.path);
    change_file(&database, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    expect_line(&database, NO_STORE);
    change_file(&database, "PRAGMA journal_mode = WAL; PRAGMA application_id = 17");
    expect_line(&database, NO_STORE);
    database_free(&database);
}

Test(store_files, leaves_what_is_no_file_as_it_is)
{
    struct database database = database_new();
    cr_assert_eq(mkdir(database.path, 0777), 0);
    expect_line(&database, "%s cannot be opened: Is a directory");
    rmdir(database.path);
    cr_assert_eq(mkfifo(database.path, 0666), 0);
    expect_line(&database, NO_STORE);
    unlink(database.path);
    snprintf(database.path, sizeof database.path, "%s/none/store.db", database.folder);
    snprintf(database.location, sizeof database.location, "sqlite:%s", database.path);
    expect_line(&database, "the folder of %s cannot be written: No such file or directory");
    database_free(&database);
}

Test(store_files, takes_a_store_that_another_server_has_for_no_store_of_its_own)
{
    struct database database = database_new();
    struct server server = store_start(&database, NULL);
    expect_line(&database, "%s cannot be opened: another process has it open");
    free(expect_status(&server, "PUT", "/monitors/g", "a\n1\n", 201));
    expect_line(&database, "%s cannot be opened: another process has it open");
    free(expect_status(&server, "POST", "/monitors/g/observations", "a\n1\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(
        ask_file(&database, "SELECT sum(count_of(counts)) FROM kldiv_windows WHERE id = 1"), 1);
    database_free(&database);
}

Test(store_files, leaves_stores_of_newer_versions_as_they_are)
{
    static const char *const changes[] = {
        "UPDATE kldiv_meta SET value = CASE name WHEN 'schema' THEN 99 ELSE 98 END"
        " WHERE name IN ('schema', 'oldest')",
        "UPDATE kldiv_meta SET value = 98 WHERE name = 'schema';"
        "DELETE FROM kldiv_meta WHERE name = 'oldest'"};
    struct database database = database_new();
    char line[300];
    make_store(&database);
    for (size_t i = 0; i < COUNT(changes); i++) {
        snprintf(line, sizeof line,
                 "it was written by a newer version of kldiv: its schema %d takes one that knows "
                 "98, and this one knows %lld; start a newer version, or restore a backup",
                 i == 0 ? 99 : 98, (long long)schema_newest());
        change_file(&database, changes[i]);
        expect_refused(&database, database.location, line);
    }
    database_free(&database);
}

/* ---- Rights */

Test(store_files, tells_which_rights_to_its_store_it_lacks)
{
    struct database database = database_new();
    make_store(&database);
    cr_assert_eq(chmod(database.path, 0444), 0);
    if (!give_up_rights()) {
        cr_assert_eq(seteuid(getuid()), 0);
        database_free(&database);
        cr_skip("another user cannot run the server");
    }
    if (geteuid() == OTHER)
        expect_line(&database, "%s cannot be opened: Permission denied");
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(database.path, 0666), 0);
    cr_assert_eq(chmod(database.folder, 0555), 0);
    give_up_rights();
    expect_line(&database, "the folder of %s cannot be written: Permission denied");
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(database.folder, 0777), 0);
    database_free(&database);
}

Test(store_files, tells_of_a_file_system_that_is_read_only_as_root)
{
    struct database database = database_new();
    if (!database_mount(&database)) {
        database_free(&database);
        cr_skip("no file system can be mounted here");
    }
    database_remount(&database, true);
    expect_line(&database, "the folder of %s cannot be written: Read-only file system");
    database_remount(&database, false);
    make_store(&database);
    database_remount(&database, true);
    expect_line(&database, "%s cannot be opened: Read-only file system");
    database_remount(&database, false);
    database_free(&database);
}

/* ---- Memory in place of a file */

static const char *const fall_back[] = {"--store-fallback", "memory", NULL};

/* Expects a server that says why it keeps monitors in memory, and keeps them. */
static void expect_memory(const struct database *database, const char *reason)
{
    char line[600], why[300];
    struct server server = store_start(database, fall_back);
    snprintf(why, sizeof why, reason, database->path);
    snprintf(line, sizeof line,
             "--store-fallback: monitors are kept in memory, and lost at the end store=%s "
             "error=\"%s\"\n",
             database->location, why);
    cr_expect(server_logs(&server, line, 1), "no line %s", line);
    cr_expect(server_logs(&server, "0 monitors are stored store=memory\n", 1));
    free(expect_status(&server, "PUT", "/monitors/g", "a\n1\n", 201));
    free(expect_status(&server, "GET", "/monitors/g/a", NULL, 200));
    cr_expect_eq(server_stop(&server, true), 0);
}

static void expect_exit_despite(const struct database *database)
{
    char output[1000];
    const char *const flags[] = {"--listen",         "127.0.0.1:0", "--store", database->location,
                                 "--store-fallback", "memory",      NULL};
    unsigned long long before = hash_of_folder(database->folder);
    cr_expect_eq(run_server(flags, output, sizeof output), 1, "%s", output);
    cr_expect_eq(hash_of_folder(database->folder), before, "%s has changed", database->location);
}

Test(store_files, keeps_monitors_in_memory_if_told_where_no_file_can_be_made)
{
    struct database database = database_new(), inner = database;
    snprintf(inner.path, sizeof inner.path, "%s/none/store.db", database.folder);
    snprintf(inner.location, sizeof inner.location, "sqlite:%s", inner.path);
    expect_memory(&inner, "the folder of %s cannot be written: No such file or directory");
    cr_assert_eq(chmod(database.folder, 0555), 0);
    if (give_up_rights() && geteuid() == OTHER)
        expect_memory(&database, "the folder of %s cannot be written: Permission denied");
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(database.folder, 0777), 0);
    struct server server = store_start(&database, fall_back); /* a file, where one can be made */
    cr_expect(server_logs(&server, database.location, 1));
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&database, "SELECT count(*) FROM kldiv_monitors"), 0);
    database_free(&database);
}

Test(store_files, never_falls_back_from_a_file_that_is_there)
{
    struct database database = database_new();
    write_file(database.path, "a,b\n1,2\n");
    expect_exit_despite(&database);
    unlink(database.path);
    make_store(&database);
    struct server server = store_start(&database, NULL);
    expect_exit_despite(&database);
    cr_expect_eq(server_stop(&server, false), 0);
    overwrite(&database, 100, PAGE - 100);
    expect_exit_despite(&database);
    unlink(database.path);
    make_store(&database);
    cr_assert_eq(chmod(database.path, 0444), 0);
    cr_assert_eq(chmod(database.folder, 0555), 0);
    if (give_up_rights() && geteuid() == OTHER)
        expect_exit_despite(&database);
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(database.folder, 0777), 0);
    database_free(&database);
}

Test(store_files, keeps_monitors_in_memory_if_told_on_a_file_system_that_is_read_only_as_root)
{
    struct database database = database_new();
    if (!database_mount(&database)) {
        database_free(&database);
        cr_skip("no file system can be mounted here");
    }
    database_remount(&database, true);
    expect_memory(&database, "the folder of %s cannot be written: Read-only file system");
    database_remount(&database, false);
    make_store(&database);
    database_remount(&database, true);
    expect_exit_despite(&database);
    database_remount(&database, false);
    database_free(&database);
}

/* ---- Damage */

/* Values that no version writes are damage that SQLite does not see. */
Test(store_files, serves_a_store_with_values_that_mean_nothing)
{
    static const char *const views[] = {"/monitors",
                                        "/monitors/g/a",
                                        "/monitors/g/a/windows",
                                        "/monitors/g/a/windows/latest",
                                        "/monitors/g/a/events",
                                        "/metrics"};
    struct database database = database_new();
    make_store(&database);
    change_file(
        &database,
        "UPDATE kldiv_windows SET verdict = 99, state = -1, settings = '{', n = -5, top = -7;"
        "UPDATE kldiv_monitors SET state = 4, since = 'x'; UPDATE kldiv_windows SET counts = NULL;"
        "INSERT INTO kldiv_events VALUES (1, 1, 0, 77, -1, NULL, 5, -1);"
        "UPDATE kldiv_windows SET reference = x'00' WHERE id < 10");
    struct server server = store_start(&database, NULL);
    for (size_t i = 0; i < COUNT(views); i++)
        free(expect_status(&server, "GET", views[i], NULL, 200));
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

Test(store_files, leaves_a_damaged_store_as_it_is)
{
    struct database database = database_new();
    make_store(&database);
    off_t size = size_of(&database);
    cr_expect_gt(size, 20 * PAGE);

    cr_assert_eq(truncate(database.path, size / 2), 0);
    expect_line(&database, DAMAGED);
    unlink(database.path);

    make_store(&database);
    overwrite(&database, 100, PAGE - 100);
    expect_line(&database, DAMAGED);
    unlink(database.path);

    make_store(&database);
    overwrite(&database, size / PAGE / 2 * PAGE, PAGE);
    expect_line(&database, DAMAGED);
    database_free(&database);
}

/* ---- Monitors that cannot be read */

static void expect_left_out(const struct database *database, const char *const *flags)
{
    struct server server = store_start(database, flags);
    cr_expect(server_logs(&server, "the monitor 'a' of the group 'g' cannot be read", 1));
    free(expect_status(&server, "GET", "/monitors/g/a", NULL, 404));
    free(expect_status(&server, "GET", "/monitors/g/b", NULL, 200));
    char *answer = expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200);
    cr_expect(strstr(answer, "column_unknown") && strstr(answer, "\"name\":\"b\""), "%s", answer);
    free(answer);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Sets the definition of the monitor a by an expression of SQL. */
static void define(const struct database *database, const char *expression)
{
    char statement[600];
    snprintf(statement, sizeof statement,
             "UPDATE kldiv_revisions SET definition = %s"
             " WHERE monitor = (SELECT id FROM kldiv_monitors WHERE name = 'a')",
             expression);
    change_file(database, statement);
}

#define LONG_LABEL(kilobytes)                                                                      \
    "'{\"bins\":{\"labels\":[\"' || hex(zeroblob(" #kilobytes " * 512)) ||"                        \
    " '\"]},\"reference\":{\"counts\":[1],\"other\":0,\"missing\":0}}'"

/* One that is malformed, has settings that mean nothing, or is larger than all memory is told by name; the
 * others are served, and a PUT makes it anew. */
Test(store_files, leaves_out_a_monitor_that_cannot_be_read, .timeout = 60)
{
    static const char *const scarce[] = {"--max-memory", "64M", NULL};
    static const char *const broken[] = {"'{'", "'{\"bins\":{\"labels\":[]},\"reference\":null}'",
                                         "'null'", "''", LONG_LABEL(40000)};
    struct database database = database_new();
    make_store(&database);
    for (size_t i = 0; i < COUNT(broken); i++) {
        define(&database, broken[i]);
        expect_left_out(&database, scarce);
    }
    struct server server = store_start(&database, scarce);
    free(expect_status(&server, "PUT", "/monitors/g", "a\n1\n2\n", 201));
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, true), 0);
    server = store_start(&database, scarce);
    free(expect_status(&server, "GET", "/monitors/g/a/windows/1", NULL, 200));
    free(expect_status(&server, "GET", "/monitors/g/a/windows/2", NULL, 404));
    free(expect_status(&server, "DELETE", "/monitors/g", NULL, 204));
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&database, "SELECT count(*) FROM kldiv_monitors"), 0);
    database_free(&database);
}

/* A DELETE of its name or its group takes it away, with its rows. */
Test(store_files, deletes_a_monitor_that_cannot_be_read)
{
    static const char *const targets[] = {"/monitors/g/a", "/monitors/g"};
    for (size_t i = 0; i < COUNT(targets); i++) {
        struct database database = database_new();
        make_store(&database);
        define(&database, "'{'");
        struct server server = store_start(&database, NULL);
        free(expect_status(&server, "DELETE", "/monitors/g/c", NULL, 404));
        free(expect_status(&server, "DELETE", targets[i], NULL, 204));
        free(expect_status(&server, "DELETE", targets[i], NULL, 404));
        free(expect_status(&server, "GET", "/monitors/g/b", NULL, i == 0 ? 200 : 404));
        wait_ms(2500); /* upkeep sweeps */
        cr_expect_eq(server_stop(&server, true), 0);
        cr_expect_eq(ask_file(&database, "SELECT count(*) FROM kldiv_monitors"), i == 0 ? 1 : 0);
        cr_expect_eq(ask_file(&database, "SELECT count(DISTINCT monitor) FROM kldiv_revisions"),
                     i == 0 ? 1 : 0);
        database_free(&database);
    }
}

/* Labels as versions before the limit stored them, one of 2 MiB. What GET gives, PUT takes, up to a body's
 * 1 MiB without values. */
Test(store_files, reads_labels_that_were_stored_before_they_had_a_limit)
{
    static const char *const scarce[] = {"--max-memory", "64M", NULL};
    struct database database = database_new();
    make_store(&database);
    define(&database, LONG_LABEL(200));
    struct server first = store_start(&database, scarce);
    char *same = expect_status(&first, "GET", "/monitors/g/a", NULL, 200);
    free(expect_status(&first, "PUT", "/monitors/g/a", same, 200));
    free(expect_status(&first, "PUT", "/monitors/g/c", same, 422));
    free(same);
    cr_expect_eq(server_stop(&first, false), 0);
    define(&database, LONG_LABEL(2048));
    struct server server = store_start(&database, scarce);
    char *config = expect_status(&server, "GET", "/monitors/g/a", NULL, 200);
    cr_expect_gt(strlen(config), 2 << 20);
    free(config);
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}
