/* Counts of the bins of windows in lists: ?counts=true. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST "GET /monitors/g/m/windows"
#define OBSERVE "POST /monitors/g/m/observations"

enum { BINS = 4, COUNTS = BINS + 3, WINDOWS = 40, REQUESTS = 150, START = 1600000020 };

/* The bin of a value among the edges 0, 1 ... 4, plainly: below, [0, 1) ... [3, 4], above, missing. */
static size_t bin_of(double value)
{
    if (isnan(value))
        return COUNTS - 1;
    if (value < 0)
        return 0;
    for (size_t i = 1; i < BINS; i++)
        if (value < (double)i)
            return i;
    return value <= BINS ? BINS : BINS + 1;
}

/* Observes values in windows of a minute, in any order, and counts them. */
static void observe(const struct api_service *service, size_t counts[WINDOWS][COUNTS])
{
    unsigned long long seed = 3;
    for (size_t i = 0; i < REQUESTS; i++) {
        char body[1000];
        size_t window = (size_t)(uniform(&seed) * WINDOWS);
        int used =
            snprintf(body, sizeof body, "{\"timestamp\":%zu,\"values\":[null", START + 60 * window);
        counts[window][COUNTS - 1]++;
        for (int j = (int)(uniform(&seed) * 20); j > 0; j--) {
            double value = floor(uniform(&seed) * 28) / 4 - 1; /* edges, too */
            counts[window][bin_of(value)]++;
            used += snprintf(body + used, sizeof body - (size_t)used, ",%.2f", value);
        }
        snprintf(body + used, sizeof body - (size_t)used, "]}");
        monitors_expect(service, OBSERVE, body, 200);
    }
}

/* The number of the window that starts then. */
static size_t window_of(const json_t *result)
{
    int hour, minute;
    cr_assert_eq(sscanf(text_at(result, "window.start"), "2020-09-13T%d:%d", &hour, &minute), 2);
    return (size_t)(60 * hour + minute - (60 * 12 + 27));
}

Test(monitors_counts, are_those_of_the_values_in_the_order_of_the_bins)
{
    struct api_service service = monitors_new(10);
    size_t counts[WINDOWS][COUNTS] = {{0}}, i;
    json_t *result;
    monitors_expect(&service, "PUT /monitors/g/m?window=60s",
                    "{\"bins\":{\"edges\":[0,1,2,3,4]},\"reference\":{\"counts\":[9,9,9,9]}}", 201);
    observe(&service, counts);
    json_t *list = monitors_get(&service, LIST "?counts=true&limit=1000", NULL, 200);
    json_t *plain = monitors_get(&service, LIST "?counts=false&limit=1000", NULL, 200);
    cr_assert_gt(json_array_size(at(list, "windows")), WINDOWS / 2);
    json_array_foreach(at(list, "windows"), i, result)
    {
        const json_t *got = at(result, "counts");
        cr_assert_eq(json_array_size(got), COUNTS);
        for (size_t bin = 0; bin < COUNTS; bin++)
            cr_expect_eq(json_integer_value(json_array_get(got, bin)),
                         (json_int_t)counts[window_of(result)][bin]);
        json_object_del(result, "counts");
    }
    cr_expect(json_equal(list, plain));
    json_decref(list);
    json_decref(plain);
    monitors_end(&service);
}

Test(monitors_counts, of_labels_end_with_others_and_missing)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":{\"counts\":[9,9]}}", 201);
    monitors_expect(&service, OBSERVE, "{\"values\":[\"b\",\"x\",\"b\",null,\"a\",\"b\",\"y\"]}",
                    200);
    json_t *list = monitors_get(&service, LIST "?counts=true", NULL, 200);
    expect_at(list, "windows.0.counts", "[1,3,2,1]");
    json_decref(list);
    monitors_end(&service);
}

Test(monitors_counts, of_former_revisions_are_null)
{
    static const char *const configs[] = {
        "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}",
        "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,6]}}"};
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(configs); i++) {
        monitors_expect(&service, "PUT /monitors/g/m", configs[i], i ? 200 : 201);
        monitors_expect(&service, OBSERVE, "{\"counts\":[2,3],\"missing\":1}", 200);
    }
    json_t *list = monitors_get(&service, LIST "?counts=true", NULL, 200);
    expect_at(list, "windows.0.counts", "[0,2,3,0,1]");
    expect_at(list, "windows.1.counts", "null");
    json_decref(list);
    monitors_end(&service);
}

/* Makes windows of as many bins as there may be, of one count each. */
static void make_wide(const struct api_service *service, size_t n)
{
    enum { WIDE = 1000 };
    struct api_buffer config = {0};
    char body[100];
    api_append_text(&config, "{\"bins\":{\"edges\":[0");
    for (size_t i = 1; i <= WIDE; i++)
        api_append_format(&config, ",%zu", i);
    api_append_text(&config, "]},\"reference\":{\"values\":[1]}}");
    api_append(&config, "", 1);
    monitors_expect(service, "PUT /monitors/g/m", config.data, 201);
    for (size_t i = 0; i < n; i++) {
        snprintf(body, sizeof body, "{\"values\":[%zu.5],\"timestamp\":%zu}", i, START + i);
        monitors_expect(service, OBSERVE, body, 200);
    }
    api_buffer_free(&config);
}

Test(monitors_counts, a_page_holds_a_hundred_thousand)
{
    enum { MANY = 220, MAX_PAGE = 100000 };
    struct api_service service = monitors_new(10);
    char line[200] = LIST "?counts=true&limit=1000";
    size_t base = strlen(line), seen = 0, pages = 0;
    make_wide(&service, MANY);
    do {
        json_t *list = monitors_get(&service, line, NULL, 200), *result;
        size_t n = 0, i;
        json_array_foreach(at(list, "windows"), i, result)
        {
            const json_t *counts = at(result, "counts");
            n += json_array_size(counts);
            seen++; /* newest first: its only value is in bin MANY - seen, after the one below */
            cr_expect_eq(json_integer_value(json_array_get(counts, MANY - seen + 1)), 1);
        }
        cr_expect_leq(n, MAX_PAGE);
        const char *next = text_at(list, "next");
        snprintf(line + base, sizeof line - base, "%s%s", *next ? "&cursor=" : "", next);
        json_decref(list);
        cr_assert_lt(++pages, 10);
    } while (line[base]);
    cr_expect_eq(seen, MANY);
    cr_expect_eq(pages, 3);
    monitors_end(&service);
}

Test(monitors_counts, are_asked_for_by_true_or_false)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[5]}}", 201);
    monitors_refused(&service, LIST "?counts=1x", NULL, "option_invalid ?counts");
    monitors_expect(&service, LIST "?counts=false", NULL, 200);
    monitors_end(&service);
}
