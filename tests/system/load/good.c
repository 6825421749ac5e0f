#include "tests/system/load/good.h"

#include "tests/system/load/calls.h"
#include "tests/system/load/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define CLOSE "Connection: close\r\n"

/* role: `threads` clients that call, then pause for `pause` seconds. */
static const struct role {
    const char *name;
    bool admin, keeps, is_try;
    size_t threads;
    double pause, bound, limit; /* seconds */
} roles[GOOD_ROLES] = {
    [PROBE_ADMIN] = {"health, --admin-listen", true, false, false, 1, 0.02, 0.1, 1},
    [PROBE_MAIN] = {"health, main address, answered", false, false, true, 1, 0.02, 0.1, 1},
    [SMALL_NEW] = {"small call, new connection", false, false, false, 4, 0.05, 2, 10},
    [SMALL_KEPT] = {"small call, kept connection", false, true, false, 4, 0.05, 2, 10},
    [ROWS] = {"4 MiB call", false, false, false, 1, 0.2, 5, 60},
};

/* AGAIN: seconds between tries. PATIENCE: the most seconds for a try, and for a call. */
#define AGAIN 0.05
#define PATIENCE 60
enum { THREADS = 16, MIB_4 = 1 << 19 };

static struct {
    int port, admin_port;
    atomic_bool stopping;
    pthread_mutex_t lock;
    struct call calls[GOOD_ROLES];
    struct good_result results[GOOD_ROLES];
    size_t n_threads;
    pthread_t threads[THREADS];
} good = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double max(double a, double b) { return a > b ? a : b; }

static void count_try(struct good_result *r, int status, double time)
{
    pthread_mutex_lock(&good.lock);
    r->tries++;
    r->refused += status == 503;
    r->unanswered += status == 0;
    if (status != 200 && status != 503 && status != 0)
        r->worst = status;
    r->worst_try = max(r->worst_try, time);
    r->above += r->is_try && time > r->bound;
    pthread_mutex_unlock(&good.lock);
}

static void count_call(struct good_result *r, bool served, double time)
{
    pthread_mutex_lock(&good.lock);
    r->calls += served;
    r->worst_wait = max(r->worst_wait, time);
    r->above += !r->is_try && time > r->bound;
    pthread_mutex_unlock(&good.lock);
}

/* Tries once, on the kept connection or on a new one. A kept connection that the server has ended
 * meanwhile is no missing answer: RFC 9112 lets it, and the client goes on with a new one. */
static int try_once(const struct role *role, struct good_result *r, int *fd)
{
    const struct call *call = &good.calls[role - roles];
    char answer[2000];
    bool was_kept = *fd >= 0, is_kept = false;
    double start = seconds_now();
    if (*fd < 0)
        *fd = wire_dial(role->admin ? good.admin_port : good.port, 0);
    int status = *fd < 0 ? 0
                         : wire_exchange(*fd, call->bytes, call->size, answer, sizeof answer,
                                         PATIENCE, &is_kept);
    if (*fd >= 0 && !(is_kept && role->keeps)) {
        close(*fd);
        *fd = -1;
    }
    if (status != 0 || !was_kept)
        count_try(r, status, seconds_now() - start);
    return status;
}

static void *live(void *argument)
{
    const struct role *role = argument;
    struct good_result *r = &good.results[role - roles];
    int fd = -1;
    while (!atomic_load(&good.stopping)) {
        double start = seconds_now();
        bool served;
        while (!(served = try_once(role, r, &fd) == 200) && seconds_now() < start + PATIENCE)
            sleep_seconds(AGAIN);
        count_call(r, served, seconds_now() - start);
        sleep_seconds(role->pause);
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static bool make_calls(void)
{
    return call_get(&good.calls[PROBE_ADMIN], "/readyz", CLOSE) &&
           call_get(&good.calls[PROBE_MAIN], "/readyz", CLOSE) &&
           call_small(&good.calls[SMALL_NEW], CLOSE) && call_small(&good.calls[SMALL_KEPT], "") &&
           call_rows(&good.calls[ROWS], MIB_4, CLOSE);
}

bool good_start(int port, int admin_port)
{
    good.port = port;
    good.admin_port = admin_port;
    if (!make_calls())
        return false;
    for (size_t i = 0; i < GOOD_ROLES; i++) {
        good.results[i] = (struct good_result){.name = roles[i].name,
                                               .bound = roles[i].bound,
                                               .limit = roles[i].limit,
                                               .is_try = roles[i].is_try};
        for (size_t j = 0; j < roles[i].threads; j++)
            if (pthread_create(&good.threads[good.n_threads++], NULL, live, (void *)&roles[i]) != 0)
                return false;
    }
    return true;
}

void good_stop(struct good_result *results)
{
    atomic_store(&good.stopping, true);
    for (size_t i = 0; i < good.n_threads; i++)
        pthread_join(good.threads[i], NULL);
    for (size_t i = 0; i < GOOD_ROLES; i++)
        call_free(&good.calls[i]);
    memcpy(results, good.results, sizeof good.results);
}
