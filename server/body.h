/* The body of a request as it arrives. Memory for it is reserved as its bytes come, never for a length that was
 * declared; nobody waits for memory. Where none is left, the slowest request that holds most ends, if it is behind
 * its minimal rate; if none is, the body that asks is refused. */
#pragma once

#include "server/request.h"

/* The error of a request for which no memory is left. */
extern const struct srv_error srv_no_memory;

/* True if there is memory for a body of the declared length now. */
bool srv_body_fits(const struct srv_request *request);

/* Takes a piece of the body; MHD_NO, with the connection's error set, if the request is refused. */
enum MHD_Result srv_body_receive(struct srv_request *request, const char *bytes, size_t size);
