/* docker/haproxy.cfg with RATE: who sends more is told 429, by token or by address, and nobody else. */
#include "tests/suites/support/support.h"
#include "tests/system/load/wire.h"
#include "tests/system/proxies/proxy.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { RATE = 20 };

/* Number of requests that are answered 429, of `n` with a header; the others are 200. */
static int refused(const struct server *front, const char *header, int n)
{
    const char *const headers[] = {header, NULL};
    int n_refused = 0;
    for (int i = 0; i < n; i++) {
        char after[20];
        struct fetched f = fetch(front, "GET", "/v2", headers, NULL, 0);
        n_refused += f.status == 429;
        cr_expect(f.status == 200 || f.status == 429, "%ld", f.status);
        if (f.status == 429)
            cr_expect_str_eq(header_in(&f, "Retry-After", after, sizeof after), "10");
        fetched_free(&f);
    }
    return n_refused;
}

Test(proxies, haproxy_bounds_the_rate_of_each_token)
{
    proxy_needed(HAPROXY);
    struct server servers[] = {replica_start(0, "0"), replica_start(0, "0")};
    setenv("RATE", "20", 1);
    struct proxy proxy =
        proxy_start_shipped(HAPROXY, (const int[]){servers[0].port, servers[1].port});
    sleep_seconds(1.2);
    const struct server *front = &proxy.front;
    cr_expect_eq(refused(front, "Authorization: Bearer one", RATE), 0);
    cr_expect_geq(refused(front, "Authorization: Bearer one", RATE), RATE - 5);
    cr_expect_eq(refused(front, "Authorization: Bearer two", RATE), 0);
    cr_expect_leq(refused(front, NULL, RATE),
                  5); /* those by which the tests wait for a proxy count, too */
    cr_expect_geq(refused(front, NULL, RATE), RATE - 5);
    proxy_stop(&proxy);
    for (size_t i = 0; i < COUNT(servers); i++)
        cr_expect_eq(server_stop(&servers[i], false), 0);
}
