/* The steps of a request, from its header to the end of its response. The connection's network thread makes all
 * calls. */
#pragma once

#include "server/request/request.h"

/* Has the door read requests to `service`, before the first connection. Connections end with their responses once
 * `draining` is set. */
void srv_handler_init(const struct api_service *service, const atomic_bool *draining);

/* Callbacks of libmicrohttpd. srv_handle: queues the response to the request that the door gave it, and is called again
 * when the connection is resumed. srv_handled: the response was sent, or will not be. */
enum MHD_Result srv_handle(void *unused, struct MHD_Connection *connection, const char *url,
                           const char *method, const char *version, const char *upload,
                           size_t *upload_size, void **context);
void srv_handled(void *unused, struct MHD_Connection *connection, void **context,
                 enum MHD_RequestTerminationCode how);
