/* GET compare: sums of windows of two periods. The oracle adds up plain counts, and has a monitor score them whose
 * reference is the other sum. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 4, WINDOWS = 60, BEGIN = 1600000020 };
#define COMPARE "GET /monitors/g/m/compare"
#define EDGES "\"bins\":{\"edges\":[0,1,2,3,4]}"
#define CONFIG "{" EDGES ",\"reference\":{\"counts\":[500,400,300,200]}}"

static size_t history[WINDOWS][BINS];

/* Fills windows of a minute: some minutes have none. */
static void observe(const struct api_service *service, unsigned long long seed)
{
    memset(history, 0, sizeof history);
    for (size_t i = 0; i < WINDOWS; i++) {
        char body[200];
        if (uniform(&seed) < 0.2)
            continue;
        for (size_t bin = 0; bin < BINS; bin++)
            history[i][bin] = 1 + (size_t)(uniform(&seed) * 40);
        snprintf(body, sizeof body, "{\"counts\":[%zu,%zu,%zu,%zu],\"timestamp\":%zu}",
                 history[i][0], history[i][1], history[i][2], history[i][3], BEGIN + 60 * i + 7);
        monitors_expect(service, "POST /monitors/g/m/observations", body, 200);
    }
}

/* sum: of the windows from one to before another, at most `limit`, newest first. */
struct sum {
    size_t counts[BINS], windows, first, last;
};

static void add_up(struct sum *sum, long from, long to, size_t limit)
{
    for (long i = to < WINDOWS ? to : WINDOWS; i-- > from && i >= 0 && sum->windows < limit;) {
        if (history[i][0] == 0)
            continue;
        for (size_t bin = 0; bin < BINS; bin++)
            sum->counts[bin] += history[i][bin];
        sum->last = sum->windows++ == 0 ? (size_t)i : sum->last;
        sum->first = (size_t)i;
    }
}

static void format_counts(const struct sum *sum, char *to, size_t size)
{
    snprintf(to, size, "{\"counts\":[%zu,%zu,%zu,%zu]}", sum->counts[0], sum->counts[1],
             sum->counts[2], sum->counts[3]);
}

/* Expects a comparison to be what a monitor says of one sum that has the other as its reference. */
static void expect_sums(const struct api_service *service, const char *query, const struct sum *sum,
                        const struct sum *reference)
{
    static const char *const own[] = {"name",    "from",     "to",    "windows", "against",
                                      "compare", "warnings", "state", "revision"};
    char line[200], body[300], counts[200];
    snprintf(line, sizeof line, COMPARE "?%s", query);
    json_t *got = monitors_get(service, line, NULL, 200);
    cr_expect_eq(number_at(got, "windows"), (double)sum->windows, "%s", query);
    format_counts(reference, counts, sizeof counts);
    snprintf(body, sizeof body, "{" EDGES ",\"reference\":%s}", counts);
    monitors_expect(service, "DELETE /monitors/oracle", NULL, 204);
    monitors_expect(service, "PUT /monitors/oracle/m", body, 201);
    format_counts(sum, counts, sizeof counts);
    json_t *due = monitors_get(service, "POST /monitors/oracle/m/evaluate", counts, 200);
    json_object_del(got, "group");
    json_object_del(due, "group");
    for (size_t i = 0; i < COUNT(own); i++) {
        json_object_del(got, own[i]);
        json_object_del(due, own[i]);
    }
    char *a = json_dumps(got, JSON_SORT_KEYS), *b = json_dumps(due, JSON_SORT_KEYS);
    cr_expect_str_eq(a, b, "%s:\n%s\n%s", query, a, b);
    free(a);
    free(b);
    json_decref(got);
    json_decref(due);
}

static struct api_service make(const char *query, unsigned long long seed)
{
    struct api_service service = monitors_new(10);
    char line[200];
    snprintf(line, sizeof line, "PUT /monitors/g/m?%s", query);
    monitors_expect(&service, line, CONFIG, 201);
    monitors_expect(&service, "PUT /monitors/oracle/m", CONFIG, 201);
    observe(&service, seed);
    return service;
}

Test(monitors_compare, of_two_periods_is_of_their_sums)
{
    struct api_service service = make("window=60s", 1);
    unsigned long long seed = 2;
    for (int i = 0; i < 50; i++) {
        struct sum sum = {.windows = 0}, reference = {.windows = 0};
        char query[200];
        long from = (long)(uniform(&seed) * 50), to = from + 10;
        long other = (long)(uniform(&seed) * 50), end = other + 4 + (long)(uniform(&seed) * 20);
        add_up(&sum, from, to, WINDOWS);
        add_up(&reference, other, end, WINDOWS);
        snprintf(query, sizeof query, "from=%ld&to=%ld&against_from=%ld&against_to=%ld",
                 BEGIN + 60 * from, BEGIN + 60 * to, BEGIN + 60 * other, BEGIN + 60 * end);
        expect_sums(&service, query, &sum, &reference);
    }
    monitors_end(&service);
}

