#include "server/connection/waker.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A lock of its own: libmicrohttpd adds and removes descriptors with its own locks held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Closing removes it from epoll. */
static void unmake(struct srv_waker *waker)
{
    if (waker->event_fd > 0)
        close(waker->event_fd);
    waker->event_fd = 0;
}

/* Makes an event, or another. */
static bool wake(struct srv_waker *waker)
{
    if (waker->event_fd > 0)
        return eventfd_write(waker->event_fd, 1) == 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data = waker->mark};
    waker->event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waker->event_fd >= 0 && epoll_ctl(waker->loop, EPOLL_CTL_ADD, waker->event_fd, &event) == 0)
        return true;
    unmake(waker);
    return false;
}

void srv_waker_add(struct srv_waker *waker, int loop, epoll_data_t mark)
{
    pthread_mutex_lock(&lock);
    waker->watched = true;
    waker->loop = loop;
    waker->mark = mark;
    if (waker->wanted)
        wake(waker);
    pthread_mutex_unlock(&lock);
}

void srv_waker_remove(struct srv_waker *waker)
{
    pthread_mutex_lock(&lock);
    unmake(waker);
    waker->watched = false;
    pthread_mutex_unlock(&lock);
}

bool srv_waker_wake(struct srv_waker *waker)
{
    pthread_mutex_lock(&lock);
    waker->wanted = true;
    bool good = !waker->watched || wake(waker);
    pthread_mutex_unlock(&lock);
    return good;
}
