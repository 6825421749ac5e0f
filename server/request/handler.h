/* The steps of a request, from its header to the end of its response. The connection's network thread makes all
 * calls. */
#pragma once

#include "server/request/request.h"

/* Handles the complete header. `is_here`: the body has arrived. */
void srv_request_begin(struct srv_request *request, bool is_here);

/* Refuses a request that arrives, or one of whose header only a part is in order. Its connection ends. */
void srv_request_refuse(struct srv_request *request, const struct srv_error *why);

/* Answers a request that is ready, or leaves it to others and is called again when they are done. MHD_NO if no memory is
 * left for a response. */
enum MHD_Result srv_request_answer(struct srv_request *request, struct MHD_Connection *connection,
                                   bool is_draining);

/* Logs and counts the request and drops its reference, the last of which frees it. `sent` is true
 * if the whole response was sent. */
void srv_request_done(struct srv_request *request, bool sent);
