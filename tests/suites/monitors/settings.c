/* Settings of monitors: each by JSON and by query, its bounds, names that are unknown. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* BINS: a monitor whose bins are given. */
#define BINS "\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [1, 2]}"

/* Asks for a monitor with a member, and gives the answer. */
static json_t *put_member(const struct api_service *service, const char *member, int status)
{
    char body[600];
    snprintf(body, sizeof body, "{" BINS "%s%s}", *member ? ", " : "", member);
    return monitors_get(service, "PUT /monitors/g/m", body, status);
}

/* A setting as a member, as parameters, and as the answer has it. */
static const struct {
    const char *member, *query, *path, *expected;
} good[] = {
    {"", "", "window", "\"batch\""},
    {"", "", "compare", "\"reference\""},
    {"", "", "pseudocount", "0.5"},
    {"", "", "min_observations", "null"},
    {"", "", "thresholds", "{\"critical\":0.1,\"significance\":0.0001,\"warning\":0.02}"},
    {"", "", "fire_after", "1"},
    {"", "", "pool", "16"},
    {"", "", "clear_after", "3"},
    {"", "", "stale_after", "null"},
    {"", "", "retention_days", "90"},
    {"", "", "annotations", "{}"},
    {"", "", "timezone", "\"UTC\""},
    {"\"timezone\": \"+02:00\"", "timezone=+02:00", "timezone", "\"+02:00\""},
    {"\"timezone\": [\"-09:30\"]", "timezone=-09:30", "timezone", "\"-09:30\""},
    {"\"timezone\": \"Europe/Berlin\"", "timezone=Europe/Berlin", "timezone", "\"Europe/Berlin\""},
    {"\"timezone\": \"Europe/Berlin\"", "timezone=Europe%2FBerlin", "timezone_rule",
     "\"CET-1CEST,M3.5.0,M10.5.0/3\""},
    {"\"timezone_rule\": \"XYZ3\"", "timezone=UTC", "timezone", "\"UTC\""},
    {"\"window\": \"batch\"", "window=batch", "window", "\"batch\""},
    {"\"window\": {\"seconds\": 1}", "window=1s", "window", "{\"grace\":0,\"seconds\":1}"},
    {"\"window\": {\"seconds\": 3600, \"grace\": 60}", "window=3600s,60s", "window",
     "{\"grace\":60,\"seconds\":3600}"},
    {"\"window\": {\"grace\": 0, \"seconds\": 1e9}", "window=1000000000s%2C0s", "window",
     "{\"grace\":0,\"seconds\":1000000000}"},
    {"\"window\": {\"count\": 1000}", "window=1000", "window", "{\"count\":1000}"},
    {"\"window\": \"1h\"", "window=1h", "window", "{\"grace\":0,\"seconds\":3600}"},
    {"\"window\": \"1d,2h\"", "window=1d,2h", "window", "{\"grace\":7200,\"seconds\":86400}"},
    {"\"window\": \"2w,1m\"", "window=2w%2C1m", "window", "{\"grace\":60,\"seconds\":1209600}"},
    {"\"window\": \"60s,5s\"", "window=60s,5s", "window", "{\"grace\":5,\"seconds\":60}"},
    {"\"compare\": \"reference\"", "compare=reference", "compare", "\"reference\""},
    {"\"compare\": {\"previous\": 1}", "compare=previous:1", "compare", "{\"previous\":1}"},
    {"\"compare\": {\"previous\": 1000}", "compare=previous%3A1000", "compare",
     "{\"previous\":1000}"},
    {"\"pseudocount\": 0", "pseudocount=0", "pseudocount", "0"},
    {"\"pseudocount\": 1e9", "pseudocount=1e9", "pseudocount", "1000000000"},
    {"\"pseudocount\": null", "pseudocount=null", "pseudocount", "0.5"},
    {"\"min_observations\": 0", "min_observations=0", "min_observations", "0"},
    {"\"min_observations\": 7.0", "min_observations=7", "min_observations", "7"},
    {"\"min_observations\": 9007199254740992", "min_observations=9007199254740992",
     "min_observations", "9007199254740992"},
    {"\"min_observations\": null", "min_observations=null", "min_observations", "null"},
    {"\"thresholds\": {\"warning\": 0}", "warning=0", "thresholds.warning", "0"},
    {"\"thresholds\": {\"warning\": 0.5, \"critical\": 0.5}", "warning=0.5&critical=0.5",
     "thresholds.critical", "0.5"},
    {"\"thresholds\": {\"critical\": 1e9}", "critical=1E9", "thresholds.critical", "1000000000"},
    {"\"thresholds\": {\"significance\": 1}", "significance=1", "thresholds.significance", "1"},
    {"\"thresholds\": {\"significance\": 1e-300}", "significance=1e-300", "thresholds.significance",
     "1e-300"},
    {"\"thresholds\": null", "", "thresholds.warning", "0.02"},
    {"\"thresholds\": {\"warning\": null}", "warning=null", "thresholds.warning", "0.02"},
    {"\"pool\": 1", "pool=1", "pool", "1"},
    {"\"pool\": 64.0", "pool=64", "pool", "64"},
    {"\"pool\": null", "pool=null", "pool", "16"},
    {"\"stale_after\": 0.5", "stale_after=0.5", "stale_after", "0.5"},
    {"\"stale_after\": 1e9", "stale_after=1e9", "stale_after", "1000000000"},
    {"\"window\": \"60s\", \"compare\": {\"previous\": 7, \"period\": 120}",
     "window=60s&compare=previous:7@2m", "compare", "{\"period\":120,\"previous\":7}"},
    {"\"window\": \"3600s\", \"compare\": \"previous:7@24h\"", "window=3600s&compare=previous:7@1d",
     "compare", "{\"period\":86400,\"previous\":7}"},
    {"\"window\": \"1d\", \"compare\": \"previous:4@1w\"", "window=24h&compare=previous:4@7d",
     "compare", "{\"period\":604800,\"previous\":4}"},
    {"\"ratio\": null", "ratio=null", "ratio", "null"},
    {"\"ratio\": {\"warning\": 2, \"critical\": 4}", "ratio=2,4", "ratio",
     "{\"critical\":4,\"warning\":2}"},
    {"\"ratio\": {\"warning\": 1.5, \"critical\": [1.5]}", "ratio=1.5%2C1.5", "ratio",
     "{\"critical\":1.5,\"warning\":1.5}"},
    {"\"fire_after\": 1000", "fire_after=1000", "fire_after", "1000"},
    {"\"clear_after\": 1000", "clear_after=1000", "clear_after", "1000"},
    {"\"retention_days\": 36500", "retention_days=36500", "retention_days", "36500"},
    {"\"retention_days\": 0.5", "retention_days=.5", "retention_days", "0.5"},
    {"\"binning\": {\"method\": \"width\", \"bins\": 1000}", "method=width&bins=1000", "fire_after",
     "1"},
    {"\"binning\": {\"method\": \"auto\", \"bins\": null}", "method=auto&bins=null", "fire_after",
     "1"},
    /* arrays of one, as R's jsonlite writes scalars */
    {"\"window\": [\"batch\"]", NULL, "window", "\"batch\""},
    {"\"window\": {\"seconds\": [60], \"grace\": [5]}", NULL, "window",
     "{\"grace\":5,\"seconds\":60}"},
    {"\"window\": [{\"count\": [12]}]", NULL, "window", "{\"count\":12}"},
    {"\"compare\": [\"reference\"]", NULL, "compare", "\"reference\""},
    {"\"compare\": {\"previous\": [9]}", NULL, "compare", "{\"previous\":9}"},
    {"\"pseudocount\": [0.25]", "pseudocount=0.25", "pseudocount", "0.25"},
    {"\"min_observations\": [null]", NULL, "min_observations", "null"},
    {"\"thresholds\": {\"warning\": [0.05]}", NULL, "thresholds.warning", "0.05"},
    {"\"thresholds\": {\"critical\": [2]}", NULL, "thresholds.critical", "2"},
    {"\"thresholds\": {\"significance\": [1]}", NULL, "thresholds.significance", "1"},
    {"\"fire_after\": [7]", NULL, "fire_after", "7"},
    {"\"clear_after\": [7]", NULL, "clear_after", "7"},
    {"\"retention_days\": [0.5]", NULL, "retention_days", "0.5"},
    {"\"binning\": {\"method\": [\"width\"], \"bins\": [3]}", NULL, "fire_after", "1"},
    {"\"annotations\": {\"owner\": \"r\\u00eds\\u006b\"}", NULL, "annotations",
     "{\"owner\":\"r\xc3\xads\x6b\"}"},
    {"\"annotations\": null", NULL, "annotations", "{}"},
    {"\"group\": \"x\", \"name\": 7, \"state\": null, \"revision\": 9", NULL, "revision", "1"},
};

