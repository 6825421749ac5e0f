/* Bodies of requests, whatever they hold: their coding and their size. */
#pragma once

#include "api/request/exchange.h"

/* Check the header: Content-Encoding, and the declared length against what this server takes. */
bool api_body_check_coding(struct api_exchange *x);
bool api_body_check_size(struct api_exchange *x);

/* API_PARSE_NS: time, in ns, to parse a byte of text. */
#define API_PARSE_NS 3.0

/* Takes a body that begins as gzip does for gzip, if it has no Content-Encoding and may be large. */
void api_body_find_coding(struct api_exchange *x);

/* Undoes the Content-Encoding, in at most `max_ns` of work; the request's body then points into
 * `inflated`, which may hold it already. Sets x->cost_ns above `max_ns` if that does not suffice. */
bool api_body_undo_coding(struct api_exchange *x, struct api_buffer *inflated, double max_ns);

/* Bodies that are not whole ones (see api_steps). Check the header, and set x->max_body; check a size, as it is declared
 * or came. */
bool api_body_check_header(struct api_exchange *x);
bool api_body_check_small(struct api_exchange *x, uint64_t size);
