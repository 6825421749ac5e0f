/* Windows in which nothing has moved: labels of Zipf's law, of few and of many values, seasons whose volume changes, numbers of rows,
 * ids, and ends of months. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OBSERVE "POST /monitors/g/m/observations"

enum { MAX_LABELS = 20000, BEGIN = 1600000000 / 3600 * 3600 };

static unsigned long long seed;

/* True for a verdict that is an alarm. */
static bool is_alarm(const json_t *result)
{
    const char *verdict = text_at(result, "verdict");
    return strcmp(verdict, "warning") == 0 || strcmp(verdict, "critical") == 0;
}

/* ---- Labels */

/* world: labels with weights by Zipf's law, and rows of a reference and of each window. */
struct world {
    size_t labels;
    double exponent;
    size_t rows, n;
};

static void append_labels(const double *ends, size_t labels, size_t n, struct api_buffer *body)
{
    for (size_t i = 0; i < n; i++) {
        double x = uniform(&seed) * ends[labels - 1];
        size_t low = 0, high = labels - 1;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (ends[middle] > x)
                high = middle;
            else
                low = middle + 1;
        }
        api_append_format(body, "v%zu\n", low);
    }
    api_append(body, "", 1);
}

/* Alarms in windows of a world. */
static size_t alarms_of(const struct world *world, size_t windows)
{
    double *ends = calloc(world->labels, sizeof *ends), sum = 0;
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    size_t alarms = 0;
    for (size_t i = 0; i < world->labels; i++)
        ends[i] = sum += pow((double)(i + 1), -world->exponent);
    api_append_text(&body, "m\n");
    append_labels(ends, world->labels, world->rows, &body);
    monitors_expect(&service, "PUT /monitors/g/m?ratio=2,4", body.data, 201);
    for (size_t i = 0; i < windows; i++) {
        body.size = 0;
        api_append_text(&body, "m\n");
        append_labels(ends, world->labels, world->n, &body);
        json_t *result = monitors_get(&service, OBSERVE, body.data, 200);
        alarms += is_alarm(result);
        json_decref(result);
    }
    api_buffer_free(&body);
    monitors_end(&service);
    free(ends);
    return alarms;
}

/* Chance alone gives as many as one in ten thousand windows. */
Test(monitors_false_alarms, labels_of_few_and_many_values_have_none)
{
    static const struct world worlds[] = {
        {10, 0, 200, 100},     {50, 0, 500, 500},       {100, 1, 1000, 1000},
        {300, 0, 1000, 200},   {300, 0, 5000, 1000},    {500, 1, 200, 100},
        {500, 1, 5000, 500},   {1000, 0, 5000, 300},    {2000, 1, 500, 500},
        {2000, 1, 20000, 500}, {10000, 0.5, 1000, 200}, {20000, 1.1, 5000, 200}};
    size_t alarms = 0, windows = SOME_OF(84);
    for (size_t i = 0; i < COUNT(worlds); i++) {
        seed = i + 1;
        size_t n = alarms_of(&worlds[i], windows);
        cr_expect_leq(n, 2, "%zu labels: %zu", worlds[i].labels, n);
        alarms += n;
    }
    cr_expect_leq(alarms, 2, "%zu alarms in %zu windows", alarms, windows * COUNT(worlds));
}

/* ---- Seasons */

/* Values of an hour: as many as a kind of traffic has. */
static double volume_of(size_t kind, size_t hour)
{
    double normal = sqrt(-2 * log(uniform(&seed) + 1e-300)) * cos(2 * M_PI * uniform(&seed));
    return kind == 0   ? (hour % 24 >= 8 && hour % 24 < 20 ? 400 : 40)
           : kind == 1 ? (hour / 24 % 7 < 5 ? 300 : 50)
                       : floor(exp(5 + 0.8 * normal)) + 1;
}

