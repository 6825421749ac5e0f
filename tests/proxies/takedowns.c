/* Two servers behind HAProxy with docker/haproxy.cfg, as people run it. Each in turn is stopped or killed, and
 * started again, while clients post: no request fails. */
#include "tests/load/wire.h"
#include "tests/proxies/posters.h"
#include "tests/proxies/proxy.h"

#include <criterion/criterion.h>

enum { SERVERS = 2, CLIENTS = 8, LARGE_CLIENTS = 2, LARGE = 100000 };

/* Seconds from a start to the next end: HAProxy has to see both servers first. */
#define BETWEEN 1.2

/* DRAIN_DELAY: seconds, as docker/haproxy.cfg asks for. */
#define DRAIN_DELAY "2"

/* group: two servers and their proxy; clients with small bodies, and with bodies of 800 KB, which are
 * too large to be sent again. */
struct group {
    struct server servers[SERVERS];
    int ports[SERVERS];
    struct proxy proxy;
    struct posters small, large;
};

static void start(struct group *group, bool with_large)
{
    proxy_needed(HAPROXY);
    proxy_clients(); /* descriptors for both ends */
    for (int i = 0; i < SERVERS; i++) {
        group->servers[i] = replica_start(0, DRAIN_DELAY);
        group->ports[i] = group->servers[i].port;
    }
    group->proxy = proxy_start_shipped(group->ports);
    sleep_seconds(BETWEEN);
    int port = group->proxy.front.port;
    posters_start(&group->small, port, CLIENTS, 0, 0.002, false);
    if (with_large)
        posters_start_large(&group->large, port, LARGE_CLIENTS, 0, 0.02, LARGE);
}

static void stop(struct group *group, bool with_large)
{
    posters_stop(&group->small);
    posters_expect_all_served(&group->small, "small bodies");
    if (with_large) {
        posters_stop(&group->large);
        posters_expect_all_served(&group->large, "bodies of 800 KB");
    }
    proxy_stop(&group->proxy);
    for (int i = 0; i < SERVERS; i++)
        cr_expect_eq(server_stop(&group->servers[i], false), 0);
}

Test(proxies, replicas_that_are_stopped_in_turn_lose_no_request)
{
    static struct group group;
    start(&group, true);
    for (int i = 0; i < 2 * SERVERS; i++) {
        struct server *server = &group.servers[i % SERVERS];
        sleep_seconds(BETWEEN);
        cr_expect_eq(server_stop(server, false), 0);
        *server = replica_start(group.ports[i % SERVERS], DRAIN_DELAY);
    }
    stop(&group, true);
}

Test(proxies, replicas_that_are_killed_in_turn_lose_no_small_request)
{
    static struct group group;
    start(&group, false);
    for (int i = 0; i < 3 * SERVERS; i++) {
        struct server *server = &group.servers[i % SERVERS];
        sleep_seconds(BETWEEN);
        server_kill(server, false);
        *server = replica_start(group.ports[i % SERVERS], DRAIN_DELAY);
    }
    stop(&group, false);
}
