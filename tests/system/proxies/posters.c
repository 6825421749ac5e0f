#include "tests/system/proxies/posters.h"

#include "tests/system/load/calls.h"
#include "tests/system/load/wire.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* PATIENCE: seconds that a client waits for an answer. */
#define PATIENCE 10

static double pause_of(const struct posters *p, uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return p->min + (p->max - p->min) * (double)(*state >> 40) / (double)(1 << 24);
}

/* True if the answer has the loss of the body that was sent. */
static bool is_right(const struct posters *p, const char *answer)
{
    return strstr(answer, p->elements ? "\"loss\":-0.5965736," : "\"loss\":0.0204763398998238");
}

static void count(struct posters *p, int status, const char *answer)
{
    bool served = status == 200 && is_right(p, answer);
    atomic_fetch_add(served ? &p->served : status ? &p->other : &p->lost, 1);
    if (status && !served)
        atomic_store(&p->status, status);
}

static bool make_call(const struct posters *p, struct call *call)
{
    return p->elements ? call_rows(call, p->elements, "") : call_small(call, "");
}

static void *post(void *argument)
{
    struct posters *p = argument;
    struct call call = {0};
    char answer[2000];
    uint64_t state = p->together ? 1 : (uint64_t)pthread_self();
    double next = p->start;
    int fd = -1;
    bool good = make_call(p, &call), is_kept;
    while (good && !atomic_load(&p->stopping)) {
        if (fd < 0)
            fd = wire_dial(p->port, 0);
        int status =
            wire_exchange(fd, call.bytes, call.size, answer, sizeof answer, PATIENCE, &is_kept);
        count(p, status, answer);
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

static void start(struct posters *p, size_t n)
{
    p->start = seconds_now();
    for (; p->n < n; p->n++)
        cr_assert_eq(pthread_create(&p->threads[p->n], NULL, post, p), 0);
}

void posters_start(struct posters *p, int port, size_t n, double min, double max, bool together)
{
    *p = (struct posters){.port = port, .min = min, .max = max, .together = together};
    start(p, n);
}

void posters_start_large(struct posters *p, int port, size_t n, double min, double max,
                         size_t elements)
{
    *p = (struct posters){.port = port, .min = min, .max = max, .elements = elements};
    start(p, n);
}

void posters_stop(struct posters *p)
{
    atomic_store(&p->stopping, true);
    for (size_t i = 0; i < p->n; i++)
        pthread_join(p->threads[i], NULL);
}

void posters_expect_all_served(const struct posters *posters, const char *which)
{
    cr_log_info("%s: %lu served, %lu of another status (%d), %lu lost", which, posters->served,
                posters->other, posters->status, posters->lost);
    cr_expect_gt(posters->served, 100, "%s", which);
    cr_expect_eq(posters->other, 0, "%s: %lu of status %d", which, posters->other, posters->status);
    cr_expect_eq(posters->lost, 0, "%s: %lu", which, posters->lost);
}
