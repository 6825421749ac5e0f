/* --backup: copies of a store, also while a server writes it. */
#include "tests/suites/store/load.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
    change_file(&database, filler);
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

/* Expects no files of SQLite beside the store's. */
static void expect_no_log(const struct database *database)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        char path[120];
        snprintf(path, sizeof path, "%s%s", database->path, suffixes[i]);
        cr_expect_neq(access(path, F_OK), 0, "%s is left", path);
    }
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
    expect_no_log(&database);
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
    char link[80], part[90];
    snprintf(link, sizeof link, "%s/link", database.folder);
    snprintf(part, sizeof part, "%s.part", link);
    cr_assert_eq(symlink("there", part), 0);
    struct server server = store_start(&database, NULL);
    const struct {
        const char *location, *file, *says;
    } cases[] = {
        {database.location, link,
         "/link.part cannot be written: Too many levels of symbolic links\n"},
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

/* A log or journal of FILE that is left would be read into the copy; a hard link of a store has no log of its own. */
Test(store_backup, loses_nothing_by_files_of_the_same_names)
{
    struct database database = database_new(), other = database_new();
    struct database part = copy_in(other.folder, "copy.part");
    struct database link_of = copy_in(other.folder, "hard");
    char copy[100], log[120], output[1000];
    snprintf(copy, sizeof copy, "%s/copy", other.folder);
    struct server server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", "/monitors/g", "a,b\n1,2\n2,3\n", 201));
    static const char *const suffixes[] = {"-wal", "-journal"};
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        snprintf(log, sizeof log, "%s%s", copy, suffixes[i]);
        write_file(log, "of another store");
        cr_expect_eq(back_up(database.location, copy, output), 1, "%s", output);
        cr_expect(strstr(output, suffixes[i]) && strstr(output, " exists, and is left as it is\n"),
                  "%s", output);
        cr_expect_eq(unlink(log), 0);
    }
    cr_assert_eq(link(database.path, link_of.path), 0);
    cr_expect_eq(back_up(link_of.location, copy, output), 1, "%s", output);
    cr_expect(strstr(output, "/hard has another name, a hard link, whose log would be missed\n"),
              "%s", output);
    cr_expect_eq(unlink(link_of.path), 0);
    struct server second = store_start(&part, NULL);
    free(expect_status(&second, "PUT", "/monitors/h", "a,b\n1,2\n2,3\n", 201));
    cr_expect_eq(back_up(database.location, copy, output), 1, "%s", output);
    cr_expect(strstr(output, "/copy.part cannot be written: a server has it open\n"), "%s", output);
    free(expect_status(&second, "POST", "/monitors/h/observations", "a,b\n1,2\n", 200));
    cr_expect_eq(server_stop(&second, false), 0);
    cr_expect_eq(ask_file(&part, "SELECT count(*) FROM kldiv_monitors"), 2);
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&other);
    database_free(&database);
}

/* ---- Ends */

