#include "server/request/handler.h"

#include "api/request/response.h"
#include "server/connection/deadlines.h"
#include "server/connection/door.h"
#include "server/request/request.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static const atomic_bool *is_draining;

/* Bounds the bytes of a response to a scrape that the kernel takes before it has sent them; 0 for no bound. It would
 * take 4 MB of the 12 MB that 10,000 monitors are: 1 ms in which a network thread serves nobody else, and 1 GB where
 * 250 clients do not read. Not by SO_SNDBUF, which would hold for later responses, too. A unix socket takes 208 KiB. */
enum { MAX_UNSENT = 128 << 10 };
static void bound_unsent(const struct srv_connection *c, int bytes)
{
    if (!c->peer.is_local)
        setsockopt(c->watched.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

static enum MHD_Result respond(struct srv_request *request, struct MHD_Connection *connection)
{
    const struct api_response *response = &request->exchange.response;
    if (response->shared)
        bound_unsent(request->entry, MAX_UNSENT);

    struct MHD_Response *mhd_response = srv_response_make(request, atomic_load(is_draining));
    if (!mhd_response) {
        api_refuse(&request->exchange, "out_of_memory", "no memory is left for the response");
        mhd_response = srv_response_make(request, atomic_load(is_draining));
    }
    if (!mhd_response)
        return MHD_NO;
    bool is_refused = request->step == SRV_NEW || request->step == SRV_REFUSED;
    srv_request_mark(request, is_refused ? SRV_READ : SRV_COMPUTED);
    request->step = SRV_ANSWERED;
    /* Freed once it is sent: not the bytes that others send, too. */
    atomic_store(&request->entry->held, api_response_size(response) -
                                            (response->shared ? response->shared->bytes.size : 0));
    srv_connection_enter(request->entry, SRV_REPLY);
    srv_request_count(request);
    enum MHD_Result result =
        MHD_queue_response(connection, (unsigned)response->status, mhd_response);
    MHD_destroy_response(mhd_response);
    return result;
}

static struct srv_connection *entry_of(struct MHD_Connection *connection)
{
    return srv_connection_at(
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
}

enum MHD_Result srv_handle(void *unused, struct MHD_Connection *connection, const char *url,
                           const char *method, const char *version, const char *upload,
                           size_t *upload_size, void **context)
{
    struct srv_connection *entry = entry_of(connection);
    struct srv_request *request = srv_request_of(entry);
    (void)unused, (void)url, (void)method, (void)version, (void)upload, (void)upload_size;
    if (!request) /* libmicrohttpd has read it by itself: nobody has checked it */
        return MHD_NO;
    if (*context)
        return srv_work(request, connection) ? respond(request, connection) : MHD_YES;
    *context = entry; /* libmicrohttpd closes what is answered at its first call */
    return MHD_YES;
}

void srv_handled(void *unused, struct MHD_Connection *connection, void **context,
                 enum MHD_RequestTerminationCode how)
{
    struct srv_connection *entry = entry_of(connection);
    struct srv_request *request = srv_request_of(entry);
    (void)unused, (void)context;
    if (request && request->exchange.response.shared)
        bound_unsent(entry, 0);
    if (request)
        srv_request_done(request, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    atomic_store(&entry->request, NULL);
    atomic_store(&entry->held, 0);
    atomic_store(&entry->progress.received, 0);
    srv_connection_enter(entry, SRV_IDLE);
}

static void abort_request(struct srv_message *message)
{
    srv_request_done((struct srv_request *)message, false);
}

void srv_handler_init(const struct api_service *service, const atomic_bool *draining)
{
    static const struct srv_reader reader = {.begin = srv_begin,
                                             .body = srv_body_receive,
                                             .space = srv_body_space,
                                             .filled = srv_body_filled,
                                             .refuse = srv_refuse_arriving,
                                             .done = abort_request};
    is_draining = draining;
    srv_begin_init(service);
    srv_door_init(&reader);
}
