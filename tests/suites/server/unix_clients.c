/* Clients over unix sockets: as slow, as hasty and as many as those over TCP. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A folder of each test, a path in it, and the address of that. */
static char folder[] = "/tmp/kldiv-unix-XXXXXX", path[60], address[70];

static void choose(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(address, sizeof address, "unix:%s", path);
}

static void clean(void) { cr_expect_eq(rmdir(folder), 0, "something is left in %s", folder); }

/* ---- Answers that are read slowly, or never */

/* Asks for an answer of 16 MiB. */
static int ask_for_much(const struct server *server)
{
    struct api_buffer body = outer_call(2048, 2048, "none");
    char head[300];
    int fd = dial(server);
    int n = snprintf(head, sizeof head,
                     POST "Content-Type: application/safetensors\r\n"
                          "Accept: application/safetensors\r\nContent-Length: %zu\r\n\r\n",
                     body.size);
    cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
    cr_assert_eq(send(fd, body.data, body.size, MSG_NOSIGNAL), (ssize_t)body.size);
    api_buffer_free(&body);
    return fd;
}

/* Waits for the first byte, reads at a rate for some seconds, then as fast as it comes; gives the bytes. */
static size_t read_steadily(int fd, size_t bytes_each_300_ms, double seconds)
{
    static char bytes[1 << 20];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t got = 0;
    cr_expect_eq(poll(&p, 1, 60000), 1);
    double start = now_seconds();
    for (;;) {
        bool slow = now_seconds() < start + seconds;
        if (poll(&p, 1, 5000) <= 0)
            break;
        ssize_t n = recv(fd, bytes, slow ? bytes_each_300_ms : sizeof bytes, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
        if (slow)
            wait_ms(300);
    }
    return got;
}

/* Three at once, under a bound of 4 s: one that reads nothing; one that reads 128 KiB and stops; one that
 * reads 55 KB a second for 13 s, of which the kernel has room for three in its buffers. */
Test(unix_clients, a_local_reader_is_ended_if_it_is_stuck_and_not_if_it_is_steady, .init = choose,
     .fini = clean)
{
    enum { WHOLE = 16 << 20, BEGUN = 128 << 10 };
    static const char *const flags[] = {"--timeout", "4", NULL};
    struct server server = server_start_at(address, flags);
    int stuck = ask_for_much(&server), stopped = ask_for_much(&server);
    char *begun = malloc(BEGUN);
    cr_expect_eq(recv(stopped, begun, BEGUN, MSG_WAITALL), BEGUN);
    int steady = ask_for_much(&server);
    size_t got = read_steadily(steady, 16 << 10, 13);
    cr_expect(server_logs(&server, "status=200 code=reply_timeout", 2));
    cr_expect_gt(got, WHOLE, "the steady reader got %zu bytes", got);
    cr_expect_lt(read_steadily(stuck, 0, 0), WHOLE, "the answer was not whole");
    cr_expect_lt(read_steadily(stopped, 0, 0), WHOLE, "the answer was not whole");
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    close(stuck);
    close(stopped);
    close(steady);
    free(begun);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- Bodies that are refused while they are sent */

/* Sends some MiB; false if for 2 s nothing more is taken. */
static bool send_much(int fd)
{
    enum { MUCH = 4 << 20 };
    static char bytes[1 << 16];
    for (size_t sent = 0; sent < MUCH;) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        ssize_t n = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno != EAGAIN || poll(&p, 1, 2000) <= 0))
            return false;
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* The client never fails to send before it has read why: many would not look for an answer then. */
Test(unix_clients, a_local_client_that_is_refused_can_send_and_read, .init = choose, .fini = clean)
{
    static const char *const flags[] = {"--request-timeout", "1", NULL};
    static const char head[] = POST "Content-Length: 4000000\r\n\r\n";
    char answer[2000] = "";
    struct server server = server_start_at(address, flags);
    int fd = dial(&server);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    cr_assert_eq(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), (ssize_t)sizeof head - 1);
    for (int i = 0; i < 5000 && poll(&p, 1, 1) == 0; i++)
        cr_expect_eq(send(fd, "          ", 10, MSG_NOSIGNAL), 10, "%s", strerror(errno));
    cr_expect(send_much(fd), "the server drops what comes after its answer: %s", strerror(errno));
    cr_expect_gt(recv(fd, answer, sizeof answer - 1, 0), 0);
    cr_expect_eq(strncmp(answer, "HTTP/1.1 408", 12), 0, "%s", answer);
    close(fd);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A body that is refused by its header, larger than all buffers: libcurl sends all of it, then reads. */
Test(unix_clients, a_local_body_that_is_refused_early_is_dropped, .init = choose, .fini = clean)
{
    enum { SIZE = 8 << 20 };
    static const char *const headers[] = {"Expect:", "Content-Type: text/none", NULL};
    char *body = calloc(1, SIZE);
    struct server server = server_start_at(address, NULL);
    struct fetched f = fetch(&server, "POST", "/kl_div", headers, body, SIZE);
    cr_expect_eq(f.status, 415, "%ld", f.status);
    fetched_free(&f);
    free(body);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- Descriptors */

/* Sends bytes with a descriptor. */
static void send_with_descriptor(int fd, const char *bytes, size_t size, int passed)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = ""};
    struct iovec all = {(void *)bytes, size};
    struct msghdr message = {.msg_iov = &all,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof passed);
    memcpy(CMSG_DATA(first), &passed, sizeof passed);
    cr_assert_eq(sendmsg(fd, &message, MSG_NOSIGNAL), (ssize_t)size);
}

