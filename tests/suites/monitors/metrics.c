/* The exposition of monitors, for Prometheus. */
#include "api/request/coding.h"
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,500]}}"

/* The lines with this in them, as one text which the caller frees. */
static char *lines_with(const struct api_service *service, const char *words)
{
    struct answer answer = monitors_ask(service, "GET /metrics", NULL);
    struct api_buffer found = {0};
    char *text = body_of(&answer), *rest = text, *line;
    while ((line = strsep(&rest, "\n")))
        if (strstr(line, words))
            api_append_format(&found, "%s\n", line);
    api_append(&found, "", 1);
    free(text);
    answer_free(&answer);
    return found.data;
}

static void expect_lines(const struct api_service *service, const char *words, const char *expected)
{
    char *got = lines_with(service, words);
    cr_expect_str_eq(got, expected, "%s:\n%s", words, got);
    free(got);
}

Test(monitors_metrics, begin_with_what_is_known_before_the_first_window)
{
    struct api_service service = monitors_new(10);
    expect_lines(&service, "kldiv_monitor", "");
    expect_lines(&service, "kldiv_store_up",
                 "# HELP kldiv_store_up 1 if the last write to the store worked, and the database "
                 "has not been "
                 "silent for 5 s, else 0.\n"
                 "# TYPE kldiv_store_up gauge\nkldiv_store_up 1\n");
    monitors_expect(&service, "PUT /monitors/g/m?window=10&critical=1e300", CONFIG, 422);
    monitors_expect(&service, "PUT /monitors/g/m?window=100&critical=0.5", CONFIG, 201);
    expect_lines(
        &service, "{group=\"g\",monitor=\"m\"",
        "kldiv_monitor_threshold_nats{group=\"g\",monitor=\"m\",severity=\"warning\"} 0.02\n"
        "kldiv_monitor_threshold_nats{group=\"g\",monitor=\"m\",severity=\"critical\"} "
        "0.5\n"
        "kldiv_monitor_state{group=\"g\",monitor=\"m\",state=\"insufficient_data\"} 1\n"
        "kldiv_monitor_state{group=\"g\",monitor=\"m\",state=\"ok\"} 0\n"
        "kldiv_monitor_state{group=\"g\",monitor=\"m\",state=\"warning\"} 0\n"
        "kldiv_monitor_state{group=\"g\",monitor=\"m\",state=\"critical\"} 0\n"
        "kldiv_monitor_stale{group=\"g\",monitor=\"m\"} 0\n"
        "kldiv_monitor_muted{group=\"g\",monitor=\"m\"} 0\n"
        "kldiv_monitor_observations_total{group=\"g\",monitor=\"m\"} 0\n");
    monitors_expect(&service, "POST /monitors/g/m/observations",
                    "{\"counts\":[3,3],\"timestamp\":1000000000.25}", 200);
    expect_lines(&service, "_last_observation_timestamp_seconds{",
                 "kldiv_monitor_last_observation_timestamp_seconds{group=\"g\",monitor=\"m\"} "
                 "1000000000.25\n");
    expect_lines(&service, "kl_divergence_nats{", "");
    expect_lines(&service, "observations_total{",
                 "kldiv_monitor_observations_total{group=\"g\",monitor=\"m\"} 6\n");
    monitors_end(&service);
}

Test(monitors_metrics, count_the_monitors_of_groups)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/a/m", CONFIG, 201);
    monitors_expect(&service, "PUT /monitors/g%22/m", CONFIG, 201);
    monitors_expect(&service, "PUT /monitors/g%22/n", CONFIG, 201);
    monitors_expect(&service, "PUT /monitors/g%22%22/m", CONFIG, 201);
    monitors_expect(&service, "POST /monitors/g%22/n/observations",
                    "{\"counts\":[0,1000],\"timestamp\":1000000000}", 200);
    expect_lines(&service, "state=\"critical\"} 1",
                 "kldiv_monitor_state{group=\"g\\\"\",monitor=\"n\",state=\"critical\"} 1\n"
                 "kldiv_group_monitors{group=\"g\\\"\",state=\"critical\"} 1\n");
    expect_lines(&service, "group_monitors{group=\"a\",",
                 "kldiv_group_monitors{group=\"a\",state=\"insufficient_data\"} 1\n"
                 "kldiv_group_monitors{group=\"a\",state=\"ok\"} 0\n"
                 "kldiv_group_monitors{group=\"a\",state=\"warning\"} 0\n"
                 "kldiv_group_monitors{group=\"a\",state=\"critical\"} 0\n");
    expect_lines(&service, "group_monitors{group=\"g\\\"\",state=\"i",
                 "kldiv_group_monitors{group=\"g\\\"\",state=\"insufficient_data\"} 1\n");
    expect_lines(&service, "group_monitors{group=\"g\\\"\\\"\",state=\"i",
                 "kldiv_group_monitors{group=\"g\\\"\\\"\",state=\"insufficient_data\"} 1\n");
    monitors_end(&service);
}

