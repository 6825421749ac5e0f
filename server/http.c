#include "server/http.h"

#include "server/connections.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/request.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CONNECTION_MEMORY: bytes of each connection for headers and for a piece of the body.
 * libmicrohttpd clears it between requests: 32 KiB cost 5 % of a small request's time. A body of
 * 64 MiB takes 1.7 times as long as on a bare server with 16 KiB, and 1.3 times with 24 KiB. */
enum { CONNECTION_MEMORY = 24 << 10 };

/* RESERVED: number of connections beyond --max-connections, for health checks and scrapes. */
enum { RESERVED = 64 };

static struct {
    const struct api_service *service;
    const struct srv_options *options;
    size_t n_daemons;
    struct MHD_Daemon **daemons; /* followed by `reserved` */
    struct MHD_Daemon *reserved;
    size_t turn;
    atomic_bool draining;
} http;

static enum srv_quota quota_of(const void *context) { return context ? SRV_RESERVED : SRV_REGULAR; }

static struct srv_connection *entry_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* Ends a request that libmicrohttpd has dropped without a word, as it does where its pool runs out. */
static void end_dropped(struct srv_connection *entry)
{
    struct srv_request *request = entry ? atomic_load(&entry->request) : NULL;
    if (request)
        srv_request_done(request, false);
    if (request)
        atomic_store(&entry->request, NULL);
}

/* Adds or removes a connection. `reserved` is the daemon's context, not NULL for reserved
 * connections. */
static void notify_connection(void *reserved, struct MHD_Connection *connection,
                              void **socket_context, enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = srv_connection_add(info->connect_fd, quota_of(reserved));
        if (!*socket_context)
            shutdown(info->connect_fd, SHUT_RDWR);
        return;
    }
    end_dropped(*socket_context);
    srv_connection_remove(*socket_context, quota_of(reserved));
}

/* Makes the request, which the connection's entry keeps until it is done. The query
 * becomes a single parameter for libmicrohttpd, which would make a record of each in its pool. */
static void *begin_request(void *reserved, const char *target, struct MHD_Connection *connection)
{
    struct srv_request *request = srv_request_new(http.service, target, reserved != NULL);
    struct srv_connection *entry = entry_of(connection);
    for (char *p = strchr((char *)target, '?'); p && (p = strchr(p, '&')); p++)
        *p = ';';
    end_dropped(entry);
    if (entry)
        atomic_store(&entry->request, request);
    if (request)
        request->draining = &http.draining;
    return request;
}

static enum MHD_Result handle(void *reserved, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **context)
{
    (void)reserved, (void)url;
    struct srv_request *request = *context;
    if (!request)
        return MHD_NO;
    if (request->step == SRV_NEW)
        return srv_request_begin(request, connection, method, version);
    if (*upload_size > 0) {
        size_t size = *upload_size;
        *upload_size = 0;
        return srv_request_body(request, upload, size);
    }
    return srv_request_complete(request, connection);
}

static void completed(void *unused, struct MHD_Connection *connection, void **context,
                      enum MHD_RequestTerminationCode how)
{
    (void)unused;
    struct srv_request *request = *context;
    struct srv_connection *entry = entry_of(connection);
    if (entry) {
        srv_connection_enter(entry, SRV_HEADER);
        atomic_store(&entry->request, NULL);
    }
    if (request)
        srv_request_done(request, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *context = NULL;
}

static void log_library(void *unused, const char *format, va_list arguments)
{
    (void)unused;
    char message[400];
    vsnprintf(message, sizeof message, format, arguments);
    message[strcspn(message, "\n")] = '\0';
    srv_log(SRV_LOG_DEBUG, "libmicrohttpd: %s", message);
}

static struct MHD_Daemon *start_daemon(bool is_reserved)
{
    void *context = is_reserved ? &http.reserved : NULL;
    unsigned limit = is_reserved ? RESERVED : (unsigned)http.options->max_connections;
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
            MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | MHD_USE_ERROR_LOG,
        0, NULL, NULL, handle, context, MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL,
        MHD_OPTION_CONNECTION_LIMIT, limit + 16, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)http.options->timeout, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, notify_connection, context,
        MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_URI_LOG_CALLBACK, begin_request,
        context, MHD_OPTION_END);
}

bool srv_http_start(const struct api_service *service, const struct srv_options *options)
{
    size_t threads = options->http_threads;
    http.service = service;
    http.options = options;
    http.daemons = calloc(threads + 1, sizeof *http.daemons);
    if (!http.daemons)
        return false;
    for (http.n_daemons = 0; http.n_daemons < threads + 1; http.n_daemons++) {
        struct MHD_Daemon *daemon = start_daemon(http.n_daemons == threads);
        if (!daemon) {
            srv_log(SRV_LOG_ERROR, "cannot start a network thread");
            return false;
        }
        http.daemons[http.n_daemons] = daemon;
    }
    http.reserved = http.daemons[--http.n_daemons];
    return true;
}

/* Rejects a connection with 503, without reading the request: all reserved connections are open,
 * too. */
static void reject(int client)
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
    close(client);
}

static void add_to_daemon(struct MHD_Daemon *daemon, enum srv_quota quota, int client,
                          const struct sockaddr *address, socklen_t size)
{
    if (MHD_add_connection(daemon, client, address, size) != MHD_YES)
        srv_connections_cancel(quota);
}

void srv_http_take(int client, const struct sockaddr *address, socklen_t size)
{
    if (srv_connections_admit(SRV_REGULAR, http.options->max_connections))
        add_to_daemon(http.daemons[http.turn++ % http.n_daemons], SRV_REGULAR, client, address,
                      size);
    else if (srv_connections_admit(SRV_RESERVED, RESERVED))
        add_to_daemon(http.reserved, SRV_RESERVED, client, address, size);
    else
        reject(client);
}

void srv_http_drain(void) { atomic_store(&http.draining, true); }

void srv_http_stop(void)
{
    for (size_t i = 0; i < http.n_daemons; i++)
        MHD_stop_daemon(http.daemons[i]);
    if (http.reserved)
        MHD_stop_daemon(http.reserved);
    free(http.daemons);
    http.daemons = NULL;
    http.reserved = NULL;
    http.n_daemons = 0;
}
