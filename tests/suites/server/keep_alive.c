/* Connections that stay: what follows a request is read, however the bytes were cut; they cost little while they wait. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends a call of exactly `size` bytes. */
static void send_call(int fd, size_t size)
{
    static char bytes[64 << 10];
    enum { HEAD = 58 }; /* bytes of the header */
    int head = snprintf(bytes, sizeof bytes, POST "Content-Length: %06zu\r\n\r\n", size - HEAD);
    cr_assert_eq(head, HEAD, "%d", head);
    memset(bytes + HEAD, ' ', size - HEAD);
    memcpy(bytes + HEAD, TWO_BY_TWO, strlen(TWO_BY_TWO));
    cr_assert_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Number of responses with a status that arrive until there are `wanted`, for 10 s at most. */
static int count_responses(int fd, const char *status_line, int wanted)
{
    char answer[8000] = "";
    size_t got = 0;
    double end = now_seconds() + 10;
    for (int n = 0;; n = 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        for (const char *at = answer; (at = strstr(at, status_line)); at++)
            n++;
        if (n >= wanted || now_seconds() > end || got == sizeof answer - 1)
            return n;
        ssize_t more =
            poll(&p, 1, 100) > 0 ? recv(fd, answer + got, sizeof answer - 1 - got, 0) : 1;
        if (more <= 0)
            return n;
        if (p.revents)
            got += (size_t)more;
    }
}

/* Epoll tells of bytes once: where the last byte of a request ends a read that was full, the next request is there
 * already. Both are sent while the server is stopped, so that they are there at its first read. */
Test(keep_alive, a_request_that_ends_a_full_read_does_not_hide_the_next)
{
    static const size_t units[] = {4 << 10, 8 << 10, 12 << 10, 16 << 10, 24 << 10, 32 << 10};
    static const char get[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    enum { AROUND = 3, CASES = (int)(COUNT(units) * AROUND) };
    struct server server = server_start(NULL);
    int sockets[CASES];
    for (int i = 0; i < CASES; i++) { /* accepted, and read from */
        sockets[i] = dial(&server);
        cr_assert_gt(send(sockets[i], get, sizeof get - 1, MSG_NOSIGNAL), 0);
        cr_assert_eq(read_status(sockets[i], 10), 200);
    }
    cr_assert_eq(kill(server.pid, SIGSTOP), 0);
    for (int i = 0; i < CASES; i++) {
        send_call(sockets[i], units[i / AROUND] + (size_t)(i % AROUND) - 1);
        cr_assert_gt(send(sockets[i], get, sizeof get - 1, MSG_NOSIGNAL), 0);
    }
    cr_assert_eq(kill(server.pid, SIGCONT), 0);
    for (int i = 0; i < CASES; i++) {
        int n = count_responses(sockets[i], "HTTP/1.1 200 OK\r\n", 2);
        cr_expect_eq(n, 2, "%zu bytes: %d responses", units[i / AROUND] + (size_t)(i % AROUND) - 1,
                     n);
        close(sockets[i]);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* libmicrohttpd 0.9.75 takes 128 events at a time, and waits for more before it acts where it got as many. */
Test(keep_alive, as_many_requests_at_once_as_events_of_a_turn_are_answered)
{
    enum { MOST = 384, ROUNDS = 60 };
    static const char *const flags[] = {"--http-threads", "1", NULL};
    static const char get[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    int sockets[MOST], answered = MOST;
    allow_files(1000);
    struct server server = server_start(flags);
    for (int i = 0; i < MOST; i++) { /* accepted, and read from */
        dial_many(&server, &sockets[i], 1, get);
        cr_assert_eq(read_status(sockets[i], 10), 200);
    }
    for (int round = 0; round < ROUNDS && answered == MOST; round++) {
        int n = MOST - 64 * (round % 5);
        cr_assert_eq(kill(server.pid, SIGSTOP), 0);
        send_many(sockets, (size_t)n, get, sizeof get - 1);
        cr_assert_eq(kill(server.pid, SIGCONT), 0);
        answered = MOST - n;
        for (int i = 0; i < n && answered == MOST - n + i; i++)
            answered += read_status(sockets[i], 5) == 200;
        cr_expect_eq(answered, MOST, "round %d: not answered: %d of %d", round, MOST - answered, n);
    }
    close_many(sockets, MOST);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A connection of HTTP/1.0 stays open if the client asks for it, and the response says so. */
Test(keep_alive, of_http_1_0_is_for_those_who_ask)
{
    static const struct {
        const char *request;
        bool stays;
    } cases[] = {
        {"GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
        {"GET /livez HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: a\r\n\r\n", true},
        {"POST /kl_div HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-Length: 71\r\n\r\n" TWO_BY_TWO,
         true},
        {"GET /livez HTTP/1.0\r\n\r\n", false},
        {"GET /livez HTTP/1.0\r\nConnection: close\r\n\r\n", false},
    };
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd = dial(&server);
        char answer[3000] = "";
        const char *request = cases[i].request;
        cr_assert_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
        cr_expect_gt(recv(fd, answer, sizeof answer - 1, 0), 0);
        cr_expect(strstr(answer, " 200 OK\r\n"), "case %zu: %s", i, answer);
        cr_expect_eq(!!strcasestr(answer, "\r\nConnection: keep-alive\r\n"), cases[i].stays,
                     "case %zu: %s", i, answer);
        for (int again = 0; cases[i].stays && again < 3; again++) {
            cr_assert_gt(send(fd, request, strlen(request), MSG_NOSIGNAL), 0);
            cr_expect_eq(read_status(fd, 10), 200, "case %zu", i);
        }
        if (!cases[i].stays)
            cr_expect_eq(recv(fd, answer, sizeof answer, 0), 0, "case %zu stays", i);
        close(fd);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Empty lines behind a body (RFC 9112, 2.2), which come with it or later, begin no request: the connection is as idle as
 * without them, and ends so. */
Test(keep_alive, empty_lines_behind_a_body_begin_no_request)
{
    static const char *const flags[] = {"--timeout", "1", NULL};
    static const char request[] = POST "Content-Length: 2\r\n\r\n{}\r\n\r\n", late[] = "\r\n";
    char byte;
    struct server server = server_start(flags);
    for (size_t rest = 0; rest <= 4; rest += 2) {
        int fd = dial(&server);
        cr_assert_gt(send(fd, request, sizeof request - 1 - rest, MSG_NOSIGNAL), 0);
        cr_expect_eq(read_status(fd, 10), 422);
        if (rest > 0)
            cr_expect_eq(send(fd, late, 2, MSG_NOSIGNAL), 2);
        cr_expect_eq(recv(fd, &byte, 1, 0), 0);
        close(fd);
    }
    cr_expect_eq(metric(&server, "\nkldiv_connections_ended_total{code=\"idle\"} "), 3);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- Cost */

/* Processor time of all threads of the server, in ms. */
static double cpu_ms(const struct server *server)
{
    char path[300];
    double sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", server->pid);
    DIR *tasks = opendir(path);
    cr_assert(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));) {
        double ns = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", server->pid, entry->d_name);
        FILE *file = *entry->d_name != '.' ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%lf", &ns) == 1)
            sum += ns / 1e6;
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return sum;
}

/* A client that has closed its sending side and reads nothing of a large response. */
static int dial_slow_reader(const struct server *server)
{
    struct api_buffer body = outer_call(3000, 3000, "none");
    int fd = send_heavy(server, &body);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    shutdown(fd, SHUT_WR);
    cr_assert_eq(poll(&p, 1, 60000), 1);
    api_buffer_free(&body);
    return fd;
}

/* By processor time, to which others on the machine add nothing, in the window with the least: what the server has to
 * finish first is not counted. */
Test(keep_alive, idle_connections_cost_nothing_beside_a_slow_reader)
{
    enum { IDLE = 4000, WINDOWS = 6, MS = 500 };
    static const char *const flags[] = {"--max-connections", "6000", NULL};
    static int sockets[IDLE];
    size_t files = allow_files(IDLE + 600);
    cr_assert_gt(files, 700, "too few descriptors");
    size_t idle = files < IDLE + 600 ? files - 600 : IDLE;
    struct server server = server_start(flags);
    dial_many(&server, sockets, idle, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
    for (size_t i = 0; i < idle; i++) {
        int status = read_status(sockets[i], 30);
        cr_assert_eq(status, 200, "%zu: %d", i, status);
    }
    int fd = dial_slow_reader(&server);
    double percent = 100;
    for (int i = 0; i < WINDOWS; i++) {
        double before = cpu_ms(&server), start = now_seconds();
        wait_ms(MS);
        double now = (cpu_ms(&server) - before) / ((now_seconds() - start) * 10);
        percent = now < percent ? now : percent;
    }
    printf("(%zu idle connections and a slow reader: %.2f %% of a processor)\n", idle, percent);
    cr_expect_lt(percent, 1, "%.2f %%", percent);
    close(fd);
    close_many(sockets, idle);
    cr_expect_eq(server_stop(&server, false), 0);
}
