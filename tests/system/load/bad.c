#include "tests/system/load/bad.h"

#include "tests/system/load/calls.h"
#include "tests/system/load/wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define POST "POST /kl_div HTTP/1.1\r\nHost: a\r\n"

/* kind: a client sends `head`, then `burst` bytes as fast as they go, then `piece` bytes at a time;
 * it reads the answer as it comes, or `reads` bytes at a time. */
static const struct kind {
    const char *name;
    const char *head; /* NULL: a whole call with a large answer */
    size_t burst, piece, reads;
    double every; /* seconds between pieces; 0: none follow */
    double stays; /* the most seconds until it leaves; 0: for ever */
} kinds[BAD_KINDS] = {
    {"silent", "", 0, 0, 0, 0, 0},
    {"slow headers", POST "X-Slow: ", 0, 1, 0, 1, 0},
    {"slow bodies", POST "Content-Length: 1000000\r\n\r\n", 0, 1000, 0, 0.1, 0},
    {"tricklers, 200 MB", POST "Content-Length: 200000000\r\n\r\n", 0, 110, 0, 0.1, 0},
    {"hoarders, 4 of 16 MiB", POST "Content-Length: 16777216\r\n\r\n", 4 << 20, 110, 0, 0.1, 0},
    {"slow readers", NULL, 0, 0, 100, 0.1, 0},
    {"leavers", POST "Content-Length: 1000000\r\n\r\n", 20000, 0, 0, 0, 0.3},
};

/* Times in seconds: a client that was ended waits for BACK to twice that; HASTE is how often clients
 * are looked at. RECEIVE: bytes that a slow reader takes in unread. */
#define BACK 0.4
#define HASTE 0.01
enum { RECEIVE = 4096, EVENTS = 256 };

struct client {
    const struct kind *kind;
    struct bad_result *result;
    int fd; /* -1 between connections */
    size_t sent;
    double due, leaves;
    char status[13]; /* first bytes of the answer */
    size_t got;
};

static struct {
    int port, events; /* epoll */
    size_t n;
    struct client *clients;
    pthread_t thread;
    atomic_bool stopping;
    unsigned long random;
    struct call call;
    char spaces[1 << 16];
} bad;

static struct bad_result results[BAD_KINDS];

static double draw(void)
{
    bad.random = bad.random * 6364136223846793005u + 1442695040888963407u;
    return (double)(bad.random >> 40) / (double)(1 << 24);
}

/* ---- One client */

static void watch_for(struct client *c, int operation, unsigned events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(bad.events, operation, c->fd, &event);
}

static void count_end(struct client *c, bool by_itself)
{
    int status = c->got > 12 ? atoi(c->status + 9) : 0;
    struct bad_result *r = c->result;
    unsigned long *const counts[] = {&r->served, &r->late, &r->refused, &r->other};
    static const int statuses[] = {200, 408, 503};
    size_t i = 0;
    if (status == 0) {
        ++*(by_itself ? &r->left : &r->unanswered);
        return;
    }
    while (i < 3 && statuses[i] != status)
        i++;
    ++*counts[i];
    if (status >= 500 && status != 503)
        r->worst = status;
}

static void hang_up(struct client *c, bool by_itself)
{
    count_end(c, by_itself);
    close(c->fd);
    c->fd = -1;
    c->due = seconds_now() + BACK * (1 + draw());
}

