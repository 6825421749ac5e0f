#include "server/sockets.h"

#include "server/listen/listener.h"
#include "server/listen/service_manager.h"
#include "server/net/address.h"
#include "server/net/unix_socket.h"
#include "server/request/http.h"
#include "server/telemetry/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* FILES_EACH: descriptors of a socket: itself, one to spare, one that wakes its thread. */
enum { FILES_EACH = 3 };

/* entry: `address` is as given, NULL for a socket that was passed. */
struct entry {
    struct srv_listener listener;
    const char *address;
    struct srv_unix_file file;
    bool is_admin;
};

static struct {
    size_t n;
    struct entry entries[SRV_MAX_SOCKETS];
} sockets;

static void add_socket(int fd, const char *address, bool is_admin)
{
    int domain = AF_UNSPEC;
    socklen_t size = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    sockets.entries[sockets.n++] =
        (struct entry){.listener = {.fd = fd, .passed = !address, .local = domain == AF_UNIX},
                       .address = address,
                       .file = address ? srv_unix_file(address) : (struct srv_unix_file){0},
                       .is_admin = is_admin};
}

static bool open_one(const struct srv_options *options, const char *address, bool is_admin,
                     FILE *errors)
{
    const char *option = is_admin ? "--admin-listen" : "--listen";
    int fd = srv_listen(option, address, (mode_t)options->listen_mode, errors);
    if (fd >= 0)
        add_socket(fd, address, is_admin);
    return fd >= 0;
}

static bool open_all(const struct srv_options *options, FILE *errors)
{
    struct srv_passed passed;
    if (!srv_passed_read(&passed, errors))
        return false;
    for (size_t i = 0; i < passed.n; i++)
        add_socket(passed.listen[i], NULL, false);
    for (size_t i = 0; passed.n == 0 && i < options->listen.n; i++)
        if (!open_one(options, options->listen.items[i], false, errors))
            return false;
    if (passed.admin >= 0)
        add_socket(passed.admin, NULL, true);
    else if (options->admin_listen && !open_one(options, options->admin_listen, true, errors))
        return false;
    if (options->port_file && srv_sockets_port() == 0) {
        fprintf(errors, "kldivd: --port-file: no address of --listen is HOST:PORT\n");
        return false;
    }
    return true;
}

bool srv_sockets_open(const struct srv_options *options, FILE *errors)
{
    bool good = open_all(options, errors);
    if (!good)
        srv_sockets_remove();
    return good;
}

int srv_sockets_port(void)
{
    char address[SRV_ADDRESS_SIZE];
    for (struct entry *entry = sockets.entries; entry < sockets.entries + sockets.n; entry++)
        if (!entry->is_admin && !entry->listener.local)
            return srv_bound_address(entry->listener.fd, address, sizeof address);
    return 0;
}

size_t srv_sockets_descriptors(void) { return sockets.n * FILES_EACH; }

static bool is_loopback(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name = {.any = {0}};
    socklen_t size = sizeof name;
    if (getsockname(fd, &name.any, &size) != 0)
        return false;
    const struct in6_addr *v6 = &name.v6.sin6_addr;
    return name.any.sa_family == AF_INET6
               ? IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127)
               : ntohl(name.v4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

bool srv_sockets_are_public(void)
{
    for (struct entry *entry = sockets.entries; entry < sockets.entries + sockets.n; entry++)
        if (!entry->is_admin && !entry->listener.local && !is_loopback(entry->listener.fd))
            return true;
    return false;
}

bool srv_sockets_has_files(void)
{
    for (struct entry *entry = sockets.entries; entry < sockets.entries + sockets.n; entry++)
        if (entry->file.path)
            return true;
    return false;
}

/* Tells, too, of [::] that became 0.0.0.0. */
static void log_one(const struct entry *entry)
{
    char address[SRV_ADDRESS_SIZE];
    srv_bound_address(entry->listener.fd, address, sizeof address);
    char url[sizeof "https://" + SRV_ADDRESS_SIZE];
    snprintf(url, sizeof url, "%s://%s", entry->listener.tls ? "https" : "http", address);
    srv_log(SRV_LOG_INFO,
            entry->is_admin  ? entry->address
                                   ? "health and metrics on %s"
                                   : "health and metrics on %s, a socket of the service manager"
            : entry->address ? "listening on %s"
                             : "listening on %s, a socket of the service manager",
            url);
    if (entry->address && *entry->address == '[' && *address != '[')
        srv_log(SRV_LOG_INFO, "no IPv6 here wanted=%s is=%s", entry->address, address);
}

/* Logs all addresses before the first client can be served, and logged. */
bool srv_sockets_accept(bool tls)
{
    for (struct entry *entry = sockets.entries; entry < sockets.entries + sockets.n; entry++) {
        entry->listener.tls = tls && !entry->is_admin;
        log_one(entry);
    }
    for (struct entry *entry = sockets.entries; entry < sockets.entries + sockets.n; entry++)
        if (!srv_accept_start(&entry->listener,
                              entry->is_admin ? srv_http_take_admin : srv_http_take))
            return false;
    return true;
}

void srv_sockets_remove(void)
{
    for (struct entry *entry = sockets.entries; entry < sockets.entries + sockets.n; entry++) {
        const char *path = entry->file.path;
        if (!srv_unix_remove(&entry->file))
            srv_log(SRV_LOG_WARNING, "cannot remove a socket path=%s error=%s", path,
                    strerror(errno));
    }
}

void srv_sockets_stop(void)
{
    srv_sockets_remove();
    for (size_t i = 0; i < sockets.n; i++)
        srv_accept_end(&sockets.entries[i].listener);
    for (size_t i = 0; i < sockets.n; i++)
        srv_accept_stop(&sockets.entries[i].listener);
}
