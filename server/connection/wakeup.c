#include "server/connection/wakeup.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A lock of its own: libmicrohttpd adds and removes descriptors with its own locks held. */
static pthread_mutex_t waking = PTHREAD_MUTEX_INITIALIZER;

/* Closing removes it from epoll. */
static void unmake(struct srv_wakeup *wakeup)
{
    if (wakeup->event_fd > 0)
        close(wakeup->event_fd);
    wakeup->event_fd = 0;
}

/* Makes an event, or another. */
static bool wake(struct srv_wakeup *wakeup)
{
    if (wakeup->event_fd > 0)
        return eventfd_write(wakeup->event_fd, 1) == 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data = wakeup->mark};
    wakeup->event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wakeup->event_fd >= 0 &&
        epoll_ctl(wakeup->loop, EPOLL_CTL_ADD, wakeup->event_fd, &event) == 0)
        return true;
    unmake(wakeup);
    return false;
}

void srv_wakeup_add(struct srv_wakeup *wakeup, int loop, epoll_data_t mark)
{
    pthread_mutex_lock(&waking);
    wakeup->watched = true;
    wakeup->loop = loop;
    wakeup->mark = mark;
    if (wakeup->wanted)
        wake(wakeup);
    pthread_mutex_unlock(&waking);
}

void srv_wakeup_remove(struct srv_wakeup *wakeup)
{
    pthread_mutex_lock(&waking);
    unmake(wakeup);
    wakeup->watched = false;
    pthread_mutex_unlock(&waking);
}

bool srv_wakeup_signal(struct srv_wakeup *wakeup)
{
    pthread_mutex_lock(&waking);
    wakeup->wanted = true;
    bool good = !wakeup->watched || wake(wakeup);
    pthread_mutex_unlock(&waking);
    return good;
}
