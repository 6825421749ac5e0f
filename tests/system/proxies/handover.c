/* No proxy: a service manager keeps the socket, and starts the server again and again behind it while clients post.
 * Their connections end with an answer that says so, and new ones wait in the backlog for the next server. */
#include "tests/system/load/wire.h"
#include "tests/system/proxies/posters.h"
#include "tests/system/proxies/proxy.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <sys/socket.h>

enum { ROUNDS = 5, CLIENTS = 8, LARGE_CLIENTS = 2, LARGE = 100000 };

static int listen_anywhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(fd, 4096), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* The drain delay is that of docker/systemd/kldivd.service: each client posts more often, and so is told
 * that its connection ends before it does. */
Test(proxies, restarts_behind_the_socket_of_a_service_manager_fail_no_request)
{
    static const char *const flags[] = {"--drain-delay", "1", "--log-level", "warning", NULL};
    static struct posters small, large;
    int port;
    server_pass(listen_anywhere(&port), -1);
    struct server server = server_start(flags);
    posters_start(&small, port, CLIENTS, 0, 0.008, false);
    posters_start_large(&large, port, LARGE_CLIENTS, 0, 0.06, LARGE);
    for (int i = 0; i < ROUNDS; i++) {
        sleep_seconds(0.5);
        cr_expect_eq(server_stop(&server, false), 0);
        sleep_seconds(0.2); /* nobody accepts */
        server = server_start(flags);
    }
    posters_stop(&small);
    posters_stop(&large);
    posters_expect_all_served(&small, "small bodies");
    posters_expect_all_served(&large, "bodies of 800 KB");
    cr_expect_eq(server_stop(&server, false), 0);
}
