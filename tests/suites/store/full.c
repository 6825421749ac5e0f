/* A store that cannot be written for a while: monitors say so, everything else goes on, and the store
 * comes back by itself with all that it had acknowledged. */
#include "tests/suites/faults/client.h"
#include "tests/suites/store/load.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DOWN " warning --store: detail=\"the store cannot be written: "
#define UP " info --store: detail=\"the store works again\"\n"

/* RECOVERY: seconds within which a store works again once it can be written. */
enum { RECOVERY = 5 };

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

/* Expects that the log has told so often of the store's end and of its return. */
static void expect_log(const struct server *server, const char *reason, size_t down, size_t up)
{
    char sentence[200];
    snprintf(sentence, sizeof sentence, DOWN "%s\"\n", reason);
    cr_expect(server_logs(server, sentence, down));
    cr_expect(up == 0 || server_logs(server, UP, up));
    char *log = server_log_text(server);
    cr_expect(count(log, DOWN) == down && count(log, UP) == up, "%s", log);
    free(log);
}

static void expect_readiness(const struct server *server, const char *body, long status)
{
    char *text = expect_status(server, "GET", "/readyz", NULL, status);
    cr_expect(strstr(text, body), "%s", text);
    free(text);
    cr_expect_eq(metric(server, "\nkldiv_ready "), status == 200);
}

