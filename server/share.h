/* The share of the memory for requests that one body may hold while it arrives. */
#ifndef KLDIV_SERVER_SHARE_H
#define KLDIV_SERVER_SHARE_H

#include "api/memory/budget.h"

/* SRV_FIRST: bytes of memory that a body begins with; it doubles as bytes arrive. */
enum { SRV_FIRST = 64 << 10 };

/* True if a body that holds `held` bytes may hold `wanted` in all. The last 5 % of the limit are for
 * bodies of at most SRV_FIRST bytes. */
bool srv_share_fits(const struct api_budget *budget, size_t held, size_t wanted);

/* True if that also leaves as much free as the body holds, which is asked for when other bodies wait
 * for memory. */
bool srv_share_is_fair(const struct api_budget *budget, size_t held, size_t wanted);

#endif
