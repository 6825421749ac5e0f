/* Requests that HAProxy with docker/haproxy.cfg, or nginx with docker/nginx.conf, sends again when a replica ends the
 * connection without an answer, and those that it must not: the replicas are threads that do so, and count. */
#include "tests/suites/support/support.h"
#include "tests/system/load/wire.h"
#include "tests/system/proxies/proxy.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* replicas: two sockets, and the number of requests that came, but those of checks. */
static struct {
    int fds[2], ports[2];
    atomic_int seen;
    atomic_bool stopping;
} replicas;

static void listen_at_any_port(int *fd, int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(*fd, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(*fd, 128), 0);
    cr_assert_eq(getsockname(*fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
}

/* Answers a check, and nothing else. */
static void meet(int client)
{
    static const char ready[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    char bytes[1 << 16];
    ssize_t n = recv(client, bytes, sizeof bytes - 1, 0);
    bytes[n > 0 ? n : 0] = '\0';
    if (strncmp(bytes, "GET /readyz ", 12) == 0)
        send(client, ready, sizeof ready - 1, MSG_NOSIGNAL);
    else if (n > 0)
        atomic_fetch_add(&replicas.seen, 1);
    close(client);
}

static void *run(void *unused)
{
    while (!atomic_load(&replicas.stopping)) {
        struct pollfd fds[] = {{.fd = replicas.fds[0], .events = POLLIN},
                               {.fd = replicas.fds[1], .events = POLLIN}};
        poll(fds, 2, 100);
        for (int i = 0; i < 2; i++)
            if (fds[i].revents & POLLIN)
                meet(accept(replicas.fds[i], NULL, NULL));
    }
    return unused;
}

static const struct {
    const char *request; /* its first line, and fields */
    size_t body;         /* bytes */
    bool haproxy, nginx; /* repeats it */
} requests[] = {
    {"POST /kl_div HTTP/1.1\r\n", 100, true, true},
    {"POST /kl_div HTTP/1.1\r\n", 60000, true, true},
    {"POST /kl_div HTTP/1.1\r\n", 70000, false, true},
    {"GET /monitors HTTP/1.1\r\n", 0, true, true},
    {"POST /monitors/a/observations HTTP/1.1\r\n", 100, false, false},
    {"POST /%6donitors/a/observations HTTP/1.1\r\n", 100, false, false},
    {"POST /monitors/a/observations HTTP/1.1\r\nIdempotency-Key: 1\r\n", 100, true, true},
    {"POST /v2/models/kl_div/infer HTTP/1.1\r\n", 100, true, true},
    {"POST /monitors/a/b/evaluate HTTP/1.1\r\n", 100, true, true},
    {"POST /monitors/od280%2Fod315/b/evaluate?x=/ HTTP/1.1\r\n", 100, true, true},
    {"POST /monitors/a/evaluate HTTP/1.1\r\n", 100, true, true},
    {"POST /compare HTTP/1.1\r\n", 100, true, true},
    {"PUT /monitors/a/evaluate HTTP/1.1\r\n", 100, false, true},
    {"PUT /monitors/a/b HTTP/1.1\r\n", 100, false, true},
    {"DELETE /monitors/a HTTP/1.1\r\n", 0, false, true},
};

/* Sends a request; gives how often it came to a replica. */
static int times_sent(const struct proxy *proxy, const char *request, size_t body)
{
    char answer[2000], *bytes = calloc(1, body + 400);
    bool is_kept;
    cr_assert(bytes);
    int head = sprintf(bytes, "%sHost: a\r\nContent-Length: %zu\r\n\r\n", request, body);
    memset(bytes + head, '1', body);
    atomic_store(&replicas.seen, 0);
    int fd = wire_dial(proxy->front.port, 0);
    int status = wire_exchange(fd, bytes, (size_t)head + body, answer, sizeof answer, 10, &is_kept);
    cr_expect(status == 502 || (status == 0 && body > 1 << 16), "%s %zu: %d", request, body,
              status);
    close(fd);
    free(bytes);
    return atomic_load(&replicas.seen);
}

static void check(enum proxy_kind kind)
{
    pthread_t thread;
    proxy_needed(kind);
    for (int i = 0; i < 2; i++)
        listen_at_any_port(&replicas.fds[i], &replicas.ports[i]);
    cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
    struct proxy proxy = proxy_start_shipped(kind, replicas.ports);
    sleep_seconds(1);
    for (size_t i = 0; i < COUNT(requests); i++) {
        int times = times_sent(&proxy, requests[i].request, requests[i].body);
        bool repeats = kind == NGINX ? requests[i].nginx : requests[i].haproxy;
        cr_expect(repeats ? times > 1 : times == 1, "sent %d times: %s, %zu bytes", times,
                  requests[i].request, requests[i].body);
    }
    proxy_stop(&proxy);
    atomic_store(&replicas.stopping, true);
    pthread_join(thread, NULL);
}

Test(proxies, haproxy_repeats_what_may_be_repeated) { check(HAPROXY); }

Test(proxies, nginx_repeats_what_may_be_repeated) { check(NGINX); }
