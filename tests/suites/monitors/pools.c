/* Verdicts over pools of windows, falls, since and severity_since, beside the rule as api/monitors/README.md words it, in plain
 * counts of all windows: as they come in order, late, are restated, and are read again. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INSUFFICIENT, OK, WARNING, CRITICAL };
enum { INNER = 6, BINS = INNER + 3, MAX = 200, MINUTE = 60, BEGIN = 1600000000 / MINUTE * MINUTE };
static const char *const levels[] = {"insufficient_data", "ok", "warning", "critical"};

struct window {
    long start, id;
    double counts[BINS], reference[BINS];
    int verdict, alone;
};

/* scores: of a sum of windows; level of its pool. */
struct scores {
    double n, kl, p_value, noise_floor;
    size_t windows;
    int level;
    double reference[BINS]; /* what the sum is compared with */
};

/* rule: settings, and what is to be known of a monitor. */
struct rule {
    struct api_service service;
    unsigned long long seed;
    size_t pool, fire, clear, previous;
    long period; /* 0: with the reference */
    double warning, critical, significance, min, shift, size;
    double reference[BINS];
    bool batches;
    struct window windows[MAX];
    size_t n;
    int state;
    long ids, pool_from, since, severity_since, now, rose, rose_id;
    size_t events;
};

static size_t pick(struct rule *r, size_t n) { return uniform_below(&r->seed, n); }

/* ---- The rule */

static double tail_of_chi_squared(double x, int df)
{
    double y = x / 2, sum = 0, term = df % 2 ? 2 * sqrt(y / M_PI) : 1;
    if (df == 0 || !(x > 0))
        return 1;
    for (int j = 1; j <= df / 2; j++) {
        if (j > 1)
            term *= y / (j - (df % 2 ? 0.5 : 1));
        sum += term;
    }
    return (df % 2 ? erfc(sqrt(y)) : 0) + exp(-y) * sum;
}

static struct scores score(const double *c, const double *r)
{
    double n = 0, big_n = 0, used = 0, kl = 0, g = 0;
    for (size_t i = 0; i < BINS; i++)
        n += c[i], big_n += r[i], used += c[i] + r[i] > 0;
    for (size_t i = 0; i < BINS; i++) {
        if (c[i] + r[i] == 0)
            continue;
        double p = (c[i] + 0.5) / (n + used / 2), q = (r[i] + 0.5) / (big_n + used / 2);
        double both = (c[i] + r[i]) / (n + big_n);
        kl += p * log(p / q);
        g += (c[i] > 0 ? 2 * c[i] * log(c[i] / n / both) : 0) +
             (r[i] > 0 ? 2 * r[i] * log(r[i] / big_n / both) : 0);
    }
    struct scores scores = {
        n, kl, tail_of_chi_squared(g, (int)used - 1), (used - 1) / 2 * (1 / n + 1 / big_n), 0,
        0, {0}};
    memcpy(scores.reference, r, sizeof scores.reference);
    return scores;
}

static double sum(const double *counts)
{
    double total = 0;
    for (size_t i = 0; i < BINS; i++)
        total += counts[i];
    return total;
}

/* Scores the last `size` windows up to one. False if there are not so many that count. */
static bool sum_up(const struct rule *r, size_t last, size_t size, struct scores *scores)
{
    double counts[BINS] = {0}, reference[BINS] = {0}, weight = 0;
    for (size_t i = 0; i < size; i++) {
        if (i > last)
            return false;
        const struct window *w = &r->windows[last - i];
        if ((size > 1 && w->start < r->pool_from) || (r->period > 0 && sum(w->reference) == 0))
            return false;
        double n = sum(w->counts), big_n = sum(w->reference);
        weight += n * n / big_n;
        for (size_t bin = 0; bin < BINS; bin++)
            counts[bin] += w->counts[bin], reference[bin] += n * w->reference[bin] / big_n;
    }
    for (size_t bin = 0; bin < BINS; bin++)
        reference[bin] *= sum(counts) / weight; /* q N, see seasons in api/README.md */
    *scores = score(counts, r->period > 0 ? reference : r->reference);
    scores->windows = size;
    return true;
}

