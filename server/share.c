#include "server/share.h"

#include "api/api.h"

/* KEPT: the part of the limit, 1 in so many, that is kept for small bodies. */
enum { KEPT = 20 };

/* Bytes that a body may hold at most, if others keep what they have. */
static size_t available(const struct api_budget *budget, size_t held, size_t wanted)
{
    size_t used = atomic_load(&budget->used), others = used > held ? used - held : 0;
    size_t limit =
        wanted > SRV_FIRST + API_PADDING ? budget->limit - budget->limit / KEPT : budget->limit;
    return limit > others ? limit - others : 0;
}

bool srv_share_fits(const struct api_budget *budget, size_t held, size_t wanted)
{
    return budget->limit == 0 || wanted <= available(budget, held, wanted);
}

bool srv_share_is_fair(const struct api_budget *budget, size_t held, size_t wanted)
{
    return budget->limit == 0 || wanted <= available(budget, held, wanted) / 2;
}
