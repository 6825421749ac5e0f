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

/* A request may have as many windows to compare with as can be read in a second. */
Test(monitors_previous, work_of_one_request_is_bounded)
{
    enum { MINUTES = 2600 };
    struct api_service service = monitors_new(10);
    struct api_buffer rows = {0};
    monitors_expect(&service, "PUT /monitors/wide/c?compare=previous:1000&window=60s",
                    "{\"bins\":{\"edges\":[0,1,2]}}", 201);
    api_append_text(&rows, "at,c\n");
    for (int i = 0; i < MINUTES; i++)
        api_append_format(&rows, "%d,1\n", BEGIN + 60 * i);
    api_append(&rows, "", 1);
    monitors_refused(&service, "POST /monitors/wide/observations?time=at", rows.data,
                     "too_many_columns ~windows are to be read");
    rows.data[rows.size / 2] = '\0';
    *strrchr(rows.data, '\n') = '\0';
    monitors_expect(&service, "POST /monitors/wide/observations?time=at", rows.data, 200);
    api_buffer_free(&rows);
    monitors_end(&service);
}
