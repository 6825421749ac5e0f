/* Time zones, beside Python's zoneinfo and the C library. */
#include "api/text/zone.h"
#include "tests/suites/support/support.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const int64_t second_us = 1000000;

static int64_t second_at(const json_t *row, size_t i)
{
    return (int64_t)json_integer_value(json_array_get(row, i));
}

/* ---- The file of zones.py */

/* Writes the file of a row where a name leads to, below TZDIR. */
static const struct api_zone *install(const json_t *row, const char *name)
{
    char path[200];
    size_t size;
    char *bytes = decode_base64(text_of(row, "file"), &size);
    snprintf(path, sizeof path, "%s/%s", api_zone_folder(), name);
    FILE *file = fopen(path, "wb");
    cr_assert(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
    return api_zone_find(name);
}

static void replay(const json_t *row, const char *name)
{
    const struct api_zone *zone = install(row, name);
    const char *of = text_of(row, "name");
    struct api_tz_span hint = {0}, back = {0};
    size_t i;
    json_t *pair;
    cr_assert(zone, "%s is not read", of);
    json_array_foreach(json_object_get(row, "utc"), i, pair)
    {
        int64_t time = second_at(pair, 0) * second_us + 123456,
                local = second_at(pair, 1) * second_us + 123456;
        cr_expect_eq(api_zone_to_local(zone, time, i % 2 ? &hint : NULL), local, "%s at %lld", of,
                     (long long)second_at(pair, 0));
    }
    json_array_foreach(json_object_get(row, "local"), i, pair)
    {
        int64_t skipped, time = api_zone_to_utc(zone, second_at(pair, 0) * second_us + 7,
                                                i % 2 ? &back : NULL, &skipped);
        cr_expect_eq(time, second_at(pair, 1) * second_us + 7, "%s at local %lld: %lld", of,
                     (long long)second_at(pair, 0), (long long)(time / second_us));
        cr_expect_eq(skipped < INT64_MAX, json_is_true(json_array_get(pair, 2)),
                     "%s at local %lld is skipped", of, (long long)second_at(pair, 0));
        cr_expect(skipped == INT64_MAX || skipped <= time);
    }
}

Test(zones, are_those_of_python)
{
    char folder[] = "/tmp/zones-XXXXXX", name[20];
    size_t size, n = 0;
    char *all = read_file("tests/tools/golden/zones.jsonl", &size), *rest = all;
    cr_assert(mkdtemp(folder));
    setenv("TZDIR", folder, 1);
    for (char *line; (line = strtok_r(rest, "\n", &rest)); n++) {
        json_t *row = json_loads(line, 0, NULL);
        cr_assert(row);
        snprintf(name, sizeof name, "Zone%zu", n);
        replay(row, name);
        char path[100];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        unlink(path);
        json_decref(row);
    }
    cr_expect_gt(n, 30);
    rmdir(folder);
    free(all);
}

/* ---- The files of this machine */

static const char *const names[] = {"Europe/Berlin", "America/New_York",  "America/Sao_Paulo",
                                    "Asia/Kolkata",  "Asia/Jerusalem",    "Australia/Lord_Howe",
                                    "Pacific/Apia",  "Africa/Casablanca", "America/Nuuk",
                                    "Europe/Dublin", "Etc/GMT-14"};

/* Compares random times with those of the C library by a name or a rule, which it has from 1971 on. */
static void compare(const struct api_zone *zone, const char *tz, int64_t from,
                    unsigned long long *state)
{
    struct api_tz_span hint = {0};
    setenv("TZ", tz, 1);
    tzset();
    for (size_t k = 0; k < 1000; k++) {
        time_t second = from + (time_t)(uniform(state) * 1e10);
        struct tm there;
        localtime_r(&second, &there);
        int64_t local = api_zone_to_local(zone, second * second_us, &hint);
        cr_expect_eq(local, (second + there.tm_gmtoff) * second_us, "%s at %lld", tz,
                     (long long)second);
        int64_t time = api_zone_to_utc(zone, local, NULL, NULL);
        cr_expect_leq(time, second * second_us);
        cr_expect_eq(api_zone_to_local(zone, time, NULL), local, "%s at %lld", tz,
                     (long long)second);
    }
}

Test(zones, are_those_of_the_c_library)
{
    unsigned long long state = 44;
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct api_zone *zone = api_zone_find(names[i]);
        cr_assert(zone, "%s", names[i]);
        cr_expect_eq(api_zone_find(names[i]), zone);
        compare(zone, names[i], -4000000000, &state);
    }
}

