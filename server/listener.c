#include "server/listener.h"

#include "server/clock.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/watchdog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

bool srv_split_address(const char *address, char *host, size_t host_size, const char **port)
{
    const char *colon = strrchr(address, ':');
    char *end;
    if (!colon || colon[1] < '0' || colon[1] > '9' || strtoul(colon + 1, &end, 10) > 65535 || *end)
        return false;
    size_t size = (size_t)(colon - address);
    if (size >= 2 && address[0] == '[' && address[size - 1] == ']') {
        address++;
        size -= 2;
    } else if (memchr(address, ':', size)) {
        return false;
    }
    if (size >= host_size)
        return false;
    memcpy(host, address, size);
    host[size] = '\0';
    *port = colon + 1;
    return true;
}

/* IPV6_V6ONLY off: [::] takes IPv4 also where net.ipv6.bindv6only says otherwise. */
static int bind_first(const struct addrinfo *addresses)
{
    for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int yes = 1, no = 0;
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (a->ai_family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
            return fd;
        int reason = errno;
        close(fd);
        errno = reason;
    }
    return -1;
}

/* Resolves and binds. Returns the descriptor, or -1 with errno set, or with *problem of getaddrinfo. */
static int bind_host(const char *host, const char *port, int *problem)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *addresses;
    *problem = getaddrinfo(*host ? host : NULL, port, &hints, &addresses);
    if (*problem)
        return -1;
    int fd = bind_first(addresses), reason = errno;
    freeaddrinfo(addresses);
    errno = reason;
    return fd;
}

/* True if the last failure is for want of IPv6: in the kernel, or on its interfaces. */
static bool lacks_ipv6(void) { return errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL; }

int srv_listen(const char *option, const char *address, FILE *errors)
{
    char host[256];
    const char *port;
    int problem;
    if (!srv_split_address(address, host, sizeof host, &port)) {
        fprintf(errors, "kldivd: %s: '%s' is not HOST:PORT\n", option, address);
        return -1;
    }
    int fd = bind_host(host, port, &problem);
    if (fd < 0 && !problem && strcmp(host, "::") == 0 && lacks_ipv6())
        fd = bind_host("0.0.0.0", port, &problem);
    if (fd < 0)
        fprintf(errors,
                problem ? "kldivd: %s: '%s': %s\n" : "kldivd: %s: cannot listen on %s: %s\n",
                option, address, problem ? gai_strerror(problem) : strerror(errno));
    return fd;
}

int srv_bound_address(int fd, char *to, size_t size)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return -1;
    snprintf(to, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    int number = -1;
    sscanf(port, "%d", &number);
    return number;
}

/* Waits 10 ms: descriptors or memory are exhausted, and the backlog holds the connections. */
static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); }

/* Makes the kernel drop, or stop dropping, packets with a TTL below 255 (RFC 5082): those that
 * crossed a router or left their host with a common TTL. A listening socket then accepts no new
 * handshakes: clients retry, and are refused after the socket is closed. Handshakes in progress
 * complete. Closing alone would reset the connections made between the last accept and the
 * close. Needs no privilege. */
static bool drop_packets(int fd, bool drop)
{
    int least = drop ? 255 : 0;
    bool by_ipv4 = setsockopt(fd, IPPROTO_IP, IP_MINTTL, &least, sizeof least) == 0;
    bool by_ipv6 = setsockopt(fd, IPPROTO_IPV6, IPV6_MINHOPCOUNT, &least, sizeof least) == 0;
    return by_ipv4 || by_ipv6;
}

/* Times, in ms: for one more handshake to complete, or to accept at all if packets cannot be dropped;
 * the most to accept for if they are. */
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
    srv_step_begin();
    int client = accept_one(l, &address, &size);
    int reason = errno;
    if (client >= 0)
        l->take(client, (struct sockaddr *)&address, size);
    if (client >= 0 && l->spare < 0)
        l->spare = dup(l->fd); /* none was left when it was needed last */
    srv_step_end();
    errno = reason;
    return client >= 0;
}

/* Accepts the connections whose handshakes have begun. */
static void accept_last(struct srv_listener *l)
{
    struct pollfd listening = {.fd = l->fd, .events = POLLIN};
    unsigned long long start = srv_now_ms();
    bool dropping = drop_packets(l->fd, true);
    unsigned long long end = start + (dropping ? LAST_ACCEPTS_MS : LAST_HANDSHAKES_MS);
    while (srv_now_ms() < end && (take_one(l) || poll(&listening, 1, LAST_HANDSHAKES_MS) > 0))
        ;
}

void srv_turn_away(int client)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                 "Retry-After: 1\r\n"
                                 "Content-Length: 0\r\n"
                                 "Connection: close\r\n\r\n";
    char ignored[4096];
    srv_metrics_connection_refused();
    if (send(client, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
        shutdown(client, SHUT_WR);
        while (recv(client, ignored, sizeof ignored, MSG_DONTWAIT) > 0)
            ;
    }
}

/* Tells a client that there is no descriptor for it, which else would hang in the backlog. */
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
                srv_log(SRV_LOG_WARNING, "cannot accept: %s", strerror(errno));
            complained = true;
            turn_one_away(l);
            wait_a_little();
        }
        poll(fds, 2, -1);
    }
    if (!l->passed)
        accept_last(l);
    return NULL;
}

bool srv_accept_start(struct srv_listener *l, int fd,
                      void (*take)(int client, const struct sockaddr *address, socklen_t size))
{
    l->fd = fd;
    l->take = take;
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->spare = dup(l->fd);
    l->started = l->wake >= 0 && pthread_create(&l->thread, NULL, accept_all, l) == 0;
    return l->started;
}

void srv_accept_stop(struct srv_listener *l)
{
    if (!l->started)
        return;
    atomic_store(&l->stopping, true);
    eventfd_write(l->wake, 1);
    pthread_join(l->thread, NULL);
    close(l->fd);
    close(l->wake);
    if (l->spare >= 0)
        close(l->spare);
    l->started = false;
}
