#include "server/net/address.h"

#include "server/net/unix_socket.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
static int bind_address(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1, no = 0;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
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
    int fd = -1;
    for (const struct addrinfo *a = addresses; a && fd < 0; a = a->ai_next)
        fd = bind_address(a);
    int reason = errno;
    freeaddrinfo(addresses);
    errno = reason;
    return fd;
}

int srv_listen(const char *option, const char *address, mode_t mode, FILE *errors)
{
    char host[256];
    const char *port;
    int problem;
    if (srv_unix_is(address))
        return srv_unix_listen(option, address, mode, errors);
    if (!srv_split_address(address, host, sizeof host, &port)) {
        fprintf(errors, "kldivd: %s: '%s' is not HOST:PORT, unix:PATH or unix:@NAME\n", option,
                address);
        return -1;
    }
    int fd = bind_host(host, port, &problem);
    if (fd < 0 && !problem && strcmp(host, "::") == 0 &&
        (errno == EAFNOSUPPORT ||
         errno == EADDRNOTAVAIL)) /* no IPv6 in the kernel, or no address */
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
    int number = -1;
    snprintf(to, size, "?");
    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    if (address.ss_family == AF_UNIX) {
        srv_unix_text((const struct sockaddr_un *)&address, length, to, size);
        return 0;
    }
    if (getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return -1;
    snprintf(to, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    sscanf(port, "%d", &number);
    return number;
}
