/* The server as a process: sockets, signals, metrics. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

Test(server, answers_with_the_loss_and_its_headers)
{
    struct server server = server_start(NULL);
    char value[300];
    static const char *const named[] = {"X-Request-Id: mine-1.2_3", NULL};
    struct fetched f = post_json(&server, "/kl_div?reduction=batchmean", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    cr_expect_eq(json_number_value(json_object_get(f.json, "loss")), 0.04095267979964768);
    cr_expect_str_eq(header_in(&f, "Content-Type", value, sizeof value), "application/json");
    cr_expect_str_eq(header_in(&f, "Cache-Control", value, sizeof value), "no-store");
    cr_expect_eq(strlen(header_in(&f, "X-Request-Id", value, sizeof value)), 16);
    cr_expect(strstr(header_in(&f, "Server-Timing", value, sizeof value), "compute;dur="));
    fetched_free(&f);

    f = fetch(&server, "POST", "/kl_div", named, TWO_BY_TWO, strlen(TWO_BY_TWO));
    cr_expect_eq(f.status, 200, "curl's own Content-Type must do");
    cr_expect_str_eq(header_in(&f, "X-Request-Id", value, sizeof value), "mine-1.2_3");
    cr_expect(strstr(header_in(&f, "Link", value, sizeof value), "deprecation"));
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, lets_pages_of_the_named_origin_in)
{
    static const char *const flags[] = {"--cors-origin", "https://example.org", NULL};
    static const char *const preflight[] = {"Origin: https://example.org",
                                            "Access-Control-Request-Method: POST", NULL};
    struct server server = server_start(flags);
    char value[300];
    struct fetched f = fetch(&server, "OPTIONS", "/kl_div", preflight, NULL, 0);
    cr_expect_eq(f.status, 204);
    cr_expect_str_eq(header_in(&f, "Allow", value, sizeof value), "POST");
    cr_expect_str_eq(header_in(&f, "Access-Control-Allow-Methods", value, sizeof value), "POST");
    cr_expect(
        strstr(header_in(&f, "Access-Control-Allow-Headers", value, sizeof value), "Content-Type"));
    fetched_free(&f);
    static const char *const bodies[] = {TWO_BY_TWO, "{}"};
    for (size_t i = 0; i < COUNT(bodies); i++) {
        f = post_json(&server, "/kl_div", bodies[i]);
        cr_expect_str_eq(header_in(&f, "Access-Control-Allow-Origin", value, sizeof value),
                         "https://example.org");
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);

    server = server_start(NULL);
    f = fetch(&server, "OPTIONS", "/livez", preflight, NULL, 0);
    cr_expect_eq(f.status, 204);
    cr_expect_str_eq(header_in(&f, "Allow", value, sizeof value), "GET, HEAD");
    cr_expect_str_eq(header_in(&f, "Access-Control-Allow-Origin", value, sizeof value), "");
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, serves_the_routes_beside_the_loss)
{
    static const struct {
        const char *method, *path;
        long status;
        const char *type, *contains;
    } cases[] = {
        {"GET", "/", 200, "text/plain; charset=utf-8", "/kl_div"},
        {"GET", "/livez", 200, "application/json", "ok"},
        {"GET", "/readyz", 200, "application/json", "ok"},
        {"GET", "/healthz", 200, "application/json", "ok"},
        {"HEAD", "/healthz", 200, "application/json", ""},
        {"GET", "/openapi.json", 200, "application/json", "\"openapi\""},
        {"GET", "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "kldiv_build_info{"},
        {"GET", "/kl_div", 405, "application/problem+json", "method_not_allowed"},
        {"GET", "/nothing", 404, "application/problem+json", "not_found"},
    };
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char value[200];
        struct fetched f = fetch(&server, cases[i].method, cases[i].path, NULL, NULL, 0);
        cr_expect_eq(f.status, cases[i].status, "%s %s: %ld", cases[i].method, cases[i].path,
                     f.status);
        cr_expect_str_eq(header_in(&f, "Content-Type", value, sizeof value), cases[i].type);
        cr_expect(strstr(f.body.data, cases[i].contains), "%s", f.body.data);
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Counts each status under its own code. */
/* Large bodies, which a job thread handles. */
Test(server, large_and_chunked_bodies_arrive_whole)
{
    static const char *const chunked[] = {"Transfer-Encoding: chunked",
                                          "Expect:", "Content-Type: application/json", NULL};
    struct server server = server_start(NULL);
    enum { N = 200000 };
    struct api_buffer body = {0};
    api_append_text(&body, "{\"reduction\": \"sum\", \"input\": [-1");
    for (int i = 1; i < N; i++)
        api_append_text(&body, ",-1");
    api_append_text(&body, "], \"target\": [1");
    for (int i = 1; i < N; i++)
        api_append_text(&body, ", 1");
    api_append_text(&body, "]}");
    for (int i = 0; i < 4; i++) {
        struct fetched f =
            fetch(&server, "POST", "/kl_div", i & 1 ? chunked : NULL, body.data, body.size);
        cr_expect_eq(f.status, 200, "%s", f.body.data);
        cr_expect_eq(json_number_value(json_object_get(f.json, "loss")), N);
        fetched_free(&f);
    }
    api_buffer_free(&body);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, a_slow_header_ends_while_others_are_served)
{
    struct server server = server_start(NULL);
    int slow = dial(&server);
    double start = now_seconds();
    bool ended = false;
    while (!ended && now_seconds() - start < 20) {
        char answer[2000];
        ended = send(slow, "G", 1, MSG_NOSIGNAL) < 0 ||
                recv(slow, answer, sizeof answer, MSG_DONTWAIT) == 0;
        struct fetched f = fetch(&server, "GET", "/livez", NULL, NULL, 0);
        cr_expect_eq(f.status, 200);
        fetched_free(&f);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
    cr_expect(ended && now_seconds() - start > 9 && now_seconds() - start < 13, "%g s",
              now_seconds() - start);
    close(slow);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, a_lesser_timeout_bounds_headers_and_bodies_too)
{
    static const char *const flags[] = {"--timeout", "1", NULL};
    static const char *const begins[] = {
        "POST /kl_div HT", "POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"};
    struct server server = server_start(flags);
    for (size_t i = 0; i < COUNT(begins); i++) {
        char answer[2000] = "";
        talk(&server, begins[i], strlen(begins[i]), answer, sizeof answer, 8);
        cr_expect_eq(atoi(answer + 9), 408, "%s", answer);
        cr_expect(strstr(answer, "--timeout"), "%s", answer);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, over_the_connection_limit_health_answers_and_others_are_told)
{
    static const char *const flags[] = {"--max-connections", "4", NULL};
    struct server server = server_start(flags);
    int held[4];
    for (size_t i = 0; i < COUNT(held); i++)
        held[i] = dial(&server);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    struct fetched f = fetch(&server, "GET", "/readyz", NULL, NULL, 0);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    char value[40];
    f = fetch(&server, "GET", "/nothing", NULL, NULL, 0);
    cr_expect_eq(f.status, 404);
    cr_expect_str_eq(header_in(&f, "Connection", value, sizeof value), "close");
    fetched_free(&f);
    f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 503);
    cr_expect_str_eq(text_of(f.json, "code"), "too_many_connections");
    cr_expect_str_eq(header_in(&f, "Retry-After", value, sizeof value), "1");
    fetched_free(&f);
    for (size_t i = 0; i < COUNT(held); i++)
        close(held[i]);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

struct load {
    const struct server *server;
    const char *body;
    atomic_bool stop;
    atomic_ulong answered, lost;
};

/* Sends requests until `stop`. A refused connection counts neither as answered nor as lost: the
 * server has not accepted it. */
static void *keep_asking(void *argument)
{
    struct load *load = argument;
    while (!atomic_load(&load->stop)) {
        struct fetched f = post_json(load->server, "/kl_div?reduction=sum", load->body);
        atomic_fetch_add(f.status == 200 ? &load->answered : &load->lost,
                         f.status != 0 || f.lost ? 1 : 0);
        fetched_free(&f);
    }
    return NULL;
}

static unsigned long lost_by_sigterm(const char *body)
{
    struct server server = server_start(NULL);
    struct load load = {.server = &server, .body = body};
    pthread_t clients[4];
    for (size_t i = 0; i < COUNT(clients); i++)
        pthread_create(&clients[i], NULL, keep_asking, &load);
    for (int i = 0; i < 15 || (i < 1000 && atomic_load(&load.answered) < 5); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    cr_expect_eq(server_stop(&server, false), 0);
    atomic_store(&load.stop, true);
    for (size_t i = 0; i < COUNT(clients); i++)
        pthread_join(clients[i], NULL);
    cr_expect_gt(atomic_load(&load.answered), 4);
    return atomic_load(&load.lost);
}

/* KLDIV_ROUNDS sets the number of rounds. */
Test(server, sigterm_under_load_answers_what_was_accepted)
{
    const char *asked = getenv("KLDIV_ROUNDS");
    unsigned long rounds = asked ? strtoul(asked, NULL, 10) : 10, lost = 0;
    char *large = malloc(120000);
    memset(large, ' ', 120000);
    strcpy(large + 120000 - sizeof TWO_BY_TWO, TWO_BY_TWO);
    for (unsigned long i = 0; i < rounds; i++)
        lost += lost_by_sigterm(i & 1 ? large : TWO_BY_TWO);
    cr_expect_eq(lost, 0, "%lu", lost);
    free(large);
}

/* Connections that keep arriving do not delay the exit. */
static void *keep_dialling(void *argument)
{
    struct load *load = argument;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)load->server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    while (!atomic_load(&load->stop)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fd, (struct sockaddr *)&address, sizeof address);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        close(fd);
    }
    return NULL;
}

Test(server, sigterm_ends_it_while_connections_keep_coming)
{
    static const char *const flags[] = {"--drain-timeout", "3", NULL};
    struct server server = server_start(flags);
    struct load load = {.server = &server};
    pthread_t clients[2];
    for (size_t i = 0; i < COUNT(clients); i++)
        pthread_create(&clients[i], NULL, keep_dialling, &load);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    double start = now_seconds();
    cr_expect_eq(server_stop(&server, true), 0);
    cr_expect_lt(now_seconds() - start, 6);
    atomic_store(&load.stop, true);
    for (size_t i = 0; i < COUNT(clients); i++)
        pthread_join(clients[i], NULL);
}

Test(server, a_drain_that_cuts_clients_off_ends_with_status_3)
{
    static const char *const flags[] = {"--drain-timeout", "1", NULL};
    static const char part[] = "POST /kl_div HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{";
    struct server server = server_start(flags);
    int fd = dial(&server);
    cr_assert_gt(send(fd, part, sizeof part - 1, MSG_NOSIGNAL), 0);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    kill(server.pid, SIGTERM);
    cr_expect(server_logs(&server,
                          " 1 connections were cut off after --drain-timeout: exit status 3", 1));
    cr_expect_eq(server_stop(&server, true), 3);
    close(fd);
}

Test(server, draining_says_not_ready_and_still_serves)
{
    static const char *const flags[] = {"--drain-delay", "1", NULL};
    struct server server = server_start(flags);
    char value[40];
    struct fetched f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_str_neq(header_in(&f, "Connection", value, sizeof value), "close");
    fetched_free(&f);
    kill(server.pid, SIGTERM);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    cr_expect_str_eq(header_in(&f, "Connection", value, sizeof value), "close",
                     "a client that keeps connections must learn of it before they end");
    fetched_free(&f);
    f = fetch(&server, "GET", "/readyz", NULL, NULL, 0);
    cr_expect_eq(f.status, 503);
    cr_expect_str_eq(text_of(f.json, "code"), "draining");
    fetched_free(&f);
    f = fetch(&server, "GET", "/metrics", NULL, NULL, 0);
    cr_expect(strstr(f.body.data, "\nkldiv_draining 1\n"));
    cr_expect(strstr(f.body.data, "\nkldiv_ready 0\n"));
    fetched_free(&f);
    f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Signals whose default is the process' end without a drain. */
Test(server, signals_that_mean_nothing_are_ignored)
{
    static const int signals[] = {SIGUSR1,   SIGUSR2, SIGALRM, SIGXFSZ,
                                  SIGVTALRM, SIGPROF, SIGIO,   SIGPIPE};
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(signals); i++) {
        cr_assert_eq(kill(server.pid, signals[i]), 0);
        struct fetched f = post_json(&server, "/kl_div", TWO_BY_TWO);
        cr_expect_eq(f.status, 200, "after %s", strsignal(signals[i]));
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}
