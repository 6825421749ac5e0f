/* A server that runs is locked in, and serves as before. Servers of all other tests are, too. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The server's line about the sandbox, once it is written; the caller frees it. */
static char *line_of_log(const struct server *server)
{
    for (int i = 0; i < 500; i++) {
        char *log = server_log_text(server), *line = strstr(log, "locked in: ");
        if (line && strchr(line, '\n')) {
            line = strndup(line, strcspn(line, "\n"));
            free(log);
            return line;
        }
        free(log);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_assert_fail("no line about the sandbox");
    return NULL;
}

/* True if the line names the part as being in force. */
static bool in_force(const char *line, const char *part)
{
    const char *found = strstr(line, part), *missing = strstr(line, " not=");
    return found && (!missing || found < missing);
}

static unsigned long long field(const char *status, const char *name)
{
    const char *found = strstr(status, name);
    cr_assert(found, "no %s", name);
    return strtoull(found + strlen(name), NULL, 16);
}

/* State of a thread: seccomp's mode, and whether it can gain rights. */
struct expected {
    unsigned seccomp;
    bool no_new_privs, no_bounding_set, no_capabilities;
};

static void check_thread(const char *path, struct expected expected)
{
    size_t size;
    char *status = read_file(path, &size);
    cr_expect_eq(field(status, "\nNoNewPrivs:"), expected.no_new_privs, "%s", path);
    cr_expect_eq(field(status, "\nSeccomp:"), expected.seccomp, "%s", path);
    cr_expect(!expected.no_bounding_set || field(status, "\nCapBnd:") == 0, "%s", path);
    static const char *const sets[] = {"\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapAmb:"};
    for (size_t i = 0; expected.no_capabilities && i < COUNT(sets); i++)
        cr_expect_eq(field(status, sets[i]), 0, "%s of %s", sets[i] + 1, path);
    free(status);
}

/* Checks every thread; a server has at least 8. */
static void check_threads(const struct server *server, struct expected expected)
{
    char pattern[64];
    glob_t found;
    snprintf(pattern, sizeof pattern, "/proc/%d/task/*/status", (int)server->pid);
    cr_assert_eq(glob(pattern, 0, NULL, &found), 0);
    cr_expect_geq(found.gl_pathc, 8);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_thread(found.gl_pathv[i], expected);
    globfree(&found);
}

static bool may_empty_the_bounding_set(void)
{
    size_t size;
    char *status = read_file("/proc/self/status", &size);
    bool may = field(status, "\nCapEff:") >> CAP_SETPCAP & 1;
    free(status);
    return may;
}

static void check_answers(const struct server *server)
{
    static const char *const accepted[] = {"application/json", "application/x-safetensors",
                                           "application/x-npy", "application/x-npz"};
    static const char *const metrics[] = {"\nprocess_cpu_seconds_total ",
                                          "\nprocess_open_fds ",
                                          "\nprocess_max_fds ",
                                          "\nprocess_resident_memory_bytes ",
                                          "\nprocess_virtual_memory_bytes ",
                                          "\nprocess_start_time_seconds "};
    for (size_t i = 0; i < COUNT(accepted); i++) {
        char accept[80];
        snprintf(accept, sizeof accept, "Accept: %s", accepted[i]);
        const char *const headers[] = {"Content-Type: application/json", accept, NULL};
        struct fetched f =
            fetch(server, "POST", "/kl_div", headers, TWO_BY_TWO, strlen(TWO_BY_TWO));
        cr_expect_eq(f.status, 200, "%s: %ld", accept, f.status);
        fetched_free(&f);
    }
    struct fetched f = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    for (size_t i = 0; i < COUNT(metrics); i++)
        cr_expect(strstr(f.body.data, metrics[i]), "no%s", metrics[i]);
    fetched_free(&f);
}

Test(locked_in, is_locked_in_with_all_its_threads_and_serves)
{
    struct server server = server_start(NULL);
    char *line = line_of_log(&server);
    printf("(%s)\n", line);
    cr_expect(in_force(line, "no_new_privs, no capabilities"), "%s", line);
    check_threads(&server, (struct expected){.seccomp = in_force(line, "seccomp") ? 2 : 0,
                                             .no_new_privs = true,
                                             .no_bounding_set = may_empty_the_bounding_set(),
                                             .no_capabilities = true});
    check_answers(&server);
    check_threads(&server, (struct expected){.seccomp = in_force(line, "seccomp") ? 2 : 0,
                                             .no_new_privs = true,
                                             .no_capabilities = true});
    free(line);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(locked_in, keeps_its_rights_if_told)
{
    static const char *const flags[] = {"--drop-privileges=off", "--seccomp=off", NULL};
    size_t size;
    char *own = read_file("/proc/self/status", &size);
    struct server server = server_start(flags);
    char *line = line_of_log(&server);
    cr_expect_str_eq(line,
                     "locked in: by=nothing not=\"no_new_privs (switched off), no capabilities "
                     "(switched off), seccomp (switched off)\"");
    check_threads(&server, (struct expected){.seccomp = (unsigned)field(own, "\nSeccomp:"),
                                             .no_new_privs = field(own, "\nNoNewPrivs:") != 0});
    free(line);
    free(own);
    cr_expect_eq(server_stop(&server, false), 0);
}
