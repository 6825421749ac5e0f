/* Work that nobody waits for, or that is too much. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The answer of a job is not lost because what follows it is refused. */
Test(abandoned_work, a_job_is_answered_before_what_follows_is_refused)
{
    struct server server = server_start(NULL);
    struct api_buffer heavy = heavy_call(as_long(12000), 20000);
    for (int i = 0; i < 4; i++) {
        char answer[4000] = "", *second;
        size_t got = 0;
        int idle = dial(&server);
        static const char get[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
        cr_assert_gt(send(idle, get, sizeof get - 1, MSG_NOSIGNAL), 0);
        int fd = send_heavy(&server, &heavy);
        if (i & 1)
            wait_ms(100);
        cr_assert_gt(send(fd, "GET / HTTP/1.1\nHost: a\n\n", 25, MSG_NOSIGNAL), 0);
        for (ssize_t n = 1; n > 0 && got<sizeof answer - 1; got += n> 0 ? (size_t)n : 0)
            n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
        answer[got] = '\0';
        cr_expect_eq(atoi(answer + 9), 200, "%d: %s", i, answer);
        second = strstr(answer + 1, "HTTP/1.1 ");
        cr_expect(second && atoi(second + 9) == 400, "%d: %s", i, answer);
        close(fd);
        close(idle);
    }
    api_buffer_free(&heavy);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(abandoned_work, a_client_that_closes_its_sending_side_gets_its_answer)
{
    struct server server = server_start(NULL);
    struct api_buffer heavy = heavy_call(as_long(2000), 20000);
    static const char small[] = POST "Content-Length: 29\r\n\r\n{\"input\": [-1],\"target\": [1]}";
    int fds[] = {send_heavy(&server, &heavy), dial(&server)};
    cr_assert_eq(send(fds[1], small, sizeof small - 1, 0), (ssize_t)sizeof small - 1);
    for (size_t i = 0; i < COUNT(fds); i++) {
        shutdown(fds[i], SHUT_WR);
        int status = read_status(fds[i], 60);
        cr_expect_eq(status, 200, "case %zu: %d", i, status);
        close(fds[i]);
    }
    api_buffer_free(&heavy);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(abandoned_work, work_stops_when_its_client_leaves)
{
    enum { CLIENTS = 6 };
    static const char *const flags[] = {"--max-body", "32G", NULL};
    struct server server = server_start(flags);
    struct api_buffer heavy = heavy_call(60000, 60000);
    int sockets[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        sockets[i] = send_heavy(&server, &heavy);
    wait_ms(300);
    close_many(sockets, CLIENTS);
    double start = now_seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && now_seconds() < start + 30)
        wait_ms(20);
    cr_expect_lt(now_seconds() - start, 5, "%g s", now_seconds() - start);
    api_buffer_free(&heavy);
    cr_expect_eq(server_stop(&server, true), 0); /* --max-body exceeds --max-memory */
}

Test(abandoned_work, queues_of_work_have_an_end)
{
    enum { CLIENTS = 24 };
    static const char *const flags[] = {"--max-body", "32G", NULL};
    struct server server = server_start(flags);
    struct api_buffer heavy = heavy_call(60000, 60000);
    int sockets[CLIENTS], refused = 0;
    for (int i = 0; i < CLIENTS; i++)
        sockets[i] = send_heavy(&server, &heavy);
    double start = now_seconds();
    for (int i = 0; refused == 0 && now_seconds() < start + 30; i = (i + 1) % CLIENTS) {
        struct pollfd p = {.fd = sockets[i], .events = POLLIN};
        if (poll(&p, 1, 10) > 0)
            refused += read_status(sockets[i], 1) == 503;
    }
    cr_expect_gt(refused, 0);
    start = now_seconds();
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    cr_expect_lt(now_seconds() - start, 5);
    close_many(sockets, CLIENTS);
    api_buffer_free(&heavy);
    cr_expect_eq(server_stop(&server, true), 0); /* --max-body exceeds --max-memory */
}

/* 2 KB inflate to 2 MiB. */
Test(abandoned_work, bodies_that_inflate_without_measure_are_refused)
{
    static const char *const headers[] = {"Content-Encoding: gzip", NULL};
    struct server server = server_start(NULL);
    struct api_buffer body = {0};
    api_append_text(&body, "{\"input\": [0");
    while (body.size < 2 << 20)
        api_append_text(&body, ",0,0,0,0,0,0,0,0");
    api_append_text(&body, "], \"target\": [0]}");
    gzip(&body);
    struct fetched f = fetch(&server, "POST", "/kl_div", headers, body.data, body.size);
    cr_expect_eq(f.status, 413, "%ld", f.status);
    cr_expect(strstr(text_of(f.json, "detail"), "256 times"), "%s", text_of(f.json, "detail"));
    fetched_free(&f);
    api_buffer_free(&body);
    cr_expect_eq(server_stop(&server, false), 0);
}
