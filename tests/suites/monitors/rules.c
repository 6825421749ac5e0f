/* Verdicts and states beside those that scipy finds by the rules, window by window: streams of tests/tools/golden/rules.py,
 * which are drawn here as they are there. Of every third stream the store is a file, and opened again now and then. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Weights beyond the cells: labels that the reference never has. */
enum { NEW = 3, MAX_CELLS = 3000 + NEW, BEGIN = 1600000020 / 60 * 60 };

static const char *const levels[] = {"ok", "warning", "critical"};

/* stream: a line of the file. */
struct stream {
    const json_t *json;
    struct api_service service;
    bool labelled;
    long cells, period, seed, missing, windows;
    uint64_t ends[MAX_CELLS];
};

static long member(const struct stream *s, const char *name)
{
    return (long)json_integer_value(json_object_get(s->json, name));
}

static uint64_t mix(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t power(uint64_t base, long exponent)
{
    return exponent > 0 ? base * power(base, exponent - 1) : 1;
}

static uint64_t sum_of(const uint64_t *weights, long n)
{
    uint64_t sum = 0;
    for (long i = 0; i < n; i++)
        sum += weights[i];
    return sum;
}

/* Has the weights drift. */
static void change(const struct stream *s, uint64_t *w)
{
    const char *drift = text_at(s->json, "drift");
    long k = s->cells, other = k > 10 ? 9 : k - 1, percent = member(s, "percent");
    uint64_t total = sum_of(w, k), first = w[0];
    if (strcmp(drift, "swap") == 0) {
        w[0] = w[other];
        w[other] = first;
    } else if (strcmp(drift, "rare") == 0) {
        w[k - 1] += total / 9;
    } else if (strcmp(drift, "new") == 0) {
        w[k] = total * (uint64_t)percent / 100;
    } else if (strcmp(drift, "three") == 0) {
        w[k] = w[k + 1] = w[k + 2] = total * (uint64_t)percent / 300;
    } else if (strcmp(drift, "double") == 0) {
        w[k - 1] *= 2;
    } else if (strcmp(drift, "turn") == 0) {
        for (long i = 0; i < k / 2; i++) {
            uint64_t weight = w[i];
            w[i] = w[k - 1 - i];
            w[k - 1 - i] = weight;
        }
    } else if (strcmp(drift, "tilt") == 0) {
        for (long i = 0; i < k / 2; i++)
            w[i] = w[i] * (uint64_t)(100 + percent) / 100;
    }
}

/* Sets the ends of the weights of window t, or of the reference, -1. */
static void weigh(struct stream *s, long t)
{
    uint64_t *w = s->ends;
    memset(w, 0, sizeof s->ends);
    for (long i = 0; i < s->cells; i++)
        w[i] = s->period > 0 && t >= 0 ? 1000000000 / (uint64_t)(1 + (i + t % s->period) % s->cells)
                                       : 1000000000 / power((uint64_t)i + 1, member(s, "exponent"));
    if (member(s, "rarest"))
        w[s->cells - 1] = sum_of(w, s->cells) / (uint64_t)member(s, "rarest");
    if (t >= member(s, "from") && t < member(s, "to"))
        change(s, w);
    for (long i = 1; i < MAX_CELLS; i++)
        w[i] += w[i - 1];
}

/* Cell of a value; -1 if it is missing. */
static long draw(const struct stream *s, long part, long i)
{
    uint64_t z = mix(((uint64_t)s->seed << 40) + ((uint64_t)part << 24) + (uint64_t)i);
    long n = s->labelled ? s->cells + NEW : s->cells, low = 0, high = n - 1;
    uint64_t x = z % s->ends[n - 1];
    while (low < high) {
        long middle = (low + high) / 2;
        if (s->ends[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return (long)((z >> 40) % 1000) < s->missing ? -1 : low;
}

/* Appends the values of a part of a stream as labels, or their counts. */
static void append_part(const struct stream *s, long part, long n, struct api_buffer *out)
{
    long counts[MAX_CELLS] = {0};
    api_append_text(out, s->labelled ? "{\"values\":[" : "{\"counts\":[");
    for (long i = 0; i < n; i++) {
        long cell = draw(s, part, i);
        if (!s->labelled)
            counts[cell]++;
        else if (cell < 0)
            api_append_text(out, i ? ",null" : "null");
        else
            api_append_format(out, i ? ",\"L%05ld\"" : "\"L%05ld\"", cell);
    }
    for (long i = 0; !s->labelled && i < s->cells; i++)
        api_append_format(out, i ? ",%ld" : "%ld", counts[i]);
    api_append_text(out, "]");
}

static void append_settings(const struct stream *s, struct api_buffer *line)
{
    const json_t *ratio = json_object_get(s->json, "ratio");
    api_append_format(line, "PUT /monitors/g/m?window=60s&pool=%ld&clear_after=%ld",
                      member(s, "pool"), member(s, "clear_after"));
    if (s->period > 0)
        api_append_format(line, "&compare=previous:%ld@%lds", member(s, "previous"),
                          60 * s->period);
    if (json_is_array(ratio))
        api_append_format(line, "&ratio=%g,%g", number_at(ratio, "0"), number_at(ratio, "1"));
    api_append(line, "", 1);
}

static void put(struct stream *s)
{
    struct api_buffer body = {0}, line = {0};
    api_append_text(&body, "{");
    for (long i = 0; !s->labelled && i <= s->cells; i++)
        api_append_format(&body, i ? ",%ld" : "\"bins\":{\"edges\":[%ld", i);
    api_append_text(&body, s->labelled ? "" : "]}");
    weigh(s, -1);
    if (s->period == 0) {
        api_append_text(&body, s->labelled ? "\"reference\":" : ",\"reference\":");
        append_part(s, 0, member(s, "rows"), &body);
        api_append_text(&body, "}");
    }
    api_append(&body, "}", 2);
    append_settings(s, &line);
    json_t *config = monitors_get(&s->service, line.data, body.data, 201);
    if (s->labelled) {
        double choosing = number_at(config, "reference.choosing");
        cr_expect_eq(json_array_size(at(config, "bins.labels")), (size_t)member(s, "labels"));
        cr_expect_eq(isnan(choosing) ? 0 : choosing, (double)member(s, "choosing"));
        cr_expect_eq(number_at(config, "reference.other"), (double)member(s, "other"));
        cr_expect_eq(number_at(config, "reference.missing"), (double)member(s, "absent"));
    }
    json_decref(config);
    api_buffer_free(&body);
    api_buffer_free(&line);
}

/* Expects a number within a relative 1e-9; null of no verdict. */
static void expect_number(const struct stream *s, long t, const json_t *result, const char *path,
                          const json_t *expected)
{
    double got = number_at(result, path), due = json_number_value(expected);
    cr_expect(json_is_null(expected) ? isnan(got) : fabs(got - due) <= 1e-9 * fabs(due) + 1e-13,
              "seed %ld, window %ld: %s is %.17g and not %.17g", s->seed, t, path, got, due);
}

/* Name of the bin of a cell: labels, missing, other; or intervals, and what is joined of them. */
static void expect_cell(const struct stream *s, long t, const json_t *result, const json_t *cell)
{
    long i = (long)json_integer_value(cell), labels = member(s, "labels");
    const char *got = text_at(result, "pooled.ratio.bin"), *due = "other";
    char name[60];
    if (json_is_null(cell)) {
        due = "";
    } else if (s->labelled && i < labels) {
        snprintf(name, sizeof name, "bins.%ld.name", i);
        due = text_at(result, name);
    } else if (s->labelled && i == labels) {
        due = "missing";
    } else if (!s->labelled && i < s->cells) {
        snprintf(name, sizeof name, "[%ld, %ld%s", i, i + 1, i == s->cells - 1 ? "]" : ")");
        due = name;
    }
    cr_expect_str_eq(got, due, "seed %ld, window %ld: %s and not %s", s->seed, t, got, due);
}

static void observe(struct stream *s, long t)
{
    static const char *const numbers[] = {"pooled.windows", "pooled.kl", "pooled.p_value",
                                          "pooled.bins"};
    const json_t *due = json_array_get(json_object_get(s->json, "expected"), (size_t)t);
    const json_t *verdict = json_array_get(due, 0);
    struct api_buffer body = {0};
    long n = member(s, "n");
    if (json_is_true(json_object_get(s->json, "uneven")))
        n = 1 + (long)(mix(((uint64_t)s->seed << 40) + (uint64_t)t + 1) % (uint64_t)(2 * n));
    weigh(s, t);
    append_part(s, t + 1, n, &body);
    api_append_format(&body, ",\"timestamp\":%ld}", BEGIN + 60 * t);
    api_append(&body, "", 1);
    json_t *result = monitors_get(&s->service, "POST /monitors/g/m/observations", body.data, 200);
    cr_expect_str_eq(text_at(result, "verdict"),
                     json_is_null(verdict) ? "insufficient_data"
                                           : levels[json_integer_value(verdict)],
                     "seed %ld, window %ld: %s", s->seed, t, text_at(result, "verdict"));
    for (size_t i = 0; i < COUNT(numbers); i++)
        expect_number(s, t, result, numbers[i], json_array_get(due, i + 1));
    const char *state = text_at(result, "state");
    cr_expect_str_eq(strcmp(state, "insufficient_data") ? state : "ok",
                     levels[json_integer_value(json_array_get(due, 5))], "seed %ld, window %ld: %s",
                     s->seed, t, state);
    expect_cell(s, t, result, json_array_get(due, 6));
    expect_number(s, t, result, "pooled.ratio.ratio", json_array_get(due, 7));
    json_decref(result);
    api_buffer_free(&body);
}

static void run(const json_t *json)
{
    struct stream *s = calloc(1, sizeof *s);
    s->json = json;
    s->labelled = strcmp(text_at(json, "kind"), "labels") == 0;
    s->cells = member(s, "cells");
    s->period = member(s, "period");
    s->seed = member(s, "seed");
    s->missing = member(s, "missing");
    bool in_file = s->seed % 3 == 0;
    char folder[] = "/tmp/kldiv-rules-XXXXXX", path[60], location[80];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(location, sizeof location, "sqlite:%s", path);
    s->service = in_file ? monitors_new_at(10, location) : monitors_new(10);
    put(s);
    for (long t = 0; t < member(s, "windows"); t++) {
        observe(s, t);
        if (in_file && t % 4 == 3)
            monitors_restart(&s->service, 10);
    }
    monitors_end(&s->service);
    unlink(path);
    rmdir(folder);
    free(s);
}

Test(monitors_rules, give_what_scipy_gives_in_every_window)
{
    FILE *file = fopen("tests/tools/golden/rules.jsonl", "r");
    const size_t each = 100 / SOME_OF(100);
    size_t n = 0;
    cr_assert(file);
    for (json_t *json; (json = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)); n++) {
        if (n % each == 0)
            run(json);
        json_decref(json);
    }
    fclose(file);
    cr_expect_gt(n, 90);
}
