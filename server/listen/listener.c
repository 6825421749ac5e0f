#include "server/listen/listener.h"

#include "api/text/clock.h"
#include "server/connection/linger.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Makes the kernel drop, or stop dropping, packets with a TTL below 255 (RFC 5082): those that
 * crossed a router or left their host with a common TTL. A listening socket then accepts no new
 * handshakes: clients retry, and are refused after the socket is closed. Handshakes in progress
 * complete. Closing alone would reset the connections made between the last accept and the
 * close. Needs no privilege. */
static bool drop_packets(int fd, bool drop)
{
    int min_ttl = drop ? 255 : 0;
    bool by_ipv4 = setsockopt(fd, IPPROTO_IP, IP_MINTTL, &min_ttl, sizeof min_ttl) == 0;
    bool by_ipv6 = setsockopt(fd, IPPROTO_IPV6, IPV6_MINHOPCOUNT, &min_ttl, sizeof min_ttl) == 0;
    return by_ipv4 || by_ipv6;
}

/* Times, in ms: for one more handshake to complete, or to accept at all if packets cannot be dropped;
 * the longest time to accept for if they are. */
enum { LAST_HANDSHAKES_MS = 20, LAST_ACCEPTS_MS = 300 };

static bool out_of_something(int reason)
{
    return reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM;
}

/* Accepts one connection; -1 if there is none, with errno set. */
static int accept_one(struct srv_listener *l, struct sockaddr_storage *address, socklen_t *size)
{
    *size = sizeof *address;
    int client = accept4(l->fd, (struct sockaddr *)address, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0 && atomic_load(&l->stopping))
        drop_packets(client, false); /* inherited from the listening socket */
    return client;
}

static bool take_one(struct srv_listener *l)
{
    struct sockaddr_storage address;
    socklen_t size;
    int client = accept_one(l, &address, &size);
    int reason = errno;
    if (client >= 0)
        l->take(client, (struct sockaddr *)&address, size);
    if (client >= 0 && l->spare < 0)
        l->spare = dup(l->fd); /* none was left when it was needed last */
    errno = reason;
    return client >= 0;
}

/* Accepts the connections whose handshakes have begun. */
static void accept_last(struct srv_listener *l)
{
    struct pollfd listening = {.fd = l->fd, .events = POLLIN};
    unsigned long long start = api_now_ms();
    bool dropping = drop_packets(l->fd, true);
    unsigned long long end = start + (dropping ? LAST_ACCEPTS_MS : LAST_HANDSHAKES_MS);
    while (api_now_ms() < end && (take_one(l) || poll(&listening, 1, LAST_HANDSHAKES_MS) > 0))
        ;
}

void srv_turn_away(int client)
{
    static const char response[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                   "Retry-After: 1\r\n"
                                   "Content-Length: 0\r\n"
                                   "Connection: close\r\n\r\n";
    srv_metrics_connection_refused();
    srv_send_last(client, response, sizeof response - 1);
}

/* Answers a client for which there is no descriptor; without an answer it would wait in the backlog. */
static void turn_one_away(struct srv_listener *l)
{
    struct sockaddr_storage address;
    socklen_t size;
    if (l->spare < 0)
        return;
    close(l->spare);
    int client = accept_one(l, &address, &size);
    if (client >= 0 && !l->tls)
        srv_turn_away(client);
    if (client >= 0)
        close(client);
    l->spare = dup(l->fd);
}

/* Accepts the connections that were made before the call; later ones are refused. A unix socket that is
 * shut keeps those in its backlog, and has no handshakes. */
static void accept_last_local(struct srv_listener *l)
{
    unsigned long long end = api_now_ms() + LAST_ACCEPTS_MS;
    shutdown(l->fd, SHUT_RD);
    for (;;) {
        if (take_one(l))
            continue;
        if (!out_of_something(errno) || api_now_ms() > end)
            return;
        turn_one_away(l);
    }
}

static void *accept_all(void *argument)
{
    struct srv_listener *l = argument;
    struct pollfd fds[] = {{.fd = l->fd, .events = POLLIN}, {.fd = l->wake, .events = POLLIN}};
    bool complained = false;
    while (!atomic_load(&l->stopping)) {
        if (take_one(l)) {
            complained = false;
            continue;
        }
        if (out_of_something(errno)) {
            if (!complained)
                srv_log(SRV_LOG_WARNING, "cannot accept error=%s", strerror(errno));
            complained = true;
            turn_one_away(l);
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* the backlog holds others */
        }
        poll(fds, 2, -1);
    }
    if (!l->passed && l->local)
        accept_last_local(l);
    else if (!l->passed)
        accept_last(l);
    return NULL;
}

bool srv_accept_start(struct srv_listener *l,
                      void (*take)(int client, const struct sockaddr *address, socklen_t size))
{
    l->take = take;
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->spare = dup(l->fd);
    l->started = l->wake >= 0 && pthread_create(&l->thread, NULL, accept_all, l) == 0;
    return l->started;
}

void srv_accept_end(struct srv_listener *l)
{
    atomic_store(&l->stopping, true);
    if (l->started)
        eventfd_write(l->wake, 1);
}

void srv_accept_stop(struct srv_listener *l)
{
    srv_accept_end(l);
    if (!l->started)
        return;
    pthread_join(l->thread, NULL);
    close(l->fd);
    close(l->wake);
    if (l->spare >= 0)
        close(l->spare);
    l->started = false;
}
