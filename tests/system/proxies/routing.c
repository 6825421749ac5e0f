/* docker/haproxy.cfg and docker/nginx.conf before two servers, each with monitors of its own: all requests of a group reach
 * the same one, other requests both. */
#include "tests/suites/support/support.h"
#include "tests/system/load/wire.h"
#include "tests/system/proxies/proxy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVERS = 2, GROUPS = 40, LOSSES = 200 };

struct routed {
    struct server servers[SERVERS];
    struct proxy proxy;
    int home[GROUPS]; /* number of the server that has the group */
};

/* A name with characters that are escaped in paths. */
static void group_path(int i, const char *before, const char *rest, char *to, size_t size)
{
    snprintf(to, size, "/%s/fraud%%20%%2F%d%s", before, i, rest);
}

static long status_of(const struct server *server, const char *method, const char *path,
                      const char *body)
{
    static const char *const headers[] = {"Content-Type: application/json",
                                          "Idempotency-Key: \"once\"", NULL};
    struct fetched f = fetch(server, method, path, headers, body, body ? strlen(body) : 0);
    long status = f.status;
    fetched_free(&f);
    return status;
}

static void expect_status(const struct routed *r, int group, const char *method, const char *before,
                          const char *rest, const char *body, long status)
{
    char path[200];
    group_path(group, before, rest, path, sizeof path);
    long got = status_of(&r->proxy.front, method, path, body);
    cr_expect_eq(got, status, "%s %s: %ld", method, path, got);
}

/* Finds the server that has a group; -1 if none has it, or both. */
static int home_of(const struct routed *r, int group)
{
    char path[200];
    int home = -1, n = 0;
    group_path(group, "monitors", "", path, sizeof path);
    for (int i = 0; i < SERVERS; i++)
        if (status_of(&r->servers[i], "GET", path, NULL) == 200) {
            home = i;
            n++;
        }
    return n == 1 ? home : -1;
}

/* Makes a monitor of each group, and finds it again by each kind of path. */
static void use_groups(struct routed *r, int at_home[SERVERS])
{
    static const char monitor[] =
        "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [50, 50]}}";
    for (int i = 0; i < GROUPS; i++) {
        expect_status(r, i, "PUT", "monitors", "/a", monitor, 201);
        expect_status(r, i, "POST", "monitors", "/a/observations", "{\"counts\": [5, 5]}", 200);
        expect_status(r, i, "POST", "monitors", "/a/evaluate", "{\"counts\": [5, 5]}", 200);
        expect_status(r, i, "GET", "monitors", "/a/windows?limit=1", NULL, 200);
        expect_status(r, i, "GET", "groups", "", NULL, 200);
        expect_status(r, i, "POST", "groups", "/mute", "{\"until\": \"2100-01-01\"}", 200);
        r->home[i] = home_of(r, i);
        cr_assert(r->home[i] >= 0, "group %d is at none, or at both", i);
        at_home[r->home[i]]++;
    }
}

static double losses_of(const struct server *server)
{
    static const char name[] = "\nkldiv_elements_total ";
    struct fetched f = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    const char *at = memmem(f.body.data, f.body.size, name, sizeof name - 1);
    double n = at ? strtod(at + sizeof name - 1, NULL) : -1;
    fetched_free(&f);
    return n;
}

/* Neither the proxy nor a server behind it shows outsiders its metrics. */
static void expect_no_metrics(const struct server *front)
{
    static const char *const paths[] = {"/metrics",  "/%6detrics", "/metric%73",
                                        "/metrics/", "/./metrics", "/x/../metrics"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char request[100], answer[2000];
        int size = snprintf(request, sizeof request,
                            "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", paths[i]);
        talk(front, request, (size_t)size, answer, sizeof answer, 5);
        cr_expect(strncmp(answer, "HTTP/1.1 4", 10) == 0, "%s: %.200s", paths[i], answer);
    }
}

static void check(enum proxy_kind kind)
{
    struct routed r;
    int at_home[SERVERS] = {0}, ports[SERVERS];
    proxy_needed(kind);
    for (int i = 0; i < SERVERS; i++) {
        r.servers[i] = replica_start(0, "0");
        ports[i] = r.servers[i].port;
    }
    r.proxy = proxy_start_shipped(kind, ports);
    sleep_seconds(1.2); /* HAProxy has to see both servers first */
    expect_no_metrics(&r.proxy.front);
    use_groups(&r, at_home);
    for (int i = 0; i < SERVERS; i++)
        cr_expect_geq(at_home[i], GROUPS / 5, "server %d has %d", i, at_home[i]);
    for (int i = 0; i < LOSSES; i++)
        cr_expect_eq(status_of(&r.proxy.front, "POST", "/kl_div", TWO_BY_TWO), 200);
    for (int i = 0; i < SERVERS; i++)
        cr_expect_gt(losses_of(&r.servers[i]), 0, "no loss reached server %d", i);
    for (int i = 0; i < GROUPS; i++)
        expect_status(&r, i, "DELETE", "monitors", "", NULL, 204);
    proxy_stop(&r.proxy);
    for (int i = 0; i < SERVERS; i++)
        cr_expect_eq(server_stop(&r.servers[i], true), 0);
}

Test(proxies, haproxy_sends_a_group_to_one_server) { check(HAPROXY); }

Test(proxies, nginx_sends_a_group_to_one_server) { check(NGINX); }
