#include "server/request/http.h"

#include "server/connection/deadlines.h"
#include "server/connection/linger.h"
#include "server/connection/transport.h"
#include "server/listen/listener.h"
#include "server/listen/lobby.h"
#include "server/listen/tls.h"
#include "server/request/handler.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CONNECTION_MEMORY: bytes of each connection for headers and for a piece of the body.
 * libmicrohttpd clears it between requests: 32 KiB cost 5 % of a small request's time. Half of it is
 * a piece of a body that upload.c does not receive in place. */
enum { CONNECTION_MEMORY = 24 << 10 };

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

/* Ends a request that libmicrohttpd has dropped without a word, as it does where its pool runs out. */
static void end_dropped(struct srv_connection *entry)
{
    struct srv_request *request = atomic_exchange(&entry->request, NULL);
    if (request)
        srv_request_done(request, false);
}

/* Makes the request, which the connection's entry keeps until it is done. */
static struct srv_request *new_request(struct srv_connection *entry, const char *target)
{
    struct srv_request *request = srv_request_new(http.service, entry, target);
    if (atomic_load(&entry->phase) == SRV_IDLE) /* its bytes came with those of the one before */
        srv_connection_enter(entry, SRV_HEADER);
    end_dropped(entry);
    atomic_store(&entry->request, request);
    if (request)
        request->draining = &http.draining;
    return request;
}

/* Sends the response to an error by which a connection ends, before libmicrohttpd closes it. It may not have
 * seen the first line of the request. */
static void send_error(struct srv_connection *entry)
{
    const struct srv_error *why = entry->error;
    struct srv_request *request = why ? atomic_load(&entry->request) : NULL;
    if (!why)
        return;
    entry->error = NULL;
    if (why == &entry->framing.error && !atomic_load(&entry->ending))
        srv_metrics_connection_ended(why->code);
    if (!request)
        request = new_request(entry, entry->refused_target);
    if (request)
        srv_request_abort(request, why);
}

static void end_connection(struct srv_connection *entry)
{
    send_error(entry);
    end_dropped(entry);
}

/* Begins a request. The query becomes a single parameter for libmicrohttpd, which would make a
 * record of each in its pool. */
static void *begin_request(void *unused, const char *target, struct MHD_Connection *connection)
{
    struct srv_request *request = new_request(entry_of(connection), target);
    (void)unused;
    for (char *p = strchr((char *)target, '?'); p && (p = strchr(p, '&')); p++)
        *p = ';';
    return request;
}

static enum MHD_Result handle(void *unused, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **context)
{
    struct srv_request *request = *context;
    (void)unused, (void)url;
    if (!request)
        return MHD_NO;
    if (request->step == SRV_NEW)
        return srv_request_begin(request, connection, method, version);
    if (upload) { /* with no byte, where a request that has no body expects 100-continue */
        size_t size = *upload_size;
        *upload_size = 0;
        return size > 0 ? srv_body_receive(request, upload, size) : MHD_YES;
    }
    return srv_request_complete(request, connection);
}

static void complete(void *unused, struct MHD_Connection *connection, void **context,
                     enum MHD_RequestTerminationCode how)
{
    (void)unused;
    struct srv_request *request = *context;
    struct srv_connection *entry = entry_of(connection);
    send_error(entry);
    if (request)
        srv_request_done(request, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    else
        end_dropped(entry); /* one for which there was memory only after its begin */
    atomic_store(&entry->request, NULL);
    atomic_store(&entry->held, 0);
    atomic_store(&entry->progress.received, 0);
    srv_connection_enter(entry, atomic_load(&entry->arriving) ? SRV_HEADER : SRV_IDLE);
    *context = NULL;
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
    bool tls = uses_tls(quota);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        srv_tls_flags(tls) | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG,
        0, NULL, NULL, handle, NULL, MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)limits[quota] + SRV_ENDING + 16,
        MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED, complete, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, begin_request, NULL, MHD_OPTION_ARRAY, srv_tls_options(tls),
        MHD_OPTION_END);
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
    srv_transport_start(send_error, end_connection);
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
