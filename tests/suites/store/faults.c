/* Calls of the store that fail one by one, once and from then on: while requests are answered, and while
 * a server starts. */
#include "tests/suites/faults/client.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Each of the first calls fails in its turn, then one in so many: under requests, and in starts. A sanitizer, which
 * takes ten times as long, sees fewer. */
#ifdef __SANITIZE_ADDRESS__
enum { EACH = 4, STRIDE = 1, EACH_START = 2, STRIDE_START = 1 };
#else
enum { EACH = 24, STRIDE = 4, EACH_START = 8, STRIDE_START = 2 };
#endif

static const struct kind kinds[] = {{"open64", FAULT_FILE_OPEN, EROFS},
                                    {"pwrite64", FAULT_FILE_WRITE, ENOSPC},
                                    {"pwrite64, broken", FAULT_FILE_WRITE, EIO},
                                    {"fdatasync", FAULT_FILE_SYNC, EIO},
                                    {"ftruncate64", FAULT_FILE_TRUNCATE, EIO}},
                         memory = {"allocation", FAULT_MEMORY, ENOMEM};

static const char observed[] = "{\"values\": [1, 2]}";

/* Sends observations until now; `sure` were acknowledged, `max` may be stored. */
struct tally {
    struct server server;
    double sure, max;
};

static long observe(struct tally *tally)
{
    long status = status_of(&tally->server, "POST", "/monitors/g/m/observations", observed);
    tally->sure += status == 200 ? 2 : 0;
    tally->max += 2;
    return status;
}

static double stored(const struct server *server)
{
    return metric(server, "\nkldiv_monitor_observations_total{group=\"g\",monitor=\"m\"} ");
}

static void define(const struct server *server)
{
    free(expect_status(server, "PUT", "/monitors/g/m?window=1000000",
                       "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [1, 1]}}",
                       201));
}

/* ---- Requests */

/* request: `body` NULL is a table that fills the log, so that it is moved into the file; it differs from
 * the one before. */
struct request {
    const char *method, *target, *body;
    long status[2]; /* that are right */
};

enum { COLUMNS = 45, LABELS = 200, TIMES = 10, LABEL = 80 };

static void write_table(struct api_buffer *to)
{
    static int version;
    to->size = 0;
    version++;
    for (int i = 0; i < COLUMNS; i++)
        api_append_format(to, "%sc%d", i ? "," : "", i);
    for (int row = 0; row < LABELS * TIMES; row++) /* of which each has a bin */
        for (int i = 0; i < COLUMNS; i++)
            api_append_format(to, "%s%0*d", i ? "," : "\n", LABEL, version * LABELS + row / TIMES);
    api_append(to, "\n", 2);
}

