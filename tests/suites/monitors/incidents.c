/* Incidents of a group: monitors that left ok within a window of each other, against a search through all pairs. */
#include "api/monitors/http/incidents.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"
#define SETTINGS "warning=0.1&critical=0.25&significance=0.01&pool=1&clear_after=1"

static void make(const struct api_service *service, const char *name, const char *query)
{
    char line[200];
    snprintf(line, sizeof line, "PUT /monitors/g/%s?" SETTINGS "%s", name, query);
    monitors_expect(service, line, CONFIG, 201);
}

/* Observes a window that alone is of a state. */
static void observe(const struct api_service *service, const char *name, enum api_verdict state,
                    const char *time)
{
    static const char *const counts[API_VERDICTS] = {"1,1", "50,50", "75,25", "95,5"};
    char line[200], body[50];
    snprintf(line, sizeof line, "POST /monitors/g/%s/observations?timestamp=%s", name, time);
    snprintf(body, sizeof body, "{\"counts\":[%s]}", counts[state]);
    monitors_expect(service, line, body, 200);
}

/* "critical 2 since 2026-01-01T12:00:00Z, first b: b a; ..." */
static void describe(const json_t *incidents, char *to, size_t size)
{
    json_t *incident, *monitor;
    size_t i, j, used = 0;
    *to = 0;
    json_array_foreach(incidents, i, incident)
    {
        const char *first = json_string_value(at(incident, "first"));
        used +=
            (size_t)snprintf(to + used, size - used, "%s%s %g since %s, first %s:", i ? "; " : "",
                             text_at(incident, "state"), number_at(incident, "count"),
                             text_at(incident, "since"), first ? first : "none");
        json_array_foreach(at(incident, "monitors"), j, monitor)
        {
            used += (size_t)snprintf(to + used, size - used, " %s", text_at(monitor, "name"));
            cr_assert_lt(used, size);
        }
    }
}

static void expect_incidents(const struct api_service *service, const char *expected)
{
    char got[4000];
    json_t *group = monitors_get(service, "GET /groups/g", NULL, 200);
    describe(at(group, "incidents"), got, sizeof got);
    cr_expect_str_eq(got, expected, "%s", got);
    json_decref(group);
}

