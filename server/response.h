/* Responses on their way out: as responses of libmicrohttpd, or past it. */
#pragma once

#include "server/request.h"

/* Makes the response to a request, which holds a reference to it; NULL if memory is exhausted. A response
 * that lacks a field would be another one: without its Content-Encoding, a body is taken for JSON. */
struct MHD_Response *srv_response_make(struct srv_request *request);

/* Sends the response while its request still arrives, when libmicrohttpd takes no response. The caller
 * has the connection closed. */
void srv_response_send(struct srv_request *request);