Test(monitors_settings, each_is_read_as_a_member_and_as_a_parameter)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct api_service service = monitors_new(10);
        char line[300];
        json_t *member = put_member(&service, good[i].member, 201);
        expect_at(member, good[i].path, good[i].expected);
        json_decref(member);
        if (good[i].query) {
            snprintf(line, sizeof line, "PUT /monitors/g/other?%s", good[i].query);
            json_t *parameter = monitors_get(&service, line, "{" BINS "}", 201);
            expect_at(parameter, good[i].path, good[i].expected);
            json_decref(parameter);
        }
        monitors_end(&service);
    }
}

/* A member that is refused, and parameters; NULL for those that have no such form. */
static const struct {
    const char *member, *query, *problem;
} bad[] = {
    {"\"window\": \"daily\"", "window=daily", "option_invalid #/window"},
    {"\"window\": null", NULL, "option_invalid #/window"},
    {"\"window\": 1000", NULL, "option_invalid #/window"},
    {"\"window\": {}", "window=x", "option_invalid #/window"},
    {"\"window\": {\"seconds\": 0}", "window=0s", "option_invalid #/window"},
    {"\"window\": {\"seconds\": 1.5}", "window=1.5s", "option_invalid #/window"},
    {"\"window\": {\"seconds\": \"60\"}", "window=60s,", "option_invalid #/window"},
    {"\"window\": {\"seconds\": 1e10}", "window=1e10s", "option_invalid #/window"},
    {"\"window\": {\"seconds\": 60, \"grace\": -1}", "window=60s,-1s", "option_invalid #/window"},
    {"\"window\": {\"seconds\": 60, \"count\": 5}", "window=60s5", "option_invalid #/window"},
    {"\"window\": {\"count\": 5, \"grace\": 5}", "window=5,5s", "option_invalid #/window"},
    {"\"window\": {\"grace\": 5}", "window=s", "option_invalid #/window"},
    {"\"window\": {\"count\": 0}", "window=0", "option_invalid #/window"},
    {"\"window\": {\"count\": null}", "window=nan", "option_invalid #/window"},
    {"\"window\": {\"seconds\": 60, \"grace\": null, \"x\": 1}", "window=infs",
     "option_invalid #/window"},
    {"\"window\": [60]", "window=60s,5s,", "option_invalid #/window"},
    {"\"window\": \" 60s\"", "window=+60s", "option_invalid #/window"},
    {"\"window\": \"h\"", "window=1y", "option_invalid #/window"},
    {"\"window\": \"1h,5\"", "window=0d", "option_invalid #/window"},
    {"\"window\": \"1654w\"", "window=1h,1654w", "option_invalid #/window"},
    {"\"window\": \"0x10s\"", "window=0x10", "option_invalid #/window"},
    {"\"timezone\": \"Europe/Berln\"", "timezone=europe/berlin",
     "option_invalid #/timezone ~did you mean 'Europe/Berlin'?"},
    {"\"timezone\": \"../zoneinfo/UTC\"", "timezone=+2", "option_invalid #/timezone"},
    {"\"timezone\": 2", "timezone=/etc/passwd", "option_invalid #/timezone"},
    {"\"timezone\": \"Mars/Base\", \"timezone_rule\": \"XYZ3\"", "timezone=CEST-3",
     "option_invalid #/timezone"},
    {"\"compare\": \"previous\"", "compare=previous", "option_invalid #/compare"},
    {"\"compare\": \"previous:\"", "compare=previous:", "option_invalid #/compare"},
    {"\"compare\": \"previous:-1\"", "compare=previous:-1", "option_invalid #/compare"},
    {"\"compare\": \"previous: 1\"", "compare=previous:%2B1", "option_invalid #/compare"},
    {"\"compare\": {\"previous\": 0}", "compare=previous:0", "option_invalid #/compare"},
    {"\"compare\": {\"previous\": 1001}", "compare=previous:1001", "option_invalid #/compare"},
    {"\"compare\": {\"previous\": 2, \"x\": 1}", "compare=previous:2x", "option_invalid #/compare"},
    {"\"compare\": {\"previous\": \"2\"}", "compare=2", "option_invalid #/compare"},
    {"\"compare\": null", "compare=x", "option_invalid #/compare"},
    {"\"pseudocount\": -1e-9", "pseudocount=-1", "option_invalid #/pseudocount"},
    {"\"pseudocount\": 1e10", "pseudocount=1e10", "option_invalid #/pseudocount"},
    {"\"pseudocount\": \"1\"", "pseudocount=x", "option_invalid #/pseudocount"},
    {"\"pseudocount\": true", "pseudocount=inf", "option_invalid #/pseudocount"},
    {"\"pseudocount\": []", "pseudocount=0x1", "option_invalid #/pseudocount"},
    {"\"pseudocount\": {}", "pseudocount=1e999", "option_invalid #/pseudocount"},
    {"\"min_observations\": -1", "min_observations=-1", "option_invalid #/min_observations"},
    {"\"min_observations\": 1.5", "min_observations=1.5", "option_invalid #/min_observations"},
    {"\"min_observations\": 1e16", "min_observations=1e16", "option_invalid #/min_observations"},
    {"\"thresholds\": {\"warning\": -0.1}", "warning=-0.1", "option_invalid #/thresholds/warning"},
    {"\"thresholds\": {\"critical\": \"x\"}", "critical=x", "option_invalid #/thresholds/critical"},
    {"\"thresholds\": {\"significance\": 0}", "significance=0",
     "option_invalid #/thresholds/significance"},
    {"\"thresholds\": {\"significance\": 1.01}", "significance=1.01",
     "option_invalid #/thresholds/significance"},
    {"\"thresholds\": {\"critical\": 0.01}", "critical=0.01",
     "option_invalid #/thresholds/critical ~0.01, is below"},
    {"\"thresholds\": {\"warning\": 0.3}", "warning=0.3", "option_invalid #/thresholds/critical"},
    {"\"pool\": 0", "pool=0", "option_invalid #/pool ~a power of two from 1 to 64"},
    {"\"pool\": 3", "pool=3", "option_invalid #/pool"},
    {"\"pool\": 48", "pool=128", "option_invalid #/pool"},
    {"\"pool\": 1.5", "pool=1.5", "option_invalid #/pool"},
    {"\"stale_after\": 0", "stale_after=0", "option_invalid #/stale_after ~above 0"},
    {"\"compare\": {\"previous\": 7, \"period\": 60}", "compare=previous:7@60s",
     "option_invalid #/compare ~needs windows of time"},
    {"\"window\": \"60s\", \"compare\": {\"previous\": 7, \"period\": 90}",
     "window=60s&compare=previous:7@90s", "option_invalid #/compare ~a multiple"},
    {"\"window\": \"60s\", \"compare\": {\"previous\": 7, \"period\": 0}",
     "window=60s&compare=previous:7@0s", "option_invalid #/compare"},
    {"\"window\": \"60s\", \"compare\": {\"period\": 60}", "window=60s&compare=previous:@60s",
     "option_invalid #/compare"},
    {"\"window\": \"60s\", \"compare\": \"previous:7@60\"", "window=60s&compare=previous:7@60x",
     "option_invalid #/compare"},
    {"\"ratio\": {\"warning\": 1, \"critical\": 4}", "ratio=1,4", "option_invalid #/ratio"},
    {"\"ratio\": {\"warning\": 4, \"critical\": 2}", "ratio=4,2", "option_invalid #/ratio"},
    {"\"ratio\": {\"warning\": 2}", "ratio=2", "option_invalid #/ratio"},
    {"\"ratio\": {\"warning\": 2, \"critical\": 1e10}", "ratio=2,1e10", "option_invalid #/ratio"},
    {"\"ratio\": {\"warning\": 2, \"critical\": 4, \"x\": 1}", "ratio=2,4,8",
     "option_invalid #/ratio"},
    {"\"ratio\": \"x\"", "ratio=nan,nan", "option_invalid #/ratio"},
    {"\"ratio\": 2", "ratio=,4", "option_invalid #/ratio"},
    {"\"ratio\": true", "ratio=-2,4", "option_invalid #/ratio"},
    {"\"fire_after\": 0", "fire_after=0", "option_invalid #/fire_after"},
    {"\"fire_after\": 1001", "fire_after=1001", "option_invalid #/fire_after"},
    {"\"clear_after\": 0.5", "clear_after=0.5", "option_invalid #/clear_after"},
    {"\"retention_days\": 0", "retention_days=0", "option_invalid #/retention_days ~above 0"},
    {"\"retention_days\": 36501", "retention_days=36501", "option_invalid #/retention_days"},
    {"\"binning\": {\"method\": \"Width\"}", "method=Width", "option_invalid #/binning/method"},
    {"\"binning\": {\"method\": null}", "method=x", "option_invalid #/binning/method"},
    {"\"binning\": {\"bins\": 0}", "bins=0", "option_invalid #/binning/bins"},
    {"\"binning\": {\"bins\": 1001}", "bins=1001", "option_invalid #/binning/bins"},
    {"\"binning\": {\"bins\": 2.5}", "bins=2.5", "option_invalid #/binning/bins"},
    {"\"fire_after\": [1, 2]", NULL, "option_invalid #/fire_after"},
    {"\"fire_after\": [[1]]", NULL, "option_invalid #/fire_after"},
    {"\"binning\": 10", NULL, "option_invalid #/binning ~must be an object"},
    {"\"thresholds\": [1]", NULL, "option_invalid #/thresholds"},
    {"\"annotations\": [1]", NULL, "option_invalid #/annotations"},
    {"\"treshold\": {}", NULL, "option_unknown #/treshold ~did you mean 'thresholds'?"},
    {"\"thresholds\": {\"waning\": 1}", NULL,
     "option_unknown #/thresholds/waning ~did you mean 'warning'?"},
    {"\"warning\": 1", NULL, "option_unknown #/warning"},
    {"\"thresholds\": {\"fire_after\": 1}", NULL, "option_unknown #/thresholds/fire_after"},
    {"\"binning\": {\"bin\": 1}", NULL, "option_unknown #/binning/bin ~did you mean 'bins'?"},
    {"\"zzz\": 1", NULL, "option_unknown #/zzz ~the names are window, compare"},
    {"\"a/b~c\": 1", NULL, "option_unknown #/a~1b~0c"},
};

