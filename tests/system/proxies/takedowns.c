/* Two servers behind HAProxy with docker/haproxy.cfg, or nginx with docker/nginx.conf, as people run them. Each in turn
 * is stopped or killed, and started again, while clients post: no request fails. */
#include "tests/system/load/wire.h"
#include "tests/system/proxies/posters.h"
#include "tests/system/proxies/proxy.h"

#include <criterion/criterion.h>
#include <signal.h>

enum { SERVERS = 2, CLIENTS = 8, LARGE_CLIENTS = 2, LARGE = 100000 };

/* Seconds from a start to the next end: HAProxy has to see both servers first. */
#define BETWEEN 1.2

/* GONE: seconds that replicas stay away for, so that HAProxy marks them as down. */
#define GONE 3

/* DRAIN_DELAY: seconds, as both files ask for. */
#define DRAIN_DELAY "2"

/* group: two servers and their proxy; clients with small bodies, and with bodies of 800 KB, which are
 * too large to be sent again. */
struct group {
    struct server servers[SERVERS];
    int ports[SERVERS];
    struct proxy proxy;
    struct posters small, large;
};

static void start(struct group *group, enum proxy_kind kind, bool with_large)
{
    proxy_needed(kind);
    proxy_clients(); /* descriptors for both ends */
    for (int i = 0; i < SERVERS; i++) {
        group->servers[i] = replica_start(0, DRAIN_DELAY);
        group->ports[i] = group->servers[i].port;
    }
    group->proxy = proxy_start_shipped(kind, group->ports);
    sleep_seconds(BETWEEN);
    int port = group->proxy.front.port;
    posters_start(&group->small, port, CLIENTS, 0, 0.008, false);
    if (with_large)
        posters_start_large(&group->large, port, LARGE_CLIENTS, 0, 0.06, LARGE);
}

static void stop_servers(struct group *group)
{
    proxy_stop(&group->proxy);
    for (int i = 0; i < SERVERS; i++)
        cr_expect_eq(server_stop(&group->servers[i], false), 0);
}

static void stop(struct group *group, bool with_large)
{
    posters_stop(&group->small);
    posters_expect_all_served(&group->small, "small bodies");
    if (with_large) {
        posters_stop(&group->large);
        posters_expect_all_served(&group->large, "bodies of 800 KB");
    }
    stop_servers(group);
}

/* Stops each in turn, so many seconds after the start of the one before. */
static void check_stopped(enum proxy_kind kind, double between)
{
    static struct group group;
    start(&group, kind, true);
    for (int i = 0; i < 2 * SERVERS; i++) {
        struct server *server = &group.servers[i % SERVERS];
        sleep_seconds(between);
        cr_expect_eq(server_stop(server, false), 0);
        *server = replica_start(group.ports[i % SERVERS], DRAIN_DELAY);
    }
    stop(&group, true);
}

/* Kills each in turn, and starts it again after some seconds. */
static void kill_in_turn(struct group *group, int times, double seconds)
{
    for (int i = 0; i < times; i++) {
        struct server *server = &group->servers[i % SERVERS];
        sleep_seconds(BETWEEN);
        server_kill(server, false);
        sleep_seconds(seconds);
        *server = replica_start(group->ports[i % SERVERS], DRAIN_DELAY);
    }
}

/* HAProxy does not know yet that a replica is ready when the next one is stopped. */
Test(proxies, replicas_that_are_stopped_in_turn_lose_no_request) { check_stopped(HAPROXY, 0); }

Test(proxies, replicas_that_are_killed_in_turn_lose_no_small_request)
{
    static struct group group;
    start(&group, HAPROXY, false);
    kill_in_turn(&group, 3 * SERVERS, 0);
    stop(&group, false);
}

/* HAProxy cuts what it is just connecting when it marks a replica as down: a request at most of some thousand a second. */
Test(proxies, replicas_that_stay_away_lose_hardly_a_request)
{
    static struct group group;
    start(&group, HAPROXY, false);
    kill_in_turn(&group, SERVERS, GONE);
    posters_stop(&group.small);
    cr_log_info("%lu served, %lu lost", group.small.served, group.small.lost);
    cr_expect_gt(group.small.served, 100);
    cr_expect_eq(group.small.other, 0);
    cr_expect_leq(group.small.lost, SERVERS);
    stop_servers(&group);
}

/* A replica that hangs for longer than clients wait: its requests go to the other one. */
Test(proxies, a_replica_that_hangs_loses_no_small_request)
{
    enum { HANGS_SECONDS = 12 };
    static struct group group;
    start(&group, HAPROXY, false);
    sleep_seconds(BETWEEN);
    kill(group.servers[0].pid, SIGSTOP);
    sleep_seconds(HANGS_SECONDS);
    kill(group.servers[0].pid, SIGCONT);
    sleep_seconds(BETWEEN);
    stop(&group, false);
}

Test(proxies, replicas_that_are_stopped_in_turn_behind_nginx_lose_no_request)
{
    check_stopped(NGINX, BETWEEN);
}

/* nginx keeps each body, of any size, until it has the answer. */
Test(proxies, replicas_that_are_killed_in_turn_behind_nginx_lose_no_request)
{
    static struct group group;
    start(&group, NGINX, true);
    kill_in_turn(&group, 2 * SERVERS, 0);
    kill_in_turn(&group, SERVERS, GONE);
    stop(&group, true);
}
