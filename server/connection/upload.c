#include "server/connection/upload.h"

#include <errno.h>
#include <string.h>

/* AT_ONCE: bytes of one system call, which stay in the second-level cache. */
enum { AT_ONCE = 256 << 10 };

/* Bytes that may be received in place, unless they are fewer than `n`: then libmicrohttpd's buffer
 * takes what follows, the end of the body and the next request perhaps. */
static size_t open_room(const struct srv_upload *u, size_t n, uint64_t left)
{
    size_t max = u->room < AT_ONCE ? u->room : AT_ONCE;
    if (left - u->ahead < max)
        max = (size_t)(left - u->ahead);
    return max >= n ? max : 0;
}

static ssize_t tell(struct srv_upload *u, size_t n)
{
    u->piece = n;
    u->ahead -= n;
    return (ssize_t)n;
}

/* Receives to libmicrohttpd's buffer, after the bytes that it was not told of. */
static ssize_t receive_by_buffer(struct srv_upload *u, int fd, char *buffer, size_t n,
                                 uint64_t left, srv_receive *receive)
{
    size_t before = u->ahead;
    if (before > 0)
        memcpy(buffer, u->next - before, before);
    ssize_t size = receive(fd, buffer + before, n - before, 0);
    bool is_drained = size < 0 && errno == EAGAIN;
    if (before == 0 || (size <= 0 && !is_drained && before < left))
        return size;
    u->next -= before;
    u->room += before;
    u->ahead = 0;
    return (ssize_t)before + (size > 0 ? size : 0);
}

ssize_t srv_upload_receive(struct srv_upload *u, int fd, void *buffer, size_t n, uint64_t left,
                           srv_receive *receive)
{
    if (u->ahead >= n)
        return tell(u, n);
    size_t max = open_room(u, n, left);
    if (max == 0)
        return receive_by_buffer(u, fd, buffer, n, left, receive);
    ssize_t size = receive(fd, u->next, max, 0);
    if (size <= 0 && (size == 0 || u->ahead == 0 || errno != EAGAIN))
        return size; /* the body will not be whole, or nothing has come */
    if (size > 0) {
        u->next += size;
        u->room -= (size_t)size;
        u->ahead += (size_t)size;
    }
    return tell(u, u->ahead < n ? u->ahead : n);
}

bool srv_upload_took(struct srv_upload *u, size_t n)
{
    bool took = n <= u->piece;
    if (took)
        u->piece -= n;
    return took;
}

void srv_upload_offer(struct srv_upload *u, char *end, size_t room)
{
    size_t there = u->piece + u->ahead;
    u->room = room > there ? room - there : 0;
    if (room > 0)
        u->next = end + there;
    else
        u->ahead = 0;
}
