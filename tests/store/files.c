/* Files that are no store, or cannot be written: the server says so in a line, ends, and leaves them as
 * they are. Where no file can be made, it serves from memory if told. */
#include "tests/support/crowd.h"
#include "tests/support/store.h"
#include "tests/support/support.h"

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
static void expect_line(const struct place *place, const char *format)
{
    char line[400];
    snprintf(line, sizeof line, format, place->path);
    expect_refused(place, place->location, line);
}

/* Makes a store with two columns and a thousand batches, which has some hundred pages. */
static void make_store(const struct place *place)
{
    struct api_buffer request = {0};
    struct response response = {0};
    struct server server = store_start(place, NULL);
    free(expect_status(&server, "PUT", "/monitors/g", "a,b\n1,2\n2,3\n3,1\n", 201));
    int fd = dial(&server);
    for (int i = 0; i < 1000; i++) {
        write_post(&request, "/monitors/g/observations", "", "a,b\n1,2\n");
        cr_assert(converse_on(fd, &request, &response));
        cr_assert_eq(response.status, 200);
    }
    close(fd);
    api_buffer_free(&request);
    api_buffer_free(&response.bytes);
    cr_expect_eq(server_stop(&server, false), 0);
}

static void overwrite(const struct place *place, off_t at, size_t size)
{
    char bytes[PAGE];
    int fd = open(place->path, O_WRONLY);
    memset(bytes, 0xa5, sizeof bytes);
    cr_assert_eq(pwrite(fd, bytes, size, at), (ssize_t)size);
    close(fd);
}

static off_t size_of(const struct place *place)
{
    struct stat status;
    cr_assert_eq(stat(place->path, &status), 0);
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

Test(server, leaves_files_that_are_no_store_as_they_are)
{
    struct place place = place_new();
    static const char *const texts[] = {"a,b\n1,2\n", "SQLite format 3",
                                        "SQLite format 3 and then something else, which is longer "
                                        "than the hundred bytes that begin a database of SQLite"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        write_file(place.path, texts[i]);
        expect_line(&place, NO_STORE);
    }
    unlink(place.path);
    change_file(&place, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')");
    expect_line(&place, NO_STORE);
    change_file(&place, "PRAGMA journal_mode = WAL; PRAGMA application_id = 17");
    expect_line(&place, NO_STORE);
    place_free(&place);
}

Test(server, leaves_what_is_no_file_as_it_is)
{
    struct place place = place_new();
    cr_assert_eq(mkdir(place.path, 0777), 0);
    expect_line(&place, "%s cannot be opened: Is a directory");
    rmdir(place.path);
    cr_assert_eq(mkfifo(place.path, 0666), 0);
    expect_line(&place, NO_STORE);
    unlink(place.path);
    snprintf(place.path, sizeof place.path, "%s/none/store.db", place.folder);
    snprintf(place.location, sizeof place.location, "sqlite:%s", place.path);
    expect_line(&place, "the folder of %s cannot be written: No such file or directory");
    place_free(&place);
}

Test(server, takes_a_store_that_another_server_has_for_no_store_of_its_own)
{
    struct place place = place_new();
    struct server server = store_start(&place, NULL);
    expect_line(&place, "%s cannot be opened: another process has it open");
    free(expect_status(&server, "PUT", "/monitors/g", "a\n1\n", 201));
    expect_line(&place, "%s cannot be opened: another process has it open");
    free(expect_status(&server, "POST", "/monitors/g/observations", "a\n1\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&place, "SELECT sum(count) FROM kldiv_counts WHERE window_id = 1"), 1);
    place_free(&place);
}

Test(server, leaves_stores_of_newer_versions_as_they_are)
{
    struct place place = place_new();
    make_store(&place);
    change_file(&place, "UPDATE kldiv_meta SET value = 99 WHERE name = 'schema'");
    expect_refused(&place, place.location,
                   "it was written by a newer version of kldiv (schema 99, this one knows 4)");
    place_free(&place);
}

/* ---- Rights */

Test(server, tells_which_rights_to_its_store_it_lacks)
{
    struct place place = place_new();
    make_store(&place);
    cr_assert_eq(chmod(place.path, 0444), 0);
    if (!give_up_rights()) {
        cr_assert_eq(seteuid(getuid()), 0);
        place_free(&place);
        cr_skip("(not tried: another user cannot run the server)");
    }
    if (geteuid() == OTHER)
        expect_line(&place, "%s cannot be opened: Permission denied");
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(place.path, 0666), 0);
    cr_assert_eq(chmod(place.folder, 0555), 0);
    give_up_rights();
    expect_line(&place, "the folder of %s cannot be written: Permission denied");
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(place.folder, 0777), 0);
    place_free(&place);
}

Test(server, tells_of_a_file_system_that_is_read_only)
{
    struct place place = place_new();
    if (!place_mount(&place)) {
        place_free(&place);
        cr_skip("(not tried: no file system can be mounted here)");
    }
    place_remount(&place, true);
    expect_line(&place, "the folder of %s cannot be written: Read-only file system");
    place_remount(&place, false);
    make_store(&place);
    place_remount(&place, true);
    expect_line(&place, "%s cannot be opened: Read-only file system");
    place_remount(&place, false);
    place_free(&place);
}

/* ---- Memory in place of a file */

static const char *const fall_back[] = {"--store-fallback", "memory", NULL};

/* Expects a server that says why it keeps monitors in memory, and keeps them. */
static void expect_memory(const struct place *place, const char *reason)
{
    char line[600], why[300];
    struct server server = store_start(place, fall_back);
    snprintf(why, sizeof why, reason, place->path);
    snprintf(line, sizeof line,
             "--store %s: %s; --store-fallback: monitors are kept in memory, and lost at the end\n",
             place->location, why);
    cr_expect(server_logs(&server, line, 1), "no line %s", line);
    cr_expect(server_logs(&server, "store memory, 0 monitors\n", 1));
    free(expect_status(&server, "PUT", "/monitors/g", "a\n1\n", 201));
    free(expect_status(&server, "GET", "/monitors/g/a", NULL, 200));
    cr_expect_eq(server_stop(&server, true), 0);
}

static void expect_exit_despite(const struct place *place)
{
    char output[1000];
    const char *const flags[] = {"--listen",         "127.0.0.1:0", "--store", place->location,
                                 "--store-fallback", "memory",      NULL};
    unsigned long long before = hash_of_folder(place->folder);
    cr_expect_eq(run_server(flags, output, sizeof output), 1, "%s", output);
    cr_expect_eq(hash_of_folder(place->folder), before, "%s has changed", place->location);
}

Test(server, keeps_monitors_in_memory_if_told_where_no_file_can_be_made)
{
    struct place place = place_new(), inner = place;
    snprintf(inner.path, sizeof inner.path, "%s/none/store.db", place.folder);
    snprintf(inner.location, sizeof inner.location, "sqlite:%s", inner.path);
    expect_memory(&inner, "the folder of %s cannot be written: No such file or directory");
    cr_assert_eq(chmod(place.folder, 0555), 0);
    if (give_up_rights() && geteuid() == OTHER)
        expect_memory(&place, "the folder of %s cannot be written: Permission denied");
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(place.folder, 0777), 0);
    struct server server = store_start(&place, fall_back); /* a file, where one can be made */
    cr_expect(server_logs(&server, place.location, 1));
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&place, "SELECT count(*) FROM kldiv_monitors"), 0);
    place_free(&place);
}

