/* Calls that fail under a running server, one after the other: each request of a script is sent until
 * none of its calls has failed. A preloaded library, tests/tools/preload/faults.c, fails them. The server is sandboxed,
 * as users run it. */
#include "tests/suites/faults/client.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Calls that a request makes, and why they fail. */
static const struct kind kinds[] = {{"allocation", FAULT_MEMORY, ENOMEM},
                                    {"mmap", FAULT_MMAP, ENOMEM},
                                    {"mremap", FAULT_MREMAP, ENOMEM},
                                    {"recv", FAULT_RECV, ECONNRESET},
                                    {"recv for memory", FAULT_RECV, ENOMEM},
                                    {"send", FAULT_SEND, EPIPE},
                                    {"send for memory", FAULT_SEND, ENOBUFS},
                                    {"epoll_ctl", FAULT_EPOLL, ENOSPC},
                                    {"poll", FAULT_POLL, ENOMEM}},
                         accepting[] = {{"descriptor", FAULT_DESCRIPTOR, EMFILE},
                                        {"accept4, aborted", FAULT_ACCEPT, ECONNABORTED},
                                        {"accept4 for memory", FAULT_ACCEPT, ENOMEM}};

/* Each of the first calls fails in its turn, then one in so many: the later ones repeat them. A sanitizer sees fewer. */
#ifdef __SANITIZE_ADDRESS__
enum { EACH = 24, STRIDE = 4 };
#else
enum { EACH = 64, STRIDE = 16 };
#endif

/* SETTLE: time, in seconds, for what the server does after its answer. */
static const double settle = 0.002;

static void wait_us(long us) { nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL); }

/* sweep: one request, another that follows it, and the answers that are right. */
struct sweep {
    struct server server;
    const struct asked *asked, *next;
    const struct answered *right, *right_next;
};

/* An answer is the right one, or says that there is no memory, or the connection closes. */
static void check(const struct sweep *s, const struct kind *kind, long n, bool sticky,
                  const struct answered *a)
{
    const char *how = sticky ? " and all later ones" : "";
    bool unable = a->status == 503 && (a->body_size == 0 || has_text(a, "memory"));
    bool good = a->status == 0 ? !a->hung : unable || is_same(s->asked, a, s->right);
    char fields[1000] = "";
    if (!good && a->status > 0)
        list_fields(a, fields, sizeof fields);
    cr_expect(good, "%s, %s %ld%s: %s%d %s", s->asked->name, kind->name, n, how,
              a->hung ? "hung " : "", a->status, fields);
    struct answered next = converse(&s->server, s->next);
    cr_expect(is_same(s->next, &next, s->right_next), "%s, %s %ld%s, next: %d", s->asked->name,
              kind->name, n, how, next.status);
    api_buffer_free(&next.bytes);
}

/* Sends the request while a call fails; false if none did. */
static bool fail_one(const struct sweep *s, const struct kind *kind, long n, bool sticky)
{
    faults_arm(kind, n, sticky);
    struct answered a = converse(&s->server, s->asked);
    double start = now_seconds();
    while (atomic_load(&faults->failed) == 0 && now_seconds() < start + settle)
        wait_us(100);
    faults_disarm();
    bool failed = atomic_load(&faults->failed) > 0;
    if (kind->fault == FAULT_ACCEPT || kind->fault == FAULT_DESCRIPTOR)
        wait_us(5000); /* the server turns one client away, which is not to be the next */
    check(s, kind, n, sticky, &a);
    api_buffer_free(&a.bytes);
    return failed;
}

/* Fails each call in turn, until two requests in a row met no fault: what the server does beside them
 * shifts the numbers. */
static void fail_each(const struct sweep *s, const struct kind *kind, bool sticky)
{
    int passed = 0;
    for (long n = 0; passed < 2; n += n < EACH ? 1 : n / STRIDE) {
        cr_assert_lt(n, 100000, "%s, %s: it never comes through", s->asked->name, kind->name);
        passed = fail_one(s, kind, n, sticky) ? 0 : passed + 1;
    }
}

