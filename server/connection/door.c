#include "server/connection/door.h"

#include "server/connection/deadlines.h"
#include "server/connection/tls.h"
#include "server/telemetry/metrics.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The door relies on this: if recv gives EAGAIN, or fewer bytes than were asked for, the socket is drained and epoll
 * will report more; EINTR says nothing of the kind. libmicrohttpd asks for a request once the response before it is
 * sent. */
_Static_assert(MHD_VERSION >= 0x00097500 && MHD_VERSION < 0x01010000,
               "the door was tried with libmicrohttpd 0.9.75 to 1.0.x");

/* PIECE: bytes of one system call, but of a body that is received in place: IN_PLACE bytes of it or more, at most AT_ONCE,
 * which stay in the second-level cache. */
enum { PIECE = 16 << 10, IN_PLACE = 64 << 10, AT_ONCE = 256 << 10 };

/* input: bytes of the connection that its thread reads: a header and what follows it, or a piece of a body. They lie in
 * the room, or among the bytes that have waited. The framing has read those before `at`. may_be_more: the socket was not
 * drained. */
struct input {
    const char *bytes;
    size_t at, end;
    bool may_be_more;
    char room[SRV_HEADER_SIZE + PIECE];
};

static const struct srv_reader *reader;

void srv_door_init(const struct srv_reader *r) { reader = r; }

/* ---- Bytes that wait */

static void drop_kept(struct srv_ahead *ahead)
{
    free(ahead->bytes);
    ahead->bytes = NULL;
    ahead->used = ahead->checked = 0;
    atomic_store(&ahead->size, 0);
}

/* Keeps the bytes of the input from `from` on; false if no memory is left. */
static bool keep(struct srv_ahead *ahead, const struct input *in, size_t from)
{
    size_t size = in->end - from;
    if (size == 0) {
        drop_kept(ahead);
        return true;
    }
    if (in->bytes != in->room)
        ahead->used += from;
    else if ((ahead->bytes = malloc(size)))
        memcpy(ahead->bytes, in->bytes + from, size);
    else
        return false;
    ahead->checked = in->at - from;
    atomic_store(&ahead->size, size);
    return true;
}

/* Reads what has waited where it lies, so that each of many requests does not copy those behind it. */
static void take_kept(const struct srv_ahead *ahead, struct input *in)
{
    in->at = ahead->checked;
    in->end = atomic_load(&ahead->size);
    in->bytes = in->end > 0 ? ahead->bytes + ahead->used : in->room;
    in->may_be_more = in->end > 0;
}

/* ---- Receiving */

static struct srv_message *message_of(const struct srv_connection *c)
{
    return atomic_load(&c->request);
}

static bool is_ready(const struct srv_connection *c)
{
    return message_of(c) && message_of(c)->is_ready;
}

/* Reads the framing of the next bytes; gives their number. The last ones of a request make it ready. */
static size_t step(struct srv_connection *c, const char *bytes, size_t size, enum srv_part *part)
{
    size_t n = srv_framing_step(&c->framing, bytes, size, part);
    if (message_of(c) && srv_framing_is_between_requests(&c->framing))
        message_of(c)->is_ready = true;
    return n;
}

/* Receives from a unix socket. Behind bytes with which a client has passed descriptors, which are closed, the kernel ends
 * the call, although more bytes may be here: *is_cut. */
static ssize_t receive_local(int fd, char *to, size_t size, bool *is_cut)
{
    struct iovec bytes = {to, size};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    ssize_t n = recvmsg(fd, &message, 0);
    *is_cut = n > 0 && message.msg_flags & MSG_CTRUNC;
    return n;
}

static ssize_t receive_to(struct srv_connection *c, struct input *in, char *to, size_t size)
{
    int fd = c->watched.fd;
    bool is_cut = false;
    ssize_t n = c->session         ? srv_tls_receive(c->session, to, size)
                : c->peer.is_local ? receive_local(fd, to, size, &is_cut)
                                   : recv(fd, to, size, 0);
    in->may_be_more =
        n == (ssize_t)size || is_cut || (c->session && n > 0 && srv_tls_has_more(c->session));
    return n;
}

/* ---- Sending */