/* 30 monitors in groups of ten: 4 lines for each group, and none for a monitor. */
Test(monitors_metrics, are_those_of_groups_alone_if_asked_for)
{
    struct api_service service = monitors_new(100);
    api_monitors_expose_groups_only(service.monitors);
    for (int i = 0; i < 30; i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/g%d/m%d", i / 10, i);
        monitors_expect(&service, line,
                        "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[5]}}", 201);
    }
    struct answer answer = monitors_ask(&service, "GET /metrics", NULL);
    char *text = body_of(&answer);
    size_t lines = 0;
    cr_expect_not(strstr(text, "kldiv_monitor_"), "%s", text);
    cr_expect(
        strstr(text, "\nkldiv_group_monitors{group=\"g1\",state=\"insufficient_data\"} 10\n"));
    for (const char *p = text; (p = strstr(p, "\nkldiv_group_monitors{")); p++)
        lines++;
    cr_expect_eq(lines, 12, "%zu", lines);
    free(text);
    answer_free(&answer);
    monitors_end(&service);
}

Test(monitors_metrics, tell_the_scores_of_the_last_closed_window)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m", CONFIG, 201);
    json_t *json = monitors_get(
        &service, "POST /monitors/g/m/observations",
        "{\"counts\":[60,20],\"missing\":10,\"overflow\":10,\"timestamp\":1000000000}", 200);
    static const struct {
        const char *family, *path;
    } scores[] = {{"kl_divergence_nats", "kl"},          {"js_divergence_nats", "js"},
                  {"population_stability_index", "psi"}, {"unseen_ratio", "unseen_ratio"},
                  {"missing_ratio", "missing_ratio"},    {"window_observations", "n"}};
    for (size_t i = 0; i < COUNT(scores); i++) {
        char words[100];
        snprintf(words, sizeof words, "kldiv_monitor_%s{", scores[i].family);
        char *line = lines_with(&service, words);
        cr_expect_eq(strtod(strchr(line, ' '), NULL), number_at(json, scores[i].path), "%s", line);
        free(line);
    }
    expect_lines(&service, "state{group=\"g\",monitor=\"m\",state=\"critical\"}",
                 "kldiv_monitor_state{group=\"g\",monitor=\"m\",state=\"critical\"} 1\n");
    expect_lines(&service, "window_end_timestamp_seconds{",
                 "kldiv_monitor_window_end_timestamp_seconds{group=\"g\",monitor=\"m\"} "
                 "1000000000\n");
    json_decref(json);
    monitors_expect(&service, "DELETE /monitors/g/m", NULL, 204);
    expect_lines(&service, "group=", "");
    monitors_end(&service);
}

Test(monitors_metrics, of_infinite_divergence_are_inf)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m?pseudocount=0",
                    "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[500,0]}}", 201);
    monitors_expect(&service, "POST /monitors/g/m/observations", "{\"counts\":[60,20]}", 200);
    expect_lines(&service, "kl_divergence_nats{",
                 "kldiv_monitor_kl_divergence_nats{group=\"g\",monitor=\"m\"} +Inf\n");
    expect_lines(&service, "population_stability_index{",
                 "kldiv_monitor_population_stability_index{group=\"g\",monitor=\"m\"} +Inf\n");
    monitors_end(&service);
}

/* ---- The format */

