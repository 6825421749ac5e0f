/* New references of a group: settings stay, and bins are those that a PUT makes. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 400, TABLE = 1 << 16 };

/* Writes a table of three columns, of numbers, whole numbers and texts. */
static void make_table(unsigned long long *seed, char *to)
{
    static const char *const texts[] = {"red", "green", "blue"};
    char *p = to + sprintf(to, "x,y,z\n");
    for (size_t i = 0; i < ROWS; i++)
        p += sprintf(p, "%.3f,%d,%s\n", uniform(seed) * 100, (int)(uniform(seed) * 5),
                     texts[(size_t)(uniform(seed) * 3)]);
}

/* Copies a config without the members that `names` lists, in a text that the caller frees. */
static char *without(const json_t *config, const char *const *names)
{
    json_t *copy = json_copy((json_t *)config);
    for (; *names; names++)
        json_object_del(copy, *names);
    char *text = json_dumps(copy, JSON_SORT_KEYS);
    json_decref(copy);
    return text;
}

static void expect_same(const json_t *a, const json_t *b, const char *const *except)
{
    char *first = without(a, except), *second = without(b, except);
    cr_expect_str_eq(first, second);
    free(first);
    free(second);
}

static json_t *config_of(const struct api_service *service, const char *path)
{
    char line[100];
    snprintf(line, sizeof line, "GET /monitors/%s", path);
    return monitors_get(service, line, NULL, 200);
}

/* True if a list of warnings has one with this code and column. */
static bool warns(const json_t *response, const char *code, const char *column)
{
    const json_t *warning;
    size_t i;
    json_array_foreach(at(response, "warnings"), i,
                       warning) if (strcmp(text_at(warning, "code"), code) == 0 &&
                                    strcmp(text_at(warning, "column"), column) == 0) return true;
    return false;
}

/* The oracle of bins is a group that gets the second table by PUT; that of settings is the config before. */
Test(monitors_promote, a_table_brings_bins_and_leaves_settings)
{
    static const char *const made[] = {"bins", "reference", "revision", NULL},
                             *const others[] = {"group",
                                                "name",
                                                "revision",
                                                "window",
                                                "compare",
                                                "thresholds",
                                                "pool",
                                                "fire_after",
                                                "clear_after",
                                                "ratio",
                                                "volume",
                                                "stale_after",
                                                "retention_days",
                                                "pseudocount",
                                                "muted",
                                                "annotations",
                                                "min_observations",
                                                NULL};
    static const char *const names[] = {"x", "y", "z"};
    static const char *const queries[] = {"", "?method=width&bins=4", "?bins=3"};
    struct api_service service = monitors_new(100);
    unsigned long long seed = 5;
    char *table = malloc(TABLE), path[40], line[200];
    for (size_t round = 0; round < COUNT(queries); round++) {
        make_table(&seed, table);
        snprintf(line, sizeof line,
                 "PUT /monitors/a%zu?warning=0.3&critical=0.7&fire_after=2&"
                 "stale_after=77&window=3600s&ratio=3,9&compare=previous:2@2h",
                 round);
        monitors_expect(&service, line, table, 201);
        snprintf(line, sizeof line, "PATCH /monitors/a%zu/y", round);
        monitors_expect(&service, line, "{\"annotations\":{\"o\":\"r\"},\"pool\":4}", 200);
        snprintf(line, sizeof line, "POST /monitors/a%zu/x/mute", round);
        monitors_expect(&service, line, "{\"seconds\":9000,\"reason\":\"r\"}", 200);
        json_t *before[COUNT(names)];
        for (size_t i = 0; i < COUNT(names); i++) {
            snprintf(path, sizeof path, "a%zu/%s", round, names[i]);
            before[i] = config_of(&service, path);
        }
        make_table(&seed, table);
        snprintf(line, sizeof line, "PUT /monitors/b%zu%s", round, queries[round]);
        monitors_expect(&service, line, table, 201);
        snprintf(line, sizeof line, "POST /monitors/a%zu/reference%s", round, queries[round]);
        monitors_expect(&service, line, table, 200);
        for (size_t i = 0; i < COUNT(names); i++) {
            snprintf(path, sizeof path, "a%zu/%s", round, names[i]);
            json_t *after = config_of(&service, path);
            *path = 'b';
            json_t *oracle = config_of(&service, path);
            expect_same(after, before[i], made);
            expect_same(after, oracle, others);
            expect_at(after, "revision", "2");
            json_decref(after);
            json_decref(oracle);
            json_decref(before[i]);
        }
    }
    free(table);
    monitors_end(&service);
}

