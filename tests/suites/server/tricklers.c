/* Clients that send a byte now and then, and come back at once when they are turned away. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* TRICKLERS: five times as many as the connections that the server takes. */
enum { LIMIT = 100, TRICKLERS = 5 * LIMIT, EVERY_MS = 50 };

/* RATE: of connections, in 1/s. Some 200 newcomers turn a connection away whose header has not come: beside a sanitized server,
 * on a busy machine, a good client may need longer than 0.1 s to send it. */
#ifdef __SANITIZE_ADDRESS__
enum { RATE = 400 };
#else
enum { RATE = 2000 };
#endif

static struct {
    const struct server *server;
    const char *head;
    int events, sockets[TRICKLERS]; /* -1 between connections */
    size_t connections;
    atomic_bool stopping;
} crowd;

static int connect_soon(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, (struct sockaddr *)&address, sizeof address);
    return fd;
}

static void connect_one(size_t i)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    int fd = connect_soon(crowd.server->port);
    crowd.sockets[i] = fd;
    crowd.connections++;
    epoll_ctl(crowd.events, EPOLL_CTL_ADD, fd, &event);
    send(fd, crowd.head, strlen(crowd.head), MSG_NOSIGNAL);
}

/* Connects those that were turned away, as far as the rate allows. */
static void connect_all(double start)
{
    for (size_t i = 0; i < TRICKLERS; i++)
        if (crowd.sockets[i] < 0 &&
            (double)crowd.connections < TRICKLERS + (now_seconds() - start) * RATE)
            connect_one(i);
}

static void *run(void *unused)
{
    (void)unused;
    struct epoll_event events[256];
    double start = now_seconds(), next = start;
    while (!atomic_load(&crowd.stopping)) {
        connect_all(start);
        int n = epoll_wait(crowd.events, events, 256, 2);
        for (int i = 0; i < n; i++) {
            close(crowd.sockets[events[i].data.u64]);
            crowd.sockets[events[i].data.u64] = -1;
        }
        if (now_seconds() < next)
            continue;
        next += EVERY_MS * 1e-3;
        for (size_t i = 0; i < TRICKLERS; i++)
            if (crowd.sockets[i] >= 0)
                send(crowd.sockets[i], "x", 1, MSG_NOSIGNAL);
    }
    return NULL;
}

/* replies: what came of requests of one kind. longest: time of one, in s; other: the last status that was not 200, and 0 if
 * there was none. */
struct replies {
    int served;
    double longest;
    long other;
};

static void ask_once(struct replies *replies, const char *method, const char *target,
                     const char *body)
{
    double begin = now_seconds();
    long status = status_of(crowd.server, method, target, body);
    double took = now_seconds() - begin;
    replies->longest = took > replies->longest ? took : replies->longest;
    replies->served += status == 200;
    if (status != 200)
        replies->other = status;
}

/* Asks for health and for losses while the crowd is there; `serves` if most losses are computed at the first
 * try. */
static void ask_among(const char *head, bool serves)
{
    enum { ROUNDS = 300 };
    static const char *const flags[] = {"--max-connections", "100", "--log-level", "warning", NULL};
    allow_files(2 * TRICKLERS);
    struct server server = server_start(flags);
    pthread_t thread;
    struct replies health = {0}, losses = {0};
    memset(&crowd, 0, sizeof crowd);
    memset(crowd.sockets, -1, sizeof crowd.sockets);
    crowd.server = &server;
    crowd.head = head;
    crowd.events = epoll_create1(0);
    cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
    wait_ms(1000);
    double start = now_seconds();
    for (int i = 0; i < ROUNDS; i++) {
        ask_once(&health, "GET", i % 2 ? "/livez" : "/v2/health/ready", NULL);
        ask_once(&losses, "POST", "/kl_div", TWO_BY_TWO);
        wait_ms(5);
    }
    double seconds = now_seconds() - start;
    atomic_store(&crowd.stopping, true);
    pthread_join(thread, NULL);
    printf("(%zu connections, %.1f s; of %d: %d healthy, the slowest %.0f ms; %d served)\n",
           crowd.connections, seconds, ROUNDS, health.served, health.longest * 1e3, losses.served);
    cr_expect_eq(health.served, ROUNDS, "%d of %d, another's status: %ld", health.served, ROUNDS,
                 health.other);
    cr_expect(!serves || losses.served >= ROUNDS * 3 / 4, "%d of %d, another's status: %ld",
              losses.served, ROUNDS, losses.other);
    for (size_t i = 0; i < TRICKLERS; i++)
        if (crowd.sockets[i] >= 0)
            close(crowd.sockets[i]);
    close(crowd.events);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(tricklers, of_headers_leave_room_for_others) { ask_among("GET /livez HTTP/1.1\r\nX: ", true); }

Test(tricklers, of_nothing_leave_room_for_others) { ask_among("", true); }

/* Their headers are those of good clients. */
Test(tricklers, of_bodies_leave_room_for_health)
{
    ask_among(POST "Content-Length: 1000000\r\n\r\n", false);
}