/* cases: of each group its monitors with their windows, and the states that they take. */
enum { MAX_STEPS = 6 };
static const struct {
    const char *what;
    struct {
        const char *name, *query;
    } monitors[3];
    struct {
        const char *name;
        enum api_verdict state;
        const char *time;
    } steps[MAX_STEPS];
    const char *expected;
} cases[] = {
    {"one request each, an hour apart, make a chain",
     {{"a", ""}, {"b", ""}, {"c", "&window=100"}},
     {{"c", API_CRITICAL, "2026-01-01T14:00:00Z"},
      {"a", API_WARNING, "2026-01-01T12:00:00Z"},
      {"b", API_WARNING, "2026-01-01T13:00:00Z"}},
     "critical 3 since 2026-01-01T12:00:00Z, first a: c a b"},
    {"more than an hour apart they make none; of equal states the newest is first",
     {{"a", ""}, {"b", ""}, {"c", ""}},
     {{"a", API_WARNING, "2026-01-01T12:00:00Z"},
      {"b", API_WARNING, "2026-01-01T13:00:00.000001Z"},
      {"c", API_CRITICAL, "2026-01-01T10:00:00Z"}},
     "critical 1 since 2026-01-01T10:00:00Z, first c: c; warning 1 since "
     "2026-01-01T13:00:00.000001Z, first b: b; warning 1 since 2026-01-01T12:00:00Z, first a: a"},
    {"of two at once none is the first; the worst leads",
     {{"a", ""}, {"b", ""}, {"c", ""}},
     {{"a", API_WARNING, "2026-01-01T12:00:00Z"},
      {"b", API_CRITICAL, "2026-01-01T12:00:00Z"},
      {"c", API_WARNING, "2026-01-01T12:00:00.9Z"}},
     "critical 3 since 2026-01-01T12:00:00Z, first none: b a c"},
    {"a state that gets worse has begun when the monitor left ok; one that is ok again is in none",
     {{"a", ""}, {"b", ""}, {"c", ""}},
     {{"a", API_WARNING, "2026-01-01T12:00:00Z"},
      {"c", API_CRITICAL, "2026-01-01T12:30:00Z"},
      {"b", API_WARNING, "2026-01-01T12:40:00Z"},
      {"a", API_CRITICAL, "2026-01-01T18:00:00Z"},
      {"c", API_OK, "2026-01-01T18:00:00Z"}},
     "critical 2 since 2026-01-01T12:00:00Z, first a: a b"},
    {"of two windows the longer reaches",
     {{"a", "&window=6h"}, {"b", "&window=10m"}, {"c", "&window=10m"}},
     {{"a", API_WARNING, "2026-01-01T11:00:00Z"},
      {"b", API_WARNING, "2026-01-01T17:50:00Z"},
      {"c", API_WARNING, "2026-01-01T18:00:00Z"}},
     "warning 3 since 2026-01-01T12:00:00Z, first a: a b c"},
    {"windows of ten minutes do not reach further",
     {{"a", "&window=10m"}, {"b", "&window=10m"}, {"c", "&window=10m"}},
     {{"a", API_WARNING, "2026-01-01T12:00:00Z"},
      {"b", API_WARNING, "2026-01-01T12:10:00Z"},
      {"c", API_WARNING, "2026-01-01T12:39:59Z"}},
     "warning 1 since 2026-01-01T12:40:00Z, first c: c; warning 2 since 2026-01-01T12:10:00Z, "
     "first a: a b"},
    {"a day on which clocks go back has 25 hours",
     {{"a", "&window=1d&timezone=Europe/Berlin"},
      {"b", "&window=1d&timezone=Europe/Berlin"},
      {"c", "&window=1d&timezone=Europe/Berlin"}},
     {{"a", API_WARNING, "2025-10-25T12:00:00Z"},
      {"b", API_WARNING, "2025-10-26T12:00:00Z"},
      {"c", API_WARNING, "2025-10-28T12:00:00Z"}},
     "warning 1 since 2025-10-28T23:00:00Z, first c: c; warning 2 since 2025-10-25T22:00:00Z, "
     "first a: a b"},
};

Test(monitors_incidents, are_chains)
{
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct api_service service = monitors_new(10);
        for (size_t i = 0; i < COUNT(cases[c].monitors); i++)
            make(&service, cases[c].monitors[i].name, cases[c].monitors[i].query);
        for (size_t i = 0; i < MAX_STEPS && cases[c].steps[i].name; i++)
            observe(&service, cases[c].steps[i].name, cases[c].steps[i].state,
                    cases[c].steps[i].time);
        expect_incidents(&service, cases[c].expected);
        monitors_end(&service);
    }
}

Test(monitors_incidents, say_because_of_what_and_who_is_muted)
{
    struct api_service service = monitors_new(10);
    make(&service, "a", "");
    make(&service, "b", "");
    expect_incidents(&service, "");
    observe(&service, "a", API_WARNING, "2026-01-01T12:00:00Z");
    observe(&service, "b", API_CRITICAL, "2026-01-01T12:10:00Z");
    monitors_expect(&service, "POST /monitors/g/b/mute", "{\"until\":\"ok\",\"reason\":\"Ann\"}",
                    200);
    json_t *group = monitors_get(&service, "GET /groups/g", NULL, 200);
    expect_at(group, "incidents",
              "[{\"count\":2,\"first\":\"a\",\"monitors\":[{\"muted\":{\"reason\":\"Ann\","
              "\"scope\":\"monitor\",\"until\":\"ok\"},\"name\":\"b\",\"since\":"
              "\"2026-01-01T12:10:00Z\",\"state\":\"critical\"},{\"muted\":null,\"name\":\"a\","
              "\"since\":\"2026-01-01T12:00:00Z\",\"state\":\"warning\"}],"
              "\"sentence\":\"[1, 2]: 50 % → 25 %; [0, 1): 50 % → 75 %\","
              "\"since\":\"2026-01-01T12:00:00Z\",\"state\":\"critical\"}]");
    json_decref(group);
    monitors_end(&service);
}

