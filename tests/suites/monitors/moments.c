/* Mean and standard deviation of windows and references, beside those in extended precision; the same digits however values
 * come in requests. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBSERVE "POST /monitors/g/m/observations"

enum { MAX = 3000 };

static unsigned long long seed;

static size_t pick(size_t n) { return uniform_below(&seed, n); }

/* A value of a world: small ones, times in seconds, heavy tails, whole ones. */
static double draw(size_t world)
{
    double u = uniform(&seed), v = uniform(&seed);
    double normal = sqrt(-2 * log(u + 1e-300)) * cos(2 * M_PI * v);
    return world == 0   ? normal
           : world == 1 ? 1.7e9 + 30 * normal
           : world == 2 ? exp(5 * normal)
                        : floor(1000 * u);
}

/* Appends values, some of which are missing or infinite. */
static void append_values(struct api_buffer *to, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        api_append_text(to, i ? "," : "[");
        if (isnan(values[i]))
            api_append_text(to, "null");
        else if (isinf(values[i]))
            api_append_text(to, values[i] > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        else
            api_append_format(to, "%.17g", values[i]);
    }
    api_append_text(to, n ? "]" : "[]");
}

static void expect_moments(const json_t *json, const char *mean, const char *sd,
                           const double *values, size_t n)
{
    long double sum = 0, squares = 0, count = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            sum += values[i], count++;
    long double middle = sum / count;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            squares += (values[i] - middle) * (values[i] - middle);
    double due = (double)middle, due_sd = (double)sqrtl(squares / count);
    double got = number_at(json, mean), got_sd = number_at(json, sd);
    cr_expect(fabs(got - due) <= 1e-13 * (fabs(due) + due_sd), "%.17g and not %.17g", got, due);
    cr_expect(fabs(got_sd - due_sd) <= 1e-9 * due_sd, "%.17g and not %.17g", got_sd, due_sd);
}

static json_t *post(const struct api_service *service, const double *values, size_t n)
{
    struct api_buffer body = {0};
    api_append_text(&body, "{\"timestamp\":1600000000,\"values\":");
    append_values(&body, values, n);
    api_append(&body, "}", 2);
    json_t *result = monitors_get(service, OBSERVE, body.data, 200);
    api_buffer_free(&body);
    return result;
}

/* Posts values in parts, the last of which gives the result; now and then the store is opened again. */
static json_t *post_parts(struct api_service *service, const double *values, size_t n)
{
    json_t *result = NULL;
    for (size_t i = 0, size; i < n; i += size) {
        size = 1 + pick(n - i < 700 ? n - i : 700);
        json_decref(result);
        result = post(service, values + i, size);
        if (pick(4) == 0)
            monitors_restart(service, 10);
    }
    return result;
}

Test(monitors_moments, are_those_of_the_values_however_they_come)
{
    char folder[] = "/tmp/kldiv-moments-XXXXXX", path[60], location[80];
    double *values = calloc(2 * MAX, sizeof *values), *reference = values + MAX;
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(location, sizeof location, "sqlite:%s", path);
    for (seed = 0; seed < 24; seed++) {
        unsigned long long first = seed;
        struct api_service service = monitors_new_at(10, location);
        struct api_buffer body = {0};
        size_t world = pick(4), n = 200 + pick(MAX - 200), n_reference = 100 + pick(MAX - 100);
        for (size_t i = 0; i < 2 * MAX; i++)
            values[i] = pick(50) ? draw(world) : pick(2) ? (double)NAN : (double)INFINITY;
        api_append_text(&body, "{\"reference\":{\"values\":");
        append_values(&body, reference, n_reference);
        api_append(&body, "}}", 3);
        json_t *config = monitors_get(&service, "PUT /monitors/g/m?window=3600s&method=quantile",
                                      body.data, 201);
        expect_moments(config, "reference.mean", "reference.sd", reference, n_reference);
        json_t *one = post(&service, values, n);
        expect_moments(one, "mean", "sd", values, n);
        expect_moments(one, "mean_reference", "sd_reference", reference, n_reference);
        char *text = json_dumps(config, 0);
        monitors_expect(&service, "DELETE /monitors/g/m", NULL, 204);
        monitors_expect(&service, "PUT /monitors/g/m", text, 201);
        json_t *parts = post_parts(&service, values, n);
        cr_expect_eq(number_at(parts, "mean"), number_at(one, "mean"), "%llu", first);
        cr_expect_eq(number_at(parts, "sd"), number_at(one, "sd"), "%llu", first);
        cr_expect_eq(number_at(parts, "mean_reference"), number_at(one, "mean_reference"));
        json_decref(parts);
        parts = monitors_get(&service, "GET /monitors/g/m/windows/latest", NULL, 200);
        cr_expect_eq(number_at(parts, "mean"), number_at(one, "mean"));
        json_decref(parts);
        json_decref(one);
        json_decref(config);
        free(text);
        api_buffer_free(&body);
        monitors_end(&service);
        unlink(path);
        seed = first;
    }
    free(values);
    rmdir(folder);
}

