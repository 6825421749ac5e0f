#include "server/request/http.h"

#include "server/connection/eviction.h"
#include "server/connection/linger.h"
#include "server/connection/tls.h"
#include "server/listen/admission.h"
#include "server/listen/listener.h"
#include "server/request/handler.h"
#include "server/telemetry/log.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CONNECTION_MEMORY: bytes of each connection for the door's request and the header of the response, which has half.
 * libmicrohttpd clears it between requests. */
enum { CONNECTION_MEMORY = 8 << 10 };

/* RESERVED: number of connections beyond --max-connections, for health checks and scrapes. ADMIN: of
 * --admin-listen. SHARE: part of the other descriptors that connections may have that wait for admission, or linger. */
enum { RESERVED = 64, ADMIN = 64, SHARE = 4 };

static struct {
    const struct srv_options *options;
    size_t n_daemons;
    struct MHD_Daemon **daemons; /* one for each quota, then more for SRV_REGULAR */
    atomic_size_t turn;
    atomic_bool draining;
    int test[2]; /* both ends of a connection */
} http;

/* The address for health and metrics is plain: probes know no certificate. */
static bool uses_tls(enum srv_quota quota) { return quota != SRV_ADMIN && srv_tls_is_on(); }

/* ---- Daemons */

static void log_library(void *unused, const char *format, va_list arguments)
{
    (void)unused;
    char message[400];
    vsnprintf(message, sizeof message, format, arguments);
    message[strcspn(message, "\n")] = '\0';
    srv_log(SRV_LOG_DEBUG, "libmicrohttpd: detail=%s", message);
}

/* Starts a network thread; NULL if that fails. No timeout of the library: deadlines.c has more exact ones. */
static struct MHD_Daemon *start_daemon(enum srv_quota quota)
{
    const size_t limits[SRV_QUOTAS] = {http.options->max_connections, RESERVED, ADMIN};
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG,
        0, NULL, NULL, srv_handle, NULL, MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)limits[quota] + SRV_ENDING + 16,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED, srv_handled, NULL, MHD_OPTION_END);
}

/* Tells a client that it cannot be served. Under TLS it is not told: a response would take a handshake. */
static void reject(int client, enum srv_quota quota)
{
    if (!uses_tls(quota))
        srv_turn_away(client);
    close(client);
}

/* Gives an admitted connection to a network thread. libmicrohttpd closes one that it does not take. */
static void add_to_daemon(struct MHD_Daemon *daemon, enum srv_quota quota, int client,
                          const struct sockaddr *address, socklen_t size)
{
    if (srv_connection_add(client, quota, uses_tls(quota), address))
        MHD_add_connection(daemon, client, address, size);
    else
        close(client);
}

/* Takes a client to a regular connection; false if there is no room. */
static bool take_regularly(int client, const struct sockaddr *address, socklen_t size, bool to_wait)
{
    if (!srv_evict_for_connection(SRV_REGULAR, http.options->max_connections, to_wait))
        return false;
    size_t i = atomic_fetch_add(&http.turn, 1) % http.options->http_threads;
    add_to_daemon(http.daemons[i == 0 ? SRV_REGULAR : SRV_QUOTAS - 1 + i], SRV_REGULAR, client,
                  address, size);
    return true;
}

/* Takes a client whose header has come. If no room can be made, it gets a reserved connection: any of them if it may
 * be a probe; otherwise one of half of them, on which it is answered that there is no room. */
static void admit(int client, const struct sockaddr *address, socklen_t size, bool may_probe)
{
    if (take_regularly(client, address, size, false))
        return;
    if (srv_evict_for_connection(SRV_RESERVED, may_probe ? RESERVED : RESERVED / 2, false))
        add_to_daemon(http.daemons[SRV_RESERVED], SRV_RESERVED, client, address, size);
    else
        reject(client, SRV_REGULAR);
}

bool srv_http_start(const struct api_service *service, const struct srv_options *options)
{
    http.options = options;
    size_t n = SRV_QUOTAS - 1 + options->http_threads;
    http.daemons = calloc(n, sizeof *http.daemons);
    if (!http.daemons)
        return false;
    srv_handler_init(service, &http.draining);
    for (; http.n_daemons < n; http.n_daemons++) {
        size_t i = http.n_daemons;
        if (!(http.daemons[i] = start_daemon(i < SRV_QUOTAS ? (enum srv_quota)i : SRV_REGULAR)))
            return false;
    }
    size_t spare = (options->max_files - options->max_connections) / SHARE;
    srv_linger_init(spare);
    srv_admission_init(spare, admit);
    return true;
}

void srv_http_take(int client, const struct sockaddr *address, socklen_t size)
{
    if (uses_tls(SRV_REGULAR)) /* what it has sent says nothing yet */
        admit(client, address, size, true);
    else if (!take_regularly(client, address, size, true))
        srv_admission_take(client, address, size);
}

void srv_http_take_admin(int client, const struct sockaddr *address, socklen_t size)
{
    if (srv_evict_for_connection(SRV_ADMIN, ADMIN, false))
        add_to_daemon(http.daemons[SRV_ADMIN], SRV_ADMIN, client, address, size);
    else
        reject(client, SRV_ADMIN);
}

bool srv_http_open(void)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, http.test) == 0;
}

bool srv_http_test(void)
{
    enum { WAIT_MS = 30000 }; /* of a machine that is busy; a failure is seen at once */
    static const char request[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
                      expected[] = "HTTP/1.1 200 ";
    const struct sockaddr local = {.sa_family = AF_UNIX};
    struct pollfd client = {.fd = http.test[0], .events = POLLIN};
    char got[sizeof expected] = "";
    srv_http_take_admin(http.test[1], &local, sizeof local);
    bool good = send(client.fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0 &&
                poll(&client, 1, WAIT_MS) == 1 && recv(client.fd, got, sizeof got - 1, 0) > 0 &&
                strcmp(got, expected) == 0;
    close(client.fd);
    for (int ms = 0; ms < WAIT_MS && srv_connections_open() > 0; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    srv_request_log_slow(http.options->log_slow); /* from now on, of clients */
    return good;
}

size_t srv_http_descriptors(void)
{
    return RESERVED + ADMIN + SRV_QUOTAS * SRV_ENDING + SRV_ADMISSIONS + SRV_LINGERING;
}

void srv_http_drain(void) { atomic_store(&http.draining, true); }

bool srv_http_is_draining(void) { return atomic_load(&http.draining); }

void srv_http_stop(void)
{
    for (size_t i = 0; i < http.n_daemons; i++)
        MHD_stop_daemon(http.daemons[i]);
    free(http.daemons);
    http.daemons = NULL;
    http.n_daemons = 0;
}