Test(monitors_promote, columns_that_differ_are_told)
{
    struct api_service service = monitors_new(100);
    monitors_expect(&service, "PUT /monitors/g?include=a,b,n", "a,b,n\n1,2,3\n4,5,6\n", 201);
    json_t *json =
        monitors_get(&service, "POST /monitors/g/reference", "a,c,,n\n7,1,1,\n8,2,2,\n", 200);
    cr_expect_eq(json_array_size(at(json, "monitors")), 1);
    expect_at(json, "monitors.0.name", "\"a\"");
    expect_at(json, "monitors.0.revision", "2");
    cr_expect(warns(json, "column_unknown", "c"));
    cr_expect(warns(json, "column_unnamed", ""));
    cr_expect(warns(json, "column_absent", "b"));
    cr_expect(warns(json, "column_empty", "n"));
    json_decref(json);
    json = config_of(&service, "g/b");
    expect_at(json, "revision", "1");
    json_decref(json);
    json = monitors_get(&service, "POST /monitors/g/reference?dry_run=true", "a\n70\n80\n", 200);
    expect_at(json, "monitors.0.revision", "3");
    json_decref(json);
    json = config_of(&service, "g/a");
    expect_at(json, "revision", "2");
    json_decref(json);
    monitors_end(&service);
}

/* A column that looks like an id gets no monitor by PUT; one that has a monitor gets its reference. */
Test(monitors_promote, columns_with_a_monitor_are_wanted)
{
    struct api_service service = monitors_new(100);
    char *table = malloc(TABLE), *p = table + sprintf(table, "id,v\n");
    for (int i = 0; i < ROWS; i++)
        p += sprintf(p, "%d,%d\n", i, i % 9);
    monitors_expect(&service, "PUT /monitors/g?include=id,v", table, 201);
    p = table + sprintf(table, "id,v\n");
    for (int i = 0; i < ROWS; i++)
        p += sprintf(p, "%d,%d\n", 1000 + i, i % 7);
    json_t *json = monitors_get(&service, "POST /monitors/g/reference", table, 200);
    cr_expect_eq(json_array_size(at(json, "monitors")), 2);
    expect_at(json, "warnings", "[]");
    json_decref(json);
    free(table);
    monitors_end(&service);
}

/* Numbers that were labels stay labels, however many there are now; a method says otherwise. */
Test(monitors_promote, labels_stay_labels)
{
    struct api_service service = monitors_new(100);
    char *table = malloc(TABLE), *p = table + sprintf(table, "zip\n");
    monitors_expect(&service, "PUT /monitors/g?method=labels", "zip\n10115\n20095\n10115\n", 201);
    for (int i = 0; i < ROWS; i++)
        p += sprintf(p, "%d\n", 10000 + i % 33);
    json_t *json = monitors_get(&service, "POST /monitors/g/reference", table, 200);
    cr_expect_eq(json_array_size(at(json, "monitors.0.bins.labels")), 33);
    json_decref(json);
    json = monitors_get(&service, "POST /monitors/g/reference?method=quantile", table, 200);
    cr_expect_not_null(at(json, "monitors.0.bins.edges"));
    json_decref(json);
    free(table);
    monitors_end(&service);
}

/* Only monitors that are included get a new reference, also those whose names have commas. */
Test(monitors_promote, others_than_those_included_stay)
{
    static const char *const lines[] = {"&include=a", "&include=c,d,a", "&include=c,d", ""};
    static const char *const revisions[][3] = {
        {"2", "1", "1"}, {"3", "1", "2"}, {"3", "1", "3"}, {"4", "2", "4"}};
    static const char *const names[] = {"a", "b", "c,d"};
    struct api_service service = monitors_new(100);
    char line[100], body[100];
    monitors_expect(&service, "PUT /monitors/t", "a,b,\"c,d\"\n1,2,3\n4,5,6\n", 201);
    monitors_expect(&service, "PUT /monitors/p", "a,b,\"c,d\"\n1,2,3\n4,5,6\n", 201);
    for (int i = 0; i < (int)COUNT(lines); i++) {
        snprintf(line, sizeof line, "POST /monitors/t/reference?method=width%s", lines[i]);
        snprintf(body, sizeof body, "a,b,\"c,d\",e\n%.*s1,2,3,4\n", 8 * i,
                 "1,2,3,4\n1,2,3,4\n1,2,3,4\n");
        json_t *json = monitors_get(&service, line, body, 200);
        cr_expect_eq(warns(json, "column_unknown", "e"), !*lines[i]);
        json_decref(json);
        snprintf(line, sizeof line, "POST /monitors/p/observations?timestamp=%d", 1000 + i);
        monitors_expect(&service, line, body, 200);
        snprintf(line, sizeof line, "POST /monitors/p/reference?method=width%s", lines[i]);
        snprintf(body, sizeof body, "{\"from\":%d,\"to\":%d}", 1000 + i, 1001 + i);
        monitors_expect(&service, line, body, 200);
        for (size_t g = 0; g < 2; g++)
            for (size_t k = 0; k < COUNT(names); k++) {
                snprintf(line, sizeof line, "%s/%s", g ? "p" : "t", k == 2 ? "c%2Cd" : names[k]);
                json = config_of(&service, line);
                expect_at(json, "revision", revisions[i][k]);
                json_decref(json);
            }
    }
    monitors_end(&service);
}

