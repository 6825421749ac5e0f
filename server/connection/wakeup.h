/* Wakes the network thread of a connection that epoll watches, without a word to its client: by an event of another
 * descriptor, which carries the mark of the connection. shutdown(), which wakes it, too, lets a client that still sends
 * fail or wait, and it may not read the response. Any thread may call these functions. */
#pragma once

#include <stdbool.h>
#include <sys/epoll.h>

/* srv_wakeup: a member of the connection; all zero at first. */
struct srv_wakeup {
    bool watched, wanted;
    int loop;     /* epoll, while `watched` */
    int event_fd; /* 0 for none */
    epoll_data_t mark;
};

/* Notes that the connection's descriptor was added to epoll `loop`, or removed; srv_wakeup_remove is also called at the
 * connection's end, and closes the event's descriptor. */
void srv_wakeup_add(struct srv_wakeup *wakeup, int loop, epoll_data_t mark);
void srv_wakeup_remove(struct srv_wakeup *wakeup);

/* Wakes the thread, now or as soon as epoll watches the connection; at each call. False if no descriptor is
 * left for that. */
bool srv_wakeup_signal(struct srv_wakeup *wakeup);