static int level_of(const struct rule *r, const struct scores *s)
{
    double part = r->significance / (log2((double)r->pool) + 1);
    bool shows = s->p_value < part || r->significance >= 1;
    return s->kl >= r->critical && shows ? CRITICAL : s->kl >= r->warning && shows ? WARNING : OK;
}

/* False if the newest 1, 2, 4 ... windows up to one are e^3 times likelier under the reference than under the others. */
static bool takes_part(const struct rule *r, size_t last, const struct scores *s)
{
    double newest[BINS] = {0}, all[BINS] = {0}, used = 0;
    for (size_t i = 0; i < s->windows; i++)
        for (size_t bin = 0; bin < BINS; bin++)
            all[bin] += r->windows[last - i].counts[bin];
    for (size_t bin = 0; bin < BINS; bin++)
        used += all[bin] + s->reference[bin] > 0;
    for (size_t i = 0; i < s->windows / 2; i++) {
        double ratio = 0, rest;
        for (size_t bin = 0; bin < BINS; bin++)
            newest[bin] += r->windows[last - i].counts[bin];
        rest = sum(all) - sum(newest);
        for (size_t bin = 0; bin < BINS; bin++)
            if (newest[bin] > 0)
                ratio +=
                    newest[bin] * log((all[bin] - newest[bin] + 0.5) / (rest + used / 2) /
                                      ((s->reference[bin] + 0.5) / (sum(s->reference) + used / 2)));
        if (((i + 1) & i) == 0 && ratio < -3)
            return false;
    }
    return true;
}

/* Judges a window; gives the pool that decides. */
static struct scores judge(struct rule *r, size_t i)
{
    struct scores best = {.level = INSUFFICIENT}, s;
    r->windows[i].alone = sum_up(r, i, 1, &s) && s.n >= r->min ? level_of(r, &s) : INSUFFICIENT;
    for (size_t size = 1; size <= r->pool; size *= 2) {
        if (!sum_up(r, i, size, &s) || s.n < r->min)
            continue;
        s.level = takes_part(r, i, &s) ? level_of(r, &s) : OK;
        if (s.level > best.level)
            best = s;
    }
    r->windows[i].verdict = best.level;
    return best;
}

static bool is_after_rise(const struct rule *r, const struct window *window)
{
    return window->start > r->rose || (window->start == r->rose && window->id > r->rose_id);
}

static int fall(struct rule *r)
{
    struct scores s;
    size_t last = r->n - 1, m = r->clear < r->pool ? r->clear : r->pool;
    for (;; m++) {
        if (m > r->pool || r->windows[last].start < r->pool_from || !sum_up(r, last, m, &s) ||
            !is_after_rise(r, &r->windows[last + 1 - m]))
            return r->state;
        if (s.n >= r->min && (s.noise_floor <= r->warning / 2 || m == r->pool))
            break;
    }
    double k = s.kl - s.noise_floor;
    int to = k < r->warning / 2 ? OK : k < r->critical / 2 ? WARNING : CRITICAL;
    to = r->windows[last].alone > to ? r->windows[last].alone : to;
    if (to >= r->state)
        return r->state;
    r->pool_from = r->windows[last + 1 - m].start;
    return to;
}

/* Advances the state after the newest window. */
static void advance(struct rule *r)
{
    size_t seen = 0;
    int lowest = CRITICAL, before = r->state;
    const struct window *newest = &r->windows[r->n - 1];
    long at = newest->start + (r->batches ? 0 : MINUTE);
    if (newest->verdict == INSUFFICIENT)
        return;
    for (size_t i = r->n; i > 0 && seen < r->fire; i--)
        if (r->windows[i - 1].verdict > INSUFFICIENT) {
            seen++;
            lowest = r->windows[i - 1].verdict < lowest ? r->windows[i - 1].verdict : lowest;
        }
    if (r->state == INSUFFICIENT)
        r->state = OK;
    if (seen == r->fire && lowest > r->state) {
        r->state = lowest;
        r->rose = newest->start;
        r->rose_id = newest->id;
    } else if (r->state > OK)
        r->state = fall(r);
    if (r->state == before)
        return;
    if (before <= OK || r->state <= OK)
        r->since = at;
    r->severity_since = at;
    r->events++;
}