#define ROW "{\"counts\":[%d,%d],\"timestamp\":%d}"

/* Each monitor of a group as if it alone were included; one without a window in the period stays. */
Test(monitors_promote, a_period_is_that_of_each_monitor)
{
    static const char *const names[] = {"a", "b", "late"}, *const except[] = {"group", NULL};
    struct api_service service = monitors_new(100);
    char line[100], body[100];
    for (size_t g = 0; g < 2; g++)
        for (int i = 0; i < 3; i++) {
            snprintf(line, sizeof line, "PUT /monitors/%s/%s?warning=0.3&critical=0.4",
                     g ? "alone" : "group", names[i]);
            monitors_expect(&service, line,
                            "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}", 201);
            for (int t = 0; t < 5; t++) {
                snprintf(line, sizeof line, "POST /monitors/%s/%s/observations",
                         g ? "alone" : "group", names[i]);
                snprintf(body, sizeof body, ROW, 10 + i, 20 + t, 100 * t + (i == 2 ? 9000 : 0));
                monitors_expect(&service, line, body, 200);
            }
        }
    json_t *json =
        monitors_get(&service, "POST /monitors/group/reference", "{\"from\":100,\"to\":400}", 200);
    cr_expect_eq(json_array_size(at(json, "monitors")), 2);
    cr_expect(warns(json, "windows_missing", "late"));
    expect_at(json, "monitors.1.reference.counts", "[33,66]");
    json_decref(json);
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "POST /monitors/alone/reference?include=%s", names[i]);
        monitors_expect(&service, line, "{\"from\":100,\"to\":400}", 200);
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(line, sizeof line, "group/%s", names[i]);
        json_t *of_group = config_of(&service, line);
        snprintf(line, sizeof line, "alone/%s", names[i]);
        json_t *alone = config_of(&service, line);
        expect_same(of_group, alone, except);
        json_decref(of_group);
        json_decref(alone);
    }
    monitors_end(&service);
}

