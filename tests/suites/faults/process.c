/* Calls that fail while a server starts, writes its log, and ends. */
#include "tests/suites/faults/client.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZER = 1 };
#else
enum { SANITIZER = 0 };
#endif

/* Each of the first calls fails in its turn, then one in so many: a start makes thousands of
 * allocations, of which most are libseccomp's. */
enum { EACH = 20, STRIDE = 3 };

static const struct kind kinds[] = {
    {"allocation", FAULT_MEMORY, ENOMEM},     {"mmap", FAULT_MMAP, ENOMEM},
    {"pthread_create", FAULT_THREAD, EAGAIN}, {"socket", FAULT_SOCKET, EMFILE},
    {"epoll", FAULT_EPOLL, EMFILE},           {"eventfd", FAULT_EVENT, EMFILE},
    {"descriptor", FAULT_DESCRIPTOR, EMFILE}};

/* Expects a single line, of the program itself. */
static void expect_a_reason(const char *text, const char *name, long n)
{
    bool single = strncmp(text, "kldivd: ", 8) == 0 && strchr(text, '\n') == strrchr(text, '\n');
    cr_expect(single, "%s %ld: '%s'", name, n, text);
}

static void expect_service(const struct server *server, const char *name, long n)
{
    struct fetched f = post_json(server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200, "%s %ld: %ld", name, n, f.status);
    fetched_free(&f);
}

/* Starts a server while a call fails; false if none did. */
static bool start_one(const struct kind *kind, long n, bool sticky)
{
    static const char *const flags[] = {"--threads", "2", "--http-threads", "1", NULL};
    faults_arm(kind, n, sticky);
    struct server server = server_try(flags);
    bool failed = atomic_load(&faults->failed) > 0;
    faults_disarm();
    if (server.port > 0) {
        expect_service(&server, kind->name, n);
    } else {
        char *text = server_log_text(&server);
        expect_a_reason(text, kind->name, n);
        free(text);
    }
    bool serves = server.port > 0;
    int status = server_stop(&server, true);
    cr_expect_eq(status, serves ? 0 : 1, "%s %ld: %d", kind->name, n, status);
    return failed;
}

static void fail_each(const struct kind *kind, bool sticky)
{
    for (long n = 0; start_one(kind, n, sticky); n += n < EACH ? 1 : n / STRIDE)
        cr_assert_lt(n, 100000, "%s", kind->name);
}

/* Starts servers, which serve as usual, or say why not and end. */
static void start_all(bool sticky)
{
    if (SANITIZER)
        cr_skip("AddressSanitizer aborts where a thread begins without memory");
    faults_preload();
    for (size_t i = 0; i < COUNT(kinds); i++)
        fail_each(&kinds[i], sticky);
    faults_unload();
}

Test(faults_process, a_call_that_fails_while_a_server_starts) { start_all(false); }
Test(faults_process, calls_that_fail_from_then_on_while_a_server_starts) { start_all(true); }

/* Waits for a text in the log. */
static bool is_logged(const struct server *server, const char *text)
{
    bool found = false;
    for (double end = now_seconds() + PATIENCE; !found && now_seconds() < end;) {
        char *log = server_log_text(server);
        found = strstr(log, text) != NULL;
        free(log);
    }
    return found;
}

Test(faults_process, lines_that_cannot_be_written_are_counted)
{
    static const struct kind full = {"write", FAULT_LOG, ENOSPC};
    faults_preload();
    struct server server = server_start(NULL);
    cr_expect(is_logged(&server, "locked in: "));
    faults_arm(&full, 0, true);
    for (int i = 0; i < 3; i++)
        expect_service(&server, "log", i);
    while (atomic_load(&faults->failed) == 0)
        continue;
    faults_disarm();
    expect_service(&server, "log", 3);
    cr_expect(is_logged(&server, " info request "));
    kill(server.pid, SIGTERM);
    cr_expect(is_logged(&server, " log lines were lost\n"));
    cr_expect_eq(server_stop(&server, false), 0);
    faults_unload();
}

/* No request is under way; connections that are open are closed. */
Test(faults_process, servers_end_while_calls_fail)
{
    static const struct kind ending[] = {
        {"allocation", FAULT_MEMORY, ENOMEM}, {"accept4", FAULT_ACCEPT, ENOMEM},
        {"recv", FAULT_RECV, ENOMEM},         {"send", FAULT_SEND, ENOBUFS},
        {"epoll_ctl", FAULT_EPOLL, ENOSPC},   {"descriptor", FAULT_DESCRIPTOR, EMFILE},
        {"poll", FAULT_POLL, ENOMEM},         {"write", FAULT_LOG, ENOSPC}};
    faults_preload();
    for (size_t i = 0; i < COUNT(ending); i++) {
        struct server server = server_start(NULL);
        int silent = dial(&server);
        expect_service(&server, ending[i].name, 0);
        faults_arm(&ending[i], 0, true);
        cr_expect_eq(server_stop(&server, true), 0, "%s", ending[i].name);
        faults_disarm();
        close(silent);
    }
    faults_unload();
}

/* Threads that are not woken, and a store that never finishes, keep the process no longer than
 * --drain-timeout and 5 s. */
Test(faults_process, nothing_keeps_a_process_after_the_drain)
{
    static const struct kind stuck[] = {{"eventfd_write", FAULT_WAKE, EIO},
                                        {"pwrite", FAULT_FILE_WRITE, 0}};
    static const char *const flags[] = {"--drain-timeout", "1", NULL};
    struct database database = database_new();
    faults_preload();
    for (size_t i = 0; i < COUNT(stuck); i++) {
        struct server server = store_start(&database, flags);
        /* a new monitor, after which the store's log stays to be moved at the end */
        free(
            expect_status(&server, "PUT", i ? "/monitors/a/c" : "/monitors/a/b", "a\n1\n2\n", 201));
        faults_arm(&stuck[i], 0, true);
        double start = now_seconds();
        kill(server.pid, SIGTERM);
        cr_expect(
            server_logs(&server, " error a thread did not end in time after --drain-timeout", 1));
        cr_expect_eq(server_stop(&server, true), 2, "%s", stuck[i].name);
        cr_expect(now_seconds() - start > 5 && now_seconds() - start < 9, "%s: %g s", stuck[i].name,
                  now_seconds() - start);
        faults_disarm();
    }
    faults_unload();
    database_free(&database);
}
