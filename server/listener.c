#include "server/listener.h"

#include "server/clock.h"
#include "server/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
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

static int bind_first(const struct addrinfo *addresses)
{
    for (const struct addrinfo *a = addresses; a; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int yes = 1;
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
            return fd;
        int reason = errno;
        close(fd);
        errno = reason;
    }
    return -1;
}

int srv_listen(const char *address, FILE *errors)
{
    char host[256];
    const char *port;
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *addresses;
    if (!srv_split_address(address, host, sizeof host, &port)) {
        fprintf(errors, "kldivd: --listen: '%s' is not HOST:PORT\n", address);
        return -1;
    }
    int problem = getaddrinfo(*host ? host : NULL, port, &hints, &addresses);
    if (problem) {
        fprintf(errors, "kldivd: --listen: '%s': %s\n", address, gai_strerror(problem));
        return -1;
    }
    int fd = bind_first(addresses);
    if (fd < 0)
        fprintf(errors, "kldivd: --listen: cannot listen on %s: %s\n", address, strerror(errno));
    freeaddrinfo(addresses);
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

static struct {
    int fd, wake;
    atomic_bool stopping;
    pthread_t thread;
    void (*take)(int client, const struct sockaddr *address, socklen_t size);
} acceptor;

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

/* Time, in ms, for handshakes to complete; time to accept connections if packets cannot be
 * dropped. */
enum { LAST_HANDSHAKES_MS = 20, LAST_ACCEPTS_MS = 300 };

static bool out_of_something(int reason)
{
    return reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM;
}

/* Accepts one connection; false if there is none, with errno set. */
static bool accept_one(void)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int client =
        accept4(acceptor.fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0)
        return false;
    if (atomic_load(&acceptor.stopping))
        drop_packets(client, false); /* inherited from the listening socket */
    acceptor.take(client, (struct sockaddr *)&address, size);
    return true;
}

/* Accepts the connections whose handshakes have begun. */
static void accept_last(void)
{
    struct pollfd listening = {.fd = acceptor.fd, .events = POLLIN};
    unsigned long long start = srv_now_ms();
    bool dropping = drop_packets(acceptor.fd, true);
    unsigned long long end = start + (dropping ? LAST_ACCEPTS_MS : LAST_HANDSHAKES_MS);
    while (srv_now_ms() < end && (accept_one() || poll(&listening, 1, LAST_HANDSHAKES_MS) > 0))
        ;
}

static void *accept_all(void *unused)
{
    (void)unused;
    struct pollfd fds[] = {{.fd = acceptor.fd, .events = POLLIN},
                           {.fd = acceptor.wake, .events = POLLIN}};
    bool complained = false;
    while (!atomic_load(&acceptor.stopping)) {
        if (accept_one()) {
            complained = false;
            continue;
        }
        if (out_of_something(errno)) {
            if (!complained)
                srv_log(SRV_LOG_WARNING, "cannot accept: %s", strerror(errno));
            complained = true;
            wait_a_little();
        }
        poll(fds, 2, -1);
    }
    accept_last();
    return NULL;
}

bool srv_accept_start(int fd,
                      void (*take)(int client, const struct sockaddr *address, socklen_t size))
{
    acceptor.fd = fd;
    acceptor.take = take;
    acceptor.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return acceptor.wake >= 0 && pthread_create(&acceptor.thread, NULL, accept_all, NULL) == 0;
}

void srv_accept_stop(void)
{
    atomic_store(&acceptor.stopping, true);
    eventfd_write(acceptor.wake, 1);
    pthread_join(acceptor.thread, NULL);
    close(acceptor.fd);
    close(acceptor.wake);
}