enum { MANY = 60 };

Test(monitors_incidents, list_fifty_monitors)
{
    struct api_service service = monitors_new(MANY);
    char name[20];
    for (size_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%zu", i);
        make(&service, name, "");
        observe(&service, name, i < 55 ? API_WARNING : API_CRITICAL, "2026-01-01T12:00:00Z");
    }
    json_t *group = monitors_get(&service, "GET /groups/g", NULL, 200);
    expect_at(group, "incidents.0.count", "60");
    cr_expect_eq(json_array_size(at(group, "incidents.0.monitors")), 50);
    expect_at(group, "incidents.0.monitors.0.name", "\"m55\"");
    expect_at(group, "incidents.0.monitors.49.name", "\"m44\"");
    json_decref(group);
    monitors_end(&service);
}

/* ---- All pairs */

enum { MAX_ONSETS = 24 };

static bool reaches(const struct api_onset *from, const struct api_onset *to)
{
    return from->reach.start <= to->since && to->since <= from->reach.end;
}

/* Gives each onset the least index of its chain, until nothing changes any more. */
static void search_chains(const struct api_onset *onsets, size_t n, size_t *chains)
{
    for (size_t i = 0; i < n; i++)
        chains[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                if ((reaches(&onsets[i], &onsets[j]) || reaches(&onsets[j], &onsets[i])) &&
                    chains[i] < chains[j]) {
                    chains[j] = chains[i];
                    changed = true;
                }
    }
}

Test(monitors_incidents, random_onsets_are_cut_as_all_pairs_say)
{
    size_t alone = 0, together = 0;
    srand(1);
    for (size_t round = 0; round < 20000; round++) {
        size_t n = (size_t)rand() % (MAX_ONSETS + 1), chains[MAX_ONSETS];
        int64_t range = 1 + rand() % 300;
        struct api_onset onsets[MAX_ONSETS];
        for (size_t i = 0; i < n; i++) {
            int64_t since = rand() % 10 ? rand() % range : API_NO_TIME;
            int64_t before = rand() % 12, after = rand() % 12;
            if (since == API_NO_TIME)
                before = after = 0;
            onsets[i] = (struct api_onset){
                .rank = i, .since = since, .reach = {since - before, since + after}};
        }
        api_incidents_link(onsets, n);
        search_chains(onsets, n, chains);
        for (size_t i = 0; i < n; i++) {
            bool ends = i + 1 == n || chains[i + 1] != chains[i];
            cr_assert_eq(onsets[i].is_last, ends, "round %zu, onset %zu of %zu", round, i, n);
            ++*(ends ? &alone : &together);
            cr_assert(
                i + 1 == n || onsets[i].since < onsets[i + 1].since ||
                (onsets[i].since == onsets[i + 1].since && onsets[i].rank < onsets[i + 1].rank));
        }
    }
    cr_expect_gt(alone, 10000);
    cr_expect_gt(together, 10000);
}

/* ---- Groups, from outside */

enum { COLUMNS = 12, HOUR = 3600 };

/* column: a monitor as the requests have made it. */
struct column {
    long length; /* of a window; 0 for one request each */
    enum api_verdict state;
    long since, end; /* end: of its last window */
};

/* Has a column take a state in a window of a time, unless it had that window. */
static void take(const struct api_service *service, struct column *column, size_t i,
                 enum api_verdict state, long time)
{
    char name[20], when[40];
    long end = column->length ? (time / column->length + 1) * column->length : time;
    bool was_ok = column->state < API_WARNING;
    if (end == column->end)
        return;
    snprintf(name, sizeof name, "m%02zu", i);
    snprintf(when, sizeof when, "%ld", time);
    observe(service, name, state, when);
    column->state = state;
    column->end = end;
    if (was_ok && state >= API_WARNING)
        column->since = end;
}

