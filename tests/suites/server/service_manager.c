/* The test plays a service manager: it passes sockets, and reads what the server tells. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ---- Sockets that are passed */

/* A listening socket on a free port, which it gives; with another type it only is bound. */
static int make_socket(int type, int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    cr_assert(type != SOCK_STREAM || listen(fd, 128) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void expect_status(const struct server *server, int port, const char *path, long status)
{
    struct server at = *server;
    at.port = port;
    *at.path = '\0';
    struct fetched f = fetch(&at, "GET", path, NULL, NULL, 0);
    cr_expect_eq(f.status, status, "%s at %d: %ld", path, port, f.status);
    fetched_free(&f);
}

Test(service_manager, serves_the_sockets_that_it_is_passed)
{
    int http, admin;
    server_pass(make_socket(SOCK_STREAM, &http), make_socket(SOCK_STREAM, &admin));
    struct server server = server_start(NULL);
    cr_expect_eq(server.port, http, "--listen counts for nothing beside a socket");
    expect_status(&server, http, "/openapi.json", 200);
    expect_status(&server, admin, "/metrics", 200);
    expect_status(&server, admin, "/openapi.json", 404);
    cr_expect(server_logs(&server, ", a socket of the service manager\n", 2));
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(service_manager, serves_all_sockets_that_it_is_passed_for_all)
{
    int one, two;
    setenv("LISTEN_FDNAMES", "one:two", 1);
    server_pass(make_socket(SOCK_STREAM, &one), make_socket(SOCK_STREAM, &two));
    struct server server = server_start(NULL);
    cr_expect_eq(server.port, one, "the port is that of the first");
    expect_status(&server, one, "/openapi.json", 200);
    expect_status(&server, two, "/openapi.json", 200);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Clients that came while there was no process. */
Test(service_manager, leaves_clients_that_wait_to_the_next_that_has_the_socket)
{
    enum { WAITING = 40 };
    static const char request[] = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    int fds[WAITING], port;
    server_pass(make_socket(SOCK_STREAM, &port), -1);
    struct server first = server_start(NULL);
    cr_expect_eq(server_stop(&first, false), 0);
    *first.path = '\0';
    for (int i = 0; i < WAITING; i++) {
        fds[i] = dial(&first);
        cr_assert_eq(send(fds[i], request, sizeof request - 1, 0), sizeof request - 1);
    }
    struct server second = server_start(NULL);
    for (int i = 0; i < WAITING; i++) {
        char answer[20] = "";
        cr_expect_gt(recv(fds[i], answer, sizeof answer - 1, 0), 0);
        cr_expect_eq(strncmp(answer, "HTTP/1.1 200", 12), 0, "%s", answer);
        close(fds[i]);
    }
    cr_expect_eq(server_stop(&second, false), 0);
}

Test(service_manager, takes_no_socket_that_was_meant_for_another_process)
{
    int port;
    setenv("LISTEN_PID", "1", 1);
    server_pass(make_socket(SOCK_STREAM, &port), -1);
    struct server server = server_start(NULL);
    cr_expect_neq(server.port, port);
    expect_status(&server, server.port, "/livez", 200);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Expects the server to end with a line of this text. */
static void expect_refusal(int http, int admin, const char *text)
{
    static const char *const flags[] = {"--listen", "127.0.0.1:0", NULL};
    char output[500];
    server_pass(http, admin);
    cr_expect_eq(run_server(flags, output, sizeof output), 1);
    cr_expect(strstr(output, text) && strchr(output, '\n') == strrchr(output, '\n'), "%s", output);
}

Test(service_manager, refuses_what_it_cannot_listen_on)
{
    int port, http = make_socket(SOCK_STREAM, &port), datagrams = make_socket(SOCK_DGRAM, &port);
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    expect_refusal(datagrams, -1, "LISTEN_FDS: descriptor 3 (http) is not a listening TCP or unix");
    expect_refusal(http, local, "LISTEN_FDS: descriptor 4 (admin) is not a listening TCP or unix");
    setenv("LISTEN_FDNAMES", "admin:admin", 1);
    expect_refusal(http, http, "LISTEN_FDS: descriptor 4 (admin) is too many");
    setenv("LISTEN_FDS", "many", 1);
    expect_refusal(http, -1, "LISTEN_FDS: 'many' is not a number");
    setenv("LISTEN_FDNAMES", "kldivd.socket", 1);
    setenv("LISTEN_FDS", "2", 1);
    expect_refusal(http, -1, "LISTEN_FDS: descriptor 4 () is not a listening TCP or unix");
}

/* ---- What the server tells */

/* A socket for what servers tell that are started from then on. A name with '@' is abstract. */
static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, name, size);
    if (*name == '@')
        address.sun_path[0] = '\0';
    cr_assert_eq(bind(fd, (struct sockaddr *)&address,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
                 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

/* Reads a message; false if none comes in that time. */
static bool next_message(int fd, char *text, size_t size, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = poll(&p, 1, ms) == 1 ? recv(fd, text, size - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static void expect_message(int fd, const char *begin)
{
    char text[600];
    cr_expect(next_message(fd, text, sizeof text, 10000), "%s did not come", begin);
    cr_expect_eq(strncmp(text, begin, strlen(begin)), 0, "%s came instead of %s", text, begin);
}

static void check_life(const char *name)
{
    char text[600];
    int fd = listen_at(name);
    struct server server = server_start(NULL);
    expect_message(fd, "READY=1\nSTATUS=Serving");
    kill(server.pid, SIGHUP);
    expect_message(fd, "RELOADING=1\nMONOTONIC_USEC=");
    expect_message(fd, "READY=1");
    kill(server.pid, SIGTERM);
    expect_message(fd, "STOPPING=1\nSTATUS=");
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect(!next_message(fd, text, sizeof text, 0), "%s", text);
    close(fd);
}

Test(service_manager, tells_its_manager_that_it_is_ready_reloads_and_stops)
{
    char folder[] = "/tmp/kldiv-manager-XXXXXX", path[60], name[60];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/notify", folder);
    check_life(path);
    unlink(path);
    rmdir(folder);
    snprintf(name, sizeof name, "@kldiv-manager-%d", (int)getpid());
    check_life(name);
}

Test(service_manager, serves_although_its_manager_cannot_be_told)
{
    static const char *const names[] = {"/nowhere/notify", "vsock:2:1", ""};
    for (size_t i = 0; i < COUNT(names); i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        struct server server = server_start(NULL);
        expect_status(&server, server.port, "/livez", 200);
        cr_expect(!*names[i] ||
                  server_logs(&server, " warning NOTIFY_SOCKET: the service manager cannot", 1));
        cr_expect_eq(server_stop(&server, *names[i] != '\0'), 0);
    }
}

/* ---- The watchdog */

/* Socket of a manager that wants to hear every 0.2 s. */
static int watch_servers(char *name, size_t size)
{
    snprintf(name, size, "@kldiv-watchdog-%d", (int)getpid());
    setenv("WATCHDOG_USEC", "200000", 1);
    return listen_at(name);
}

Test(service_manager, tells_its_manager_again_and_again_that_it_works)
{
    char name[60];
    int fd = watch_servers(name, sizeof name);
    struct server server = server_start(NULL);
    expect_message(fd, "READY=1");
    for (int i = 0; i < 5; i++)
        expect_message(fd, "WATCHDOG=1");
    cr_expect_eq(server_stop(&server, false), 0);
    close(fd);
}

Test(service_manager, tells_nothing_to_the_watchdog_of_another_process)
{
    char name[60], text[600];
    int fd = watch_servers(name, sizeof name);
    setenv("WATCHDOG_PID", "1", 1);
    struct server server = server_start(NULL);
    expect_message(fd, "READY=1");
    cr_expect(!next_message(fd, text, sizeof text, 500), "%s", text);
    cr_expect_eq(server_stop(&server, false), 0);
    close(fd);
}
