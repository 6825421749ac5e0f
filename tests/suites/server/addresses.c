/* Addresses that the server listens on: of both families, and of IPv4 where the kernel has no IPv6. */
#include "tests/suites/support/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const everywhere[] = {"--listen", "[::]:0", NULL};

static bool has_ipv6(void)
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Makes sockets of IPv6 fail in this process and those that it starts, as in a kernel without. */
static bool take_ipv6_away(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool good = filter &&
                seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                 SCMP_A0(SCMP_CMP_EQ, AF_INET6)) == 0 &&
                seccomp_load(filter) == 0;
    seccomp_release(filter);
    return good;
}

/* Expects that the server's health check finds it, which tries 127.0.0.1. */
static void expect_healthy(const struct server *server)
{
    char address[40], output[500];
    snprintf(address, sizeof address, "[::]:%d", server->port);
    const char *const check[] = {"--healthcheck", "--listen", address, NULL};
    cr_expect_eq(run_server(check, output, sizeof output), 0, "%s", output);
}

static void expect_loss(const struct server *server)
{
    struct fetched f = post_json(server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
}

Test(addresses, listens_on_ipv6_and_ipv4_at_once)
{
    if (!has_ipv6())
        cr_skip("no IPv6 here");
    struct server server = server_start(everywhere);
    expect_loss(&server); /* by 127.0.0.1 */
    cr_expect(server_logs(&server, "listening on http://[::]:", 1));
    cr_expect(server_logs(&server, "DNS rebinding", 1));
    expect_healthy(&server);
    cr_expect_eq(server_stop(&server, true), 0);
}

Test(addresses, listens_on_ipv4_where_there_is_no_ipv6)
{
    if (!take_ipv6_away())
        cr_skip("no filter of system calls can be set here");
    cr_assert(!has_ipv6());
    static const char *const flags[] = {"--listen", "[::]:0", "--allowed-hosts", "127.0.0.1", NULL};
    struct server server = server_start(flags);
    expect_loss(&server);
    cr_expect(server_logs(&server, "listening on http://0.0.0.0:", 1));
    cr_expect(server_logs(&server, "no IPv6 here wanted=[::]:0 is=0.0.0.0:", 1));
    expect_healthy(&server);
    cr_expect_eq(server_stop(&server, false), 0);
}
