/* Scores that answers hold, and what observations add up to. */
#include "lib/drift.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static unsigned long long seed;
static size_t pick(size_t n) { return uniform_below(&seed, n); }

/* ---- Scores */

/* counts: of a window and of a reference, or probabilities of it. */
struct counts {
    size_t n_bins; /* with underflow, overflow and missing */
    double current[40], reference[40], pseudocount;
    bool exact;
};

static void random_counts(struct counts *c)
{
    *c = (struct counts){.n_bins = 4 + pick(30),
                         .pseudocount = (const double[]){0, 0.5, 1, 1e-3}[pick(4)],
                         .exact = pick(3) == 0};
    double left = 4096;
    for (size_t i = 0; i < c->n_bins; i++) {
        size_t scale = pick(3) ? 100 : pick(2) ? 3 : 100000;
        double part = i + 1 < c->n_bins ? (double)pick((size_t)left / 4 + 1) : left;
        left -= part;
        c->current[i] = (double)pick(scale);
        c->reference[i] = c->exact ? part / 4096 : (double)pick(scale);
    }
    c->current[0]++;
    c->reference[0] += !c->exact;
}

static void write_weights(const struct counts *c, bool reference, struct api_buffer *to)
{
    const double *v = reference ? c->reference : c->current;
    api_append_text(to, reference && c->exact ? "{\"probabilities\":[" : "{\"counts\":[");
    for (size_t i = 1; i + 2 < c->n_bins; i++)
        api_append_format(to, i > 1 ? ",%.17g" : "%.17g", v[i]);
    api_append_format(to, "],\"underflow\":%.17g,\"overflow\":%.17g,\"missing\":%.17g}", v[0],
                      v[c->n_bins - 2], v[c->n_bins - 1]);
}

static void expect_near(double got, long double expected, const char *what)
{
    long double error = fabsl(got - expected);
    cr_expect(error <= 1e-12L * fabsl(expected) || error <= 4e-15L, "%s: %.17g and not %.17Lg",
              what, got, expected);
}

/* Checks a score against a sum; what is infinite is null in the answer. */
static void check_score(const json_t *json, const char *name, long double expected)
{
    if (isinf(expected))
        cr_expect(json_is_null(at(json, name)), "%s is not null", name);
    else
        expect_near(number_at(json, name), expected, name);
}

/* Checks the answer against the formulas of the contract. */
static void check_formulas(const struct counts *c, const json_t *json)
{
    long double n = 0, big_n = 0, b = 0, kl = 0, reverse = 0, js = 0, unseen = 0, sum = 0;
    for (size_t i = 0; i < c->n_bins; i++) {
        n += c->current[i];
        big_n += c->reference[i];
        b += c->current[i] + c->reference[i] > 0;
        unseen += c->reference[i] > 0 ? 0 : c->current[i];
    }
    for (size_t i = 0; i < c->n_bins; i++) {
        long double a = c->current[i] + c->reference[i] > 0 ? c->pseudocount : 0;
        long double p = (c->current[i] + a) / (n + c->pseudocount * b);
        long double q =
            c->exact ? c->reference[i] : (c->reference[i] + a) / (big_n + c->pseudocount * b);
        long double m = (p + q) / 2, contribution = (p > 0 ? p * logl(p / q) : 0) - p + q;
        const json_t *bin = json_array_get(at(json, "bins"), i);
        kl += p > 0 ? p * logl(p / q) : 0;
        reverse += q > 0 ? q * logl(q / p) : 0;
        js += (p > 0 ? p * logl(p / m) : 0) / 2 + (q > 0 ? q * logl(q / m) : 0) / 2;
        check_score(bin, "contribution", contribution);
        sum += isfinite(contribution) ? number_at(bin, "contribution") : 0;
    }
    check_score(json, "kl", kl);
    check_score(json, "kl_reverse", reverse);
    check_score(json, "psi", kl + reverse);
    check_score(json, "js", js);
    check_score(json, "unseen_ratio", unseen / n);
    cr_expect_eq(json_is_true(at(json, "infinite")), isinf(kl));
    if (isfinite(kl))
        expect_near((double)sum, kl, "sum of the contributions");
}

