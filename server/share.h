/* The share of the memory for requests that one body may hold while it arrives. Bodies that each
 * hold some and wait for more would wait for ever: one of them must be able to end. */
#ifndef KLDIV_SERVER_SHARE_H
#define KLDIV_SERVER_SHARE_H

#include "api/memory/budget.h"
#include "server/connections.h"

/* SRV_FIRST: bytes of memory that a body begins with; it doubles as bytes arrive. */
enum { SRV_FIRST = 64 << 10 };

/* srv_needs: the large bodies under way, by what each still needs to arrive whole. */
struct srv_needs;

/* Finds them in the table of connections, which stays locked while they are used. */
const struct srv_needs *srv_share_needs(const struct srv_connection *first);

/* True if a connection's body may hold `wanted` bytes in all. It must fit the limit, of which the last
 * 5 % are for bodies that are small as a whole. Others must be able to arrive whole in what it leaves,
 * after others that need less have arrived and given back what they hold. If `is_fair` it must leave
 * as much as it holds, which is asked for while others wait. */
bool srv_share_grants(const struct api_budget *budget, const struct srv_needs *needs,
                      const struct srv_connection *connection, size_t wanted, bool is_fair);

/* Tells that to callers that have not locked the table; quick while half of the memory is free. */
bool srv_share_asked(const struct api_budget *budget, const struct srv_connection *connection,
                     size_t wanted, bool is_fair);

/* Hold others off from asking, until what was granted is reserved: two that are granted the same bytes may
 * each wait for the other's. Not called with the table of connections locked. */
void srv_share_lock(void);
void srv_share_unlock(void);

#endif
