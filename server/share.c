#include "server/share.h"

#include <stdint.h>

/* Bytes that would be left of the limit if the body held `wanted`; false if it does not fit. */
static bool left_of(const struct api_budget *budget, const struct srv_connection *c, size_t wanted,
                    size_t *left)
{
    size_t used = atomic_load(&budget->used), held = atomic_load(&c->held);
    size_t others = used > held ? used - held : 0, most = api_budget_most(budget, wanted);
    *left = most > others ? most - others : 0;
    if (*left < wanted)
        return false;
    *left -= wanted;
    return true;
}

/* Bytes that a body still needs when it holds `held`: what was announced, or else as much again. */
static size_t need_of(const struct srv_connection *c, size_t held)
{
    size_t announced = atomic_load(&c->announced);
    if (announced == 0)
        return held;
    return announced > held ? announced - held : 0;
}

struct srv_need srv_share_need(const struct srv_connection *first)
{
    struct srv_need need = {SIZE_MAX, SIZE_MAX, NULL};
    for (const struct srv_connection *c = first; c; c = c->next) {
        enum srv_phase phase = atomic_load(&c->phase);
        if (phase != SRV_BODY && phase != SRV_PAUSED)
            continue;
        size_t bytes = need_of(c, atomic_load(&c->held));
        if (bytes < need.least) {
            need.second = need.least;
            need.least = bytes;
            need.of = c;
        } else if (bytes < need.second) {
            need.second = bytes;
        }
    }
    return need;
}

bool srv_share_grants(const struct api_budget *budget, const struct srv_need *need,
                      const struct srv_connection *c, size_t wanted, bool is_fair)
{
    size_t left, others = need->of == c ? need->second : need->least;
    if (budget->limit == 0)
        return true;
    return left_of(budget, c, wanted, &left) && (!is_fair || wanted <= left) &&
           (wanted <= API_SMALL || need_of(c, wanted) <= left || others <= left);
}

bool srv_share_asked(const struct api_budget *budget, const struct srv_connection *c, size_t wanted,
                     bool is_fair)
{
    size_t left;
    if (budget->limit == 0)
        return true;
    if (!left_of(budget, c, wanted, &left))
        return false;
    if (left >= budget->limit / 2 || wanted <= API_SMALL)
        return true;
    struct srv_need need = srv_share_need(srv_connections_lock());
    srv_connections_unlock();
    return srv_share_grants(budget, &need, c, wanted, is_fair);
}