/* Checks the answer against kl_drift, to the bit. */
static void check_drift(const struct counts *c, const json_t *json)
{
    const struct kl_drift_options options = {c->pseudocount, 0.0001, c->exact};
    struct kl_drift_bin bins[40];
    struct kl_drift drift;
    double shares = 0;
    kl_drift(c->current, c->reference, c->n_bins, &options, &drift, bins);
    const struct {
        const char *path;
        double value;
    } scores[] = {{"kl", drift.kl},
                  {"kl_reverse", drift.kl_reverse},
                  {"js", drift.js},
                  {"psi", drift.psi},
                  {"n", drift.n},
                  {"n_reference", drift.n_reference},
                  {"g_test.statistic", drift.statistic},
                  {"g_test.p_value", drift.p_value},
                  {"g_test.df", (double)drift.df},
                  {"g_test.critical_kl", drift.critical_kl},
                  {"noise_floor", drift.noise_floor},
                  {"unseen_ratio", drift.unseen_ratio},
                  {"missing_ratio", c->current[c->n_bins - 1] / drift.n}};
    for (size_t i = 0; i < COUNT(scores); i++)
        cr_expect(isfinite(scores[i].value) ? number_at(json, scores[i].path) == scores[i].value
                                            : json_is_null(at(json, scores[i].path)),
                  "%s: %.17g and not %.17g", scores[i].path, number_at(json, scores[i].path),
                  scores[i].value);
    for (size_t i = 0; i < c->n_bins; i++) {
        const json_t *bin = json_array_get(at(json, "bins"), i);
        cr_expect_eq(number_at(bin, "reference"), bins[i].reference);
        cr_expect_eq(number_at(bin, "current"), bins[i].current);
        shares += json_is_null(at(bin, "share")) ? 1 : number_at(bin, "share");
    }
    if (isfinite(drift.kl) && drift.kl > 1e-9)
        cr_expect_float_eq(shares, 1, 1e-9, "%.17g", shares);
}

/* The names in `top` are of the greatest contributions, in their order. */
static void check_top(const json_t *json)
{
    double before = (double)INFINITY;
    const json_t *name, *bin;
    size_t i, j;
    json_array_foreach(at(json, "top"), i, name) json_array_foreach(
        at(json, "bins"), j, bin) if (json_equal((json_t *)name, at(bin, "name")))
    {
        double contribution = number_at(bin, "contribution");
        contribution = isnan(contribution) ? (double)INFINITY : contribution;
        cr_expect(contribution > 0 && contribution <= before);
        before = contribution;
    }
    cr_expect_leq(i, 3);
}