Test(monitors_promote, what_is_refused_changes_nothing)
{
    static const struct {
        const char *line, *body, *problem;
    } cases[] = {
        {"POST /monitors/g/reference", "{}", "reference_empty #"},
        {"POST /monitors/g/reference", "{\"columns\"", "json_malformed"},
        {"POST /monitors/g/reference", "{\"from\":1}", "option_invalid #"},
        {"POST /monitors/g/reference", "{\"from\":1,\"to\":\"x\"}", "timestamp_invalid #/to"},
        {"POST /monitors/g/reference", "{\"from\":1,\"to\":2,\"x\":3}", "option_invalid #"},
        {"POST /monitors/g/reference", "{\"from\":0,\"to\":9}", "windows_missing"},
        {"POST /monitors/g/reference", "{\"columns\":{\"zz\":[1]}}", "columns_unknown"},
        {"POST /monitors/g/reference", "{\"columns\":{}}", "columns_unknown"},
        {"POST /monitors/g/reference", "{\"columns\":{\"a\":[null]}}", "reference_empty"},
        {"POST /monitors/g/reference", "{\"columns\":{\"a\":[8],\"b\":[1,2]}}",
         "columns_unequal #/columns/b"},
        {"POST /monitors/g/reference", "a,b\n8,9\n7\n", "csv_malformed"},
        {"POST /monitors/g/reference", "{\"columns\":{\"a\":[8]},\"warning\":1}",
         "option_unknown #/warning ~PATCH"},
        {"POST /monitors/g/reference?warning=1", "a\n8\n", "option_unknown ?warning ~PATCH"},
        {"POST /monitors/g/reference?exclude=a", "a\n8\n", "option_unknown ?exclude"},
        {"POST /monitors/g/reference?include=x", "a,x\n8,9\n",
         "column_missing ?include ~no monitor 'x'"},
        {"POST /monitors/g/reference?include=b", "a\n8\n",
         "column_missing ?include ~no column 'b'"},
        {"POST /monitors/g/reference?include=a,x", "{\"from\":0,\"to\":9}",
         "column_missing ?include ~no monitor 'x'"},
        {"POST /monitors/g/reference?include=a", "{\"from\":0,\"to\":9}",
         "windows_missing ~of these monitors"},
        {"POST /monitors/g/a/reference", "{\"from\":0,\"to\":9}", "not_found"},
        {"POST /monitors/g/reference?dry_run=1", "a\n8\n", "option_invalid ?dry_run"},
        {"POST /monitors/none/reference", "a\n8\n", "group_not_found"},
    };
    struct api_service service = monitors_new(100);
    monitors_expect(&service, "PUT /monitors/g", "a,b\n1,2\n3,4\n", 201);
    json_t *before = monitors_get(&service, "GET /monitors/g", NULL, 200);
    for (size_t i = 0; i < COUNT(cases); i++)
        monitors_refused(&service, cases[i].line, cases[i].body, cases[i].problem);
    struct answer answer =
        monitors_send(&service, &(struct monitors_request){.line = "POST /monitors/g/reference",
                                                           .body = "a\n8\n",
                                                           .headers = {{"If-Match", "\"1-1\""}}});
    cr_expect_eq(answer.status, 412);
    answer_free(&answer);
    json_t *after = monitors_get(&service, "GET /monitors/g", NULL, 200);
    cr_expect(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    monitors_end(&service);
}

/* ---- A PUT of a table that resets settings */

Test(monitors_promote, a_put_tells_of_settings_that_it_resets)
{
    static const struct {
        const char *first, *patch, *second, *reset; /* reset: NULL if nothing is told */
    } cases[] = {
        {"", "{}", "", NULL},
        {"warning=0.05", "{}", "", "warning"},
        {"warning=0.05", "{}", "warning=0.06", NULL},
        {"warning=0.05", "{}", "warning=0.02", NULL}, /* it says the default */
        {"window=60s&compare=previous:2", "{}", "", "window, compare"},
        {"ratio=2,4&pool=8&min_observations=9", "{}", "pool=8", "min_observations, ratio"},
        {"stale_after=5", "{\"annotations\":{\"a\":1}}", "", "stale_after, annotations"},
        {"method=width&bins=3", "{}", "", NULL}, /* a config does not have them */
    };
    struct api_service service = monitors_new(100);
    char line[200], expected[200];
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(line, sizeof line, "PUT /monitors/g%zu?%s", i, cases[i].first);
        monitors_expect(&service, line, "a\n1\n2\n", 201);
        snprintf(line, sizeof line, "PATCH /monitors/g%zu", i);
        monitors_expect(&service, line, cases[i].patch, 200);
        snprintf(line, sizeof line, "PUT /monitors/g%zu?%s", i, cases[i].second);
        json_t *json = monitors_get(&service, line, "a\n1\n3\n", 200);
        cr_expect_eq(warns(json, "settings_reset", "a"), cases[i].reset != NULL, "%zu", i);
        snprintf(expected, sizeof expected, "give them: %s;", cases[i].reset ? cases[i].reset : "");
        const json_t *warning = at(json, "warnings.0");
        for (size_t j = 0; cases[i].reset && strcmp(text_at(warning, "code"), "settings_reset");
             j++)
            warning = json_array_get(at(json, "warnings"), j);
        if (cases[i].reset)
            cr_expect(strstr(text_at(warning, "message"), expected), "%s",
                      text_at(warning, "message"));
        json_decref(json);
    }
    json_t *json = monitors_get(&service, "PUT /monitors/g1/a?warning=0.1", "a\n1\n4\n", 200);
    cr_expect_not(warns(json, "settings_reset", "a"));
    json_decref(json);
    json = monitors_get(&service, "PUT /monitors/g1/a",
                        "{\"columns\":{\"a\":[1,5]},\"thresholds\":{\"warning\":0.02}}", 200);
    cr_expect_not(warns(json, "settings_reset", "a"));
    json_decref(json);
    monitors_end(&service);
}
