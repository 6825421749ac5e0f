/* --backup: copies of a store, also while a server writes it. */
#include "tests/suites/store/load.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file in a folder of its own, on another file system than the store if there is one. */
static struct database copy_in(const char *folder, const char *name)
{
    struct database copy = {.is_mounted = false};
    snprintf(copy.path, sizeof copy.path, "%s/%s", folder, name);
    snprintf(copy.location, sizeof copy.location, "sqlite:%s", copy.path);
    return copy;
}

static int back_up(const char *location, const char *file, char output[1000])
{
    const char *const flags[] = {"--store", location, "--backup", file, NULL};
    return run_server(flags, output, 1000);
}

/* Backs up under load, and compares with what was acknowledged before, and begun by the end. */
static void back_up_under_load(const struct load *load, const struct database *database,
                               const struct database *copy)
{
    enum { UNDER_WAY = 4 * POSTERS }; /* rows of posts that are not answered yet */
    char output[1000], expected[100];
    struct bounds before[GROUPS];
    struct stat status;
    for (int group = 0; group < GROUPS; group++)
        before[group] = load_bounds(load, group);
    cr_assert_eq(back_up(database->location, copy->path, output), 0, "%s", output);
    for (int group = 0; group < GROUPS; group++) {
        double rows = load_rows(copy, group), max = load_bounds(load, group).max + UNDER_WAY;
        cr_expect(rows >= before[group].min && rows <= max, "%d: %g of %g to %g", group, rows,
                  before[group].min, max);
    }
    load_expect_sound(copy);
    cr_expect_eq(ask_file(copy, "SELECT count(*) FROM filler"), 4000);
    cr_expect_eq(stat(copy->path, &status), 0);
    snprintf(expected, sizeof expected, "%s: %lld bytes in ", copy->path,
             (long long)status.st_size);
    cr_expect_eq(strncmp(output, expected, strlen(expected)), 0, "%s", output);
    cr_expect(strcmp(output + strlen(output) - 3, " s\n") == 0, "%s", output);
}

Test(store_backup, copies_what_was_acknowledged_while_clients_write)
{
    enum { ROUNDS = 4 };
    static const char filler[] =
        "CREATE TABLE filler (x); WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c "
        "WHERE i < 4000) INSERT INTO filler SELECT randomblob(4000) FROM c";
    struct database database = database_new(), other = database_new();
    char memory[] = "/dev/shm/kldiv-backup-XXXXXX", name[20];
    bool has_memory = mkdtemp(memory);
    struct load load;
    load_init(&load);
    static const char *const quiet[] = {"--log-level", "warning", NULL};
    struct server server = store_start(&database, quiet);
    load_define(&server);
    cr_expect_eq(server_stop(&server, false), 0);
    change_file(&database, filler); /* a copy takes many turns of the store's thread */
    server = store_start(&database, quiet);
    load_begin(&load, &server);
    for (int round = 0; round < ROUNDS; round++) {
        wait_ms(100);
        snprintf(name, sizeof name, "copy %d", round);
        struct database copy = copy_in(has_memory && round % 2 ? memory : other.folder, name);
        back_up_under_load(&load, &database, &copy);
        if (round < ROUNDS - 1)
            unlink(copy.path);
        if (round < ROUNDS - 1)
            continue;
        atomic_store(&load.stop, true);
        load_end(&load);
        cr_expect_eq(load.refused, 0);
        cr_expect_eq(server_stop(&server, false), 0);
        load_expect_file(&load, &database);
        server = store_start(&copy, NULL);
        free(expect_status(&server, "POST", "/monitors/seconds/observations", "a,b,c\n1,x,0.5\n",
                           200));
        cr_expect_eq(server_stop(&server, false), 0);
        unlink(copy.path);
    }
    cr_expect(!has_memory || rmdir(memory) == 0, "files are left: %d", errno);
    load_free(&load);
    database_free(&other);
    database_free(&database);
}

