#include "server/listener.h"

#include "server/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
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
    int fd, stop;
    pthread_t thread;
    void (*take)(int client, const struct sockaddr *address, socklen_t size);
} acceptor;

/* Out of descriptors or memory: the backlog must wait, and so must this loop. */
static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); }

/* From now on the kernel drops every SYN for the socket, so that clients try again, and later are
 * refused; handshakes under way still end, and what is accepted stays to be taken. Closing alone
 * would reset whoever connects between the last accept and the close. */
static void refuse_new(int fd)
{
    enum { FLAGS = 13, SYN = 0x02, ACK = 0x10 }; /* of the TCP header, where filters begin */
    struct sock_filter no_syn[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)};
    struct sock_fprog program = {.len = sizeof no_syn / sizeof *no_syn, .filter = no_syn};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/* How long the last handshakes may take. */
enum { LAST_HANDSHAKES_MS = 20 };

static bool out_of_something(int reason)
{
    return reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM;
}

static void *accept_all(void *unused)
{
    (void)unused;
    struct pollfd fds[] = {{.fd = acceptor.fd, .events = POLLIN},
                           {.fd = acceptor.stop, .events = POLLIN}};
    bool stopping = false, complained = false;
    for (;;) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        int client =
            accept4(acceptor.fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            complained = false;
            acceptor.take(client, (struct sockaddr *)&address, size);
            continue;
        }
        if (stopping && poll(fds, 1, LAST_HANDSHAKES_MS) == 0)
            return NULL;
        if (stopping)
            continue;
        if (out_of_something(errno)) {
            if (!complained)
                srv_log(SRV_LOG_WARNING, "cannot accept: %s", strerror(errno));
            complained = true;
            wait_a_little();
        }
        poll(fds, 2, -1);
        stopping = fds[1].revents != 0;
        if (stopping)
            refuse_new(acceptor.fd);
    }
}

bool srv_accept_start(int fd,
                      void (*take)(int client, const struct sockaddr *address, socklen_t size))
{
    acceptor.fd = fd;
    acceptor.take = take;
    acceptor.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return acceptor.stop >= 0 && pthread_create(&acceptor.thread, NULL, accept_all, NULL) == 0;
}

void srv_accept_stop(void)
{
    eventfd_write(acceptor.stop, 1);
    pthread_join(acceptor.thread, NULL);
    close(acceptor.fd);
    close(acceptor.stop);
}
