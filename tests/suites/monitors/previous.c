/* Sums of the windows before, which `compare` previous compares with, are those that are added up anew:
 * as windows close in any order, are restated, expire, are read again, and as k and the bins change. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* BINS: of the monitor; the outer ones are not used. STEPS: observations of a run. */
enum { BINS = 3, STEPS = 300, MAX = 1000, HOUR = 3600, BEGIN = 1600000000 / HOUR * HOUR };

/* COUNT_SIZE: values that close a window of COUNTS, which are some requests'. */
enum kind { BATCHES, HOURS, COUNTS };
enum { COUNT_SIZE = 4000 };
static const char *const windows[] = {"batch", "3600s", "4000"};

/* model: closed windows as they must be, in order of their starts; those of one start as they came. */
struct model {
    struct window {
        long start, end;
        double counts[BINS];
    } windows[MAX], open; /* open: of COUNTS; without values if there is none */
    size_t n, k;
    long newest, retention;
    enum kind kind;
};

static void expire(struct model *model, long end)
{
    size_t kept = 0;
    if (end <= model->newest)
        return;
    model->newest = end;
    for (size_t i = 0; i < model->n; i++)
        if (model->windows[i].end >= model->newest - model->retention)
            model->windows[kept++] = model->windows[i];
    model->n = kept;
}

static void add(struct window *window, const double *counts)
{
    for (size_t bin = 0; bin < BINS; bin++)
        window->counts[bin] += counts[bin];
}

/* Index of the first closed window that starts later. */
static size_t index_after(const struct model *model, long start)
{
    size_t i = model->n;
    while (i > 0 && model->windows[i - 1].start > start)
        i--;
    return i;
}

static void insert(struct model *model, size_t i, const struct window *window)
{
    memmove(&model->windows[i + 1], &model->windows[i], (model->n++ - i) * sizeof *model->windows);
    model->windows[i] = *window;
}

/* Adds counts to the open window, which closes when it is full; gives the number of windows before it. */
static size_t observe_count(struct model *model, long time, const double *counts)
{
    struct window *open = &model->open;
    double n = 0;
    bool is_new = open->counts[0] == 0;
    open->start = is_new || time < open->start ? time : open->start;
    open->end = is_new || time > open->end ? time : open->end;
    add(open, counts);
    expire(model, open->end);
    size_t i = index_after(model, open->start);
    for (size_t bin = 0; bin < BINS; bin++)
        n += open->counts[bin];
    if (n >= COUNT_SIZE) {
        insert(model, i, open);
        *open = (struct window){.start = 0};
    }
    return i;
}

/* Adds counts; gives the number of windows before theirs. */
static size_t observe(struct model *model, long time, const double *counts)
{
    long start = model->kind == HOURS ? time / HOUR * HOUR : time;
    long end = model->kind == HOURS ? start + HOUR : time;
    if (model->kind == COUNTS)
        return observe_count(model, time, counts);
    expire(model, end);
    size_t i = index_after(model, start);
    if (model->kind == BATCHES || i == 0 || model->windows[i - 1].start != start)
        insert(model, i++, &(struct window){.start = start, .end = end});
    add(&model->windows[i - 1], counts);
    return i - 1;
}

/* Expects the reference of an answer: counts of the windows before, to the bit. */
static void expect_reference(const struct model *model, size_t at_window, const json_t *json)
{
    double expected[BINS] = {0}, n = 0;
    size_t first = at_window > model->k ? at_window - model->k : 0;
    for (size_t i = first; i < at_window; i++)
        for (size_t bin = 0; bin < BINS; bin++) {
            expected[bin] += model->windows[i].counts[bin];
            n += model->windows[i].counts[bin];
        }
    double given = number_at(json, "n_reference");
    cr_assert(n > 0 ? given == n : isnan(given), "%g for %g", given, n);
    for (size_t bin = 0; bin < BINS && n > 0; bin++) {
        char path[40];
        snprintf(path, sizeof path, "bins.%zu.reference", bin + 1);
        cr_assert_eq(number_at(json, path), expected[bin] / n, "%s", path);
    }
}