static void make_awkward(struct api_service *service)
{
    static const char *const names[] = {"g/%22quotes%22",     "%5C%5C/back%5Cslash",
                                        "a%2Fb/%F0%9F%98%80", "g/%7Bx%3D%22y%22%7D",
                                        "g/%23%20HELP",       "z%20/%20a"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/%s", names[i]);
        monitors_expect(service, line, CONFIG, 201);
        snprintf(line, sizeof line, "POST /monitors/%s/observations", names[i]);
        monitors_expect(service, line, "{\"counts\":[60,20]}", 200);
    }
}

Test(monitors_metrics, escape_names)
{
    struct api_service service = monitors_new(10);
    make_awkward(&service);
    expect_lines(&service, "monitor_unseen_ratio{",
                 "kldiv_monitor_unseen_ratio{group=\"\\\\\\\\\",monitor=\"back\\\\slash\"} 0\n"
                 "kldiv_monitor_unseen_ratio{group=\"a/b\",monitor=\"\xf0\x9f\x98\x80\"} 0\n"
                 "kldiv_monitor_unseen_ratio{group=\"g\",monitor=\"# HELP\"} 0\n"
                 "kldiv_monitor_unseen_ratio{group=\"g\",monitor=\"\\\"quotes\\\"\"} 0\n"
                 "kldiv_monitor_unseen_ratio{group=\"g\",monitor=\"{x=\\\"y\\\"}\"} 0\n"
                 "kldiv_monitor_unseen_ratio{group=\"z \",monitor=\" a\"} 0\n");
    monitors_end(&service);
}

/* Each family has its HELP and TYPE once, then all of its lines. */
Test(monitors_metrics, come_family_by_family)
{
    struct api_service service = monitors_new(10);
    make_awkward(&service);
    struct answer answer = monitors_ask(&service, "GET /metrics", NULL);
    char *text = body_of(&answer), *rest = text, *line, family[100] = "", seen[4000] = "\n";
    size_t lines = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        char name[100] = "";
        bool is_help = strncmp(line, "# HELP ", 7) == 0, is_type = strncmp(line, "# TYPE ", 7) == 0;
        sscanf(line + (is_help || is_type ? 7 : 0), "%99[a-z_]", name);
        if (is_help) {
            char entry[110];
            snprintf(entry, sizeof entry, "\n%s\n", name);
            cr_expect_null(strstr(seen, entry), "%s comes twice", name);
            strcat(seen, entry + 1);
            strcpy(family, name);
        }
        cr_expect(strncmp(name, family, strlen(family)) == 0, "%s in %s", name, family);
        lines++;
    }
    cr_expect_gt(lines, 90);
    cr_expect_str_eq(rest ? rest : "", "");
    free(text);
    answer_free(&answer);
    monitors_end(&service);
}

Test(monitors_metrics, are_sound_to_promtool)
{
    struct api_service service = monitors_new(10);
    if (system("command -v promtool >/dev/null 2>&1") != 0)
        cr_skip_test("promtool is not installed");
    make_awkward(&service);
    struct answer answer = monitors_ask(&service, "GET /metrics", NULL);
    FILE *promtool = popen("promtool check metrics 2>&1 >/dev/null", "w");
    cr_assert(promtool);
    char *text = body_of(&answer);
    fputs(text, promtool);
    cr_expect_eq(pclose(promtool), 0);
    free(text);
    answer_free(&answer);
    monitors_end(&service);
}

/* ---- One text for all who ask */

static struct answer scrape(const struct api_service *service, const char *accept_encoding)
{
    const struct question question = {
        .method = "GET", .path = "/metrics", .accept_encoding = accept_encoding};
    return ask_question(&question, service, "", 0);
}

static bool has_header(const struct answer *answer, const char *name, const char *value)
{
    const struct api_response *response = &answer->response;
    for (size_t i = 0; i < response->n_headers; i++)
        if (strcmp(response->headers[i].name, name) == 0)
            return strcmp(response->headers[i].value, value) == 0;
    return false;
}

/* Lines of monitors at the begin of a text. */
static size_t size_of_monitors(const char *text)
{
    const char *end = strstr(text, "# HELP kldiv_ready");
    cr_assert(end);
    return (size_t)(end - text);
}