Test(monitors_compare, without_another_period_is_against_the_reference)
{
    const struct sum reference = {.counts = {500, 400, 300, 200}};
    struct api_service service = make("window=60s", 3);
    struct sum sum = {.windows = 0}, all = {.windows = 0}, last = {.windows = 0};
    char query[100];
    add_up(&all, 0, WINDOWS, WINDOWS);
    expect_sums(&service, "", &all, &reference);
    add_up(&sum, 0, 20, WINDOWS);
    snprintf(query, sizeof query, "to=%d", BEGIN + 60 * 20);
    expect_sums(&service, query, &sum, &reference);
    add_up(&last, 20, WINDOWS, WINDOWS);
    snprintf(query, sizeof query, "from=%d", BEGIN + 60 * 20);
    expect_sums(&service, query, &last, &reference);
    snprintf(query, sizeof query, "to=%d&against_from=%d", BEGIN + 60 * 20, BEGIN + 60 * 20);
    expect_sums(&service, query, &sum, &last);
    monitors_end(&service);
}

Test(monitors_compare, is_with_the_windows_before_where_the_monitor_is)
{
    struct api_service service = make("window=60s&compare=previous:7", 4);
    struct sum sum = {.windows = 0}, before = {.windows = 0};
    char query[100];
    add_up(&sum, 30, 40, WINDOWS);
    add_up(&before, 0, 30, 7);
    snprintf(query, sizeof query, "from=%d&to=%d", BEGIN + 60 * 30, BEGIN + 60 * 40);
    expect_sums(&service, query, &sum, &before);
    json_t *first = monitors_get(&service, COMPARE, NULL, 200);
    expect_at(first, "kl", "null");
    expect_at(first, "verdict", "\"insufficient_data\"");
    json_decref(first);
    monitors_end(&service);
}

/* weighed: windows with what each is compared with, which weighs as the window does: q = sum(n r / N) / sum(n), as of a
 * sample of sum(n)^2 / sum(n^2 / N). */
struct weighed {
    double counts[BINS], q[BINS], n, squares, n_reference, kl;
};

static double total(const size_t *counts)
{
    double n = 0;
    for (size_t bin = 0; bin < BINS; bin++)
        n += (double)counts[bin];
    return n;
}

/* Weighs the windows from one to before another, of which each is compared with those k periods of two before. */
static void weigh(struct weighed *w, long from, long to, long k)
{
    *w = (struct weighed){.n = 0};
    for (long i = from; i < to; i++) {
        struct sum before = {.windows = 0};
        for (long period = 1; period <= k && i - 2 * period >= 0; period++)
            add_up(&before, i - 2 * period, i - 2 * period + 1, (size_t)-1);
        double n = total(history[i]), of = total(before.counts);
        if (n == 0 || of == 0)
            continue;
        w->n += n;
        w->squares += n * n / of;
        for (size_t bin = 0; bin < BINS; bin++) {
            w->counts[bin] += (double)history[i][bin];
            w->q[bin] += n * (double)before.counts[bin] / of;
        }
    }
    w->n_reference = w->n * w->n / w->squares;
    for (size_t bin = 0; bin < BINS; bin++) {
        double p = (w->counts[bin] + 0.5) / (w->n + 0.5 * BINS);
        double q = (w->q[bin] / w->n * w->n_reference + 0.5) / (w->n_reference + 0.5 * BINS);
        w->kl += p * log(p / q);
    }
}

/* Summed references would make windows of much traffic before weigh more in the reference than in the sum. */
Test(monitors_compare, of_a_season_weighs_what_each_window_is_compared_with)
{
    struct api_service service = make("window=60s&compare=previous:3@120s", 5);
    unsigned long long seed = 6;
    struct weighed due;
    char line[100];
    for (int i = 0; i < 30; i++) {
        long from = (long)(uniform(&seed) * 45), to = from + 10;
        weigh(&due, from, to, 3);
        snprintf(line, sizeof line, COMPARE "?from=%ld&to=%ld", BEGIN + 60 * from, BEGIN + 60 * to);
        json_t *got = monitors_get(&service, line, NULL, 200);
        cr_expect_float_eq(number_at(got, "n"), due.n, 1e-9, "%s: n", line);
        cr_expect_float_eq(number_at(got, "n_reference"), due.n_reference, 1e-8, "%s", line);
        cr_expect_float_eq(number_at(got, "kl"), due.kl, 1e-12, "%s: %g", line, due.kl);
        json_decref(got);
    }
    json_t *first = monitors_get(&service, COMPARE "?to=1600000100", NULL, 200);
    expect_at(first, "kl", "null"); /* nothing is before */
    cr_expect_gt(number_at(first, "n"), 0);
    json_decref(first);
    monitors_end(&service);
}