/* ---- Histories */

/* Sets what a window is compared with: the sum of those that start a period, two ... before. */
static void compare(struct rule *r, struct window *window)
{
    memset(window->reference, 0, sizeof window->reference);
    for (size_t i = 0; i < r->n && r->period > 0; i++) {
        long apart = window->start - r->windows[i].start;
        if (apart > 0 && apart % r->period == 0 && apart / r->period <= (long)r->previous)
            for (size_t bin = 0; bin < BINS; bin++)
                window->reference[bin] += r->windows[i].counts[bin];
    }
}

/* Adds counts to the window that they belong to, and gives its index. */
static size_t observe(struct rule *r, long time, const double *counts)
{
    long start = r->batches ? time : time / MINUTE * MINUTE;
    size_t i = r->n;
    while (i > 0 && r->windows[i - 1].start > start)
        i--;
    if (i == 0 || r->batches || r->windows[i - 1].start < start) {
        memmove(&r->windows[i + 1], &r->windows[i], (r->n++ - i) * sizeof *r->windows);
        r->windows[i] = (struct window){.start = start, .id = ++r->ids};
    } else {
        i--;
    }
    for (size_t bin = 0; bin < BINS; bin++)
        r->windows[i].counts[bin] += counts[bin];
    return i;
}

static double draw(struct rule *r, double *counts)
{
    double n = ceil(r->size * (uniform(&r->seed) < 0.2 ? 0.2 : 1));
    memset(counts, 0, BINS * sizeof *counts);
    for (double i = 0; i < n; i++) {
        size_t bin = pick(r, INNER);
        if (uniform(&r->seed) < r->shift && bin > 0)
            bin--;
        counts[1 + bin]++;
    }
    return n;
}

static void expect_time(const json_t *json, const char *name, long time)
{
    char text[40] = "";
    struct tm parts;
    gmtime_r(&time, &parts);
    if (time)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    cr_assert_str_eq(text_at(json, name), text, "%s: %s and not %s", name, text_at(json, name),
                     text);
}

static void check(struct rule *r, const json_t *result, const struct scores *s)
{
    json_t *config = monitors_get(&r->service, "GET /monitors/g/m", NULL, 200);
    json_t *events = monitors_get(&r->service, "GET /monitors/g/m/events?limit=1000", NULL, 200);
    cr_assert_str_eq(text_at(result, "verdict"), levels[s->level], "seed %llu, %s", r->seed,
                     levels[s->level]);
    const struct {
        const char *path;
        double value;
    } members[] = {{"pooled.windows", (double)s->windows},
                   {"pooled.n", s->n},
                   {"pooled.kl", s->kl},
                   {"pooled.p_value", s->p_value},
                   {"pooled.noise_floor", s->noise_floor}};
    for (size_t i = 0; i < COUNT(members) && s->level > INSUFFICIENT; i++) {
        double got = number_at(result, members[i].path), due = members[i].value;
        cr_assert(fabs(got - due) <= 1e-9 * fabs(due) + 1e-13, "%s: %.17g and not %.17g",
                  members[i].path, got, due);
    }
    if (s->level > INSUFFICIENT)
        cr_assert_str_eq(text_at(result, "pooled.level"), levels[s->level]);
    else
        cr_assert(json_is_null(at(result, "pooled")));
    cr_assert_str_eq(text_at(config, "state"), levels[r->state], "%s and not %s",
                     text_at(config, "state"), levels[r->state]);
    expect_time(config, "since", r->since);
    expect_time(config, "severity_since", r->severity_since);
    cr_assert_eq(json_array_size(at(events, "events")), r->events);
    json_decref(config);
    json_decref(events);
}

