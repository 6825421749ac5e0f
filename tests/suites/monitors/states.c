/* States of monitors: the pure function against its definition, and windows in any order against a
 * computation from scratch. */
#include "api/monitors/model/state.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OK = API_OK, WARNING, CRITICAL };

/* True if each of the last `n` verdicts is at least `level`; there must be so many. */
static bool all_reach(const enum api_verdict *verdicts, size_t total, size_t n, int level)
{
    size_t reached = 0;
    for (size_t i = total; i > 0 && total - i < n; i--)
        reached += (int)verdicts[i - 1] >= level;
    return reached == n;
}

static bool none_exceeds(const enum api_verdict *verdicts, size_t total, size_t n, int level)
{
    size_t within = 0;
    for (size_t i = total; i > 0 && total - i < n; i--)
        within += (int)verdicts[i - 1] <= level;
    return within == n;
}

/* State after all verdicts, by the words of the contract. */
static int define_state(const enum api_verdict *verdicts, size_t n, size_t fire, size_t clear)
{
    int state = API_INSUFFICIENT;
    for (size_t i = 1; i <= n; i++) {
        int before = state = state == API_INSUFFICIENT ? OK : state;
        for (int level = before + 1; level <= CRITICAL; level++)
            if (all_reach(verdicts, i, fire, level))
                state = level;
        if (state > before)
            continue;
        for (int level = before - 1; level >= OK; level--)
            if (none_exceeds(verdicts, i, clear, level))
                state = level;
    }
    return state;
}

Test(monitors_states, are_those_of_the_definition_for_all_sequences)
{
    enum { MAX = 7 };
    size_t sequences = 0;
    for (size_t fire = 1; fire <= 3; fire++)
        for (size_t clear = 1; clear <= 3; clear++)
            for (size_t code = 0; code < 2187; code++) { /* 3 to the power of MOST */
                enum api_verdict verdicts[MAX], state = API_INSUFFICIENT;
                for (size_t i = 0, rest = code; i < MAX; i++, rest /= 3)
                    verdicts[i] = (enum api_verdict)(OK + rest % 3);
                for (size_t n = 1; n <= MAX; n++) {
                    size_t max = fire > clear ? fire : clear, seen = n < max ? n : max;
                    state = api_state_after(state, verdicts + n - seen, seen, fire, clear);
                    cr_assert_eq((int)state, define_state(verdicts, n, fire, clear),
                                 "%zu of %zu, fire after %zu, clear after %zu", n, code, fire,
                                 clear);
                }
                sequences++;
            }
    cr_expect_eq(sequences, 9 * 2187);
}

