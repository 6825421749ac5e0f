#include "tests/proxies/posters.h"

#include "tests/load/calls.h"
#include "tests/load/wire.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <unistd.h>

/* PATIENCE: seconds that a client waits for an answer. */
#define PATIENCE 10

static double pause_of(const struct posters *p, uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return p->least + (p->most - p->least) * (double)(*state >> 40) / (double)(1 << 24);
}

static void count(struct posters *p, int status)
{
    atomic_fetch_add(status == 200 ? &p->served : status ? &p->other : &p->lost, 1);
    if (status && status != 200)
        atomic_store(&p->status, status);
}

static void *post(void *argument)
{
    struct posters *p = argument;
    struct call call = {0};
    char answer[2000];
    uint64_t state = p->together ? 1 : (uint64_t)pthread_self();
    double next = p->start;
    int fd = -1;
    bool good = call_small(&call, ""), is_kept;
    while (good && !atomic_load(&p->stopping)) {
        if (fd < 0)
            fd = wire_dial(p->port, 0);
        count(p,
              wire_exchange(fd, call.bytes, call.size, answer, sizeof answer, PATIENCE, &is_kept));
        if (!is_kept) {
            close(fd);
            fd = -1;
        }
        next = (p->together ? next : seconds_now()) + pause_of(p, &state);
        sleep_seconds(next > seconds_now() ? next - seconds_now() : 0);
    }
    if (fd >= 0)
        close(fd);
    call_free(&call);
    return NULL;
}

void posters_start(struct posters *p, int port, size_t n, double least, double most, bool together)
{
    *p = (struct posters){.port = port, .least = least, .most = most, .together = together};
    p->start = seconds_now();
    for (; p->n < n; p->n++)
        cr_assert_eq(pthread_create(&p->threads[p->n], NULL, post, p), 0);
}

void posters_stop(struct posters *p)
{
    atomic_store(&p->stopping, true);
    for (size_t i = 0; i < p->n; i++)
        pthread_join(p->threads[i], NULL);
}
