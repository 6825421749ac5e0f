/* Connections that linger: what their clients still send is dropped, and nobody waits for that. */
#include "server/connection/linger.h"
#include "server/connection/watcher.h"
#include "tests/suites/support/crowd.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FLOODS = 32 };

static struct flood {
    int fd;
    atomic_size_t sent;
    pthread_t thread;
} floods[FLOODS];

/* Sends as fast as the other side drops, until that closes. */
static void *send_on(void *argument)
{
    static const char bytes[256 << 10];
    struct flood *flood = argument;
    for (ssize_t n = 1; n > 0; atomic_fetch_add(&flood->sent, n > 0 ? (size_t)n : 0))
        n = send(flood->fd, bytes, sizeof bytes, MSG_NOSIGNAL);
    return NULL;
}

/* Takes the watcher's lock as network threads do, and gives how long that took in all. */
static double lock_seconds(int times)
{
    double waited = 0;
    for (int i = 0; i < times; i++) {
        double begin = now_seconds();
        srv_watcher_lock();
        srv_watcher_unlock();
        waited += now_seconds() - begin;
        wait_ms(1);
    }
    return waited;
}

/* While all of them send, the lock is free nearly always. */
Test(linger, network_threads_do_not_wait_for_bytes_that_are_dropped)
{
    enum { TIMES = 300 };
    cr_assert(srv_watcher_start(1024, 60));
    srv_linger_init(FLOODS);
    for (size_t i = 0; i < FLOODS; i++) {
        int pair[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        floods[i].fd = pair[1];
        srv_linger(pair[0], true, 1ull << 40);
        pthread_create(&floods[i].thread, NULL, send_on, &floods[i]);
    }
    double waited = lock_seconds(TIMES);
    size_t sent = 0;
    srv_linger_stop(0);
    for (size_t i = 0; i < FLOODS; i++) {
        pthread_join(floods[i].thread, NULL);
        sent += atomic_load(&floods[i].sent);
        close(floods[i].fd);
    }
    srv_watcher_stop();
    cr_expect_gt(sent, 50u << 20, "%zu bytes", sent);
    cr_expect_lt(waited, 0.1, "%g s", waited);
}
