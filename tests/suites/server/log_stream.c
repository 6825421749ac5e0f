/* Lines of the kind audit in a stream of their own: which lines, whatever the level; a file that is renamed, cannot be
 * written, or is not read. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/log_lines.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kldiv-audit-XXXXXX";
static char path[60], other[60];

static void make_folder(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/audit log", folder);
    snprintf(other, sizeof other, "%s/audit.1", folder);
}

static void remove_folder(void)
{
    unlink(path);
    unlink(other);
    rmdir(folder);
}

/* Number of a file's lines, each of the kind audit; empty ones do not count. Waits until there are `wanted`. */
static size_t count_audit(const char *file, size_t wanted)
{
    size_t n = 0, size;
    for (int i = 0; i < 200; i++) {
        char *text = access(file, R_OK) == 0 ? read_file(file, &size) : strdup("");
        n = 0;
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
            json_t *fields = *line == '\n'  ? NULL
                             : *line == '{' ? json_loadb(line, strcspn(line, "\n"), 0, NULL)
                                            : log_line_read(line);
            cr_expect(*line == '\n' || strcmp(text_of(fields, "kind"), "audit") == 0, "%s", line);
            n += *line != '\n';
            json_decref(fields);
        }
        free(text);
        if (n >= wanted)
            break;
        wait_ms(10);
    }
    return n;
}

static void write_once(const struct server *server)
{
    cr_expect_eq(status_of(server, "DELETE", "/monitors/g/x", NULL), 404);
}

/* At each level, as text and as JSON: in the file are the writes, in the log is what it has without them. A server appends to what is there. */
Test(log_stream, audit_has_a_file_whatever_the_level, .init = make_folder, .fini = remove_folder)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    for (size_t i = 0; i < COUNT(levels); i++) {
        const char *const flags[] = {"--audit-log", path,           "--log-level",
                                     levels[i],     "--log-format", i % 2 ? "json" : "text",
                                     NULL};
        struct server server = server_start(flags);
        cr_expect_eq(status_of(&server, "GET", "/v2", NULL), 200);
        write_once(&server);
        cr_expect_eq(count_audit(path, i + 1), i + 1, "%s", levels[i]);
        cr_expect(i < 2 || server_logs(&server, "/v2", 1));
        char *log = server_log_text(&server);
        cr_expect_eq(strstr(log, "/v2") != NULL, i >= 2, "%s", log);
        cr_expect(!strstr(log, "/monitors/g/x"), "%s", log);
        free(log);
        cr_expect_eq(server_stop(&server, false), 0);
    }
}