/* held: what must be as before after a sweep. */
struct held {
    double blocks, mapped, files, requests, reserved, threads;
};

static double threads_of(const struct server *server)
{
    char path[40];
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/status", (int)server->pid);
    char *text = read_file(path, &size), *line = strstr(text, "\nThreads:");
    double n = line ? atof(line + strlen("\nThreads:")) : 0;
    free(text);
    return n;
}

static struct held look(const struct server *server)
{
    wait_us(30000); /* connections end, and the log is written */
    struct held held = {.files = metric(server, "\nprocess_open_fds "),
                        .requests = metric(server, "\nkldiv_http_requests_in_flight "),
                        .reserved = metric(server, "\nkldiv_memory_reserved_bytes "),
                        .mapped = -metric(server, "\nkldiv_memory_idle_bytes "),
                        .threads = threads_of(server)};
    wait_us(30000);
    held.blocks = (double)atomic_load(&faults->blocks);
    held.mapped += (double)atomic_load(&faults->mapped);
    return held;
}

/* Looks for two seconds, which is longer than a connection that ends may stay, and until nothing
 * changes. Keeps the smallest number of files: a connection more is not what the server holds. */
static struct held look_at_rest(const struct server *server)
{
    double start = now_seconds(), files = HUGE_VAL;
    struct held last, now = look(server);
    do {
        last = now;
        now = look(server);
        files = fmin(files, now.files);
    } while (now_seconds() < start + 2 ||
             (memcmp(&now, &last, sizeof now) != 0 && now_seconds() < start + PATIENCE));
    now.files = files;
    return now;
}

/* Looks until nothing is more than before: the server ends connections some ms after their clients. False if something
 * is kept; that is then what was before. */
static bool keeps_nothing(const struct sweep *s, struct held *before)
{
    double end = now_seconds() + PATIENCE;
    struct held now = look(&s->server), was = *before;
    was.blocks += s->asked->libzip_loses;
    while ((now.blocks > was.blocks || now.mapped != was.mapped || now.files > was.files) &&
           now_seconds() < end)
        now = look(&s->server);
    cr_expect(now.requests == 1 && now.reserved == 0 && now.threads == was.threads,
              "%s: %g requests, %g bytes, %g threads", s->asked->name, now.requests, now.reserved,
              now.threads);
    *before = now;
    if (now.blocks <= was.blocks && now.mapped == was.mapped && now.files <= was.files)
        return true;
    cr_log_info("%s keeps %g blocks, %g bytes mapped, %g files", s->asked->name,
                now.blocks - was.blocks, now.mapped - was.mapped, now.files - was.files);
    return false;
}

/* Fails the calls of a request, again if something was kept: what a busy server makes once and keeps, as the log's second
 * buffer, is no leak, which grows each time. */
static void sweep_request(const struct sweep *s, const struct kind *kind, size_t n_kinds,
                          struct held *before)
{
    enum { TIMES = 3 };
    for (int time = 0; time < TIMES; time++) {
        for (size_t j = 0; j < n_kinds; j++)
            for (int sticky = 0; sticky <= 1; sticky++)
                fail_each(s, &kind[j], sticky);
        if (keeps_nothing(s, before))
            return;
    }
    cr_expect_fail("%s keeps something each time", s->asked->name);
}

/* Has the server keep as many objects of requests that are done as it ever does. */
static void fill_spares(const struct server *server)
{
    enum { AT_ONCE = 16 };
    static const char begun[] = "POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{";
    int fds[AT_ONCE];
    for (size_t i = 0; i < AT_ONCE; i++) {
        fds[i] = dial(server);
        cr_assert_eq(send(fds[i], begun, sizeof begun - 1, MSG_NOSIGNAL), sizeof begun - 1);
    }
    wait_us(30000);
    for (size_t i = 0; i < AT_ONCE; i++)
        close(fds[i]);
}

/* Asks each request twice, first for the answer that is right. The log has two buffers, which it makes
 * as lines come. */