/* Reads until n responses of 200 have come; false after 5 s. */
static bool answers_come(int fd, size_t n)
{
    char answers[4000] = "";
    size_t got = 0, found = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (found < n && poll(&p, 1, 5000) > 0) {
        ssize_t more = recv(fd, answers + got, sizeof answers - 1 - got, 0);
        if (more <= 0)
            return false;
        got += (size_t)more;
        found = 0;
        for (const char *at = answers; (at = strstr(at, "HTTP/1.1 200")); at++)
            found++;
    }
    return found == n;
}

/* The kernel ends a read behind bytes that came with a descriptor. Both halves are there when the server reads first: it is
 * stopped meanwhile. The rest of a header, of a body, and a second request. */
Test(unix_clients, a_local_client_may_pass_a_descriptor_amid_a_request, .init = choose,
     .fini = clean)
{
    static const char get[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    static const char post[] = POST "Content-Type: application/json\r\nContent-Length: 31\r\n\r\n"
                                    "{\"input\": [0.5], \"target\": [1]}";
    static const struct {
        const char *bytes;
        size_t cut, answers;
    } cases[] = {
        {get, 10, 1}, {post, 30, 1}, {post, sizeof post - 10, 1}, {get, sizeof get - 1, 2}};
    struct server server = server_start_at(address, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *bytes = cases[i].bytes, *rest = bytes + cases[i].cut;
        int fd = dial(&server);
        cr_assert_eq(send(fd, get, sizeof get - 1, MSG_NOSIGNAL), (ssize_t)sizeof get - 1);
        cr_expect(answers_come(fd, 1),
                  "a first request, after which epoll tells of new bytes once");
        cr_assert_eq(kill(server.pid, SIGSTOP), 0);
        send_with_descriptor(fd, bytes, cases[i].cut, fd);
        if (cases[i].answers > 1)
            rest = bytes;
        cr_assert_eq(send(fd, rest, strlen(rest), MSG_NOSIGNAL), (ssize_t)strlen(rest));
        cr_assert_eq(kill(server.pid, SIGCONT), 0);
        cr_expect(answers_come(fd, cases[i].answers), "case %zu", i);
        close(fd);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- The end, under load */

/* crowd: clients that make a connection for each request, until there is none to be made. */
struct crowd {
    const struct server *server;
    atomic_long answered, lost;
};

static void *ask_again_and_again(void *argument)
{
    static const char request[] = POST "Connection: close\r\nContent-Length: 71\r\n\r\n" TWO_BY_TWO;
    struct crowd *crowd = argument;
    for (int fd; (fd = try_to_dial(crowd->server)) >= 0; close(fd)) {
        bool sent = send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0;
        bool good = sent && read_status(fd, 20) == 200;
        atomic_fetch_add(good ? &crowd->answered : &crowd->lost, 1);
    }
    return NULL;
}

Test(unix_clients, ends_under_load_without_losing_a_local_request, .init = choose, .fini = clean)
{
    enum { CLIENTS = 12, ROUNDS = 10 };
    static const char *const flags[] = {"--log-level", "warning", NULL};
    long answered = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[CLIENTS];
        struct server server = server_start_at(address, flags);
        struct crowd crowd = {.server = &server};
        for (int i = 0; i < CLIENTS; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, ask_again_and_again, &crowd), 0);
        wait_ms(100 + 13 * round);
        cr_expect_eq(server_stop(&server, false), 0);
        for (int i = 0; i < CLIENTS; i++)
            pthread_join(threads[i], NULL);
        cr_expect_eq(crowd.lost, 0, "%ld of %ld", crowd.lost, crowd.lost + crowd.answered);
        answered += crowd.answered;
    }
    cr_expect_gt(answered, 0);
    printf("(%d ends, %ld requests)\n", ROUNDS, answered);
}

/* Clients that connected before the end, and ask after it began. */
Test(unix_clients, answers_local_clients_that_waited_in_the_backlog, .init = choose, .fini = clean)
{
    enum { WAITING = 100 };
    static const char request[] = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    int sockets[WAITING];
    struct server server = server_start_at(address, NULL);
    kill(server.pid, SIGSTOP);
    dial_many(&server, sockets, WAITING, request);
    kill(server.pid, SIGTERM);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < WAITING; i++)
        cr_expect_eq(read_status(sockets[i], 10), 200, "client %d", i);
    close_many(sockets, WAITING);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* The path goes even where requests are cut off. */
Test(unix_clients, removes_its_socket_when_time_is_up, .init = choose, .fini = clean)
{
    static const char *const flags[] = {"--drain-timeout", "0", NULL};
    struct server server = server_start_at(address, flags);
    int fd = dial(&server);
    cr_assert_gt(send(fd, POST, sizeof POST - 1, MSG_NOSIGNAL), 0);
    wait_ms(100);
    cr_expect_eq(server_stop(&server, true), 3);
    cr_expect_neq(access(path, F_OK), 0);
    close(fd);
}

/* ---- Clients that are killed */

static size_t count_descriptors(const struct server *server)
{
    char files[60];
    size_t n = 0;
    snprintf(files, sizeof files, "/proc/%d/fd", (int)server->pid);
    DIR *entries = opendir(files);
    while (entries && readdir(entries))
        n++;
    if (entries)
        closedir(entries);
    return n;
}

/* Leaves in the middle of a header, a body, a job, and an answer. */
static void leave_in_the_middle(const struct server *server, unsigned turn)
{
    static const char *const begun[] = {"",
                                        "GET /li",
                                        POST "Content-Length: 1000000\r\n\r\n{\"input\": [1,",
                                        POST "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"inp",
                                        POST "Content-Length: 71\r\n\r\n" TWO_BY_TWO,
                                        "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\nGET "
                                        "/openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"};
    if (turn % 50 == 49) {
        struct api_buffer heavy = heavy_call(as_long(6000), 20000);
        close(send_heavy(server, &heavy));
        api_buffer_free(&heavy);
        return;
    }
    int fd = turn % 20 == 19 ? ask_for_much(server) : dial(server);
    const char *bytes = begun[turn % COUNT(begun)];
    if (turn % 20 != 19 && *bytes)
        cr_expect_gt(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), 0);
    if (turn % 3 == 0)
        wait_ms(1);
    close(fd);
}

Test(unix_clients, local_clients_that_are_killed_leave_nothing, .init = choose, .fini = clean)
{
    enum { TURNS = 1500 };
    struct server server = server_start_at(address, NULL);
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    size_t before = count_descriptors(&server);
    for (unsigned turn = 0; turn < TURNS; turn++)
        leave_in_the_middle(&server, turn);
    double start = now_seconds();
    while ((metric(&server, "\nkldiv_http_requests_in_flight ") > 1 ||
            count_descriptors(&server) > before) &&
           now_seconds() < start + 20)
        wait_ms(50);
    cr_expect_leq(count_descriptors(&server), before);
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    cr_expect_eq(server_stop(&server, false), 0);
}
