/* /metrics of the server: what it counts, and when. */
#include "server/telemetry/metrics.h"
#include "api/json/problem.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

Test(metrics, metrics_count_every_kind_of_answer)
{
    static const char *const preflight[] = {"Origin: https://example.org",
                                            "Access-Control-Request-Method: POST", NULL};
    static const struct {
        const char *method, *target, *header, *body;
        const char *counted; /* labels after the route */
    } cases[] = {
        {"OPTIONS", "/kl_div", NULL, NULL, "\"/kl_div\",method=\"OPTIONS\",code=\"204\""},
        {"POST", "/kl_div", NULL, TWO_BY_TWO, "\"/kl_div\",method=\"POST\",code=\"200\""},
        {"POST", "/kl_div", NULL, "{", "\"/kl_div\",method=\"POST\",code=\"400\""},
        {"GET", "/nothing", NULL, NULL, "\"other\",method=\"GET\",code=\"404\""},
        {"PUT", "/kl_div", NULL, "{}", "\"/kl_div\",method=\"PUT\",code=\"405\""},
        {"POST", "/kl_div", "Accept: a/b", "{}", "\"/kl_div\",method=\"POST\",code=\"406\""},
        {"POST", "/kl_div", "Content-Type: a/b", "{}", "\"/kl_div\",method=\"POST\",code=\"415\""},
        {"POST", "/kl_div", "Expect: x", "{}", "\"/kl_div\",method=\"POST\",code=\"417\""},
        {"POST", "/kl_div", NULL, "{}", "\"/kl_div\",method=\"POST\",code=\"422\""},
        {"BREW", "/livez", NULL, NULL, "\"/livez\",method=\"other\",code=\"405\""},
    };
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const headers[] = {cases[i].header, NULL};
        char line[200];
        struct fetched f = fetch(&server, cases[i].method, cases[i].target, i ? headers : preflight,
                                 cases[i].body, cases[i].body ? strlen(cases[i].body) : 0);
        fetched_free(&f);
        f = fetch(&server, "GET", "/metrics", NULL, NULL, 0);
        snprintf(line, sizeof line, "kldiv_http_requests_total{route=%s} 1\n", cases[i].counted);
        cr_expect(strstr(f.body.data, line), "no %s in\n%.2000s", line, f.body.data);
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Every status of a problem has its own label. */
Test(metrics, no_problem_counts_as_other)
{
    struct api_budget budget = {0};
    for (size_t i = 0; api_problem_code(i); i++) {
        struct api_buffer text = {0};
        char label[40];
        const struct api_problem problem = {.code = api_problem_code(i)};
        const struct api_response response = {.status = api_problem_status(&problem)};
        srv_metrics_count_response(&response, "GET", 0);
        srv_metrics_write(&(struct srv_snapshot){.budget = &budget}, &text);
        api_append(&text, "", 1);
        snprintf(label, sizeof label, "code=\"%d\"", response.status);
        cr_expect(strstr(text.data, label), "%s: %s", problem.code, label);
        api_buffer_free(&text);
    }
}

Test(metrics, metrics_count_what_happened)
{
    static const char *const lines[] = {
        "kldiv_http_requests_total{route=\"/kl_div\",method=\"POST\",code=\"200\"} 2\n",
        "kldiv_http_requests_total{route=\"/kl_div\",method=\"POST\",code=\"422\"} 1\n",
        "kldiv_http_requests_total{route=\"other\",method=\"GET\",code=\"404\"} 1\n",
        "kldiv_http_request_duration_seconds_count{route=\"/kl_div\"} 3\n",
        "kldiv_elements_total 8\n",
        "kldiv_warnings_total{code=\"mean_is_not_kl_divergence\"} 1\n",
        "kldiv_http_requests_in_flight 1\n",
        "kldiv_connections_limit 40\n",
        "kldiv_draining 0\n",
        "kldiv_ready 1\n",
        "process_open_fds ",
        "process_start_time_seconds 1",
    };
    static const struct {
        const char *target, *body;
    } posts[] = {
        {"/kl_div", TWO_BY_TWO}, {"/kl_div?reduction=sum", TWO_BY_TWO}, {"/kl_div?x=1", "{}"}};
    static const char *const flags[] = {"--max-connections", "40", NULL};
    struct server server = server_start(flags);
    for (size_t i = 0; i < COUNT(posts); i++) {
        struct fetched f = post_json(&server, posts[i].target, posts[i].body);
        fetched_free(&f);
    }
    struct fetched f = fetch(&server, "GET", "/nothing", NULL, NULL, 0);
    fetched_free(&f);
    f = fetch(&server, "GET", "/metrics", NULL, NULL, 0);
    for (size_t i = 0; i < COUNT(lines); i++)
        cr_expect(strstr(f.body.data, lines[i]), "no %s in\n%s", lines[i], f.body.data);
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Two connections may be on two network threads. On one CPU, a client that gets its answer often
 * runs before the thread that sent it goes on. */
Test(metrics, metrics_have_a_response_that_its_client_has)
{
    static const char *const flags[] = {"--http-threads", "2", NULL};
    enum { ROUNDS = 300 };
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    struct server server = server_start(flags);
    struct api_buffer post = {0}, get = {0};
    struct response response = {0};
    int clients[] = {dial(&server), dial(&server)};
    api_append_format(&post,
                      "POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                      "Content-Length: %zu\r\n\r\n%s",
                      strlen(TWO_BY_TWO), TWO_BY_TWO);
    api_append_text(&get, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 1; i <= ROUNDS; i++) {
        char line[100];
        cr_assert(converse_on(clients[0], &post, &response));
        cr_assert_eq(response.status, 200);
        cr_assert(converse_on(clients[1], &get, &response));
        snprintf(line, sizeof line, "{route=\"/kl_div\",method=\"POST\",code=\"200\"} %d\n", i);
        cr_expect(strstr(response.body, line), "round %d", i);
        snprintf(line, sizeof line, "\nkldiv_elements_total %d\n", 4 * i);
        cr_expect(strstr(response.body, line), "round %d", i);
    }
    for (size_t i = 0; i < COUNT(clients); i++)
        close(clients[i]);
    api_buffer_free(&post);
    api_buffer_free(&get);
    api_buffer_free(&response.bytes);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Adds the series of a line to those that were seen; false if it is among them. */
static bool is_new_series(json_t *seen, const char *line)
{
    char *series = strndup(line, (size_t)(strrchr(line, ' ') - line));
    bool is_new = !json_object_get(seen, series);
    json_object_set_new(seen, series, json_true());
    free(series);
    return is_new;
}

/* Methods of a path are rows of their own in the table of endpoints. */
Test(metrics, metrics_have_no_series_twice)
{
    static const struct {
        const char *method, *target, *body;
    } requests[] = {
        {"PUT", "/monitors/g/m", "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[5]}}"},
        {"GET", "/monitors/g/m", NULL},
        {"GET", "/monitors/g", NULL},
        {"PUT", "/monitors/g", "{\"columns\":{\"a\":[1,2],\"b\":[1,2]}}"},
        {"POST", "/monitors/g/m/observations", "{\"counts\":[1]}"},
        {"DELETE", "/monitors/g/m", NULL},
        {"GET", "/nothing", NULL},
    };
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(requests); i++) {
        const char *body = requests[i].body;
        struct fetched f = fetch(&server, requests[i].method, requests[i].target, NULL, body,
                                 body ? strlen(body) : 0);
        fetched_free(&f);
    }
    struct fetched f = fetch(&server, "GET", "/metrics", NULL, NULL, 0);
    json_t *seen = json_object();
    char *rest = strndup(f.body.data, f.body.size), *text = rest, *line;
    while ((line = strsep(&rest, "\n")))
        if (*line && *line != '#')
            cr_expect(is_new_series(seen, line), "%s comes twice", line);
    cr_expect_gt(json_object_size(seen), 100);
    free(text);
    json_decref(seen);
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(metrics, of_groups_alone_have_no_monitor)
{
    static const char *const flags[] = {"--monitor-metrics", "groups", NULL};
    static const char config[] = "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[5]}}";
    struct server server = server_start(flags);
    struct fetched put = fetch(&server, "PUT", "/monitors/g/m", NULL, config, sizeof config - 1);
    cr_expect_eq(put.status, 201);
    fetched_free(&put);
    struct fetched metrics = fetch(&server, "GET", "/metrics", NULL, NULL, 0);
    api_append(&metrics.body, "", 1);
    cr_expect(strstr(metrics.body.data, "\nkldiv_group_monitors{group=\"g\",state=\"ok\"} 0\n"));
    cr_expect_not(strstr(metrics.body.data, "kldiv_monitor_"));
    fetched_free(&metrics);
    cr_expect_eq(server_stop(&server, false), 0);
}