/* Counts have no mean, nor has a window with some of them; labels have none at all. */
Test(monitors_moments, are_not_known_of_counts)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?window=3600s",
                    "{\"bins\":{\"edges\":[0,5,10]},\"reference\":{\"counts\":[5,5]}}", 201);
    json_t *result = post(&service, (double[]){1, 2, 6}, 3);
    expect_at(result, "mean", "3");
    expect_at(result, "mean_reference", "null");
    json_decref(result);
    result = monitors_get(&service, OBSERVE, "{\"timestamp\":1600000000,\"counts\":[1,1]}", 200);
    expect_at(result, "mean", "null");
    expect_at(result, "sd", "null");
    json_decref(result);
    result = post(&service, (double[]){1, 2, 6}, 3);
    expect_at(result, "mean", "null");
    json_decref(result);
    result = monitors_get(&service, "POST /monitors/g/m/evaluate", "{\"values\":[1,3,null]}", 200);
    expect_at(result, "mean", "2");
    expect_at(result, "sd", "1");
    json_decref(result);
    monitors_refused(&service, "PUT /monitors/g/n",
                     "{\"bins\":{\"edges\":[0,5]},\"reference\":{\"counts\":[5],\"mean\":1}}",
                     "counts_invalid #/reference/mean");
    monitors_refused(&service, OBSERVE, "{\"counts\":[1,1],\"mean\":1}", "option_unknown #/mean");
    monitors_expect(&service, "PUT /monitors/g/l",
                    "{\"bins\":{\"labels\":[\"a\"]},\"reference\":{\"counts\":[5]}}", 201);
    result = monitors_get(&service, "POST /monitors/g/l/observations", "{\"values\":[\"a\"]}", 200);
    cr_expect_null(at(result, "mean"));
    json_decref(result);
    monitors_end(&service);
}

/* Squares that a double does not hold are no deviation of 0. */
Test(monitors_moments, that_overflow_are_not_known)
{
    struct api_service service = monitors_new(10);
    json_t *config = monitors_get(&service, "PUT /monitors/g/m",
                                  "{\"reference\":{\"values\":[1e200,-1e200,3]}}", 201);
    cr_expect_null(at(config, "reference.sd"));
    json_decref(config);
    config = monitors_get(&service, "PUT /monitors/g/n",
                          "{\"reference\":{\"values\":[1e308,1.5e308,1.7e308]}}", 201);
    cr_expect_null(at(config, "reference.sd"));
    json_decref(config);
    json_t *result = monitors_get(&service, "POST /monitors/g/m/observations",
                                  "{\"values\":[1e200,5e199]}", 200);
    expect_at(result, "sd", "null");
    cr_expect_float_eq(number_at(result, "mean"), 7.5e199, 1e186);
    json_decref(result);
    monitors_end(&service);
}

/* A period against another has those of their windows, and so has a reference that windows become. */
Test(monitors_moments, add_up_over_windows)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m",
                    "{\"bins\":{\"edges\":[0,5,10]},\"reference\":{\"counts\":[5,5]}}", 201);
    for (int i = 0; i < 4; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"timestamp\":%d,\"values\":[%d,%d]}", 1600000000 + 100 * i,
                 i, i + 3);
        monitors_expect(&service, OBSERVE, body, 200);
    }
    json_t *result = monitors_get(&service,
                                  "GET /monitors/g/m/compare?from=1600000200&against_from=0&"
                                  "against_to=1600000200",
                                  NULL, 200);
    expect_at(result, "mean", "4");
    expect_at(result, "mean_reference", "2");
    json_decref(result);
    result = monitors_get(&service, "POST /monitors/g/reference?include=m",
                          "{\"from\":1600000000,\"to\":1600000200}", 200);
    expect_at(result, "monitors.0.reference.mean", "2");
    json_decref(result);
    monitors_end(&service);
}