/* Begins a backup, of whose process it gives the id. */
static pid_t begin_backup(const struct database *database, const char *file, const char *output)
{
    char command[400];
    int id = 0;
    snprintf(command, sizeof command,
             "%s --store %s --backup %s > %s 2>&1 & echo $! > %s.pid; wait $!; echo $? >> %s",
             getenv("KLDIV_SERVER") ? getenv("KLDIV_SERVER") : KLDIV_BINARY, database->location,
             file, output, output, output);
    char pid_file[120];
    snprintf(pid_file, sizeof pid_file, "%s.pid", output);
    unlink(pid_file);
    unlink(output);
    pid_t shell = fork();
    if (shell == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    for (int waited = 0; waited < 5000 && id == 0; waited += 5, wait_ms(5)) {
        FILE *in = fopen(pid_file, "r");
        if (in && fscanf(in, "%d", &id) != 1)
            id = 0;
        if (in)
            fclose(in);
    }
    return id;
}

/* Waits until a file is there. */
static bool appears(const char *path)
{
    for (int waited = 0; waited < 5000; waited += 2, wait_ms(2))
        if (access(path, F_OK) == 0)
            return true;
    return false;
}

static const char large[] =
    "CREATE TABLE filler (x); WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c "
    "WHERE i < 20000) INSERT INTO filler SELECT randomblob(4000) FROM c";

/* A command that is killed leaves the part that it has made, which the next one overwrites, and nothing beside the store. */
Test(store_backup, goes_on_after_a_command_that_was_killed)
{
    struct database database = database_new(), other = database_new();
    char copy[100], said[100], part[120], journal[140], output[1000];
    snprintf(copy, sizeof copy, "%s/copy", other.folder);
    snprintf(said, sizeof said, "%s/said", other.folder);
    snprintf(part, sizeof part, "%s.part", copy);
    struct server server = store_start(&database, NULL);
    cr_expect_eq(server_stop(&server, false), 0);
    change_file(&database, large);
    server = store_start(&database, NULL);
    pid_t id = begin_backup(&database, copy, said);
    cr_assert(appears(part));
    kill(id, SIGKILL);
    for (int waited = 0; waited < 5000 && kill(id, 0) == 0; waited += 5)
        wait_ms(5); /* it keeps its locks until it has ended */
    free(expect_status(&server, "PUT", "/monitors/g", "a,b\n1,2\n2,3\n", 201));
    snprintf(journal, sizeof journal, "%s-journal", part);
    write_file(journal, "of a command that was killed");
    cr_expect_eq(back_up(database.location, copy, output), 0, "%s", output);
    cr_expect_neq(access(part, F_OK), 0);
    cr_expect_neq(access(journal, F_OK), 0);
    cr_expect_eq(server_stop(&server, false), 0);
    expect_no_log(&database);
    struct database made = copy_in(other.folder, "copy");
    cr_expect_eq(ask_file(&made, "SELECT count(*) FROM kldiv_monitors"), 2);
    database_free(&other);
    database_free(&database);
}

/* The copy is complete though its server is killed meanwhile, and another one starts, which keeps a third out. */
Test(store_backup, is_complete_whatever_becomes_of_the_server)
{
    struct database database = database_new();
    struct database made = copy_in(database.folder, "copy");
    char said[100], part[100], output[1000], *text = NULL;
    size_t size;
    snprintf(said, sizeof said, "%s/said", database.folder);
    snprintf(part, sizeof part, "%s.part", made.path);
    struct server server = store_start(&database, NULL);
    cr_expect_eq(server_stop(&server, false), 0);
    change_file(&database, large);
    server = store_start(&database, NULL);
    free(expect_status(&server, "PUT", "/monitors/g", "a,b\n1,2\n2,3\n", 201));
    begin_backup(&database, made.path, said);
    cr_assert(appears(part));
    server_kill(&server, false);
    server = store_start(&database, NULL);
    const char *const flags[] = {"--listen", "127.0.0.1:0", "--store", database.location, NULL};
    cr_expect_eq(run_server(flags, output, sizeof output), 1);
    cr_expect(strstr(output, "another process has it open\n"), "%s", output);
    free(expect_status(&server, "POST", "/monitors/g/observations", "a,b\n1,2\n", 200));
    for (int waited = 0; waited < 15000; waited += 50, wait_ms(50)) {
        free(text);
        text = read_file(said, &size);
        if (text[0] && text[1] && strcmp(text + strlen(text) - 2, "0\n") == 0)
            break;
    }
    cr_expect(strstr(text, " bytes in "), "%s", text);
    free(text);
    cr_expect_eq(ask_file(&made, "SELECT count(*) FROM pragma_integrity_check"), 1);
    cr_expect_eq(ask_file(&made, "SELECT count(*) FROM filler"), 20000);
    cr_expect_eq(ask_file(&made, "SELECT count(*) FROM kldiv_monitors"), 2);
    cr_expect_eq(server_stop(&server, false), 0);
    database_free(&database);
}

/* A disk that is full in the middle of a piece is told as what it is; here the bound of a file's size. */
Test(store_backup, to_another_file_system_says_why_it_failed)
{
    struct database database = database_new();
    char memory[] = "/dev/shm/kldiv-backup-XXXXXX", command[400], said[100];
    size_t size;
    cr_assert(mkdtemp(memory));
    snprintf(said, sizeof said, "%s/said", database.folder);
    struct server server = store_start(&database, NULL);
    snprintf(command, sizeof command,
             "trap '' XFSZ; ulimit -f 100; exec %s --store %s --backup %s/copy > %s 2>&1",
             getenv("KLDIV_SERVER") ? getenv("KLDIV_SERVER") : KLDIV_BINARY, database.location,
             memory, said);
    cr_expect_neq(system(command), 0);
    char *text = read_file(said, &size);
    cr_expect(strstr(text, "/copy.part: File too large\n"), "%s", text);
    free(text);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(rmdir(memory), 0);
    database_free(&database);
}
