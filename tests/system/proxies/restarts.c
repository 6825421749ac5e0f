/* Two servers behind a proxy, each in turn stopped and started again while clients post: no request
 * fails.
 *
 * HAProxy asks /readyz every 200 ms, sends a request to the other server if it cannot connect
 * (redispatch, retry-on conn-failure), and repeats none that it has sent. nginx has no such checks
 * and learns from a refused connection alone: max_fails=0, because it must not forget both servers, and
 * its default proxy_next_upstream, by which it repeats no POST that it has sent. */
#include "tests/system/load/wire.h"
#include "tests/system/proxies/posters.h"
#include "tests/system/proxies/proxy.h"

#include <criterion/criterion.h>

enum { SERVERS = 2, ROUNDS = 2, CLIENTS = 8 };

/* Seconds from a start to the next stop: a proxy that checks has to see both servers first. */
#define BETWEEN 1

static void check(enum proxy_kind kind, const struct setting *setting)
{
    static struct posters posters;
    struct server servers[SERVERS];
    int ports[SERVERS];
    proxy_needed(kind);
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = replica_start(0, "1");
        ports[i] = servers[i].port;
    }
    struct proxy proxy = proxy_start(kind, ports, SERVERS, setting);
    sleep_seconds(BETWEEN);
    posters_start(&posters, proxy.front.port, CLIENTS, 0, 0.008, false);
    for (int i = 0; i < ROUNDS * SERVERS; i++) {
        sleep_seconds(BETWEEN);
        cr_expect_eq(server_stop(&servers[i % SERVERS], false), 0);
        servers[i % SERVERS] = replica_start(ports[i % SERVERS], "1");
    }
    posters_stop(&posters);
    posters_expect_all_served(&posters, "rolling restarts");
    proxy_stop(&proxy);
    for (int i = 0; i < SERVERS; i++)
        cr_expect_eq(server_stop(&servers[i], false), 0);
}

Test(proxies, rolling_restarts_behind_haproxy_fail_no_request)
{
    check(HAPROXY, &(struct setting){.backend = "option httpchk GET /readyz\n"
                                                "option redispatch\n"
                                                "retries 3\n"
                                                "retry-on conn-failure",
                                     .backend_server = "check inter 200ms fall 1 rise 1"});
}

Test(proxies, rolling_restarts_behind_nginx_fail_no_request)
{
    check(NGINX, &(struct setting){.upstream_server = "max_fails=0"});
}