static void post(const struct api_service *service, struct model *model, long time)
{
    double counts[BINS];
    char body[200];
    for (size_t bin = 0; bin < BINS; bin++)
        counts[bin] = 1 + rand() % 1000;
    snprintf(body, sizeof body, "{\"counts\": [%g, %g, %g], \"timestamp\": %ld}", counts[0],
             counts[1], counts[2], time);
    json_t *json = monitors_get(service, "POST /monitors/g/m/observations", body, 200);
    expect_reference(model, observe(model, time, counts), json);
    json_decref(json);
}

static void evaluate(const struct api_service *service, const struct model *model, long time)
{
    char body[100];
    size_t i = 0;
    snprintf(body, sizeof body, "{\"counts\": [1, 2, 3], \"timestamp\": %ld}", time);
    json_t *json = monitors_get(service, "POST /monitors/g/m/evaluate", body, 200);
    while (i < model->n && model->windows[i].start <= time)
        i++;
    expect_reference(model, i, json);
    json_decref(json);
}

/* Makes the monitor, or changes it: other edges are a new revision, which has no windows. */
static void define(const struct api_service *service, struct model *model, double edge)
{
    static int number;
    char line[200], body[140];
    snprintf(line, sizeof line,
             "PUT /monitors/g/m?window=%s&compare=previous:%zu&retention_days=%g",
             windows[model->kind], model->k, (double)model->retention / 86400);
    snprintf(body, sizeof body,
             "{\"bins\": {\"edges\": [0, 1, 2, %g]}, \"annotations\": {\"n\": \"%d\"}}", edge,
             ++number);
    struct answer answer = monitors_ask(service, line, body);
    cr_assert(answer.status == 200 || answer.status == 201);
    answer_free(&answer);
}

/* Changes the settings, at times; or reads all again. */
static void disturb(struct api_service *service, struct model *model, double *edge)
{
    switch (rand() % 40) {
    case 0:
        model->k = 1 + (size_t)(rand() % 12);
        define(service, model, *edge);
        break;
    case 1:
        *edge += 1;
        model->n = 0;
        model->open = (struct window){.start = 0};
        define(service, model, *edge);
        break;
    case 2:
        monitors_expect(service, "PUT /monitors/g/m?window=batch",
                        "{\"bins\": {\"edges\": [0, 1]}, \"reference\": {\"counts\": [1]}}", 200);
        model->n = 0;
        model->open = (struct window){.start = 0};
        define(service, model, *edge);
        break;
    case 3:
        monitors_restart(service, 10);
        break;
    case 4: /* another annotation */
        define(service, model, *edge);
        break;
    }
}

/* Mostly the next window, often one of the last few, at times one of long ago. */
static long next_time(const struct model *model)
{
    long hours = rand() % 4 ? 1 : rand() % 3 ? -(rand() % 4) : -(rand() % 40);
    long time = (model->newest ? model->newest : BEGIN) + hours * HOUR + rand() % HOUR;
    return model->newest && time < model->newest - model->retention / 2 ? model->newest : time;
}

static void run(enum kind kind, long retention)
{
    char path[] = "/tmp/kldiv-previous-XXXXXX", location[60];
    struct model *model = calloc(1, sizeof *model);
    double edge = 3;
    cr_assert(model && mkdtemp(path));
    snprintf(location, sizeof location, "sqlite:%s/store.db", path);
    *model = (struct model){.k = 5, .retention = retention, .kind = kind};
    struct api_service service = monitors_new_at(10, location);
    define(&service, model, edge);
    for (int i = 0; i < STEPS; i++) {
        post(&service, model, next_time(model));
        evaluate(&service, model, model->newest + rand() % (12 * HOUR) - 10 * HOUR);
        disturb(&service, model, &edge);
    }
    monitors_end(&service);
    free(model);
    snprintf(location, sizeof location, "%s/store.db", path);
    unlink(location);
    rmdir(path);
}

Test(monitors_previous, sums_of_batches_are_those_added_up_anew)
{
    srand(1);
    run(BATCHES, 2000L * HOUR);
    run(BATCHES, 7L * HOUR);
}