Test(monitors_compare, tells_the_periods)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=60s", CONFIG, 201);
    for (int i = 0; i < 6; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"counts\":[9,9,9,9],\"timestamp\":%d}", 946684800 + 60 * i);
        monitors_expect(&service, "POST /monitors/g/m/observations", body, 200);
    }
    json_t *got = monitors_get(&service,
                               COMPARE "?from=2000-01-01T00:03:30Z&against_from=2000-01-01"
                                       "&against_to=2000-01-01T00:03:00Z",
                               NULL, 200);
    expect_at(got, "from", "\"2000-01-01T00:04:00Z\"");
    expect_at(got, "to", "\"2000-01-01T00:06:00Z\"");
    expect_at(got, "windows", "2");
    expect_at(got, "n", "72");
    expect_at(got, "n_reference", "108");
    expect_at(got, "window", "null");
    expect_at(got, "against",
              "{\"from\":\"2000-01-01T00:00:00Z\",\"to\":\"2000-01-01T00:03:00Z\",\"windows\":3}");
    json_decref(got);
    got = monitors_get(&service, COMPARE, NULL, 200);
    expect_at(got, "against", "null");
    json_decref(got);
    monitors_end(&service);
}

Test(monitors_compare, adds_up_texts_that_are_no_labels)
{
    static const char *const bodies[] = {
        "{\"values\":[\"a\",\"x\",\"y\"],\"timestamp\":100}",
        "{\"values\":[\"y\",\"y\",\"b\"],\"timestamp\":200}",
        "{\"values\":[\"z\",\"z\",\"z\",\"z\"],\"timestamp\":300}"};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":{\"counts\":[9,9]}}", 201);
    for (size_t i = 0; i < COUNT(bodies); i++)
        monitors_expect(&service, "POST /monitors/g/m/observations", bodies[i], 200);
    json_t *got = monitors_get(&service, COMPARE "?to=300", NULL, 200);
    expect_at(got, "unseen", "[{\"count\":3,\"label\":\"y\"},{\"count\":1,\"label\":\"x\"}]");
    json_decref(got);
    monitors_end(&service);
}

Test(monitors_compare, refuses_periods_without_windows)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=60s", CONFIG, 201);
    monitors_refused(&service, COMPARE, NULL, "windows_missing ~from and to");
    monitors_expect(&service, "POST /monitors/g/m/observations",
                    "{\"counts\":[9,9,9,9],\"timestamp\":1000}", 200);
    monitors_refused(&service, COMPARE "?from=2000", NULL, "windows_missing ~from and to");
    monitors_refused(&service, COMPARE "?to=960", NULL, "windows_missing");
    monitors_refused(&service, COMPARE "?from=961&to=960", NULL, "windows_missing");
    monitors_refused(&service, COMPARE "?against_from=2000", NULL,
                     "windows_missing ~against_from and against_to");
    monitors_refused(&service, COMPARE "?against_to=x", NULL, "timestamp_invalid ?against_to");
    monitors_refused(&service, COMPARE "?from=2026-01-01T00:00:00", NULL,
                     "timestamp_invalid ?from ~2026-01-01T00:00:00Z");
    monitors_refused(&service, COMPARE "?until=1", NULL, "option_unknown ?until");
    monitors_refused(&service, "GET /monitors/g/none/compare", NULL, "monitor_not_found");
    monitors_end(&service);
}

/* 250,000 counts are 249 windows of 1,003 bins, in two periods half of them. */
Test(monitors_compare, refuses_more_than_a_quarter_of_a_million_counts)
{
    enum { WIDE = 1000, MANY = 125 };
    struct api_service service = monitors_new(10);
    struct api_buffer config = {0};
    char body[100];
    api_append_text(&config, "{\"bins\":{\"edges\":[0");
    for (size_t i = 1; i <= WIDE; i++)
        api_append_format(&config, ",%zu", i);
    api_append_text(&config, "]},\"reference\":{\"values\":[1]}}");
    api_append(&config, "", 1);
    monitors_expect(&service, "PUT /monitors/g/m", config.data, 201);
    for (int i = 0; i < MANY; i++) {
        snprintf(body, sizeof body, "{\"values\":[%d],\"timestamp\":%d}", i, BEGIN + i);
        monitors_expect(&service, "POST /monitors/g/m/observations", body, 200);
    }
    monitors_expect(&service, COMPARE, NULL, 200);
    monitors_refused(&service, COMPARE "?against_from=0", NULL, "option_invalid ?from ~124");
    snprintf(body, sizeof body, COMPARE "?to=%d&against_from=0", BEGIN + 1);
    monitors_refused(&service, body, NULL, "option_invalid ?against_from ~124");
    snprintf(body, sizeof body, COMPARE "?to=%d&against_from=%d", BEGIN + 1, BEGIN + 1);
    monitors_expect(&service, body, NULL, 200);
    api_buffer_free(&config);
    monitors_end(&service);
}

/* Windows of a former revision do not count. */
Test(monitors_compare, is_of_this_revision)
{
    struct api_service service = make("window=60s", 6);
    monitors_expect(&service, "PUT /monitors/g/m?window=60s",
                    "{" EDGES ",\"reference\":{\"counts\":[5,4,3,2]}}", 200);
    monitors_refused(&service, COMPARE, NULL, "windows_missing");
    monitors_end(&service);
}