Test(monitors_metrics, compressed_are_the_same)
{
    struct api_service service = monitors_new(10);
    make_awkward(&service);
    struct answer plain = scrape(&service, NULL), coded = scrape(&service, "gzip");
    struct api_problem problem = {.code = NULL};
    struct api_buffer inflated = {0};
    char *text = body_of(&plain);
    const struct api_buffer *first = &coded.response.shared->bytes, *second = &coded.response.body;
    size_t size = first->size + second->size;
    char *both = malloc(size);
    cr_assert(both);
    memcpy(both, first->data, first->size);
    memcpy(both + first->size, second->data, second->size);
    cr_expect(has_header(&coded, "Content-Encoding", "gzip"));
    cr_expect(has_header(&plain, "Vary", "Accept-Encoding"));
    cr_expect_lt(size, strlen(text) / 4);
    cr_assert(
        api_inflate(&(struct api_inflation){"gzip", both, size, 1 << 20, 1 << 20, NULL, false, 0},
                    &inflated, &problem));
    cr_expect_arr_eq(inflated.data, text, size_of_monitors(text));
    cr_expect(memmem(inflated.data, inflated.size, "\nkldiv_store_up 1\n", 18));
    free(both);
    free(text);
    api_buffer_free(&inflated);
    answer_free(&plain);
    answer_free(&coded);
    monitors_end(&service);
}

/* Clients that hold an answer keep it as it was. */
Test(monitors_metrics, are_those_of_their_moment)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/m", CONFIG, 201);
    for (int i = 0; i < 5; i++) {
        char expected[100];
        struct answer before = scrape(&service, NULL), coded = scrape(&service, "gzip");
        monitors_expect(&service, "POST /monitors/g/m/observations", "{\"counts\":[60,20]}", 200);
        char *text = body_of(&before);
        snprintf(expected, sizeof expected, "observations_total{group=\"g\",monitor=\"m\"} %d\n",
                 80 * i);
        cr_expect(strstr(text, expected), "%s", text);
        free(text);
        answer_free(&before);
        answer_free(&coded);
    }
    monitors_end(&service);
}

/* ---- OpenMetrics */

#define OPEN "application/openmetrics-text"

Test(monitors_metrics, are_in_the_format_that_is_preferred)
{
    static const char text[] = "text/plain; version=0.0.4; charset=utf-8",
                      open[] = OPEN "; version=1.0.0; charset=utf-8";
    static const struct {
        const char *accept, *type;
    } cases[] = {
        {NULL, text},
        {"", text},
        {"*/*", text},
        {"text/plain", text},
        {"text/html", text},
        {OPEN ", text/plain", text},
        {OPEN, open},
        {OPEN ";version=1.0.0", open},
        {OPEN ";version=1.0.0;q=0.5,text/plain;q=0.4,*/*;q=0.1", open},
        {OPEN ";version=1.0.0," OPEN
              ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         open},
        {OPEN ";q=0.1,text/plain;q=0.5", text},
    };
    struct api_service service = monitors_new(10);
    make_awkward(&service);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {
            .method = "GET", .path = "/metrics", .accept = cases[i].accept};
        struct answer answer = ask_question(&question, &service, "", 0);
        cr_expect_str_eq(answer.response.content_type, cases[i].type, "case %zu", i);
        answer_free(&answer);
    }
    monitors_end(&service);
}

static char *scrape_open(const struct api_service *service)
{
    const struct question question = {.method = "GET", .path = "/metrics", .accept = OPEN};
    struct answer answer = ask_question(&question, service, "", 0);
    char *text = body_of(&answer);
    answer_free(&answer);
    return text;
}

/* Both formats at one moment: samples are the same, families of counters have lost their _total, no help has what one
 * escapes, and the end is told. */
