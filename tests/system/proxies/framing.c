/* Raw requests through a proxy: the server answers none that the proxy has not counted, and the next
 * client gets its own answer. */
#include "tests/suites/support/raw_requests.h"
#include "tests/suites/support/support.h"
#include "tests/system/proxies/proxy.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL "Content-Length: 71\r\n\r\n" TWO_BY_TWO

/* accepted: good requests, some with what looks like another, and their number. */
static const struct {
    const char *bytes;
    size_t size;
    int n;
} accepted[] = {
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
    {BYTES("HEAD /livez HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
    {BYTES("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" HIDDEN), 2},
    {BYTES(POST SMALL), 1},
    {BYTES(POST SMALL HIDDEN), 2},
    {BYTES(POST SMALL POST SMALL POST SMALL), 3},
    {BYTES(POST "Content-Length: 41\r\n\r\n" HIDDEN), 1},
    {BYTES(CHUNKED "29\r\n" HIDDEN "\r\n0\r\n\r\n"), 1},
    {BYTES(CHUNKED "47\r\n" TWO_BY_TWO "\r\n0\r\n\r\n" HIDDEN), 2},
    {BYTES(CHUNKED "47;a=b\r\n" TWO_BY_TWO "\r\n000\r\nX: y\r\n\r\n" HIDDEN), 2},
    {BYTES(CHUNKED "0\r\n\r\n" HIDDEN), 2},
    {BYTES(POST "Content-Length: 0\r\n\r\n" HIDDEN), 2},
    {BYTES(POST "Transfer_Encoding: chunked\r\nContent-Length: 41\r\n\r\n" HIDDEN), 1},
    {BYTES(POST "X-Transfer-Encoding: chunked\r\nContent-Length: 41\r\n\r\n" HIDDEN), 1},
    {BYTES(POST "Expect: 100-continue\r\n" SMALL), 1},
    {BYTES("GET http://a/livez HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
};

/* Requests that the server has counted, but those of this test for its metrics. */
static double counted(const struct server *server)
{
    static const char name[] = "\nkldiv_http_requests_total{";
    double total = 0;
    struct fetched f = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    for (const char *p = f.body.data; (p = strstr(p, name)); p++) {
        const char *value = strstr(p, "} ");
        const char *own = strstr(p, "route=\"/metrics\"");
        if (!own || own > value)
            total += atof(value + 2);
    }
    fetched_free(&f);
    return total;
}

struct counts {
    double server, proxy;
};

/* Waits until both agree, which write and count some ms after an answer; for at most 0.5 s. */
static struct counts settled(const struct server *server, const struct proxy *proxy,
                             const struct counts *before)
{
    struct counts now = {0};
    for (int i = 0; i < 25; i++) {
        now =
            (struct counts){counted(server) - before->server, proxy_passed(proxy) - before->proxy};
        if (now.server == now.proxy)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return now;
}

/* Asks with a mark that its answer has to carry. */
static void expect_own_answer(const struct proxy *proxy, const char *request, size_t size)
{
    for (int i = 0; i < 3; i++) {
        char mark[60], value[60];
        snprintf(mark, sizeof mark, "X-Request-Id: own-%zx-%d", (size_t)request, i);
        struct fetched f = fetch(&proxy->front, "POST", "/kl_div",
                                 (const char *const[]){mark, NULL}, TWO_BY_TWO, strlen(TWO_BY_TWO));
        cr_expect_eq(f.status, 200, "%ld after %.*s", f.status, (int)size, request);
        cr_expect_str_eq(header_in(&f, "X-Request-Id", value, sizeof value), strchr(mark, 'o'),
                         "after %.*s", (int)size, request);
        fetched_free(&f);
    }
}

/* Sends bytes through the proxy; gives what both have counted for them. */
static struct counts send_through(const struct server *server, const struct proxy *proxy,
                                  const char *request, size_t size)
{
    char answer[16000];
    struct counts before = {counted(server), proxy_passed(proxy)};
    talk(&proxy->front, request, size, answer, sizeof answer, 0.25);
    struct counts seen = settled(server, proxy, &before);
    cr_expect_leq(seen.server, seen.proxy, "the server counted %g, the proxy %g: %.*s", seen.server,
                  seen.proxy, (int)size, request);
    expect_own_answer(proxy, request, size);
    return seen;
}

static void check(enum proxy_kind kind)
{
    proxy_needed(kind);
    struct server server = server_start(NULL);
    struct proxy proxy = proxy_start(kind, &server.port, 1, &(struct setting){0});
    int passed = 0, more = 0;
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct counts seen = send_through(&server, &proxy, refused[i].bytes, refused[i].size);
        passed += seen.proxy > 0;
        more += seen.proxy > seen.server;
    }
    for (size_t i = 0; i < COUNT(accepted); i++) {
        struct counts seen = send_through(&server, &proxy, accepted[i].bytes, accepted[i].size);
        cr_expect_eq(seen.server, accepted[i].n, "%g: %s", seen.server, accepted[i].bytes);
        cr_expect_eq(seen.proxy, accepted[i].n, "%g: %s", seen.proxy, accepted[i].bytes);
    }
    cr_log_info("%d of %zu were passed on; of %d the proxy counted more than the server", passed,
                COUNT(refused), more);
    proxy_stop(&proxy);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(proxies, nginx_counts_each_request_that_the_server_answers) { check(NGINX); }

Test(proxies, streaming_nginx_counts_each_request_that_the_server_answers)
{
    check(NGINX_STREAMING);
}

Test(proxies, haproxy_counts_each_request_that_the_server_answers) { check(HAPROXY); }