/* Mean of the values of windows, which have a value for each: the last `k` before one, or every period of three. */
static double mean_before(const double *values, size_t window, size_t k, bool is_season)
{
    double sum = 0, n = 0;
    for (size_t i = 1; i <= k && (is_season ? 3 : 1) * i <= window; i++, n++)
        sum += values[window - (is_season ? 3 : 1) * i];
    return sum / n;
}

/* Windows that are compared with those before them have the mean of those; also once others are restated, or deleted. */
Test(monitors_moments, of_windows_before_are_theirs)
{
    static const char *const compares[] = {"previous:2", "previous:5", "previous:3@180s"};
    enum { WINDOWS = 40, DELETED = 20 };
    for (size_t c = 0; c < COUNT(compares); c++) {
        struct api_service service = monitors_new(10);
        double values[WINDOWS], k = (double)(compares[c][9] - '0');
        char line[200], body[100];
        bool is_season = c == 2;
        snprintf(line, sizeof line, "PUT /monitors/g/m?window=60s&compare=%s", compares[c]);
        monitors_expect(&service, line,
                        "{\"bins\":{\"edges\":[0,5,10]},\"reference\":{\"counts\":[5,5]}}", 201);
        seed = c + 1;
        for (size_t i = 0; i < WINDOWS; i++) {
            values[i] = (double)pick(4000) / 401;
            snprintf(body, sizeof body, "{\"timestamp\":%zu,\"values\":[%.17g]}",
                     1600000020 + 60 * i, values[i]);
            json_t *result = monitors_get(&service, OBSERVE, body, 200);
            double due = mean_before(values, i, (size_t)k, is_season),
                   got = number_at(result, "mean_reference");
            cr_expect(isnan(due) ? isnan(got) : fabs(got - due) < 1e-12, "%s, window %zu: %g, %g",
                      compares[c], i, got, due);
            json_decref(result);
        }
        snprintf(line, sizeof line, "DELETE /monitors/g/m/windows/%d", DELETED + 1);
        monitors_expect(&service, line, NULL, 204);
        json_t *list = monitors_get(&service, "GET /monitors/g/m/windows?limit=100", NULL, 200),
               *each;
        size_t i;
        json_array_foreach(at(list, "windows"), i, each)
        {
            double sum = 0, n = 0;
            long window = (long)number_at(each, "window.id") - 1, at = window;
            for (size_t j = 0; j < (size_t)k; j++) {
                at -= is_season ? 3 : 1;
                at -= !is_season && at == DELETED;
                if (at < 0 || at == DELETED)
                    continue;
                sum += values[at];
                n++;
            }
            double got = number_at(each, "mean_reference");
            cr_expect(n == 0 ? isnan(got) : fabs(got - sum / n) < 1e-12, "%s, window %ld: %g, %g",
                      compares[c], window, got, sum / n);
        }
        json_decref(list);
        monitors_end(&service);
    }
}

/* With as many digits as tell them apart; not at all if both are nearly the same. */
Test(monitors_moments, are_told_in_few_digits_if_they_changed)
{
    static const struct {
        double add, times;
        const char *begin;
    } cases[] = {{20, 1, "mean 24.5 → 44.5, sd 14.4 → 14.4; values above 49"},
                 {0.28, 1, "values above 49: 0 % → 2 %"},
                 {0.3, 1, "mean 24.5 → 24.8, sd 14.4 → 14.4"},
                 {0.01, 1.03, "mean 24.5 → 25.2, sd 14.4 → 14.9"},
                 {0, 2, "mean 24.5 → 49, sd 14.4 → 28.9; values above 49"}};
    struct api_service service = monitors_new(10);
    double values[50];
    struct api_buffer body = {0};
    for (int i = 0; i < 50; i++)
        values[i] = i;
    api_append_text(&body, "{\"reference\":{\"values\":");
    append_values(&body, values, 50);
    api_append(&body, "}}", 3);
    monitors_expect(&service, "PUT /monitors/g/m?window=1", body.data, 201);
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int j = 0; j < 50; j++)
            values[j] = j * cases[i].times + cases[i].add;
        json_t *result = post(&service, values, 50);
        const char *sentence = text_at(result, "sentence");
        cr_expect_eq(strncmp(sentence, cases[i].begin, strlen(cases[i].begin)), 0, "%s", sentence);
        json_decref(result);
    }
    api_buffer_free(&body);
    monitors_end(&service);
}