/* Sends pieces of a response, but for the byte that was sent ahead of it. */
static ssize_t send_pieces(struct srv_connection *c, const struct msghdr *message, int flags)
{
    struct iovec *first = message->msg_iov;
    size_t ahead = c->sent_ahead;
    first->iov_base = (char *)first->iov_base + ahead;
    first->iov_len -= ahead;
    ssize_t size = c->session ? srv_tls_send(c->session, first, message->msg_iovlen, &c->encrypted)
                              : sendmsg(c->watched.fd, message, flags);
    first->iov_base = (char *)first->iov_base - ahead;
    first->iov_len += ahead;
    if (size < 0)
        return size;
    if (ahead > 0)
        c->sent_ahead = 0;
    if (c->peer.is_local) /* of it the kernel does not tell how much has arrived */
        atomic_fetch_add(&c->sent, (unsigned long long)size + ahead);
    return size + (ssize_t)ahead;
}

static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

/* Sends what is left of 100 Continue; false, with errno set, if the socket does not take all of it. */
static bool send_go_on(struct srv_connection *c)
{
    struct iovec rest = {(char *)go_on + sizeof go_on - 1 - c->go_on_left, c->go_on_left};
    struct msghdr message = {.msg_iov = &rest, .msg_iovlen = 1};
    ssize_t n = c->go_on_left > 0 ? send_pieces(c, &message, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    c->go_on_left -= n > 0 ? (size_t)n : 0;
    if (n >= 0)
        errno = EAGAIN;
    return c->go_on_left == 0;
}

/* ---- Reading */

static bool refuse(struct srv_connection *c, const struct input *in, const struct srv_error *why)
{
    if (why == &c->framing.error && !atomic_load(&c->ending))
        srv_metrics_connection_ended(why->code);
    return reader->refuse(c, in->bytes, in->end, why);
}

/* Receives bytes of a large body where they stay; *tried tells if there is such a body. */
static ssize_t receive_in_place(struct srv_connection *c, struct input *in, bool *tried)
{
    const struct srv_error *why = NULL;
    struct srv_framing *f = &c->framing;
    enum srv_part part;
    size_t size = f->left < AT_ONCE ? (size_t)f->left : AT_ONCE;
    char *to = NULL;
    if (f->state == SRV_BODY_BYTES && f->left >= IN_PLACE)
        to = reader->space(message_of(c), &size, &why);
    *tried = to || why;
    if (!to)
        return why && refuse(c, in, why);
    ssize_t n = receive_to(c, in, to, size);
    int reason = errno;
    if (n > 0)
        step(c, to, (size_t)n, &part);
    reader->filled(message_of(c), n > 0 ? (size_t)n : 0);
    errno = reason;
    return n;
}

static ssize_t receive(struct srv_connection *c, struct input *in)
{
    bool tried;
    ssize_t n = receive_in_place(c, in, &tried);
    if (tried)
        return n;
    if (in->bytes != in->room) {
        memcpy(in->room, in->bytes, in->end);
        drop_kept(&c->ahead);
        in->bytes = in->room;
    }
    n = receive_to(c, in, in->room + in->end, PIECE);
    in->end += n > 0 ? (size_t)n : 0;
    return n;
}

/* True if the rest of the body is here, in the input or, on a plain connection, in the socket. */
static bool is_body_here(const struct srv_connection *c, const struct input *in)
{
    struct srv_framing rest = c->framing;
    enum srv_part part;
    int unread = 0;
    for (size_t at = in->at;
         at < in->end && !rest.error.code && !srv_framing_is_between_requests(&rest);)
        at += srv_framing_step(&rest, in->bytes + at, in->end - at, &part);
    bool is_here = srv_framing_is_between_requests(&rest) ||
                   (rest.state == SRV_BODY_BYTES && !c->session &&
                    ioctl(c->watched.fd, FIONREAD, &unread) == 0 && (uint64_t)unread >= rest.left);
    srv_framing_free(&rest);
    return is_here;
}

/* Begins a request, and asks its client for the body if the client waits for that (100 Continue). False if no memory
 * is left. */
static bool begin(struct srv_connection *c, const struct input *in)
{
    bool is_here = is_body_here(c, in);
    if (!reader->begin(c, in->bytes, in->at, is_here))
        return false;
    if (srv_framing_is_between_requests(&c->framing))
        message_of(c)->is_ready = true;
    if (c->framing.expectations && !c->framing.is_http_1_0 && !is_here && in->at == in->end &&
        !is_ready(c))
        c->go_on_left = sizeof go_on - 1;
    send_go_on(c);
    return true;
}

/* Reads the input, to its end or to that of the request; false if no memory is left. */
static bool read_input(struct srv_connection *c, struct input *in)
{
    while (in->at < in->end && !is_ready(c)) {
        enum srv_part part;
        const char *bytes = in->bytes + in->at;
        size_t n = step(c, bytes, in->end - in->at, &part);
        bool is_between = srv_framing_is_between_requests(&c->framing) && !c->framing.error.code;
        if (atomic_load(&c->phase) == SRV_IDLE && !is_between)
            srv_connection_enter(c, SRV_HEADER);
        if (c->framing.error.code)
            return refuse(c, in, &c->framing.error);
        in->at += n;
        if (part == SRV_PART_HEADER_END && !begin(c, in))
            return false;
        const struct srv_error *why =
            part == SRV_PART_BODY ? reader->body(message_of(c), bytes, n) : NULL;
        if (why)
            return refuse(c, in, why);
    }
    return true;
}

/* Ends reading, because the client or the server has ended the connection. If the server has, a request that has
 * begun gets the reason. Returns 1 if there is something to answer, 0 if the connection ends. */
static int end_reading(struct srv_connection *c, const struct input *in)
{
    const struct srv_error *why = atomic_load(&c->ending);
    bool has_begun = message_of(c) || !srv_framing_is_between_requests(&c->framing);
    return why && has_begun && refuse(c, in, why);
}

/* Leaves the input of a request that may be answered: what follows it waits, unless the connection ends with it. */
static int leave_input(struct srv_connection *c, const struct input *in)
{
    struct srv_message *message = message_of(c);
    size_t rest = in->end - in->at;
    if (message->must_close)
        c->framing.left -= c->framing.left < rest ? c->framing.left : rest;
    if (!keep(&c->ahead, in, message->must_close ? in->end : in->at))
        message->must_close = true;
    return 1;
}

/* Leaves the input of a request whose next bytes have not come. */
static int wait_for_more(struct srv_connection *c, struct input *in)
{
    static const struct srv_error no_memory = {"out_of_memory",
                                               "no memory is left for the request; try again"};
    bool is_header = !message_of(c) && !srv_framing_is_between_requests(&c->framing);
    if (atomic_load(&c->phase) == SRV_IDLE && c->session && srv_tls_is_amid_record(c->session))
        srv_connection_enter(c, SRV_HEADER);
    if (!keep(&c->ahead, in, is_header ? 0 : in->end))
        return refuse(c, in, &no_memory);
    errno = in->may_be_more ? EINTR : EAGAIN;
    return -1;
}

/* Reads on. Gives 1 if the request may be answered; 0 if the connection ends; -1, with errno set, to wait for more. */
static int read_on(struct srv_connection *c, struct input *in)
{
    take_kept(&c->ahead, in);
    send_go_on(c);
    if (atomic_load(&c->ending) && (message_of(c) || in->at > 0))
        return end_reading(c, in);
    if (in->at == in->end) {
        ssize_t n = receive(c, in);
        bool is_drained = n < 0 && errno == EAGAIN;
        if (n == 0 || (is_drained && atomic_load(&c->read_shut))) /* as after a shutdown */
            return end_reading(c, in);
        if (n < 0 && !is_drained && errno != EINTR)
            return -1;
        if (n < 0)
            in->may_be_more = !is_drained;
    }
    if (!read_input(c, in))
        return 0;
    return is_ready(c) ? leave_input(c, in) : wait_for_more(c, in);
}

/* Writes a request to libmicrohttpd's buffer. It fills the buffer where more bytes are here, or may be. */
static ssize_t give(const struct srv_connection *c, const struct input *in, char *buffer,
                    size_t size)
{
    static const char get[] = "GET / HTTP/1.1\r\nHost: a\r\n",
                      head[] = "HEAD / HTTP/1.1\r\nHost: a\r\n",
                      filler[] = "X:", end[] = "\r\n\r\n";
    bool is_head = message_of(c)->is_head;
    size_t n = is_head ? sizeof head - 1 : sizeof get - 1;
    if (size < sizeof head + sizeof filler + sizeof end) {
        errno = ECONNRESET; /* it never asks for so little while a request is ready */
        return -1;
    }
    memcpy(buffer, is_head ? head : get, n);
    if (in->may_be_more || atomic_load(&c->ahead.size) > 0) {
        memset(buffer + n, 'x', size - n);
        memcpy(buffer + n, filler, sizeof filler - 1);
        n = size - (sizeof end - 1);
    } else {
        n -= 2; /* of the CRLF */
    }
    memcpy(buffer + n, end, sizeof end - 1);
    return (ssize_t)(n + sizeof end - 1);
}

ssize_t srv_mhd_recv(int fd, void *buffer, size_t size, int flags)
{
    struct input in __attribute__((uninitialized));
    struct srv_connection *c = flags == 0 ? srv_connection_at(fd) : NULL;
    if (!c)
        return recv(fd, buffer, size, flags);
    if (is_ready(c)) { /* it reads once more when a job is done */
        errno = EINTR;
        return -1;
    }
    int n = read_on(c, &in);
    return n > 0 ? give(c, &in, buffer, size) : n;
}

/* ---- Calls of libmicrohttpd that send */

ssize_t srv_mhd_sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct srv_connection *c = srv_connection_at(fd);
    if (!c)
        return sendmsg(fd, message, flags);
    return send_go_on(c) ? send_pieces(c, message, flags) : -1;
}

