#include "server/share.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void srv_share_lock(void) { pthread_mutex_lock(&lock); }
void srv_share_unlock(void) { pthread_mutex_unlock(&lock); }

/* True if a body of which `held` bytes are held is small, also when it is whole. */
static bool is_small(const struct srv_connection *c, size_t held)
{
    return held <= API_SMALL && atomic_load(&c->announced) <= API_SMALL;
}

/* Bytes that would be left of the limit if the body held `wanted`; false if it does not fit. */
static bool left_of(const struct api_budget *budget, const struct srv_connection *c, size_t wanted,
                    size_t *left)
{
    size_t used = atomic_load(&budget->used), held = atomic_load(&c->held);
    size_t others = used > held ? used - held : 0;
    size_t most = api_budget_max(budget, is_small(c, wanted) ? wanted : API_SMALL + 1);
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

/* BODIES: the most bodies that are looked at; others are taken for such that cannot arrive. */
enum { BODIES = 512 };

struct srv_needs {
    size_t n;
    struct need {
        size_t need, held;
        const struct srv_connection *of;
    } bodies[BODIES];
};

static int by_need(const void *a, const void *b)
{
    const struct need *x = a, *y = b;
    return (x->need > y->need) - (x->need < y->need);
}

const struct srv_needs *srv_share_needs(const struct srv_connection *first)
{
    static struct srv_needs needs; /* the lock of the table protects it */
    needs.n = 0;
    for (const struct srv_connection *c = first; c && needs.n < BODIES; c = c->next) {
        enum srv_phase phase = atomic_load(&c->phase);
        size_t held = atomic_load(&c->held);
        if ((phase == SRV_BODY || phase == SRV_PAUSED) && held > 0 && !is_small(c, held))
            needs.bodies[needs.n++] = (struct need){need_of(c, held), held, c};
    }
    qsort(needs.bodies, needs.n, sizeof *needs.bodies, by_need);
    return &needs;
}

/* True if a body that holds `wanted` bytes can arrive whole when `left` bytes are free. */
static bool can_arrive(const struct srv_needs *needs, const struct srv_connection *c, size_t wanted,
                       size_t left)
{
    size_t need = need_of(c, wanted);
    if (needs->n == 0 || (needs->n == 1 && needs->bodies[0].of == c))
        return true; /* nobody else waits for what it leaves */
    for (size_t i = 0; i < needs->n && need > left && needs->bodies[i].need <= left; i++)
        left += needs->bodies[i].of != c ? needs->bodies[i].held : 0;
    return need <= left;
}

bool srv_share_grants(const struct api_budget *budget, const struct srv_needs *needs,
                      const struct srv_connection *c, size_t wanted, bool is_fair)
{
    size_t left;
    if (budget->limit == 0)
        return true;
    return left_of(budget, c, wanted, &left) && (!is_fair || wanted <= left) &&
           (is_small(c, wanted) || can_arrive(needs, c, wanted, left));
}

bool srv_share_asked(const struct api_budget *budget, const struct srv_connection *c, size_t wanted,
                     bool is_fair)
{
    size_t left;
    if (budget->limit == 0)
        return true;
    if (!left_of(budget, c, wanted, &left))
        return false;
    if (left >= budget->limit / 2 || is_small(c, wanted))
        return true;
    const struct srv_needs *needs = srv_share_needs(srv_connections_lock());
    bool granted = srv_share_grants(budget, needs, c, wanted, is_fair);
    srv_connections_unlock();
    return granted;
}