/* Tells that both columns are not ok, and left it so near to each other that they belong together. */
static bool are_near(const struct column *a, const struct column *b)
{
    long one = a->length ? a->length : HOUR, other = b->length ? b->length : HOUR;
    return a->state >= API_WARNING && b->state >= API_WARNING &&
           labs(a->since - b->since) <= (one > other ? one : other);
}

static size_t chain_of(const struct column *columns, size_t i)
{
    bool in[COLUMNS] = {[0] = false};
    in[i] = true;
    for (size_t round = 0; round < COLUMNS; round++)
        for (size_t a = 0; a < COLUMNS; a++)
            for (size_t b = 0; b < COLUMNS; b++)
                in[b] |= in[a] && are_near(&columns[a], &columns[b]);
    size_t least = 0;
    while (!in[least])
        least++;
    return least;
}

/* Expects that the monitors of an incident are those of one chain, all of it, with its worst state and its first. */
static size_t expect_chain(const json_t *incident, const struct column *columns)
{
    size_t n = 0, firsts = 0, chain = COLUMNS, i;
    json_t *monitor;
    long since = 0;
    enum api_verdict worst = API_OK;
    json_array_foreach(at(incident, "monitors"), i, monitor)
    {
        size_t index = (size_t)atoi(text_at(monitor, "name") + 1);
        const struct column *column = &columns[index];
        chain = i == 0 ? chain_of(columns, index) : chain;
        cr_expect_eq(chain_of(columns, index), chain);
        cr_expect_str_eq(text_at(monitor, "state"), api_verdict_names[column->state]);
        worst = column->state > worst ? column->state : worst;
        firsts = i == 0 || column->since < since ? 1 : firsts + (column->since == since);
        since = i == 0 || column->since < since ? column->since : since;
    }
    for (size_t j = 0; j < COLUMNS; j++)
        n += columns[j].state >= API_WARNING && chain_of(columns, j) == chain;
    cr_expect_eq(n, (size_t)number_at(incident, "count"));
    cr_expect_eq(n, json_array_size(at(incident, "monitors")));
    cr_expect_str_eq(text_at(incident, "state"), api_verdict_names[worst]);
    cr_expect_eq(json_is_null(at(incident, "first")), firsts > 1);
    for (size_t j = 0; firsts == 1 && j < COLUMNS; j++)
        if (columns[j].state >= API_WARNING && chain_of(columns, j) == chain &&
            columns[j].since == since)
            cr_expect_eq((size_t)atoi(text_at(incident, "first") + 1), j);
    return n;
}

Test(monitors_incidents, of_random_groups_are_what_their_requests_say)
{
    static const long lengths[] = {0, 0, 600, HOUR, 6 * HOUR};
    size_t incidents = 0, members = 0;
    srand(2);
    for (size_t round = 0; round < 25; round++) {
        struct api_service service = monitors_new(COLUMNS);
        struct column columns[COLUMNS];
        long time = 1700000000;
        for (size_t i = 0; i < COLUMNS; i++) {
            char name[20], query[40] = "";
            columns[i] = (struct column){.length = lengths[(size_t)rand() % COUNT(lengths)]};
            snprintf(name, sizeof name, "m%02zu", i);
            if (columns[i].length)
                snprintf(query, sizeof query, "&window=%lds", columns[i].length);
            make(&service, name, query);
        }
        for (size_t step = 0; step < 30; step++) {
            size_t i = (size_t)rand() % COLUMNS;
            time += 6 * HOUR * (rand() % 6 == 0) + rand() % HOUR;
            take(&service, &columns[i], i, (enum api_verdict)(API_OK + rand() % 3), time);
        }
        json_t *group = monitors_get(&service, "GET /groups/g", NULL, 200), *incident;
        size_t i, n = 0;
        json_array_foreach(at(group, "incidents"), i, incident) n +=
            expect_chain(incident, columns);
        cr_expect_eq(n, json_array_size(at(group, "drifting")), "round %zu", round);
        incidents += json_array_size(at(group, "incidents"));
        members += n;
        json_decref(group);
        monitors_end(&service);
    }
    cr_expect_gt(incidents, 50);
    cr_expect_gt(members, incidents + 50);
}