ssize_t srv_mhd_send(int fd, const void *bytes, size_t size, int flags)
{
    struct iovec all = {(void *)bytes, size};
    return srv_mhd_sendmsg(fd, &(struct msghdr){.msg_iov = &all, .msg_iovlen = 1}, flags);
}

/* Tells libmicrohttpd that options of TCP are set: a unix socket delays no bytes. It would try again, and log the
 * failure, twice for each response. */
int srv_mhd_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    struct srv_connection *c = level == IPPROTO_TCP ? srv_connection_at(fd) : NULL;
    return c && c->peer.is_local ? 0 : setsockopt(fd, level, name, value, size);
}

/* ---- Ending and waiting */

/* Each connection ends here, also those that libmicrohttpd did not accept or drops without a notice. */
int srv_mhd_close(int fd)
{
    struct srv_connection *c = srv_connection_at(fd);
    struct srv_message *message = c ? atomic_exchange(&c->request, NULL) : NULL;
    if (message)
        reader->done(message);
    if (c)
        srv_connection_remove(c);
    return close(fd);
}

/* Sets, for the wakeup of a connection, whether libmicrohttpd waits for its bytes. */
int srv_mhd_epoll_ctl(int loop, int action, int fd, struct epoll_event *event)
{
    struct srv_connection *c = srv_connection_at(fd);
    if (c && action == EPOLL_CTL_DEL)
        srv_wakeup_remove(&c->wakeup);
    int result = epoll_ctl(loop, action, fd, event);
    if (c && result == 0 && action == EPOLL_CTL_ADD && event->events & EPOLLIN)
        srv_wakeup_add(&c->wakeup, loop, event->data);
    return result;
}

/* libmicrohttpd 0.9.75 waits again, for ever, if it gets as many events as it has room for, before it acts on any of
 * them. So it gets one less. A connection that has room again for the rest of 100 Continue is also read from: that sends
 * the rest. */
int srv_mhd_epoll_wait(int loop, struct epoll_event *events, int max, int timeout)
{
    int n = epoll_wait(loop, events, max - 1, timeout);
    for (int i = 0; i < n; i++) {
        struct srv_connection *c = NULL;
        if (events[i].events & EPOLLOUT)
            c = srv_connection_at(
                MHD_get_connection_info(events[i].data.ptr, MHD_CONNECTION_INFO_CONNECTION_FD)
                    ->connect_fd);
        if (c && c->go_on_left > 0)
            events[i].events |= EPOLLIN;
    }
    return n;
}