Test(server, never_falls_back_from_a_file_that_is_there)
{
    struct place place = place_new();
    write_file(place.path, "a,b\n1,2\n");
    expect_exit_despite(&place);
    unlink(place.path);
    make_store(&place);
    struct server server = store_start(&place, NULL);
    expect_exit_despite(&place);
    cr_expect_eq(server_stop(&server, false), 0);
    overwrite(&place, 100, PAGE - 100);
    expect_exit_despite(&place);
    unlink(place.path);
    make_store(&place);
    cr_assert_eq(chmod(place.path, 0444), 0);
    cr_assert_eq(chmod(place.folder, 0555), 0);
    if (give_up_rights() && geteuid() == OTHER)
        expect_exit_despite(&place);
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(chmod(place.folder, 0777), 0);
    place_free(&place);
}

Test(server, keeps_monitors_in_memory_if_told_on_a_file_system_that_is_read_only)
{
    struct place place = place_new();
    if (!place_mount(&place)) {
        place_free(&place);
        cr_skip("(not tried: no file system can be mounted here)");
    }
    place_remount(&place, true);
    expect_memory(&place, "the folder of %s cannot be written: Read-only file system");
    place_remount(&place, false);
    make_store(&place);
    place_remount(&place, true);
    expect_exit_despite(&place);
    place_remount(&place, false);
    place_free(&place);
}

/* ---- Damage */

/* Values that no version writes are damage that SQLite does not see. */
Test(server, serves_a_store_with_values_that_mean_nothing)
{
    static const char *const views[] = {"/monitors",
                                        "/monitors/g/a",
                                        "/monitors/g/a/windows",
                                        "/monitors/g/a/windows/latest",
                                        "/monitors/g/a/events",
                                        "/metrics"};
    struct place place = place_new();
    make_store(&place);
    change_file(
        &place,
        "UPDATE kldiv_windows SET verdict = 99, state = -1, settings = '{', n = -5, top = -7;"
        "UPDATE kldiv_monitors SET state = 4, since = 'x'; UPDATE kldiv_counts SET bin = 1000000;"
        "INSERT INTO kldiv_events VALUES (1, 1, 0, 77, -1, NULL, 5);"
        "UPDATE kldiv_windows SET reference = x'00' WHERE id < 10");
    struct server server = store_start(&place, NULL);
    for (size_t i = 0; i < COUNT(views); i++)
        free(expect_status(&server, "GET", views[i], NULL, 200));
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    place_free(&place);
}