/* Rules of each form of a day and of a time. */
static const char *const rules[] = {
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "EST5EDT,M3.2.0/2:00,M11.1.0/2:00:00",
    "AAA3BBB,J59,J60",
    "AAA-3BBB,58/0,59/23:59:59",
    "AAA3:30BBB2,J60/-1,J300/30",
    "AAA-12:45BBB-13:45,100/167,200/-167",
    "IST-2IDT,M3.4.4/26,M10.5.0",
    "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
    "AAA0BBB,M9.1.6,M4.1.6",
    "IST-1GMT0,M10.5.0,M3.5.0/1",
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    "XYZ12:34:56",
};

Test(zones, by_rules_are_those_of_the_c_library)
{
    unsigned long long state = 4;
    char name[20];
    for (size_t i = 0; i < COUNT(rules); i++) {
        snprintf(name, sizeof name, "Rule%zu", i);
        api_zone_keep(name, rules[i]);
        cr_assert(api_zone_find(name), "%s", rules[i]);
        compare(api_zone_find(name), rules[i], 31536000, &state);
    }
}

Test(zones, rules_that_are_none)
{
    static const char *const none[] = {"",
                                       "CE-1",
                                       "CET",
                                       "CET-25",
                                       "CET-1CEST",
                                       "<CE-1",
                                       "CET-1:60",
                                       "CET-1CEST,M3.5.0",
                                       "CET-1CEST,M13.5.0,M10.5.0",
                                       "CET-1CEST,M3.6.0,M10.5.0",
                                       "CET-1CEST,M3.5.7,M10.5.0",
                                       "CET-1CEST,J0,J1",
                                       "CET-1CEST,J366,J1",
                                       "CET-1CEST,366,1",
                                       "CET-1CEST,1/168,2",
                                       "CET-1CEST,1,2 ",
                                       "CET-1CEST,1,2,3"};
    struct api_tz_rule rule;
    for (size_t i = 0; i < COUNT(none); i++)
        cr_expect_not(api_tz_rule_read(none[i], &rule), "%s", none[i]);
}

/* ---- Names */