/* Sends a request, while no memory is left for at most a moment. */
static long ask_failing(const struct server *server, const struct kind *kind,
                        const struct request *request, const char *body)
{
    struct asked asked = {.name = request->target};
    if (kind != &memory)
        return status_of(server, request->method, request->target, body);
    api_append_format(&asked.bytes, "%s %s HTTP/1.1\r\nHost: a\r\n", request->method,
                      request->target);
    if (body)
        api_append_format(&asked.bytes, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    else
        api_append_text(&asked.bytes, "\r\n");
    struct answered answered = converse(server, &asked);
    cr_expect(!answered.hung, "%s %s", request->method, request->target);
    api_buffer_free(&answered.bytes);
    api_buffer_free(&asked.bytes);
    return answered.status;
}

/* Sends a request while a call fails; false if none did. */
static bool fail_one(struct tally *tally, const struct kind *kind, const struct request *request,
                     long n, bool sticky)
{
    struct api_buffer table = {0};
    if (!request->body && strcmp(request->method, "PUT") == 0)
        write_table(&table);
    faults_arm(kind, n, sticky);
    long status =
        ask_failing(&tally->server, kind, request, table.size ? table.data : request->body);
    bool failed = atomic_load(&faults->failed) > 0;
    faults_disarm();
    cr_expect(status == request->status[0] || status == request->status[1] ||
                  (failed && (status == 503 || (status == 0 && kind == &memory))),
              "%s %s, %s %ld%s: %ld", request->method, request->target, kind->name, n,
              sticky ? " and later ones" : "", status);
    status = observe(tally);
    cr_expect_eq(status, 200, "%s %s, %s %ld%s, next: %ld", request->method, request->target,
                 kind->name, n, sticky ? " and later ones" : "", status);
    api_buffer_free(&table);
    return failed;
}

static void fail_each(struct tally *tally, const struct kind *kind, const struct request *request)
{
    for (int sticky = 0; sticky <= 1; sticky++)
        for (long n = 0; fail_one(tally, kind, request, n, sticky); n += n < EACH ? 1 : n / STRIDE)
            cr_assert_lt(n, 100000, "%s, %s", request->target, kind->name);
}

/* Expects that what was acknowledged is there, also in the file. While a disk takes more than 5 s for a sync, /metrics has no
 * lines of monitors. */
static void expect_all(const struct tally *tally, const struct database *database)
{
    double total = stored(&tally->server);
    for (double end = now_seconds() + PATIENCE; total < 0 && now_seconds() < end;)
        total = stored(&tally->server);
    cr_expect(total >= tally->sure && total <= tally->max, "%g of %g to %g", total, tally->sure,
              tally->max);
    struct server server = tally->server;
    server_kill(&server, true);
    faults_unload();
    unsetenv("LD_PRELOAD");
    server = store_start(database, NULL);
    cr_expect_eq(stored(&server), total);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(ask_file(database, "SELECT count(*) FROM pragma_integrity_check WHERE"
                                    " integrity_check <> 'ok'"),
                 0);
    cr_expect_eq(ask_file(database,
                          "SELECT sum(count_of(counts)) FROM kldiv_windows c JOIN kldiv_monitors m"
                          " ON m.id = c.monitor WHERE name = 'm'"),
                 total);
}

static void sweep(const struct kind *failing, const struct request *requests, size_t n)
{
    struct database database = database_new();
    faults_preload();
    struct tally tally = {.server = store_start(&database, NULL)};
    define(&tally.server);
    for (size_t i = 0; i < n; i++)
        fail_each(&tally, failing, &requests[i]);
    expect_all(&tally, &database);
    database_free(&database);
}

static void sweep_requests(const struct kind *failing)
{
    static const struct request requests[] = {
        {"PUT", "/monitors/g/other", "{\"reference\": {\"values\": [1, 2, 3]}}", {200, 201}},
        {"POST", "/monitors/g/other/observations", observed, {200, 0}},
        {"GET", "/monitors/g/other/windows", NULL, {200, 404}},
        {"PUT", "/monitors/wide?method=labels", NULL, {200, 201}}};
    sweep(failing, requests, COUNT(requests));
}

/* A test for each kind, so that they run beside one another. */
Test(store_faults, files_that_cannot_be_opened) { sweep_requests(&kinds[0]); }
Test(store_faults, writes_without_room) { sweep_requests(&kinds[1]); }
Test(store_faults, writes_that_break) { sweep_requests(&kinds[2]); }
Test(store_faults, files_that_cannot_be_synced) { sweep_requests(&kinds[3]); }
Test(store_faults, files_that_cannot_be_cut) { sweep_requests(&kinds[4]); }

/* Memory of SQLite, too. */
Test(store_faults, allocations_under_requests_of_monitors)
{
    static const struct request requests[] = {
        {"PUT", "/monitors/t", "a,b\n1,x\n2,y\n", {200, 201}},
        {"POST", "/monitors/t/observations", "a,b,c\n1,x,3\n", {200, 404}},
        {"PUT",
         "/monitors/g/p?compare=previous:2&window=3",
         "{\"bins\": {\"edges\": [0, 1, 2]}}",
         {200, 201}},
        {"POST", "/monitors/g/p/observations", observed, {200, 404}},
        {"POST", "/monitors/g/p/evaluate", observed, {200, 404}},
        {"GET", "/monitors/g/p/windows", NULL, {200, 404}},
        {"GET", "/monitors/g/p/windows/latest", NULL, {200, 404}},
        {"GET", "/monitors/g/p/events", NULL, {200, 404}},
        {"GET", "/monitors", NULL, {200, 0}},
        {"GET", "/monitors/g", NULL, {200, 404}},
        {"GET", "/monitors/g/p", NULL, {200, 404}},
        {"GET", "/metrics", NULL, {200, 0}},
        {"POST",
         "/monitors/g/reference?include=p",
         "{\"from\": 0, \"to\": 4000000000}",
         {200, 422}},
        {"DELETE", "/monitors/t", NULL, {204, 404}}};
    sweep(&memory, requests, COUNT(requests));
}

/* ---- Waits */

/* late: a request that waits for the store while its time ends, and its answer. */
struct late {
    const char *method, *target, *body;
    int status;
};

/* Has the store wait from now on, and sends it a request; gives the connection. */
static int send_late(const struct server *server, const struct late *late)
{
    static const struct kind slow = {"fdatasync", FAULT_FILE_SYNC, 0};
    struct api_buffer request = {0};
    faults_arm(&slow, 0, true);
    int fd = dial(server);
    api_append_format(&request,
                      "%s %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                      "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                      late->method, late->target, strlen(late->body), late->body);
    cr_assert_eq(send(fd, request.data, request.size, 0), (ssize_t)request.size);
    api_buffer_free(&request);
    return fd;
}

/* Has the store go on, and expects the answer. */
static void expect_late(int fd, const struct late *late)
{
    faults_disarm();
    int status = read_status(fd, PATIENCE);
    cr_expect_eq(status, late->status, "%s %s: %d", late->method, late->target, status);
    close(fd);
}

/* A refusal would have it sent again, and counted twice. */
Test(store_faults, what_is_stored_after_its_time_is_answered_so)
{
    static const char *const flags[] = {"--request-timeout", "1", NULL};
    static const struct late late[] = {
        {"POST", "/monitors/g/m/observations", observed, 200},
        {"PUT", "/monitors/g/n", "{\"reference\": {\"values\": [1, 2, 3]}}", 201}};
    struct database database = database_new();
    faults_preload();
    struct server server = store_start(&database, flags);
    define(&server);
    for (size_t i = 0; i < COUNT(late); i++) {
        int fd = send_late(&server, &late[i]);
        wait_ms(1600);
        expect_late(fd, &late[i]);
    }
    cr_expect_eq(stored(&server), 2);
    cr_expect_eq(server_stop(&server, false), 0);
    faults_unload();
    database_free(&database);
}

/* Has a commit end while the file is away, then the file come back while no memory is left. */
static void lose(struct tally *tally, const struct database *database, long first)
{
    static const struct late late = {"POST", "/monitors/g/m/observations", observed, 503};
    char away[80];
    snprintf(away, sizeof away, "%s.away", database->path);
    int fd = send_late(&tally->server, &late);
    wait_ms(300);
    cr_assert_eq(rename(database->path, away), 0);
    expect_late(fd, &late);
    tally->sure += 2;
    tally->max += 2;
    faults_arm(&memory, first, true);
    cr_assert_eq(rename(away, database->path), 0);
    wait_ms(1500);
    faults_disarm();
    for (double end = now_seconds() + PATIENCE;
         observe(tally) != 200 && now_seconds() < end;) /* 503: nothing is stored */
        wait_ms(50);
    cr_expect_eq(stored(&tally->server), tally->sure, "%ld", first);
}

/* All is read again as soon as that can be done. */
Test(store_faults, a_store_that_comes_back_while_no_memory_is_left)
{
    static const long first[] = {0, 3, 10, 30};
    struct database database = database_new();
    faults_preload();
    struct tally tally = {.server = store_start(&database, NULL)};
    define(&tally.server);
    for (size_t i = 0; i < COUNT(first); i++)
        lose(&tally, &database, first[i]);
    expect_all(&tally, &database);
    database_free(&database);
}

/* ---- Starts */

/* files: a store that was killed, with its log. */
struct files {
    char *bytes[2];
    size_t sizes[2];
};
static const char *const suffixes[] = {"", "-wal"};

static void path_of(const struct database *database, size_t i, char *to, size_t size)
{
    snprintf(to, size, "%s%s", database->path, suffixes[i]);
}

static void keep(const struct database *database, struct files *files)
{
    char path[100];
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        path_of(database, i, path, sizeof path);
        files->bytes[i] = read_file(path, &files->sizes[i]);
    }
}