/* Counts of values whose mean goes up and down with the day, and has `shift`. */
static void append_hour(size_t kind, size_t hour, double shift, struct api_buffer *body)
{
    enum { BINS = 10 };
    size_t counts[BINS] = {0};
    for (double i = 0, n = volume_of(kind, hour); i < n; i++) {
        double x = sqrt(-2 * log(uniform(&seed) + 1e-300)) * cos(2 * M_PI * uniform(&seed));
        x += 1.5 * sin((double)hour / 24 * 2 * M_PI) + shift;
        counts[(size_t)fmin(BINS - 1, fmax(0, floor(x + 5)))]++;
    }
    api_append_text(body, "{\"counts\":[");
    for (size_t i = 0; i < BINS; i++)
        api_append_format(body, i ? ",%zu" : "%zu", counts[i]);
    api_append_format(body, "],\"timestamp\":%zu}", BEGIN + 3600 * hour);
    api_append(body, "", 1);
}

/* Traffic alone changes, until the last day: 0.5 standard deviations are seen within twelve hours. */
Test(monitors_false_alarms, seasons_of_any_traffic_have_none)
{
    enum { DAYS = 14, BROKEN = 24 * DAYS, HOURS = BROKEN + 12 };
    for (size_t kind = 0; kind < 3; kind++) {
        struct api_service service = monitors_new(10);
        size_t before = 0, after = 0;
        seed = kind + 5;
        monitors_expect(&service, "PUT /monitors/g/m?window=3600s&compare=previous:7@24h",
                        "{\"bins\":{\"edges\":[-5,-4,-3,-2,-1,0,1,2,3,4,5]}}", 201);
        for (size_t hour = 0; hour < HOURS; hour++) {
            struct api_buffer body = {0};
            append_hour(kind, hour, hour >= BROKEN ? 0.5 : 0, &body);
            json_t *result = monitors_get(&service, OBSERVE, body.data, 200);
            *(hour < BROKEN ? &before : &after) += is_alarm(result);
            json_decref(result);
            api_buffer_free(&body);
        }
        cr_expect_eq(before, 0, "traffic %zu: %zu alarms", kind, before);
        cr_expect_gt(after, 0, "traffic %zu", kind);
        monitors_end(&service);
    }
}

/* ---- Numbers of rows */

static double normal(void)
{
    return sqrt(-2 * log(uniform(&seed) + 1e-300)) * cos(2 * M_PI * uniform(&seed));
}

/* Sends an hour with so many rows of two labels, and log-normal noise; true if it is an alarm. */
static bool send_rows(const struct api_service *service, size_t hour, double rows)
{
    char body[100];
    double n = floor(rows * exp(0.1 * normal() + normal() / sqrt(rows)));
    snprintf(body, sizeof body, "{\"counts\":[%.0f,%.0f],\"timestamp\":%zu}", floor(n / 2),
             n - floor(n / 2), BEGIN + 3600 * hour);
    json_t *result = monitors_get(service, OBSERVE, body, 200);
    bool alarm = is_alarm(result);
    json_decref(result);
    return alarm;
}

/* Days and nights, and weekends of a third. Once five weeks are known, chance gives less than one in a thousand windows, and half of
 * the rows are seen in their first window. */