static void connect_again(struct client *c, double now)
{
    c->fd = wire_dial(bad.port, c->kind->reads ? RECEIVE : 0);
    c->due = now + BACK;
    if (c->fd < 0)
        return;
    c->sent = c->got = 0;
    c->due = now + c->kind->every * draw();
    c->leaves = c->kind->stays > 0 ? now + c->kind->stays * draw() : now + 1e9;
    c->result->connections++;
    watch_for(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

static size_t head_size(const struct client *c)
{
    return c->kind->head ? strlen(c->kind->head) : bad.call.size;
}

/* Sends up to `most` bytes of the head and then of the body; false if the socket takes no more. */
static bool send_some(struct client *c, size_t max)
{
    size_t head = head_size(c);
    const char *from = c->kind->head ? c->kind->head : bad.call.bytes;
    bool in_head = c->sent < head;
    size_t size = in_head ? head - c->sent : max;
    if (!in_head && size > sizeof bad.spaces)
        size = sizeof bad.spaces;
    ssize_t n = send(c->fd, in_head ? from + c->sent : bad.spaces, size, MSG_NOSIGNAL);
    if (n > 0)
        c->sent += (size_t)n;
    return n == (ssize_t)size;
}

/* Sends the head and the burst; then waits for the answer alone. */
static void send_first(struct client *c)
{
    size_t first = head_size(c) + c->kind->burst;
    while (c->sent < first && send_some(c, first - c->sent))
        ;
    if (c->sent >= first)
        watch_for(c, EPOLL_CTL_MOD, c->kind->reads ? 0 : EPOLLIN);
}

/* Reads at most `most` bytes; hangs up at the end of the connection. */
static void read_some(struct client *c, size_t max)
{
    char bytes[1 << 14];
    ssize_t n = recv(c->fd, bytes, max < sizeof bytes ? max : sizeof bytes, 0);
    for (ssize_t i = 0; i < n && c->got < sizeof c->status; i++)
        c->status[c->got++] = bytes[i];
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN))
        hang_up(c, false);
}

static void on_event(struct client *c, unsigned events)
{
    if (c->fd >= 0 && events & (EPOLLERR | EPOLLHUP | EPOLLIN))
        read_some(c, SIZE_MAX);
    if (c->fd >= 0 && events & EPOLLOUT)
        send_first(c);
}

static void on_time(struct client *c, double now)
{
    const struct kind *kind = c->kind;
    if (c->fd < 0) {
        if (now >= c->due)
            connect_again(c, now);
        return;
    }
    if (now >= c->leaves) {
        hang_up(c, true);
        return;
    }
    if (kind->every <= 0 || now < c->due || c->sent < head_size(c) + kind->burst)
        return;
    c->due = now + kind->every;
    if (kind->piece)
        send_some(c, kind->piece);
    if (kind->reads)
        read_some(c, kind->reads);
}

/* ---- All */

static void *run(void *unused)
{
    (void)unused;
    struct epoll_event events[EVENTS];
    double looked = 0;
    while (!atomic_load(&bad.stopping)) {
        int n = epoll_wait(bad.events, events, EVENTS, (int)(HASTE * 1000));
        for (int i = 0; i < n; i++)
            on_event(events[i].data.ptr, events[i].events);
        double now = seconds_now();
        if (now < looked + HASTE)
            continue;
        looked = now;
        for (size_t i = 0; i < bad.n; i++)
            on_time(&bad.clients[i], now);
    }
    return NULL;
}

bool bad_start(int port, size_t n)
{
    bad.port = port;
    bad.n = n;
    bad.clients = calloc(n, sizeof *bad.clients);
    bad.events = epoll_create1(EPOLL_CLOEXEC);
    memset(bad.spaces, ' ', sizeof bad.spaces);
    if (!bad.clients || bad.events < 0 || !call_outer(&bad.call, 400))
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t k = i % BAD_KINDS;
        results[k].name = kinds[k].name;
        results[k].clients++;
        bad.clients[i] = (struct client){.kind = &kinds[k], .result = &results[k], .fd = -1};
        bad.clients[i].due = seconds_now() + draw();
    }
    return pthread_create(&bad.thread, NULL, run, NULL) == 0;
}

void bad_stop(struct bad_result *to)
{
    atomic_store(&bad.stopping, true);
    pthread_join(bad.thread, NULL);
    for (size_t i = 0; i < bad.n; i++)
        if (bad.clients[i].fd >= 0)
            hang_up(&bad.clients[i], true);
    close(bad.events);
    free(bad.clients);
    call_free(&bad.call);
    memcpy(to, results, sizeof results);
}