static void warm_up(const struct server *server, const struct asked *script, size_t n,
                    struct answered *right)
{
    for (size_t i = 0; i < n; i++) {
        right[i] = converse(server, &script[i]);
        cr_assert_gt(right[i].status, 0, "%s", script[i].name);
    }
    fill_spares(server);
    look(server);
    for (size_t i = 0; i < n; i++) {
        struct answered again = converse(server, &script[i]);
        cr_assert(is_same(&script[i], &again, &right[i]), "%s: %d", script[i].name, again.status);
        api_buffer_free(&again.bytes);
    }
}

/* Expects no warning but this one, no error, and no text from freed memory, which faults_preload fills
 * with bytes that are not UTF-8. A line of which a write failed may end before its level does. */
static void expect_only(const struct server *server, const char *warning)
{
    enum { TO_LEVEL = sizeof "2026-11-21T01:02:03.004Z info " - 1 };
    char *log = server_log_text(server), *rest = log;
    for (char *line; (line = strtok_r(rest, "\n", &rest));)
        cr_expect((strstr(line, " info ") || (*line == '2' && strlen(line) < TO_LEVEL) ||
                   (warning && strstr(line, warning))) &&
                      !strstr(line, "\\ufffd"),
                  "%.500s", line);
    free(log);
}

/* Sweeps over requests number `first` of the script, and each that is `step` later. */
static void sweep(size_t first, size_t step, const struct kind *kind, size_t n_kinds,
                  const char *warning)
{
    static const char *const flags[] = {"--threads", "2", "--http-threads", "1", NULL};
    static struct asked script[MAX_ASKED];
    static struct answered right[MAX_ASKED];
    size_t n = write_script(script);
    faults_preload();
    struct server server = server_start(flags);
    warm_up(&server, script, n, right);
    struct held before = look_at_rest(&server);
    for (size_t i = first; i < n; i += step) {
        const struct sweep s = {server, &script[i], &script[0], &right[i], &right[0]};
        sweep_request(&s, kind, n_kinds, &before);
    }
    expect_only(&server, warning);
    cr_expect_eq(server_stop(&server, warning != NULL), 0);
    faults_unload();
    for (size_t i = 0; i < n; i++)
        api_buffer_free(&right[i].bytes);
    free_script(script, n);
}

/* Objects that a server keeps for later requests are allocated by the first. */
Test(faults_requests, allocations_of_the_first_request)
{
    enum { FIRST = 12 };
    static struct asked script[MAX_ASKED];
    size_t n = write_script(script);
    faults_preload();
    struct server other = server_start(NULL);
    struct answered right = converse(&other, &script[0]);
    cr_expect_eq(server_stop(&other, false), 0);
    for (long i = 0; i < 2 * FIRST; i++) {
        struct server server = server_start(NULL);
        wait_us(50000); /* its threads begin, which allocate under AddressSanitizer */
        fail_one(&(struct sweep){server, &script[0], &script[0], &right, &right}, &kinds[0], i / 2,
                 i % 2);
        cr_expect_eq(server_stop(&server, false), 0);
    }
    api_buffer_free(&right.bytes);
    faults_unload();
    free_script(script, n);
}

/* The script in parts, which run at the same time. */
enum { PARTS = 3 };
Test(faults_requests, calls_that_fail_under_requests_1)
{
    sweep(0, PARTS, kinds, COUNT(kinds), NULL);
}
Test(faults_requests, calls_that_fail_under_requests_2)
{
    sweep(1, PARTS, kinds, COUNT(kinds), NULL);
}
Test(faults_requests, calls_that_fail_under_requests_3)
{
    sweep(2, PARTS, kinds, COUNT(kinds), NULL);
}

/* A server that cannot accept says so in a warning. These wait long: one in five of the script, with a
 * body refused early, for which a descriptor is duplicated, and metrics, which open files. */
Test(faults_requests, connections_that_cannot_be_accepted)
{
    sweep(0, 5, accepting, COUNT(accepting), "cannot accept error=");
}
