/* A store in a server that is locked in: it reaches its files by whatever name, and its log is moved
 * into the file again and again. */
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The server's line about the sandbox; the caller frees it. */
static char *line_of_log(const struct server *server)
{
    cr_assert(server_logs(server, "locked in: ", 1));
    char *log = server_log_text(server), *line = strstr(log, "locked in: ");
    line = strndup(line, strcspn(line, "\n"));
    free(log);
    return line;
}

/* Expects that as much is in force as without files, and that the store can be written. */
static void expect_work(const char *location, const struct database *database, const char *line)
{
    const char *const flags[] = {"--store", location, NULL};
    struct server server = server_start(flags);
    char *own = line_of_log(&server);
    cr_expect_str_eq(own, line);
    free(own);
    free(expect_status(&server, "PUT", "/monitors/g", "a,b\n1,2\n2,3\n3,1\n", 201));
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    server_kill(&server, false);
    server = server_start(flags);
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(database, "SELECT sum(count_of(counts)) FROM kldiv_windows"), 4, "%s",
                 location);
    unlink(database->path);
}

/* Writes the path of a file as seen from the working directory. */
static void make_relative(char *to, size_t size, const char *path)
{
    char folder[PATH_MAX];
    cr_assert(getcwd(folder, sizeof folder));
    int used = snprintf(to, size, "sqlite:");
    for (const char *p = folder; p[0] && p[1]; p++)
        if (*p == '/')
            used += snprintf(to + used, size - (size_t)used, "../");
    snprintf(to + used, size - (size_t)used, "%s", path + 1);
}

Test(store_locked_in, reaches_its_store_by_any_path_while_it_is_locked_in)
{
    struct database database = database_new(), other = database_new();
    char location[2 * PATH_MAX];
    struct server server = server_start(NULL);
    char *line = line_of_log(&server);
    printf("(%s)\n", line);
    cr_expect_eq(server_stop(&server, false), 0);
    expect_work(database.location, &database, line);

    make_relative(location, sizeof location, database.path);
    expect_work(location, &database, line);

    cr_assert_eq(symlink(database.path, other.path), 0); /* to a file that is not there yet */
    expect_work(other.location, &database, line);
    unlink(other.path);

    cr_assert_eq(rmdir(other.folder), 0);
    cr_assert_eq(symlink(database.folder, other.folder), 0);
    expect_work(other.location, &database, line);
    unlink(other.folder);
    free(line);
    database_free(&database);
}

/* ---- The log */

/* COLUMNS, LABELS, LABEL: bytes of a label. The references of a version are 6 MB in the log. */
enum { COLUMNS = 100, LABELS = 1000, LABEL = 60, VERSIONS = 13, MIB = 1 << 20 };

/* Gives a monitor a reference that differs from those of other versions. */
static void put_reference(const struct server *server, int column, int version)
{
    struct api_buffer body = {0};
    char target[60];
    api_append_text(&body, "{\"bins\":{\"labels\":[");
    for (int i = 0; i < LABELS; i++)
        api_append_format(&body, "%s\"%0*d-%d\"", i ? "," : "", LABEL - 3, i, version);
    api_append_text(&body, "]},\"reference\":{\"counts\":[");
    for (int i = 0; i < LABELS; i++)
        api_append_text(&body, i ? ",1" : "1");
    api_append(&body, "]}}", 4);
    snprintf(target, sizeof target, "/monitors/wide/c%d", column);
    free(expect_status(server, "PUT", target, body.data, version ? 200 : 201));
    api_buffer_free(&body);
}

static off_t size_of(const char *path, const char *suffix)
{
    char name[100];
    struct stat status;
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &status) == 0 ? status.st_size : 0;
}

/* Observes each column, so that each reference has a window. */
static void post_row(const struct server *server)
{
    struct api_buffer table = {0};
    for (int i = 0; i < 2 * COLUMNS; i++)
        api_append_format(&table, i < COLUMNS ? "%sc%d" : "%sx", i % COLUMNS ? "," : "\n", i);
    api_append(&table, "\n", 2);
    free(expect_status(server, "POST", "/monitors/wide/observations", table.data + 1, 200));
    api_buffer_free(&table);
}

Test(store_locked_in, moves_its_log_into_the_file_while_it_is_locked_in)
{
    struct database database = database_new();
    struct server server = store_start(&database, NULL);
    for (int i = 0; i < VERSIONS; i++) {
        for (int column = 0; column < COLUMNS; column++)
            put_reference(&server, column, i);
        post_row(&server);
    }
    cr_expect_gt(size_of(database.path, ""), 64 * MIB);
    cr_expect_leq(size_of(database.path, "-wal"), 64 * MIB);
    server_kill(&server, false);
    server = store_start(&database, NULL);
    post_row(&server);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(size_of(database.path, "-wal"), 0);
    cr_expect_eq(ask_file(&database, "SELECT max(observations) FROM kldiv_monitors"), VERSIONS + 1);
    cr_expect_eq(ask_file(&database, "SELECT count(*) FROM pragma_integrity_check WHERE"
                                     " integrity_check <> 'ok'"),
                 0);
    database_free(&database);
}