Test(server, leaves_a_damaged_store_as_it_is)
{
    struct place place = place_new();
    make_store(&place);
    off_t size = size_of(&place);
    cr_expect_gt(size, 20 * PAGE);

    cr_assert_eq(truncate(place.path, size / 2), 0);
    expect_line(&place, DAMAGED);
    unlink(place.path);

    make_store(&place);
    overwrite(&place, 100, PAGE - 100);
    expect_line(&place, DAMAGED);
    unlink(place.path);

    make_store(&place);
    overwrite(&place, size / PAGE / 2 * PAGE, PAGE);
    expect_line(&place, DAMAGED);
    place_free(&place);
}

/* ---- Monitors that cannot be read */

static void expect_left_out(const struct place *place, const char *const *flags)
{
    struct server server = store_start(place, flags);
    cr_expect(server_logs(&server, "the monitor 'a' of the group 'g' cannot be read", 1));
    free(expect_status(&server, "GET", "/monitors/g/a", NULL, 404));
    free(expect_status(&server, "GET", "/monitors/g/b", NULL, 200));
    char *answer = expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200);
    cr_expect(strstr(answer, "column_unknown") && strstr(answer, "\"name\":\"b\""), "%s", answer);
    free(answer);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Sets the definition of the monitor a by an expression of SQL. */
static void define(const struct place *place, const char *expression)
{
    char statement[600];
    snprintf(statement, sizeof statement,
             "UPDATE kldiv_revisions SET definition = %s"
             " WHERE monitor = (SELECT id FROM kldiv_monitors WHERE name = 'a')",
             expression);
    change_file(place, statement);
}

#define LONG_LABEL(kilobytes)                                                                      \
    "'{\"bins\":{\"labels\":[\"' || hex(zeroblob(" #kilobytes " * 512)) ||"                        \
    " '\"]},\"reference\":{\"counts\":[1],\"other\":0,\"missing\":0}}'"

/* One that is malformed, has settings that mean nothing, or is larger than all memory is told by name; the
 * others are served, and a PUT makes it anew. */
Test(server, leaves_out_a_monitor_that_cannot_be_read, .timeout = 60)
{
    static const char *const scarce[] = {"--max-memory", "64M", NULL};
    static const char *const broken[] = {"'{'", "'{\"bins\":{\"labels\":[]},\"reference\":null}'",
                                         "'null'", "''", LONG_LABEL(40000)};
    struct place place = place_new();
    make_store(&place);
    for (size_t i = 0; i < COUNT(broken); i++) {
        define(&place, broken[i]);
        expect_left_out(&place, scarce);
    }
    struct server server = store_start(&place, scarce);
    free(expect_status(&server, "PUT", "/monitors/g", "a\n1\n2\n", 201));
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, true), 0);
    server = store_start(&place, scarce);
    free(expect_status(&server, "GET", "/monitors/g/a/windows/1", NULL, 200));
    free(expect_status(&server, "GET", "/monitors/g/a/windows/2", NULL, 404));
    free(expect_status(&server, "DELETE", "/monitors/g", NULL, 204));
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(&place, "SELECT count(*) FROM kldiv_monitors"), 0);
    place_free(&place);
}

/* A DELETE of its name or its group takes it away, with its rows. */
Test(server, deletes_a_monitor_that_cannot_be_read)
{
    static const char *const targets[] = {"/monitors/g/a", "/monitors/g"};
    for (size_t i = 0; i < COUNT(targets); i++) {
        struct place place = place_new();
        make_store(&place);
        define(&place, "'{'");
        struct server server = store_start(&place, NULL);
        free(expect_status(&server, "DELETE", "/monitors/g/c", NULL, 404));
        free(expect_status(&server, "DELETE", targets[i], NULL, 204));
        free(expect_status(&server, "DELETE", targets[i], NULL, 404));
        free(expect_status(&server, "GET", "/monitors/g/b", NULL, i == 0 ? 200 : 404));
        wait_ms(2500); /* upkeep sweeps */
        cr_expect_eq(server_stop(&server, true), 0);
        cr_expect_eq(ask_file(&place, "SELECT count(*) FROM kldiv_monitors"), i == 0 ? 1 : 0);
        cr_expect_eq(ask_file(&place, "SELECT count(DISTINCT monitor) FROM kldiv_revisions"),
                     i == 0 ? 1 : 0);
        place_free(&place);
    }
}

/* Labels as versions before the limit stored them, one of 2 MiB. What GET gives, PUT takes, up to a body's
 * 1 MiB without values. */
Test(server, reads_labels_that_were_stored_before_they_had_a_limit)
{
    static const char *const scarce[] = {"--max-memory", "64M", NULL};
    struct place place = place_new();
    make_store(&place);
    define(&place, LONG_LABEL(200));
    struct server first = store_start(&place, scarce);
    char *same = expect_status(&first, "GET", "/monitors/g/a", NULL, 200);
    free(expect_status(&first, "PUT", "/monitors/g/a", same, 200));
    free(expect_status(&first, "PUT", "/monitors/g/c", same, 422));
    free(same);
    cr_expect_eq(server_stop(&first, false), 0);
    define(&place, LONG_LABEL(2048));
    struct server server = store_start(&place, scarce);
    char *config = expect_status(&server, "GET", "/monitors/g/a", NULL, 200);
    cr_expect_gt(strlen(config), 2 << 20);
    free(config);
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    place_free(&place);
}
