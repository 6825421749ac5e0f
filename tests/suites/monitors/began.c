/* When a drift began. The oracle computes G by its sums of n ln n, of all runs of windows that end at the rise. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/store.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 4, BEGIN = 1600000020, WINDOWS = 60, SHIFT_AT = 40, RUN = 32 };
#define NUMBERS "{\"bins\":{\"edges\":[0,1,2,3,4]},\"reference\":{\"counts\":[900,1000,1100,1000]}}"
#define LABELS                                                                                     \
    "{\"bins\":{\"labels\":[\"a\",\"b\",\"c\",\"d\"]},\"reference\":{\"counts\":[900,1000,1100,"   \
    "1000]}}"
static const double reference[BINS] = {900, 1000, 1100, 1000};

static double nlogn(double n) { return n > 0 ? n * log(n) : 0; }

static double g_of(const double *counts)
{
    double sum = 0, n = 0, all = 0;
    for (size_t i = 0; i < BINS; i++) {
        sum += nlogn(counts[i]) + nlogn(reference[i]) - nlogn(counts[i] + reference[i]);
        n += counts[i];
        all += reference[i];
    }
    return 2 * (sum - nlogn(n) - nlogn(all) + nlogn(n + all));
}

/* Gives the start of the run before `end` whose sum has the greatest G. */
static long begin_of(double (*windows)[BINS], size_t end)
{
    double most = -1, counts[BINS] = {0};
    size_t first = end;
    for (size_t n = 1; n <= RUN && n <= end; n++) {
        for (size_t i = 0; i < BINS; i++)
            counts[i] += windows[end - n][i];
        if (g_of(counts) > most) {
            most = g_of(counts);
            first = end - n;
        }
    }
    return BEGIN + 60 * (long)first;
}

static json_t *row_of(const struct api_service *service)
{
    json_t *list = monitors_get(service, "GET /monitors?q=m", NULL, 200);
    json_t *row = json_incref(json_array_get(at(list, "monitors"), 0));
    json_decref(list);
    return row;
}

static void observe(const struct api_service *service, const double *counts, size_t window)
{
    char body[200];
    snprintf(body, sizeof body, "{\"counts\":[%g,%g,%g,%g],\"timestamp\":%zu}", counts[0],
             counts[1], counts[2], counts[3], BEGIN + 60 * window);
    monitors_expect(service, "POST /monitors/g/m/observations", body, 200);
}

/* Expects a time in a member. */
static void expect_time(const json_t *of, const char *member, long seconds, const char *what)
{
    char text[40];
    time_t then = seconds;
    struct tm parts;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&then, &parts));
    cr_expect_str_eq(text_at(of, member), text, "%s: %s and not %s", what, text_at(of, member),
                     text);
}

static void expect_event(const struct api_service *service, long began)
{
    json_t *events = monitors_get(service, "GET /monitors/g/m/events?limit=1", NULL, 200);
    expect_time(events, "events.0.began", began, "an event");
    json_decref(events);
    json_t *group = monitors_get(service, "GET /groups/g", NULL, 200);
    expect_time(group, "drifting.0.began", began, "a group");
    json_decref(group);
}

/* Windows without drift, then with a small one, until the state rises; true if the begin is where it was. */
static bool run_history(unsigned long long seed, const char *monitor)
{
    struct database database = database_new();
    struct api_service service = monitors_new_at(10, database.location);
    static double windows[WINDOWS + 1][BINS];
    bool is_exact = false;
    memset(windows, 0, sizeof windows);
    monitors_expect(&service, "PUT /monitors/g/m?window=60s&retention_days=36500", monitor, 201);
    for (size_t w = 0; w < WINDOWS; w++) {
        for (int i = 0; i < 200; i++) {
            double u = uniform(&seed), shift = w >= SHIFT_AT ? 0.12 : 0;
            windows[w][u < 0.225 + shift ? 0 : u < 0.475 + shift ? 1 : u < 0.75 + shift ? 2 : 3]++;
        }
        observe(&service, windows[w], w);
        json_t *row = row_of(&service);
        bool drifts = strcmp(text_at(row, "state"), "critical") == 0 ||
                      strcmp(text_at(row, "state"), "warning") == 0;
        long due = drifts ? begin_of(windows, w + 1) : 0;
        if (drifts) {
            expect_time(row, "began", due, "a list");
            expect_event(&service, due);
            monitors_restart(&service, 10);
            json_decref(row);
            row = row_of(&service);
            expect_time(row, "began", due, "after a restart");
            is_exact = due == BEGIN + 60 * (long)SHIFT_AT;
            w = WINDOWS;
        } else {
            cr_expect(json_is_null(json_object_get(row, "began")));
        }
        json_decref(row);
    }
    monitors_end(&service);
    database_free(&database);
    return is_exact;
}

Test(monitors_began, is_where_the_counts_differ_most, .timeout = 120)
{
    size_t exact = 0, n = SOME_OF(20);
    for (unsigned long long seed = 1; seed <= n; seed++)
        exact += run_history(seed, seed % 2 ? NUMBERS : LABELS);
    cr_expect_geq(exact * 2, n, "%zu of %zu", exact, n);
}

/* It stays while the state is above ok, is told with the return to ok, and begins anew with the next drift. */
Test(monitors_began, lasts_as_long_as_the_drift)
{
    static const double even[] = {90, 100, 110, 100}, far[] = {10, 20, 60, 310};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?pool=1&retention_days=36500", NUMBERS, 201);
    const double *const windows[] = {even, even, far, far, even, even, even, even, even, even, far};
    for (size_t w = 0; w < COUNT(windows); w++) {
        observe(&service, windows[w], w);
        json_t *row = row_of(&service);
        bool drifts = strcmp(text_at(row, "state"), "ok") != 0;
        cr_expect_eq(drifts, w == 2 || w == 3 || w == 10 || (w > 3 && drifts));
        if (drifts)
            expect_time(row, "began", BEGIN + 60 * (w == 10 ? 10 : 2), "a list");
        else
            cr_expect(json_is_null(json_object_get(row, "began")));
        json_decref(row);
    }
    json_t *events = monitors_get(&service, "GET /monitors/g/m/events", NULL, 200);
    expect_time(events, "events.0.began", BEGIN + 600, "the second rise");
    expect_time(events, "events.1.began", BEGIN + 120, "the return");
    expect_at(events, "events.1.to", "\"ok\"");
    json_decref(events);
    monitors_end(&service);
}

/* Compared with the window before, each window is a drift of its own. */
Test(monitors_began, is_the_window_that_raised_the_state_beside_those_before)
{
    static const double even[] = {90, 100, 110, 100}, far[] = {10, 20, 60, 310};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?compare=previous:2&retention_days=36500", NUMBERS,
                    201);
    for (size_t w = 0; w < 5; w++)
        observe(&service, w == 4 ? far : even, w);
    json_t *row = row_of(&service);
    expect_at(row, "state", "\"critical\"");
    expect_time(row, "began", BEGIN + 240, "a list");
    json_decref(row);
    monitors_end(&service);
}