Test(monitors_settings, each_wrong_one_is_told_with_its_place)
{
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(bad); i++) {
        char body[600], line[300];
        snprintf(body, sizeof body, "{" BINS ", %s}", bad[i].member);
        monitors_refused(&service, "PUT /monitors/g/m", body, bad[i].problem);
        snprintf(line, sizeof line, "PUT /monitors/g/m?%s", bad[i].query ? bad[i].query : "");
        if (bad[i].query)
            monitors_refused(&service, line, "{" BINS "}", bad[i].problem);
    }
    cr_expect_eq(monitors_count(&service), 0);
    monitors_end(&service);
}

/* Parameters beside members, and parameters that nothing knows. */
Test(monitors_settings, parameters_and_members_may_agree_but_not_differ)
{
    static const struct {
        const char *query, *member, *problem; /* NULL: 201 */
    } cases[] = {
        {"fire_after=2", "\"fire_after\": 2", NULL},
        {"fire_after=2&fire_after=2.0", "\"fire_after\": 2", NULL},
        {"window=3600s", "\"window\": {\"seconds\": 3600, \"grace\": 0}", NULL},
        {"compare=previous:3", "\"compare\": {\"previous\": 3}", NULL},
        {"warning=0.1", "\"thresholds\": {\"warning\": 1e-1}", NULL},
        {"window=60s&compare=previous:3@1h", "\"compare\": {\"previous\": 3, \"period\": 3600}",
         NULL},
        {"window=60s&compare=previous:3@2h", "\"compare\": {\"previous\": 3, \"period\": 3600}",
         "option_conflict ?compare"},
        {"min_observations=null", "\"min_observations\": null", NULL},
        {"&&fire_after=2&", "\"clear_after\": 2", NULL},
        {"f%69re_after=%32", "\"fire_after\": 2", NULL},
        {"fire_after=2", "\"fire_after\": [2]", NULL},
        {"warning=0.05", "\"thresholds\": null", NULL},
        {"warning=0.2", "\"thresholds\": 5", "option_invalid #/thresholds"},
        {"warning=0.2&critical=1", "\"thresholds\": [1]", "option_invalid #/thresholds"},
        {"method=width", "\"binning\": \"width\"", "option_invalid #/binning"},
        {"fire_after=3", "\"fire_after\": [2]", "option_conflict ?fire_after"},
        {"fire_after=3", "\"fire_after\": 2", "option_conflict ?fire_after"},
        {"fire_after=3&fire_after=2", "\"clear_after\": 2", "option_conflict ?fire_after"},
        {"window=3600s,1s", "\"window\": {\"seconds\": 3600}", "option_conflict ?window"},
        {"window=3600", "\"window\": {\"seconds\": 3600}", "option_conflict ?window"},
        {"compare=previous:2", "\"compare\": {\"previous\": 3}", "option_conflict ?compare"},
        {"warning=0.2", "\"thresholds\": {\"warning\": 0.1}", "option_conflict ?warning"},
        {"method=width", "\"binning\": {\"method\": \"labels\"}", "option_conflict ?method"},
        {"min_observations=null", "\"min_observations\": 0", "option_conflict ?min_observations"},
        {"pseudocount=-0", "\"pseudocount\": 0", NULL},
        {"fire_after=0", "\"fire_after\": 2", "option_invalid #/fire_after"},
        {"fire_after=2", "\"fire_after\": 0", "option_invalid #/fire_after"},
        {"warning=x&warning=0.1", "\"fire_after\": 2", "option_invalid #/thresholds/warning"},
        {"fire_afte=2", "\"fire_after\": 2", "option_unknown ?fire_afte ~'fire_after'"},
        {"thresholds=2", "\"fire_after\": 2", "option_unknown ?thresholds"},
        {"reference=2", "\"fire_after\": 2", "option_unknown ?reference"},
        {"fire_after=%zz", "\"clear_after\": 2", "query_malformed"},
        {"fire_after=%", "\"clear_after\": 2", "query_malformed"},
        {"fire_after=%00", "\"clear_after\": 2", "query_malformed"},
        {"=2", "\"clear_after\": 2", "option_unknown"},
        {"%ff=2", "\"clear_after\": 2", "query_malformed"},
        {"window=%ff", "\"clear_after\": 2", "query_malformed"},
    };
    struct api_service service = monitors_new(1000);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[600], line[300];
        snprintf(body, sizeof body, "{" BINS ", %s}", cases[i].member);
        snprintf(line, sizeof line, "PUT /monitors/g/m%zu?%s", i, cases[i].query);
        if (cases[i].problem)
            monitors_refused(&service, line, body, cases[i].problem);
        else
            monitors_expect(&service, line, body, 201);
    }
    monitors_end(&service);
}

Test(monitors_settings, large_annotations_are_refused)
{
    static const struct {
        size_t size;
        int status;
    } cases[] = {{100, 201}, {15000, 200}, {17000, 422}, {70000, 422}};
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer body = {0};
        api_append_text(&body, "{" BINS ", \"annotations\": {\"a\": \"");
        for (size_t j = 0; j < cases[i].size; j++)
            api_append(&body, "x", 1);
        api_append(&body, "\"}}", 4);
        struct answer answer = monitors_ask(&service, "PUT /monitors/g/m", body.data);
        cr_expect_eq(answer.status, cases[i].status, "%zu: %d", cases[i].size, answer.status);
        if (answer.status == 422)
            cr_expect_str_eq(text_of(answer.json, "code"), "members_too_large");
        answer_free(&answer);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}