Test(monitors_metrics, of_both_formats_have_the_same_samples)
{
    struct api_service service = monitors_new(10);
    make_awkward(&service);
    struct answer answer = monitors_ask(&service, "GET /metrics", NULL);
    char *plain = body_of(&answer), *open = scrape_open(&service), *p = plain, *o = open, *line;
    answer_free(&answer);
    size_t counters = 0;
    while ((line = strsep(&p, "\n")) && *line) {
        char name[100] = "", *other = strsep(&o, "\n");
        cr_assert(other, "%s", line);
        if (strncmp(line, "# HELP ", 7) == 0)
            cr_expect(!strpbrk(line, "\\\""), "%s", line);
        if (*line != '#') {
            size_t size = strcspn(line, " ");
            cr_expect(strncmp(line, other, strstr(line, "store_op") ? 20 : size) == 0, "%s %s",
                      line, other);
            continue;
        }
        size_t size = 7 + strcspn(line + 7, " ");
        bool is_counter = size > 13 && strncmp(line + size - 6, "_total", 6) == 0;
        snprintf(name, sizeof name, "%.*s ", (int)(size - (is_counter ? 6 : 0)), line);
        cr_expect(strncmp(other, name, strlen(name)) == 0, "%s: %s", line, other);
        cr_expect_str_eq(strchr(other + 7, ' '), line + size);
        counters += is_counter;
    }
    cr_expect_eq(counters, 4, "%zu: heads of two counters", counters);
    cr_expect_str_eq(o, "# EOF\n");
    free(plain);
    free(open);
    monitors_end(&service);
}

Test(monitors_metrics, are_sound_to_a_parser_of_openmetrics)
{
    static const char parse[] =
        "/usr/bin/python3 -c 'import sys; from prometheus_client.openmetrics.parser import "
        "text_string_to_metric_families as parse; n = len(list(parse(sys.stdin.read()))); "
        "sys.exit(n < 15)'";
    struct api_service service = monitors_new(10);
    if (system("/usr/bin/python3 -c 'import prometheus_client.openmetrics' 2>/dev/null") != 0)
        cr_skip_test("python3-prometheus-client is not installed");
    make_awkward(&service);
    char *text = scrape_open(&service);
    FILE *parser = popen(parse, "w");
    cr_assert(parser);
    fputs(text, parser);
    cr_expect_eq(pclose(parser), 0, "%s", text);
    free(text);
    monitors_end(&service);
}

/* The lines of a scrape are kept, so that the next ones need no memory of requests, whatever the numbers are. */
Test(monitors_metrics, need_no_memory_of_requests)
{
    struct api_service service = monitors_new(1000);
    struct api_budget *budget = service.budget;
    size_t limit = budget->limit;
    for (int n = 1; n <= 200; n++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/some_group/monitor_with_a_name_%d", n);
        monitors_expect(&service, line, CONFIG, 201);
    }
    for (int n = 0; n < 20; n++) {
        const struct question question = {
            .method = "GET", .path = "/metrics", .accept = n % 2 ? OPEN : NULL};
        char line[100];
        snprintf(line, sizeof line, "POST /monitors/some_group/monitor_with_a_name_%d/observations",
                 n + 1);
        monitors_expect(&service, line, "{\"counts\":[7,8]}", 200);
        if (n >= 2)
            budget->limit = atomic_load(&budget->used) + (64 << 10); /* for the body and numbers */
        struct answer answer = ask_question(&question, &service, "", 0);
        char *text = body_of(&answer);
        cr_assert_eq(answer.status, 200);
        snprintf(line, sizeof line,
                 "_total{group=\"some_group\",monitor=\"monitor_with_a_name_%d\"} 15", n + 1);
        cr_expect(strstr(text, line), "%s", line);
        cr_expect_gt(strlen(text), 200 * 500);
        free(text);
        answer_free(&answer);
        budget->limit = limit;
    }
    monitors_end(&service);
}

/* Without memory for the lines of monitors a scrape fails, since an answer without them would tell that there are none. */
Test(monitors_metrics, are_whole_or_refused)
{
    struct api_service service = monitors_new(1000);
    struct api_budget *budget = service.budget;
    for (int n = 1; n <= 300; n++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/some_group/monitor_with_a_name_%d", n);
        monitors_expect(&service, line, CONFIG, 201);
    }
    budget->limit = atomic_load(&budget->used) + (64 << 10);
    monitors_expect(&service, "GET /metrics", NULL, 503);
    budget->limit = 0;
    monitors_expect(&service, "GET /metrics", NULL, 200);
    monitors_end(&service);
}
