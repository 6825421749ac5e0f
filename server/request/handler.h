/* The steps of a request, from its header to the end of its response. The connection's network thread makes all
 * calls. */
#pragma once

#include "server/request/request.h"

/* Handles the complete header. */
enum MHD_Result srv_request_begin(struct srv_request *request, struct MHD_Connection *connection,
                                  const char *method, const char *version);

/* Ends a request that is not complete by an error, whose response goes past libmicrohttpd. Called when
 * libmicrohttpd is about to close the connection. */
void srv_request_abort(struct srv_request *request, const struct srv_error *why);

/* Handles the complete body, or the end of a job. */
enum MHD_Result srv_request_complete(struct srv_request *request,
                                     struct MHD_Connection *connection);

/* Logs and counts the request and drops its reference, the last of which frees it. `sent` is true
 * if the whole response was sent. */
void srv_request_done(struct srv_request *request, bool sent);