Test(monitors_scores, are_those_of_the_library_and_of_the_formulas)
{
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < 500; i++) {
        struct counts c;
        struct api_buffer config = {0}, body = {0};
        seed = i;
        random_counts(&c);
        api_append_text(&config, "{\"bins\":{\"edges\":[0");
        for (size_t j = 1; j + 2 < c.n_bins; j++)
            api_append_format(&config, ",%zu", j);
        api_append_format(&config, "]},\"pseudocount\":%g,\"reference\":", c.pseudocount);
        write_weights(&c, true, &config);
        api_append(&config, "}", 2);
        write_weights(&c, false, &body);
        api_append(&body, "", 1);
        monitors_expect(&service, "PUT /monitors/g/m", config.data, 201);
        json_t *json = monitors_get(&service, "POST /monitors/g/m/evaluate", body.data, 200);
        check_formulas(&c, json);
        check_drift(&c, json);
        check_top(json);
        json_decref(json);
        monitors_expect(&service, "DELETE /monitors/g/m", NULL, 204);
        api_buffer_free(&config);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

/* ---- Merging */

/* Observes random rows in `parts` requests, or as one; gives the window without what counts requests. */
static json_t *observe_rows(const struct api_service *service, const char *name, size_t parts)
{
    json_t *json = NULL;
    char line[100];
    unsigned long long state = 77;
    snprintf(line, sizeof line, "POST /monitors/g/%s/observations?timestamp=1000000000", name);
    for (size_t part = 0; part < parts; part++) {
        struct api_buffer body = {0};
        api_append_text(&body, "{\"values\":[null");
        for (size_t i = part * 1000 / parts; i < (part + 1) * 1000 / parts; i++)
            api_append_format(&body, ",%.3f", uniform(&state) * 12 - 1);
        api_append(&body, "]}", 3);
        json_decref(json);
        json = monitors_get(service, line, body.data, 200);
        api_buffer_free(&body);
    }
    return json;
}

Test(monitors_scores, many_requests_add_up_to_one)
{
    static const char *const windows[] = {"3600s", "1007"};
    for (size_t i = 0; i < COUNT(windows); i++) {
        struct api_service service = monitors_new(10);
        char line[100], names[2][2] = {"a", "b"};
        json_t *results[2];
        for (size_t j = 0; j < 2; j++) {
            snprintf(line, sizeof line, "PUT /monitors/g/%s?window=%s", names[j], windows[i]);
            monitors_expect(&service, line,
                            "{\"bins\":{\"edges\":[0,1,2,3,5,8]},"
                            "\"reference\":{\"counts\":[9,8,7,6,5],\"missing\":1}}",
                            201);
        }
        results[0] = observe_rows(&service, "a", 7);
        monitors_expect(&service, "POST /monitors/g/b/observations?timestamp=1000000000",
                        "{\"values\":[null,null,null,null,null,null]}", 200);
        results[1] = observe_rows(&service, "b", 1);
        expect_at(results[0], "n", "1007");
        expect_at(results[0], "window.closed", "true");
        for (size_t j = 0; j < 2; j++) {
            json_object_del(results[j], "name");
            json_object_del(at(results[j], "window"), "restated");
        }
        cr_expect(json_equal(results[0], results[1]), "window=%s", windows[i]);
        json_decref(results[0]);
        json_decref(results[1]);
        monitors_end(&service);
    }
}

/* ---- Tables that are scored alone */

Test(monitors_scores, a_table_is_evaluated_as_each_of_its_columns_is)
{
    static const char table[] = "a,b,z\n1,x,0\n3,NA,0\n9,y,0\n",
                      group[] = "POST /monitors/g/evaluate";
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/a",
                    "{\"bins\":{\"edges\":[0,2,4]},\"reference\":{\"counts\":[50,50]}}", 201);
    monitors_expect(&service, "PUT /monitors/g/b?compare=previous:2",
                    "{\"bins\":{\"labels\":[\"x\",\"y\"]}}", 201);
    monitors_expect(&service, "POST /monitors/g/b/observations", "b\nx\nx\ny\n", 200);
    json_t *json = monitors_get(&service, group, table, 200);
    cr_expect_eq(json_array_size(at(json, "monitors")), 2);
    expect_at(json, "warnings.0.column", "\"z\"");
    expect_at(json, "monitors.1.n_reference", "3");
    for (size_t i = 0; i < 2; i++) {
        char line[80], path[20];
        snprintf(path, sizeof path, "monitors.%zu", i);
        json_t *expected = json_deep_copy(at(json, path));
        snprintf(line, sizeof line, "POST /monitors/g/%s/evaluate", text_at(expected, "name"));
        json_t *alone = monitors_get(&service, line, table, 200);
        json_object_del(alone, "group");
        json_object_del(alone, "warnings");
        cr_expect(json_equal(alone, expected), "%s", line);
        json_decref(alone);
        json_decref(expected);
    }
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g/a/windows", NULL, 200);
    expect_at(json, "windows", "[]");
    json_decref(json);
    monitors_expect(&service, group, "a,b\n", 200);
    monitors_refused(&service, group, "z\n1\n", "columns_unknown");
    monitors_refused(&service, group, "{\"columns\":{\"a\":[\"x\"]}}",
                     "value_not_number #/columns/a/0");
    monitors_refused(&service, "POST /monitors/h/evaluate", table, "group_not_found");
    monitors_expect(&service, "PUT /monitors/g/evaluate",
                    "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[5]}}", 201);
    monitors_end(&service);
}

/* Labels that are joined do not hide a text that exact probabilities say is impossible. */
Test(monitors_scores, a_text_that_is_impossible_is_critical_beside_joined_labels)
{
    struct api_service service = monitors_new(10);
    monitors_expect(
        &service, "PUT /monitors/g/m?min_observations=1",
        "{\"bins\":{\"labels\":[\"a\",\"b\"]},\"reference\":{\"probabilities\":[0.5,0.5]}}", 201);
    for (int with = 0; with <= 1; with++) {
        json_t *json = monitors_get(
            &service, "POST /monitors/g/m/evaluate",
            with ? "{\"values\":[\"a\",\"b\",\"x\"]}" : "{\"values\":[\"a\",\"b\"]}", 200);
        expect_at(json, "infinite", with ? "true" : "false");
        expect_at(json, "verdict", with ? "\"critical\"" : "\"ok\"");
        json_decref(json);
    }
    monitors_end(&service);
}