Test(monitors_false_alarms, numbers_of_rows_have_none)
{
    enum { KNOWN = 5 * 168, HOURS = 12 * 168 };
    static const char *const settings[] = {"&compare=previous:8@1w&pool=1", ""};
    for (size_t i = 0; i < COUNT(settings); i++) {
        struct api_service service = monitors_new(10);
        char request[200];
        size_t alarms = 0;
        seed = i + 9;
        snprintf(request, sizeof request,
                 "PUT /monitors/g/m?window=1h&volume=1.5,3&retention_days=900%s", settings[i]);
        monitors_expect(&service, request,
                        "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":{\"counts\":[5,5]}}",
                        201);
        for (size_t hour = 0; hour < HOURS; hour++) {
            bool is_day = hour % 24 >= 8 && hour % 24 < 20, is_weekend = hour / 24 % 7 >= 5;
            double rows = (is_day ? 9000 : 900) / (is_weekend ? 3. : 1);
            alarms += send_rows(&service, hour, rows) && hour >= KNOWN;
        }
        cr_expect_leq(alarms, 2, "%s: %zu", settings[i], alarms);
        cr_expect(send_rows(&service, HOURS, 450), "%s", settings[i]);
        monitors_end(&service);
    }
}

/* ---- Ids */

/* A table of ids of which some are missing. */
static void append_ids(size_t n, double missing, struct api_buffer *body)
{
    body->size = 0;
    api_append_text(body, "m,n\n");
    for (size_t i = 0; i < n; i++) {
        if (uniform(&seed) >= missing)
            api_append_format(body, "u%.0f", floor(uniform(&seed) * 1e12));
        api_append_format(body, ",%zu\n", i % 7);
    }
    api_append(body, "", 1);
}

/* Ids are new in each window: only missing ones count. */
Test(monitors_false_alarms, presence_of_ids_has_none)
{
    static const double missing[] = {0, 0.001, 0.02, 0.3};
    for (size_t i = 0; i < COUNT(missing); i++) {
        struct api_service service = monitors_new(10);
        struct api_buffer body = {0};
        size_t alarms = 0;
        seed = i + 31;
        append_ids(5000, missing[i], &body);
        monitors_expect(&service, "PUT /monitors/g", body.data, 201);
        for (size_t window = 0; window < SOME_OF(100); window++) {
            append_ids(500, missing[i], &body);
            json_t *result =
                monitors_get(&service, "POST /monitors/g/observations", body.data, 200);
            const json_t *ids = at(result, "monitors.0");
            alarms += is_alarm(ids);
            json_decref(result);
        }
        cr_expect_leq(alarms, 1, "%g: %zu", missing[i], alarms);
        append_ids(500, missing[i] + 0.5, &body);
        json_t *result = monitors_get(&service, "POST /monitors/g/observations", body.data, 200);
        cr_expect_str_eq(text_at(result, "monitors.0.name"), "m");
        cr_expect_str_eq(text_at(result, "monitors.0.verdict"), "critical", "%g", missing[i]);
        json_decref(result);
        api_buffer_free(&body);
        monitors_end(&service);
    }
}

/* ---- Months */

/* Last days of months differ, always in the same way, and any other day varies by chance. */
Test(monitors_false_alarms, ends_of_months_have_none)
{
    enum { DAYS = 900, KNOWN = 62 };
    static const double shares[2][2] = {{0.6, 0.9}, {0.2, 0.5}}; /* of a day, of a last one */
    struct api_service service = monitors_new(10);
    size_t alarms = 0;
    seed = 77;
    monitors_expect(&service,
                    "PUT /monitors/g/m?window=1d&compare=previous:3@month&retention_days=36500",
                    "{\"bins\":{\"labels\":[\"a\",\"b\",\"c\"]}}", 201);
    for (size_t day = 0; day < DAYS; day++) {
        struct tm tm;
        time_t next = BEGIN + 86400 * (time_t)(day + 1), time = BEGIN + 86400 * (time_t)day;
        const double *share = shares[gmtime_r(&next, &tm)->tm_mday == 1];
        size_t counts[3] = {0};
        char body[100];
        for (double i = 0, n = 200 * exp(0.5 * normal()); i < n; i++) {
            double x = uniform(&seed);
            counts[(x > share[0]) + (x > share[1])]++;
        }
        snprintf(body, sizeof body, "{\"counts\":[%zu,%zu,%zu],\"timestamp\":%jd}", counts[0],
                 counts[1], counts[2], (intmax_t)time);
        json_t *result = monitors_get(&service, OBSERVE, body, 200);
        alarms += is_alarm(result) && day >= KNOWN;
        json_decref(result);
    }
    cr_expect_leq(alarms, 1, "%zu", alarms);
    monitors_end(&service);
}