Test(log_stream, audit_goes_to_standard_error_whatever_the_level)
{
    static const char *const flags[] = {"--audit-log", "stderr", "--log-level", "error", NULL};
    struct server server = server_start(flags);
    cr_expect_eq(status_of(&server, "GET", "/v2", NULL), 200);
    write_once(&server);
    cr_expect(server_logs(&server, " info request kind=audit ", 1));
    char *log = server_log_text(&server);
    cr_expect(!strstr(log, "/v2"), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
}

static void reload(const struct server *server)
{
    kill(server->pid, SIGHUP);
    wait_ms(200);
}

/* As logrotate does; the server is locked in. A file that cannot be opened again leaves the one before. */
Test(log_stream, audit_goes_on_in_another_file_after_sighup, .init = make_folder,
     .fini = remove_folder)
{
    const char *const flags[] = {"--audit-log", path, NULL};
    struct server server = server_start(flags);
    write_once(&server);
    cr_expect_eq(count_audit(path, 1), 1);
    cr_assert_eq(rename(path, other), 0);
    write_once(&server);
    cr_expect_eq(count_audit(other, 2), 2);
    reload(&server);
    reload(&server);
    write_once(&server);
    cr_expect_eq(count_audit(path, 1), 1);
    cr_expect_eq(count_audit(other, 2), 2);
    cr_expect_eq(metric(&server, "\nkldiv_config_last_reload_successful "), 1);

    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    reload(&server);
    cr_expect(server_logs(&server, "warning --audit-log: the file before stays in use file=\"", 1));
    cr_expect_eq(metric(&server, "\nkldiv_config_last_reload_successful "), 0);
    cr_assert_eq(rmdir(path), 0);
    write_once(&server);
    reload(&server);
    write_once(&server);
    cr_expect_eq(count_audit(path, 1), 1);
    cr_expect_eq(metric(&server, "\nkldiv_config_last_reload_successful "), 1);
    cr_expect_eq(metric(&server, "\nkldiv_log_lines_lost_total "), 0);
    struct stat status;
    cr_expect(stat(path, &status) == 0 && (status.st_mode & 07) == 0, "%o", status.st_mode);
    cr_expect_eq(server_stop(&server, true), 0);
}

Test(log_stream, a_file_that_cannot_be_opened_ends_the_start)
{
    static const char *const flags[] = {"--listen", "127.0.0.1:0", "--audit-log", "/nonexistent/x",
                                        NULL};
    char output[1000];
    cr_expect_eq(run_server(flags, output, sizeof output), 1);
    cr_expect_str_eq(
        output, "kldivd: --audit-log: cannot open /nonexistent/x: No such file or directory\n");
}

/* A full disk costs lines, which are counted, and no request. */
Test(log_stream, lines_that_cannot_be_written_are_counted)
{
    static const char *const flags[] = {"--audit-log", "/dev/full", NULL};
    struct server server = server_start(flags);
    for (int i = 0; i < 3; i++)
        write_once(&server);
    for (int i = 0; i < 100 && metric(&server, "\nkldiv_log_lines_lost_total ") < 3; i++)
        wait_ms(10);
    cr_expect_eq(metric(&server, "\nkldiv_log_lines_lost_total "), 3);
    cr_expect_eq(server_stop(&server, true), 0);
}

static size_t count_lines(const char *file)
{
    size_t n = 0, size;
    char *text = read_file(file, &size);
    for (size_t i = 0; i < size; i++)
        n += text[i] == '\n';
    free(text);
    return n;
}

/* The line that a full disk has cut is lost; those after it begin on lines of their own. */
Test(log_stream, a_line_that_was_cut_spoils_no_other, .init = make_folder, .fini = remove_folder)
{
    enum { MAX = 1000, LINES = 20 };
    const struct rlimit limit = {MAX, MAX};
    const char *const flags[] = {"--audit-log", path, "--log-level", "error", NULL};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct server server = server_start(flags);
    for (int i = 0; i < LINES; i++)
        write_once(&server);
    size_t lost = 0, size;
    for (int i = 0; i < 200 && lost + count_lines(path) < LINES; i++, wait_ms(10))
        lost = (size_t)metric(&server, "\nkldiv_log_lines_lost_total ");
    char *text = read_file(path, &size);
    cr_expect_eq(size, MAX);
    free(text);
    cr_assert_eq(truncate(path, MAX / 2), 0); /* which cuts another */
    write_once(&server);
    wait_ms(200);
    text = read_file(path, &size);
    char *last = strrchr(text, '\n');
    cr_assert(last && last[1] == '\0', "%s", text);
    *last = '\0';
    json_t *fields = log_line_read(strrchr(text, '\n') + 1);
    cr_expect_str_eq(text_of(fields, "kind"), "audit", "%s", text);
    json_decref(fields);
    free(text);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* A FIFO that nobody reads takes 64 KiB; up to 1 MiB is on its way there, and 1 MiB waits. */
Test(log_stream, a_file_that_nobody_reads_holds_up_no_request, .init = make_folder,
     .fini = remove_folder)
{
    enum { REQUESTS = 800, LONG = 3800, SIZE = LONG + 100 };
    char request[SIZE];
    char answer[1000];
    int size = snprintf(
        request, sizeof request,
        "DELETE /monitors/g/x?x=%0*d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", LONG, 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDWR | O_NONBLOCK);
    const char *const flags[] = {"--audit-log", path, NULL};
    struct server server = server_start(flags);
    double start = now_seconds();
    for (int i = 0; i < REQUESTS; i++)
        cr_expect(talk(&server, request, (size_t)size, answer, sizeof answer, 3) > 100,
                  "request %d", i);
    cr_expect_lt(now_seconds() - start, 10);
    double lost = metric(&server, "\nkldiv_log_lines_lost_total ");
    cr_expect(lost > 10 && lost < REQUESTS, "%g", lost);
    start = now_seconds();
    cr_expect_eq(server_stop(&server, true), 0);
    cr_expect_lt(now_seconds() - start, 5);
    close(reader);
}