Test(monitors_previous, sums_of_restated_windows_are_those_added_up_anew)
{
    srand(2);
    run(HOURS, 2000L * HOUR);
    run(HOURS, 30L * HOUR);
}

Test(monitors_previous, sums_of_windows_that_overlap_are_those_added_up_anew)
{
    srand(3);
    run(COUNTS, 2000L * HOUR);
    run(COUNTS, 9L * HOUR);
}

/* ---- Work */

/* PREVIOUS: windows that are compared with. WIDE: columns, of 1,000 bins. */
enum { PREVIOUS = 1000, WIDE = 5, WINDOWS = PREVIOUS / 2 + 1, ALL = 810 };

static void make_wide(const struct api_service *service)
{
    struct api_buffer bins = {0};
    api_append_text(&bins, "{\"bins\":{\"edges\":[0");
    for (int i = 1; i <= 1000; i++)
        api_append_format(&bins, ",%d", i);
    api_append(&bins, "]}}", 4);
    for (int i = 0; i < WIDE; i++) {
        char line[80];
        snprintf(line, sizeof line, "PUT /monitors/wide/c%d?compare=previous:%d", i, PREVIOUS);
        monitors_expect(service, line, bins.data, 201);
    }
    api_buffer_free(&bins);
}

static const char row[] = "c0,c1,c2,c3,c4\n1,2,3,4,5\n";

/* Formats the request that posts at a time to the wide group. */
static const char *at_time(int time)
{
    static char line[80];
    snprintf(line, sizeof line, "POST /monitors/wide/observations?timestamp=%d", time);
    return line;
}

/* A service that has `n` windows of each wide monitor. */
static struct api_service with_windows(int n)
{
    struct api_service service = monitors_new(10);
    make_wide(&service);
    for (int i = 0; i < n; i++)
        monitors_expect(&service, at_time(BEGIN + i), row, 200);
    return service;
}

/* A request that comes before many windows may have as many columns as can be added up in a second. */
Test(monitors_previous, work_of_one_request_is_bounded)
{
    struct api_service service = with_windows(WINDOWS);
    monitors_refused(&service, at_time(BEGIN - 1), row, "too_many_columns ~fewer columns");
    monitors_expect(&service, at_time(BEGIN - 1), "c0,c1,c2\n1,2,3\n", 200);
    monitors_expect(&service, at_time(BEGIN + WINDOWS - 20), row, 200);
    monitors_end(&service);
}

/* Transactions that were begun to write. */
static double transactions(const struct api_service *service)
{
    static const char name[] =
        "\nkldiv_store_operation_duration_seconds_count{operation=\"write\"} ";
    struct answer answer = monitors_ask(service, "GET /metrics", NULL);
    char *text = body_of(&answer), *line = strstr(text, name);
    cr_assert(line);
    double n = atof(line + sizeof name - 1);
    free(text);
    answer_free(&answer);
    return n;
}

static void compare_with(const struct api_service *service, int k)
{
    for (int i = 0; i < WIDE; i++) {
        char line[80];
        snprintf(line, sizeof line, "GET /monitors/wide/c%d", i);
        json_t *config = monitors_get(service, line, NULL, 200);
        cr_assert_eq(json_object_set_new(config, "compare", json_pack("{s:i}", "previous", k)), 0);
        char *body = json_dumps(config, 0);
        snprintf(line, sizeof line, "PUT /monitors/wide/c%d", i);
        monitors_expect(service, line, body, 200);
        free(body);
        json_decref(config);
    }
}

/* Sums that are not there, as after a change of k, are added up in as many transactions as it takes. */
Test(monitors_previous, work_for_sums_that_lack_is_bounded)
{
    struct api_service service = with_windows(ALL);
    compare_with(&service, PREVIOUS - 1);
    double before = transactions(&service);
    json_t *json = monitors_get(&service, at_time(BEGIN + ALL), row, 200);
    cr_expect_geq(transactions(&service) - before, 2);
    for (int i = 0; i < WIDE; i++) {
        char path[40];
        snprintf(path, sizeof path, "monitors.%d.n_reference", i);
        cr_expect_eq(number_at(json, path), ALL);
    }
    json_decref(json);
    monitors_end(&service);
}
