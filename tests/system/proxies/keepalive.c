/* Connections that proxies keep to the server: a proxy must not send a request on one that the server
 * is about to close. The server keeps them for longer than proxies do, and holds what it announces. */
#include "tests/system/load/calls.h"
#include "tests/system/load/wire.h"
#include "tests/system/proxies/posters.h"
#include "tests/system/proxies/proxy.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Connections of the server, but that which asks. */
static double connections_open(const struct server *server)
{
    struct fetched f = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    const char *line = strstr(f.body.data, "\nkldiv_connections_open ");
    double n = line ? atof(line + strlen("\nkldiv_connections_open ")) - 1 : -1;
    fetched_free(&f);
    return n;
}

/* Posts through a proxy for ten gaps of `min` to `max` seconds, in which all connections are idle;
 * gives the number of requests that failed. */
static unsigned long failures(enum proxy_kind kind, const char *timeout, const char *upstream,
                              double min, double max)
{
    static struct posters posters;
    size_t n = proxy_clients();
    const char *const flags[] = {"--timeout", timeout, NULL};
    struct server server = server_start(flags);
    struct proxy proxy =
        proxy_start(kind, &server.port, 1, &(struct setting){.upstream = upstream});
    posters_start(&posters, proxy.front.port, n, min, max, true);
    sleep_seconds(5 * (min + max));
    double open = connections_open(&server);
    posters_stop(&posters);
    cr_log_info(
        "timeout %s s: %lu served over %g connections, %lu of another status (%d), %lu lost",
        timeout, posters.served, open, posters.other, posters.status, posters.lost);
    cr_expect_gt(posters.served, n);
    proxy_stop(&proxy);
    cr_expect_eq(server_stop(&server, false), 0);
    return posters.other + posters.lost;
}

Test(proxies, nginx_meets_no_closed_connection_by_default)
{
    proxy_needed(NGINX);
    cr_expect_eq(failures(NGINX, "75", NULL, 0, 1), 0);
}

Test(proxies, haproxy_meets_no_closed_connection_by_default)
{
    proxy_needed(HAPROXY);
    cr_expect_eq(failures(HAPROXY, "75", NULL, 0, 1), 0);
}

/* The defaults, 60 s of nginx and 75 s of the server, in small: gaps are on both sides of both. */
Test(proxies, nginx_closes_first)
{
    proxy_needed(NGINX);
    cr_expect_eq(failures(NGINX, "2", "keepalive_timeout 1600ms;", 1.2, 2.4), 0);
}

/* The other way round: a number to read, not a promise. */
Test(proxies, nginx_that_keeps_for_longer_may_fail)
{
    proxy_needed(NGINX);
    unsigned long failed = failures(NGINX, "1", NULL, 0.99, 1.12);
    cr_log_info("%lu requests met a connection that was being closed", failed);
}

/* Reads until the end of the connection; gives the seconds until then. */
static double seconds_until_end(int fd, double start)
{
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, 1, 10000);
    cr_expect_eq(read(fd, &byte, 1), 0);
    return seconds_now() - start;
}

/* Requests come just before the announced time is over, and then none. */
Test(proxies, the_announced_time_is_held)
{
    enum { KEPT = 40, ROUNDS = 3 };
    static const char *const flags[] = {"--timeout", "3", NULL};
    struct server server = server_start(flags);
    struct call call = {0};
    int fds[KEPT];
    double start = 0;
    cr_assert(call_get(&call, "/livez", ""));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KEPT; i++) {
            char answer[2000];
            bool is_kept;
            if (round == 0)
                fds[i] = wire_dial(server.port, 0);
            start = i == 0 ? seconds_now() : start;
            cr_expect_eq(
                wire_exchange(fds[i], call.bytes, call.size, answer, sizeof answer, 10, &is_kept),
                200, "client %d, round %d", i, round);
            cr_expect(is_kept && strstr(answer, "\nKeep-Alive: timeout=3\r\n"), "%s", answer);
        }
        sleep_seconds(round < ROUNDS - 1 ? 2.4 : 0);
    }
    for (int i = 0; i < KEPT; i++) {
        double held = seconds_until_end(fds[i], start);
        cr_expect(held >= 3, "%g s", held);
        close(fds[i]);
    }
    call_free(&call);
    cr_expect_eq(server_stop(&server, false), 0);
}