Test(monitors_states, follow_the_words_of_the_contract)
{
    static const struct {
        const char *verdicts; /* of windows in order, a letter each */
        size_t fire, clear;
        const char *states;
    } cases[] = {
        {"owcwo", 1, 1, "owcwo"}, {"cc", 2, 1, "oc"},       {"wc", 2, 1, "ow"},
        {"wcc", 2, 1, "owc"},     {"cwc", 2, 1, "oww"},     {"cow", 1, 2, "ccw"},
        {"cwo", 1, 2, "ccw"},     {"cooo", 1, 3, "ccco"},   {"cwwo", 1, 2, "ccww"},
        {"coco", 1, 2, "cccc"},   {"wowow", 2, 1, "ooooo"}, {"ccocc", 2, 2, "occcc"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        enum api_verdict verdicts[8], state = API_INSUFFICIENT;
        char states[9] = "";
        for (size_t n = 0; cases[i].verdicts[n]; n++) {
            verdicts[n] = (enum api_verdict)(OK + strchr("owc", cases[i].verdicts[n]) - "owc");
            state = api_state_after(state, verdicts, n + 1, cases[i].fire, cases[i].clear);
            states[n] = "-owc"[state];
        }
        cr_expect_str_eq(states, cases[i].states, "%s: %s", cases[i].verdicts, states);
    }
}

/* ---- Windows in any order */

/* order: windows of a minute each, which are observed in a random order, some more than once. */
struct order {
    struct api_service service;
    unsigned long long seed;
    size_t fire, clear;
    bool batches;
};

static size_t pick(struct order *o, size_t n) { return uniform_below(&o->seed, n); }

/* Observes a window that is alike, shifted, far off, or too small. */
static void observe(struct order *o, size_t minute)
{
    static const char *const counts[] = {"[50,50]", "[75,25]", "[95,5]", "[1,1]"};
    char body[100];
    snprintf(body, sizeof body, "{\"counts\":%s,\"timestamp\":%zu}", counts[pick(o, 4)],
             1000000000 + 60 * minute);
    monitors_expect(&o->service, "POST /monitors/g/m/observations", body, 200);
}

/* Verdict of a window as a number. */
static enum api_verdict verdict_at(const json_t *window, const char *member)
{
    size_t i = 0;
    while (i < API_VERDICTS && strcmp(api_verdict_names[i], text_at(window, member)) != 0)
        i++;
    cr_assert_lt(i, API_VERDICTS);
    return (enum api_verdict)i;
}

/* Events chain, newest first, to the state. */
static void check_events(struct order *o, const char *state, const char *since)
{
    json_t *json = monitors_get(&o->service, "GET /monitors/g/m/events?limit=1000", NULL, 200);
    const json_t *events = at(json, "events"), *event;
    size_t i;
    cr_expect_str_eq(text_at(events, "0.at"), since);
    json_array_foreach(events, i, event)
    {
        cr_expect_str_eq(text_at(event, "to"), state, "event %zu", i);
        cr_expect_str_neq(text_at(event, "from"), state);
        state = text_at(event, "from");
    }
    cr_expect_str_eq(state, "insufficient_data");
    json_decref(json);
}

/* The windows' states are those that their verdicts have in order of starts. */
static void check_windows(struct order *o)
{
    json_t *json = monitors_get(&o->service, "GET /monitors/g/m/windows?limit=1000", NULL, 200);
    json_t *list = monitors_get(&o->service, "GET /monitors", NULL, 200);
    const json_t *windows = at(json, "windows"), *recent = at(list, "monitors.0.recent");
    enum api_verdict verdicts[100];
    size_t n = json_array_size(windows), counted = 0;
    const char *state = "insufficient_data";
    for (size_t i = 0; i < n; i++) {
        const json_t *window = json_array_get(windows, n - 1 - i);
        enum api_verdict verdict = verdict_at(window, "verdict");
        size_t from_end = n - i; /* 1: the last */
        if (verdict != API_INSUFFICIENT)
            verdicts[counted++] = verdict;
        state = api_verdict_names[define_state(verdicts, counted, o->fire, o->clear)];
        if (verdict != API_INSUFFICIENT)
            cr_expect_str_eq(text_at(window, "state"), state, "seed %llu, window %zu", o->seed, i);
        if (from_end <= 30)
            cr_expect_eq(number_at(window, "kl"), json_number_value(json_array_get(
                                                      recent, json_array_size(recent) - from_end)));
    }
    cr_expect_eq(json_array_size(recent), n < 30 ? n : 30);
    cr_expect_str_eq(text_at(list, "monitors.0.state"), state, "%s and not %s",
                     text_at(list, "monitors.0.state"), state);
    cr_expect_eq(number_at(list, "monitors.0.kl"), number_at(windows, "0.kl"));
    cr_expect_eq(number_at(list, "monitors.0.window.id"), number_at(windows, "0.window.id"));
    cr_expect(json_equal(at(list, "monitors.0.top"), at(windows, "0.top")));
    check_events(o, state, text_at(list, "monitors.0.severity_since"));
    json_decref(json);
    json_decref(list);
}

Test(monitors_states, do_not_depend_on_the_order_of_arrival)
{
    for (unsigned long long seed = 0; seed < SOME_OF(60); seed++) {
        struct order o = {.service = monitors_new(10), .seed = seed};
        char line[200];
        o.fire = 1 + pick(&o, 3);
        o.clear = 1 + pick(&o, 3);
        o.batches = pick(&o, 2);
        snprintf(
            line, sizeof line,
            "PUT /monitors/g/m?fire_after=%zu&clear_after=%zu&window=%s&retention_days=9&pool=1"
            "&warning=0.1&critical=0.25&significance=0.01",
            o.fire, o.clear, o.batches ? "batch" : "60s");
        monitors_expect(&o.service, line,
                        "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5000,5000]}}",
                        201);
        for (size_t i = 0, n = 1 + pick(&o, 45); i < n; i++) {
            observe(&o, pick(&o, 40));
            if (pick(&o, 5) == 0)
                check_windows(&o);
        }
        check_windows(&o);
        monitors_end(&o.service);
    }
}
