#include "server/request/http.h"

#include "server/connection/deadlines.h"
#include "server/connection/door.h"
#include "server/connection/linger.h"
#include "server/connection/tls.h"
#include "server/listen/listener.h"
#include "server/listen/lobby.h"
#include "server/request/handler.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CONNECTION_MEMORY: bytes of each connection for the door's request and the header of the response, which has half.
 * libmicrohttpd clears it between requests. */
enum { CONNECTION_MEMORY = 8 << 10 };

/* RESERVED: number of connections beyond --max-connections, for health checks and scrapes. ADMIN: of
 * --admin-listen. SHARE: part of the other descriptors that the lobby may have, and lingering connections. */
enum { RESERVED = 64, ADMIN = 64, SHARE = 4 };

static struct {
    const struct api_service *service;
    const struct srv_options *options;
    size_t n_daemons;
    struct MHD_Daemon **daemons; /* one for each quota, then more for SRV_REGULAR */
    atomic_size_t turn;
    atomic_bool draining;
} http;

/* The address for health and metrics is plain: probes know no certificate. */
static bool uses_tls(enum srv_quota quota) { return quota != SRV_ADMIN && srv_tls_is_on(); }

static struct srv_connection *entry_of(struct MHD_Connection *connection)
{
    return srv_connection_at(
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
}

/* Makes the request of a connection; NULL if no memory is left. */
static struct srv_request *new_request(struct srv_connection *entry, const char *header,
                                       size_t size)
{
    struct srv_request *request = srv_request_new(http.service, entry, header, size);
    atomic_store(&entry->request, request ? &request->message : NULL);
    return request;
}

static bool begin(struct srv_connection *entry, const char *header, size_t size, bool is_here)
{
    struct srv_request *request = new_request(entry, header, size);
    if (request)
        srv_request_begin(request, is_here);
    return request;
}

static struct srv_request *request_of(struct srv_connection *entry)
{
    return (struct srv_request *)atomic_load(&entry->request);
}

static bool refuse(struct srv_connection *entry, const char *header, size_t size,
                   const struct srv_error *why)
{
    struct srv_request *request = request_of(entry);
    if (!request)
        request = new_request(entry, header, size);
    if (request)
        srv_request_refuse(request, why);
    return request;
}

static void abort_request(struct srv_message *message)
{
    srv_request_done((struct srv_request *)message, false);
}

static enum MHD_Result answer(void *unused, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **context)
{
    static const struct srv_error unchecked = {"internal_error",
                                               "the framing of the request was not checked"};
    struct srv_connection *entry = entry_of(connection);
    (void)unused, (void)url, (void)method, (void)version, (void)upload, (void)upload_size;
    if (request_of(entry) &&
        !*context) { /* libmicrohttpd closes what is answered at its first call */
        *context = entry;
        return MHD_YES;
    }
    if (!request_of(entry)) {
        srv_log(SRV_LOG_ERROR, "a request was refused: libmicrohttpd read it past the door");
        if (!refuse(entry, "", 0, &unchecked))
            return MHD_NO;
    }
    return srv_request_answer(request_of(entry), connection, atomic_load(&http.draining));
}

static void complete(void *unused, struct MHD_Connection *connection, void **context,
                     enum MHD_RequestTerminationCode how)
{
    struct srv_connection *entry = entry_of(connection);
    struct srv_request *request = request_of(entry);
    (void)unused, (void)context;
    if (request)
        srv_request_done(request, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    atomic_store(&entry->request, NULL);
    atomic_store(&entry->held, 0);
    atomic_store(&entry->progress.received, 0);
    srv_connection_enter(entry, atomic_load(&entry->ahead.size) > 0 ? SRV_HEADER : SRV_IDLE);
}

/* ---- Daemons */

static void log_library(void *unused, const char *format, va_list arguments)
{
    (void)unused;
    char message[400];
    vsnprintf(message, sizeof message, format, arguments);
    message[strcspn(message, "\n")] = '\0';
    srv_log(SRV_LOG_DEBUG, "libmicrohttpd: %s", message);
}

/* Starts a network thread. No timeout of the library: deadlines.c has more exact ones. */
static struct MHD_Daemon *start_daemon(enum srv_quota quota)
{
    const size_t limits[SRV_QUOTAS] = {http.options->max_connections, RESERVED, ADMIN};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG,
        0, NULL, NULL, answer, NULL, MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)limits[quota] + SRV_ENDING + 16,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED, complete, NULL, MHD_OPTION_END);
    if (!daemon)
        srv_log(SRV_LOG_ERROR, "cannot start a network thread");
    return daemon;
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

/* Takes a client whose header has come. If no room can be made, what may be a probe has all reserved
 * connections; others, which are told there that there is no room, have half of them. */
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
    http.service = service;
    http.options = options;
    size_t n = SRV_QUOTAS - 1 + options->http_threads;
    http.daemons = calloc(n, sizeof *http.daemons);
    if (!http.daemons)
        return false;
    static const struct srv_reader reader = {.begin = begin,
                                             .body = srv_body_receive,
                                             .place = srv_body_place,
                                             .placed = srv_body_placed,
                                             .refuse = refuse,
                                             .done = abort_request};
    srv_door_init(&reader);
    for (; http.n_daemons < n; http.n_daemons++) {
        size_t i = http.n_daemons;
        if (!(http.daemons[i] = start_daemon(i < SRV_QUOTAS ? (enum srv_quota)i : SRV_REGULAR)))
            return false;
    }
    size_t spare = (options->max_files - options->max_connections) / SHARE;
    srv_linger_init(spare);
    srv_lobby_init(spare, admit);
    return true;
}

void srv_http_take(int client, const struct sockaddr *address, socklen_t size)
{
    if (uses_tls(SRV_REGULAR)) /* what it has sent says nothing yet */
        admit(client, address, size, true);
    else if (!take_regularly(client, address, size, true))
        srv_lobby_take(client, address, size);
}

void srv_http_take_admin(int client, const struct sockaddr *address, socklen_t size)
{
    if (srv_evict_for_connection(SRV_ADMIN, ADMIN, false))
        add_to_daemon(http.daemons[SRV_ADMIN], SRV_ADMIN, client, address, size);
    else
        reject(client, SRV_ADMIN);
}

size_t srv_http_descriptors(void)
{
    return RESERVED + ADMIN + SRV_QUOTAS * SRV_ENDING + SRV_LOBBY + SRV_LINGERING;
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