/* Expects that observations are refused, that the monitors can be read, and losses computed. */
static void expect_down(const struct server *server)
{
    char value[40];
    struct fetched f =
        fetch(server, "POST", "/monitors/batch/observations", NULL, "a,b,c\n1,x,1\n", 12);
    cr_expect_eq(f.status, 503);
    cr_expect_str_eq(text_of(f.json, "code"), "store_unavailable");
    cr_expect_str_eq(text_of(f.json, "detail"),
                     "the store cannot be written now, and nothing was stored; try again");
    cr_expect_str_eq(header_in(&f, "Retry-After", value, sizeof value), "1");
    fetched_free(&f);
    free(expect_status(server, "GET", "/monitors", NULL, 200));
    free(expect_status(server, "GET", "/monitors/batch/a/windows", NULL, 200));
    f = post_json(server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    cr_expect_eq(metric(server, "\nkldiv_store_up "), 0);
    cr_expect_gt(metric(server, "\nkldiv_store_errors_total{operation=\"write\"} ") +
                     metric(server, "\nkldiv_store_errors_total{operation=\"commit\"} "),
                 0);
}

/* Waits until the store works, without writing to it. */
static void expect_return(const struct server *server)
{
    double end = now_seconds() + RECOVERY;
    while (metric(server, "\nkldiv_store_up ") != 1 && now_seconds() < end)
        wait_ms(20);
    cr_expect_eq(metric(server, "\nkldiv_store_up "), 1);
    expect_readiness(server, "{\"status\":\"ok\",\"store\":\"up\"}\n", 200);
}

/* Loads the server for a while. Posters that are refused stop. */
static void load_for(struct load *load, const struct server *server, long ms)
{
    load_begin(load, server);
    wait_ms(ms);
    atomic_store(&load->stop, true);
    load_end(load);
}

/* A server under load while a call of the store fails; then it is killed. */
static void fail_under_load(const struct kind *kind, const char *reason)
{
    struct database database = database_new();
    struct load load;
    load_init(&load);
    faults_preload();
    struct server server = store_start(&database, NULL);
    load_define(&server);
    load_for(&load, &server, 100);
    load_begin(&load, &server);
    wait_ms(100);
    faults_arm(kind, 0, true);
    load_end(&load);
    cr_expect_eq(load.refused, POSTERS);
    expect_down(&server);
    expect_readiness(&server, "{\"status\":\"ok\",\"store\":\"down\",\"store_since\":\"2", 200);
    wait_ms(2500); /* windows of a second would close */
    expect_down(&server);
    expect_log(&server, reason, 1, 0);
    faults_disarm();
    expect_return(&server);
    expect_log(&server, reason, 1, 1);
    load_settle(&load, &server);
    load_for(&load, &server, 100);
    load_expect(&load, &server);
    server_kill(&server, true);
    faults_unload();
    server = store_start(&database, NULL);
    load_expect(&load, &server);
    cr_expect_eq(server_stop(&server, false), 0);
    load_expect_file(&load, &database);
    load_free(&load);
    database_free(&database);
}

Test(store_full, a_full_disk)
{
    fail_under_load(&(struct kind){"pwrite64", FAULT_FILE_WRITE, ENOSPC},
                    "database or disk is full");
}

Test(store_full, a_disk_that_fails_to_write)
{
    fail_under_load(&(struct kind){"pwrite64", FAULT_FILE_WRITE, EIO}, "disk I/O error");
}

Test(store_full, a_disk_that_fails_to_sync)
{
    fail_under_load(&(struct kind){"fdatasync", FAULT_FILE_SYNC, EIO}, "disk I/O error");
}

Test(store_full, readiness_follows_the_store_if_told)
{
    static const char *const flags[] = {"--ready-needs-store", NULL};
    static const struct kind full = {"pwrite64", FAULT_FILE_WRITE, ENOSPC};
    struct database database = database_new();
    faults_preload();
    struct server server = store_start(&database, flags);
    load_define(&server);
    expect_readiness(&server, "{\"status\":\"ok\",\"store\":\"up\"}\n", 200);
    faults_arm(&full, 0, true);
    expect_down(&server);
    expect_readiness(&server, "the store cannot be written since 2", 503);
    faults_disarm();
    expect_return(&server);
    cr_expect_eq(server_stop(&server, true), 0);
    faults_unload();
    database_free(&database);
}

/* Nothing is due, so that the server writes to its store only to see whether it can. */
Test(store_full, stays_down_while_nothing_can_be_written)
{
    static const struct kind full = {"pwrite64", FAULT_FILE_WRITE, ENOSPC};
    struct database database = database_new();
    faults_preload();
    struct server server = store_start(&database, NULL);
    load_define(&server);
    faults_arm(&full, 0, true);
    expect_down(&server);
    wait_ms(2500);
    expect_log(&server, "database or disk is full", 1, 0);
    faults_disarm();
    expect_return(&server);
    cr_expect_eq(server_stop(&server, true), 0);
    faults_unload();
    database_free(&database);
}

/* ---- A real disk */

/* Fills the file system, and gives the path of what fills it. */
static void fill(const struct database *database, char *path, size_t size)
{
    static const char zeros[4096];
    snprintf(path, size, "%s/filler", database->folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    cr_assert_eq(errno, ENOSPC);
    close(fd);
}

Test(store_full, works_again_once_its_disk_has_room_as_root)
{
    struct database database = database_new();
    struct load load;
    char filler[80];
    if (!database_mount(&database)) {
        database_free(&database);
        cr_skip("no file system can be mounted here");
    }
    load_init(&load);
    struct server server = store_start(&database, NULL);
    load_define(&server);
    load_for(&load, &server, 100);
    fill(&database, filler, sizeof filler);
    while (load.refused == 0)
        load_for(&load, &server, 100);
    cr_expect(server_logs(&server, DOWN "database or disk is full\"\n", 1));
    free(expect_status(&server, "GET", "/monitors/batch/a/windows", NULL, 200));
    expect_readiness(&server, "\"status\":\"ok\"", 200);
    unlink(filler);
    expect_return(&server);
    load_settle(&load, &server);
    load_for(&load, &server, 100);
    load_expect(&load, &server);
    server_kill(&server, true);
    server = store_start(&database, NULL);
    load_expect(&load, &server);
    cr_expect_eq(server_stop(&server, false), 0);
    load_expect_file(&load, &database);
    load_free(&load);
    database_free(&database);
}

/* SIGXFSZ would end the server. */
Test(store_full, a_limit_on_the_size_of_files_is_a_store_that_cannot_be_written)
{
    struct database database = database_new();
    struct server server = store_start(&database, NULL);
    load_define(&server);
    struct rlimit unlimited;
    cr_assert_eq(prlimit(server.pid, RLIMIT_FSIZE, NULL, &unlimited), 0);
    const struct rlimit full = {.rlim_cur = 4096, .rlim_max = unlimited.rlim_max};
    cr_assert_eq(prlimit(server.pid, RLIMIT_FSIZE, &full, NULL), 0);
    expect_down(&server);
    cr_assert_eq(prlimit(server.pid, RLIMIT_FSIZE, &unlimited, NULL), 0);
    expect_return(&server);
    free(expect_status(&server, "POST", "/monitors/batch/observations", "a,b,c\n1,x,1\n", 200));
    cr_expect_eq(server_stop(&server, true), 0);
    database_free(&database);
}

/* A disk that does not answer: probes say so after five seconds, and do not wait for it. */
Test(store_full, a_store_that_does_not_answer_is_down)
{
    static const struct kind hanging = {"fdatasync", FAULT_FILE_SYNC, 0};
    struct database database = database_new();
    struct load load;
    load_init(&load);
    faults_preload();
    struct server server = store_start(&database, NULL);
    load_define(&server);
    faults_arm(&hanging, 0, true);
    double begin = now_seconds();
    load_begin(&load, &server);
    wait_ms(3000);
    expect_readiness(&server, "{\"status\":\"ok\",\"store\":\"up\"}\n", 200);
    while (metric(&server, "\nkldiv_store_up ") != 0 && now_seconds() < begin + 10)
        wait_ms(50);
    cr_expect_gt(now_seconds(), begin + 4.9);
    expect_readiness(&server, "\"store_error\":\"the database does not answer\"}\n", 200);
    cr_expect_lt(now_seconds(), begin + 8);
    atomic_store(&load.stop, true);
    faults_disarm();
    load_end(&load);
    expect_return(&server);
    cr_expect_eq(load.refused, 0);
    load_free(&load);
    cr_expect_eq(server_stop(&server, false), 0);
    faults_unload();
    database_free(&database);
}
