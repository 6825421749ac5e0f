#include "tests/system/load/pauses.h"

#include "tests/system/load/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define NAP 0.005

static struct {
    pthread_t thread;
    atomic_bool stopping;
    double longest;
} pauses;

static void *nap(void *unused)
{
    (void)unused;
    while (!atomic_load(&pauses.stopping)) {
        double start = seconds_now();
        sleep_seconds(NAP);
        double more = seconds_now() - start - NAP;
        pauses.longest = more > pauses.longest ? more : pauses.longest;
    }
    return NULL;
}

bool pauses_start(void) { return pthread_create(&pauses.thread, NULL, nap, NULL) == 0; }

double pauses_stop(void)
{
    atomic_store(&pauses.stopping, true);
    pthread_join(pauses.thread, NULL);
    return pauses.longest;
}