/* Commands at the same time, one after the other, and one that was killed: each copy that is there is whole. */
Test(store_backup, copies_at_the_same_time_are_whole)
{
    enum { COMMANDS = 4 };
    static const char script[] =
        "i=0; while [ $i -lt 6 ]; do for j in 1 2 3 4; do \"$0\" --backup %s/copy.$j.$i 2>>%s/said "
        "& "
        "pids=\"$pids $!\"; done; sleep 0.05; [ $i -ne 2 ] || kill -9 $!; wait; i=$((i + 1)); done";
    struct database database = database_new();
    char command[600], path[100];
    static const char *const quiet[] = {"--log-level", "warning", NULL};
    struct load load;
    size_t n = 0, size;
    load_init(&load);
    struct server server = store_start(&database, quiet);
    load_define(&server);
    load_begin(&load, &server);
    snprintf(path, sizeof path, "%s", database.folder);
    int used = snprintf(command, sizeof command, "KLDIV_STORE=%s sh -c '", database.location);
    used += snprintf(command + used, sizeof command - (size_t)used, script, path, path);
    snprintf(command + used, sizeof command - (size_t)used, "' %s >/dev/null",
             getenv("KLDIV_SERVER") ? getenv("KLDIV_SERVER") : KLDIV_BINARY);
    cr_expect_eq(system(command), 0);
    atomic_store(&load.stop, true);
    load_end(&load);
    cr_expect_eq(server_stop(&server, false), 0);
    for (int round = 0; round < 6; round++)
        for (int i = 1; i <= COMMANDS; i++) {
            snprintf(path, sizeof path, "copy.%d.%d", i, round);
            struct database copy = copy_in(database.folder, path);
            if (access(copy.path, F_OK) != 0)
                continue;
            load_expect_sound(&copy);
            n++;
        }
    cr_expect(n >= 5, "%zu", n);
    snprintf(path, sizeof path, "%s/said", database.folder);
    char *said = read_file(path, &size);
    cr_expect(strstr(said, "is being copied by another kldivd --backup\n"), "%s", said);
    free(said);
    load_free(&load);
    database_free(&database);
}

Test(store_backup, copies_a_store_that_nobody_has_open)
{
    struct database database = database_new();
    struct database copy = copy_in(database.folder, "copy");
    char output[1000];
    struct server server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", "/monitors/g", "a,b\n1,2\n2,3\n", 201));
    server_kill(&server, false); /* its log is beside the file */
    cr_expect_eq(back_up(database.location, copy.path, output), 0, "%s", output);
    cr_expect_eq(ask_file(&copy, "SELECT count(*) FROM kldiv_monitors"), 2);
    server = store_start(&database, NULL);
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

/* Each refusal is one line, status 1, and leaves all files as they were. */
Test(store_backup, refusals_are_one_line)
{
    struct database database = database_new();
    char output[1000], there[80], text[80];
    snprintf(there, sizeof there, "%s/there", database.folder);
    snprintf(text, sizeof text, "sqlite:%s/text", database.folder);
    write_file(there, "kept");
    write_file(text + strlen("sqlite:"), "a text of more than sixteen bytes");
    struct server server = store_start(&database, NULL);
    const struct {
        const char *location, *file, *says;
    } cases[] = {
        {database.location, there, "there exists, and is left as it is\n"},
        {database.location, database.folder, " exists, and is left as it is\n"},
        {database.location, "/nonexistent/copy",
         "/nonexistent/copy.part cannot be written: No such file or directory\n"},
        {"memory", "copy", "memory is lost at the end, and has nothing to copy\n"},
        {"postgresql://kldiv@127.0.0.1:9/kldiv", "copy", "PostgreSQL is copied by pg_dump, "},
        {"sqlite:/nonexistent/store.db", "/tmp/copy",
         "/nonexistent/store.db is no store that can be read\n"},
        {text, "/tmp/copy", "/text is no store that can be read\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned long long before = hash_of_folder(database.folder);
        cr_expect_eq(back_up(cases[i].location, cases[i].file, output), 1, "case %zu: %s", i,
                     output);
        cr_expect(strstr(output, cases[i].says), "case %zu: %s", i, output);
        cr_expect_eq(strncmp(output, "kldivd: --backup: ", 18), 0, "%s", output);
        cr_expect(strchr(output, '\n') == strrchr(output, '\n'), "%s", output);
        cr_expect_eq(hash_of_folder(database.folder), before, "case %zu", i);
    }
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

/* A server that cannot write the copy says so, and serves on; the next one is made. */
Test(store_backup, a_copy_that_cannot_be_made_is_told)
{
    struct database database = database_new();
    struct database copy = copy_in(database.folder, "copy");
    char output[1000], made[100];
    snprintf(made, sizeof made, "%s-backup", database.path);
    struct server server = store_start(&database, NULL);
    cr_assert_eq(mkdir(made, 0700), 0);
    cr_expect_eq(back_up(database.location, copy.path, output), 1);
    cr_expect(strstr(output, "could not be copied by its server"), "%s", output);
    cr_expect_neq(access(copy.path, F_OK), 0);
    cr_assert_eq(rmdir(made), 0);
    cr_expect_eq(back_up(database.location, copy.path, output), 0, "%s", output);
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}
