/* The share of the memory for requests that one body may hold while it arrives. Bodies that each
 * hold some and wait for more would wait for ever: one of them must be able to end. */
#ifndef KLDIV_SERVER_SHARE_H
#define KLDIV_SERVER_SHARE_H

#include "api/memory/budget.h"
#include "server/connections.h"

/* SRV_FIRST: bytes of memory that a body begins with; it doubles as bytes arrive. */
enum { SRV_FIRST = 64 << 10 };

/* srv_need: bytes of memory that the bodies under way still need, each to arrive whole: the least,
 * whose connection `of` is only compared, and that of the others. */
struct srv_need {
    size_t least, second;
    const struct srv_connection *of;
};

/* Finds it in the table of connections, which is locked. */
struct srv_need srv_share_need(const struct srv_connection *first);

/* True if a connection's body may hold `wanted` bytes in all. It must fit the limit, of which the last
 * 5 % are for bodies of at most SRV_FIRST bytes. What it leaves must suffice for some body to arrive
 * whole. If `is_fair` it must be as much as the body holds, which is asked for while others wait. */
bool srv_share_grants(const struct api_budget *budget, const struct srv_need *need,
                      const struct srv_connection *connection, size_t wanted, bool is_fair);

/* Tells that to callers that have not locked the table; quick while half of the memory is free. */
bool srv_share_asked(const struct api_budget *budget, const struct srv_connection *connection,
                     size_t wanted, bool is_fair);

#endif
