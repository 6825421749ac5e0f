/* The server under five times its connections of bad clients, beside good ones: what each promise
 * says, and what was measured. Usage: load PROGRAM SECONDS. From 180 s on, what the server holds in
 * the last minute is compared with the first.
 *
 * Times are promises for a machine of its own. On a shared one a run fails only above a generous
 * multiple, and by as much more as the machine has stood still; all else fails exactly. */
#include "tests/system/load/bad.h"
#include "tests/system/load/good.h"
#include "tests/system/load/pauses.h"
#include "tests/system/load/peer.h"
#include "tests/system/load/report.h"
#include "tests/system/load/target.h"
#include "tests/system/load/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Connections of the server, at most; bad clients for each; descriptors of all else. */
enum { CONNECTIONS = 200, TIMES = 5, OTHER_FILES = 100 };

/* Bounds in bytes: of requests, and of the process beyond them. */
#define BUDGET (256.0 * (1 << 20))
#define BEYOND (64.0 * (1 << 20))

/* Seconds: for connections to open; until all that was held is given back; of a soak. */
#define WARM 2
#define SETTLE 10
#define SOAK 180
enum { MINUTE = 60, SAMPLES = 3600 };

static struct target target;
static struct held samples[SAMPLES]; /* one a second */

/* Raises the bound of descriptors; gives the connections that the server and the clients can have. */
static size_t scale(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
    setrlimit(RLIMIT_NOFILE, &files);
    size_t max = files.rlim_cur > 2 * OTHER_FILES ? (files.rlim_cur - OTHER_FILES) / TIMES : 20;
    return max < CONNECTIONS ? max : CONNECTIONS;
}

static size_t sample(double seconds)
{
    double end = seconds_now() + seconds;
    size_t n = 0;
    for (; n < SAMPLES && seconds_now() < end; n++) {
        samples[n] = target_holds(&target);
        sleep_seconds(1);
    }
    return n;
}

/* Waits until the server holds no more than before. */
static struct held settle(const struct held *before, double *flight, double *reserved)
{
    struct held now = *before;
    for (double end = seconds_now() + SETTLE; seconds_now() < end; sleep_seconds(0.1)) {
        *flight = target_metric(&target, "kldiv_http_requests_in_flight ") - 1; /* this one */
        *reserved = target_metric(&target, "kldiv_memory_reserved_bytes ");
        now = target_holds(&target);
        if (*flight <= 0 && *reserved <= 0 && now.descriptors <= before->descriptors &&
            now.threads <= before->threads)
            break;
    }
    return now;
}

/* ---- Rows */

static void report_good(const struct good_result *r, double pause)
{
    char bound[60];
    double time = r->is_try ? r->worst_try : r->worst_wait;
    snprintf(bound, sizeof bound, "%g ms; fails above %g s", r->bound * 1e3, r->limit);
    report_row(time <= r->limit + pause && r->calls > 0 && r->worst == 0 && r->unanswered == 0,
               r->name, bound,
               "%.0f ms at most, %lu above; %lu served, tries %lu: 503 %lu, no answer %lu; "
               "served within %.0f ms",
               time * 1e3, r->above, r->calls, r->tries, r->refused, r->unanswered,
               r->worst_wait * 1e3);
}

static void report_bad(const struct bad_result *r)
{
    char name[60];
    snprintf(name, sizeof name, "%zu %s", r->clients, r->name);
    report_row(r->worst == 0, name, "no 5xx but 503",
               "%lu connections: 200 %lu, 408 %lu, 503 %lu, others %lu, no answer %lu, left %lu",
               r->connections, r->served, r->late, r->refused, r->other, r->unanswered, r->left);
}

