/* Wakes the network thread for a connection, without a word to its client: shutdown(), which wakes it, too,
 * lets a client that still sends fail or wait, and it may not read the response. */
#pragma once

#include <stdbool.h>
#include <sys/epoll.h>

/* srv_waker: wakes the thread of a connection that epoll watches: by an event of another descriptor, which carries
 * the mark of the connection. Zeroed before use. Any thread may call its functions. */
struct srv_waker {
    bool watched, wanted;
    int loop;     /* epoll, while `watched` */
    int event_fd; /* 0 for none */
    epoll_data_t mark;
};

/* Notes that the connection's descriptor was added to epoll, or removed. It is also removed at the connection's end,
 * which frees what the waker holds. */
void srv_waker_add(struct srv_waker *waker, int loop, epoll_data_t mark);
void srv_waker_remove(struct srv_waker *waker);

/* Wakes the thread, now or as soon as epoll watches the connection; at each call. False if no descriptor is
 * left for that. */
bool srv_waker_wake(struct srv_waker *waker);