/* Brings the files back; NULL is a folder without any. */
static void restore(const struct database *database, const struct files *files)
{
    char path[100];
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        path_of(database, i, path, sizeof path);
        unlink(path);
        FILE *file = files ? fopen(path, "wb") : NULL;
        if (file) {
            cr_assert_eq(fwrite(files->bytes[i], 1, files->sizes[i], file), files->sizes[i]);
            cr_assert_eq(fclose(file), 0);
        }
    }
}

/* Starts a server while a call fails, then one more; false if none failed. */
static bool start_one(const struct database *database, const struct files *files,
                      const struct kind *kind, long n, bool sticky)
{
    const char *const flags[] = {"--store", database->location, NULL};
    restore(database, files);
    faults_arm(kind, n, sticky);
    struct server server = server_try(flags);
    bool failed = atomic_load(&faults->failed) > 0, serves = server.port > 0;
    faults_disarm();
    char *log = server_log_text(&server);
    cr_expect(serves || (strncmp(log, "kldivd: --store sqlite:", 23) == 0 &&
                         strchr(log, '\n') == strrchr(log, '\n')),
              "%s %ld: %s", kind->name, n, log);
    free(log);
    cr_expect_eq(server_stop(&server, true), serves ? 0 : 1);
    server = store_start(database, NULL);
    cr_expect_eq(stored(&server), files ? 2 : -1, "%s %ld", kind->name, n);
    cr_expect_eq(server_stop(&server, false), 0);
    return failed;
}

Test(store_faults, calls_of_the_store_while_a_server_starts)
{
    struct database database = database_new();
    struct files files;
    faults_preload();
    struct tally tally = {.server = store_start(&database, NULL)};
    define(&tally.server);
    observe(&tally);
    server_kill(&tally.server, false);
    keep(&database, &files);
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (int sticky = 0; sticky <= 1; sticky++)
            for (int is_new = 0; is_new <= 1; is_new++)
                for (long n = 0; start_one(&database, is_new ? NULL : &files, &kinds[i], n, sticky);
                     n += n < EACH_START ? 1 : n / STRIDE_START)
                    cr_assert_lt(n, 100000);
    for (size_t i = 0; i < COUNT(suffixes); i++)
        free(files.bytes[i]);
    faults_unload();
    database_free(&database);
}