/* Observes one window more, or one that was before, and judges it; then the newest. */
static void step(struct rule *r)
{
    double counts[BINS];
    char body[300] = "{\"counts\":[";
    bool is_late = uniform(&r->seed) < 0.15;
    if (uniform(&r->seed) < 0.12)
        r->shift = (double)pick(r, 4) * 0.12;
    draw(r, counts);
    if (!is_late)
        r->now += r->batches ? (long)pick(r, 4) : MINUTE * (1 + (long)(pick(r, 8) == 0));
    long time = r->now - (is_late ? (long)pick(r, 20) * (r->batches ? 1 : MINUTE) : 0);
    for (size_t i = 0; i < INNER; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body), "%s%.0f", i ? "," : "",
                 counts[1 + i]);
    snprintf(body + strlen(body), sizeof body - strlen(body), "],\"timestamp\":%ld}", time);
    json_t *result = monitors_get(&r->service, "POST /monitors/g/m/observations", body, 200);
    size_t i = observe(r, time, counts);
    compare(r, &r->windows[i]);
    struct scores s = judge(r, i);
    if (i < r->n - 1) {
        compare(r, &r->windows[r->n - 1]);
        judge(r, r->n - 1);
    }
    advance(r);
    check(r, result, &s);
    json_decref(result);
}

static void begin(struct rule *r)
{
    static const size_t pools[] = {2, 4, 8, 16, 64}, sizes[] = {5, 20, 50, 200, 600};
    static const double warnings[] = {0.02, 0.02, 0.05}, significances[] = {1e-4, 1e-4, 0.01, 1};
    char line[400], season[60] = "";
    r->pool = pools[pick(r, COUNT(pools))];
    r->fire = pick(r, 3) ? 1 : 1 + pick(r, 3);
    r->clear = pick(r, 3) ? 3 : 1 + pick(r, 20);
    r->warning = warnings[pick(r, COUNT(warnings))];
    r->critical = r->warning * (double)(1 + 4 * pick(r, 2));
    r->significance = significances[pick(r, COUNT(significances))];
    r->min = pick(r, 2) ? 50 : 1 + 100 * (double)pick(r, 3);
    r->size = (double)sizes[pick(r, COUNT(sizes))];
    r->batches = pick(r, 2);
    r->pool_from = r->rose = LONG_MIN;
    r->now = BEGIN;
    for (size_t i = 1; i <= INNER; i++)
        r->reference[i] = 1000;
    if (!r->batches && pick(r, 2)) {
        r->previous = 1 + pick(r, 4);
        r->period = MINUTE * (long)(1 + pick(r, 3));
        snprintf(season, sizeof season, "&compare=previous:%zu@%lds", r->previous, r->period);
    }
    snprintf(line, sizeof line,
             "PUT /monitors/g/m?pool=%zu&fire_after=%zu&clear_after=%zu&warning=%g&critical=%g"
             "&significance=%g&min_observations=%.0f&window=%s%s",
             r->pool, r->fire, r->clear, r->warning, r->critical, r->significance, r->min,
             r->batches ? "batch" : "60s", season);
    monitors_expect(&r->service, line,
                    "{\"bins\":{\"edges\":[0,1,2,3,4,5,6]},"
                    "\"reference\":{\"counts\":[1000,1000,1000,1000,1000,1000]}}",
                    201);
}

Test(monitors_pools, are_those_of_the_rule_in_plain_counts)
{
    char folder[] = "/tmp/kldiv-pools-XXXXXX", path[60], location[80];
    size_t changes = 0;
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(location, sizeof location, "sqlite:%s", path);
    for (unsigned long long seed = 0; seed < 10 + SOME_OF(50); seed++) {
        struct rule *r = calloc(1, sizeof *r);
        r->service = monitors_new_at(10, location);
        r->seed = seed;
        begin(r);
        for (size_t i = 0, n = 10 + pick(r, 60); i < n; i++) {
            step(r);
            if (pick(r, 20) == 0)
                monitors_restart(&r->service, 10);
        }
        changes += r->events;
        monitors_end(&r->service);
        unlink(path);
        free(r);
    }
    rmdir(folder);
    cr_expect_gt(changes, SOME_OF(100));
}