static void report_left(const struct held *before, const struct held *after, double flight,
                        double reserved)
{
    char bound[60];
    report_row(flight == 0, "requests under way afterwards", "0", "%g", flight);
    report_row(reserved == 0, "reserved memory afterwards", "0", "%g", reserved);
    snprintf(bound, sizeof bound, "%g, as before", before->descriptors);
    report_row(after->descriptors <= before->descriptors, "descriptors afterwards", bound, "%g",
               after->descriptors);
    snprintf(bound, sizeof bound, "%g, as before", before->threads);
    report_row(after->threads == before->threads, "threads afterwards", bound, "%g",
               after->threads);
    report_row(after->peak <= BUDGET + BEYOND, "resident memory", "256 + 64 MiB",
               "%.0f MiB at most", after->peak / (1 << 20));
}

static struct held mean(const struct held *first, size_t n)
{
    struct held sum = {0};
    for (size_t i = 0; i < n; i++) {
        sum.resident += first[i].resident / (double)n;
        sum.threads += first[i].threads / (double)n;
        sum.descriptors += first[i].descriptors / (double)n;
    }
    return sum;
}

/* Compares the means of the first and of the last minute. */
static void report_minutes(size_t n)
{
    struct held first = mean(samples, MINUTE), last = mean(samples + n - MINUTE, MINUTE);
    report_row(last.resident <= first.resident + BEYOND / 4, "resident memory stays",
               "first minute + 16 MiB", "%.1f MiB in the first minute, %.1f in the last",
               first.resident / (1 << 20), last.resident / (1 << 20));
    report_row(last.descriptors <= first.descriptors * 1.05 + 8, "descriptors stay",
               "first minute + 5 % + 8", "%.1f in the first minute, %.1f in the last",
               first.descriptors, last.descriptors);
    report_row(last.threads == first.threads, "threads stay", "as in the first minute",
               "%.1f in the first minute, %.1f in the last", first.threads, last.threads);
}

/* ---- A run */

static void report(const struct held *before, size_t n, const struct bad_result *bad,
                   const struct good_result *good, double pause)
{
    double flight = -1, reserved = -1;
    struct held after = settle(before, &flight, &reserved);
    int status = target_stop(&target);
    report_head();
    for (size_t i = 0; i < GOOD_ROLES; i++)
        report_good(&good[i], pause);
    for (size_t i = 0; i < BAD_KINDS; i++)
        report_bad(&bad[i]);
    report_left(before, &after, flight, reserved);
    if (n >= SOAK)
        report_minutes(n);
    report_row(target.errors == 0, "errors in the log", "0", "%lu %s; %lu warnings%s%s",
               target.errors, target.first[1], target.warnings,
               target.warnings ? ", the first: " : "", target.first[0]);
    report_row(status == 0, "exit status after SIGTERM", "0", "%d", status);
}

static bool run(double seconds, size_t connections)
{
    struct held before = target_holds(&target);
    struct bad_result bad[BAD_KINDS];
    struct good_result good[GOOD_ROLES];
    char peer[300] = "not installed";
    if (!pauses_start() || !bad_start(target.port, TIMES * connections))
        return false;
    sleep_seconds(WARM);
    if (!good_start(target.port, target.admin_port))
        return false;
    bool has_peer = peer_start(target.port, seconds);
    size_t n = sample(seconds);
    if (has_peer)
        peer_stop(peer, sizeof peer);
    good_stop(good);
    bad_stop(bad);
    double pause = pauses_stop();
    report(&before, n, bad, good, pause);
    printf("wrk: %s\nthe machine stood still for %.0f ms at most\n", peer, pause * 1e3);
    return report_misses() == 0;
}

int main(int argc, char **argv)
{
    char connections[20];
    const char *const flags[] = {"--max-connections", connections, "--max-memory", "256M", NULL};
    double seconds = argc == 3 ? atof(argv[2]) : 0;
    if (seconds <= 0) {
        fprintf(stderr, "usage: load PROGRAM SECONDS\n");
        return 2;
    }
    size_t n = scale();
    snprintf(connections, sizeof connections, "%zu", n);
    printf("%zu connections at most, 256 MiB, %zu bad clients, %g s\n", n, TIMES * n, seconds);
    fflush(stdout);
    if (!target_start(&target, argv[1], flags)) {
        fprintf(stderr, "load: %s did not start\n", argv[1]);
        return 1;
    }
    return run(seconds, n) ? 0 : 1;
}