Test(zones, of_texts)
{
    static const struct {
        const char *text, *name; /* NULL: none */
        int64_t offset;
    } cases[] = {
        {"UTC", "UTC", 0},
        {"Etc/UTC", "Etc/UTC", 0},
        {"+02:00", "+02:00", 7200},
        {" 02:00", "+02:00", 7200},
        {"-09:30", "-09:30", -34200},
        {"+23:59", "+23:59", 86340},
        {"Asia/Tokyo", "Asia/Tokyo", 32400},
        {"+24:00", NULL, 0},
        {"+02:60", NULL, 0},
        {"+2:00", NULL, 0},
        {"+02:00x", NULL, 0},
        {"+0200", NULL, 0},
        {"+ 2:00", NULL, 0},
        {"02:00", NULL, 0},
        {"", NULL, 0},
        {"Europe", NULL, 0},
        {"Europe/", NULL, 0},
        {"Europe/Nowhere", NULL, 0},
        {"europe/berlin", NULL, 0},
        {"/etc/localtime", NULL, 0},
        {"../zoneinfo/Europe/Berlin", NULL, 0},
        {"Europe/../Asia/Tokyo", NULL, 0},
        {"tzdata.zi", NULL, 0},
        {"zone1970", NULL, 0},
        {"Europe/Berlin\n", NULL, 0},
        {"Europe/Berlin/Europe/Berlin/Europe/Berlin/Europe/Berlin/Europe/Berlin", NULL, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct api_zone *zone = api_zone_find(cases[i].text);
        cr_expect_eq(zone != NULL, cases[i].name != NULL, "%s", cases[i].text);
        if (!zone || !cases[i].name)
            continue;
        cr_expect_str_eq(api_zone_name(zone), cases[i].name);
        cr_expect_eq(api_zone_to_local(zone, 0, NULL), cases[i].offset * second_us);
        cr_expect_eq(api_zone_to_utc(zone, 0, NULL, NULL), -cases[i].offset * second_us);
        cr_expect_eq(api_zone_find(api_zone_name(zone)), zone);
    }
}

Test(zones, that_are_unknown_are_told_the_nearest)
{
    static const char *const cases[][2] = {
        {"Europe/Berln", "Europe/Berlin"},  {"europe/berlin", "Europe/Berlin"},
        {"Berlin", "Europe/Berlin"},        {"America/Los Angeles", "America/Los_Angeles"},
        {"sao_paulo", "America/Sao_Paulo"}, {"Nowhere/AtAll", ""}};
    char nearest[API_ZONE_NAME];
    for (size_t i = 0; i < COUNT(cases); i++) {
        api_zone_nearest(cases[i][0], nearest);
        cr_expect_str_eq(nearest, cases[i][1], "%s: %s", cases[i][0], nearest);
    }
    setenv("TZDIR", "/nowhere", 1);
    api_zone_nearest("Berlin", nearest);
    cr_expect_str_eq(nearest, "");
}

/* A rule is kept for a name without a file, and for no other. */
Test(zones, are_kept_by_a_rule)
{
    api_zone_keep("Europe/Berlin", "XXX0");
    cr_expect_str_eq(api_zone_rule(api_zone_find("Europe/Berlin")), "CET-1CEST,M3.5.0,M10.5.0/3");
    cr_expect_not(api_zone_is_kept(api_zone_find("Europe/Berlin")));
    api_zone_keep("Mars/Base", "no rule");
    cr_expect_null(api_zone_find("Mars/Base"));
    api_zone_keep("Mars/Base", "MST3MDT,M3.2.0,M11.1.0");
    const struct api_zone *zone = api_zone_find("Mars/Base");
    cr_assert(zone);
    cr_expect(api_zone_is_kept(zone));
    cr_expect_str_eq(api_zone_rule(zone), "MST3MDT,M3.2.0,M11.1.0");
    cr_expect_eq(api_zone_to_local(zone, 0, NULL), -10800 * second_us);
}

/* ---- What is no file */

/* Changes and cuts bytes of files: what is read must not lie outside, which a sanitizer sees, and gives spans. */
Test(zones, of_damaged_files)
{
    size_t size, n_read = 0;
    unsigned long long state = 8536;
    char *all = read_file("tests/tools/golden/zones.jsonl", &size), *rest = all;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        json_t *row = json_loads(line, 0, NULL);
        size_t n;
        char *bytes = decode_base64(text_of(row, "file"), &n);
        for (size_t k = 0; k < 200; k++) {
            size_t cut = k % 4 ? n : (size_t)(uniform(&state) * (double)n);
            unsigned char *copy = malloc(cut > 0 ? cut : 1);
            memcpy(copy, bytes, cut);
            for (size_t j = 0; cut > 0 && j < 1 + k % 3; j++)
                copy[(size_t)(uniform(&state) * (double)cut)] =
                    (unsigned char)(uniform(&state) * 256);
            struct api_tzif tzif;
            if (api_tzif_read(&tzif, copy, cut)) {
                int64_t second = (int64_t)((uniform(&state) - 0.5) * 1e11);
                struct api_tz_span span = api_tzif_span(&tzif, second);
                cr_expect(span.from <= second && second < span.to);
                n_read++;
                free(tzif.times);
            }
            free(copy);
        }
        free(bytes);
        json_decref(row);
    }
    cr_expect_gt(n_read, 100);
    free(all);
}
