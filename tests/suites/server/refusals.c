/* Requests that are refused, as their clients meet it: the answer can be read, and costs nothing. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

Test(refusals, bodies_over_the_limit_are_refused_before_they_are_read)
{
    static const char *const flags[] = {"--max-body", "1K", NULL};
    static const char *const chunked[] = {"Transfer-Encoding: chunked", "Expect:", NULL};
    struct server server = server_start(flags);
    char answer[4000], body[5000];
    memset(body, ' ', sizeof body);

    static const char header[] = "POST /kl_div HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n"
                                 "Expect: 100-continue\r\n\r\n";
    talk(&server, header, sizeof header - 1, answer, sizeof answer, 2);
    cr_expect(strncmp(answer, "HTTP/1.1 413 ", 13) == 0, "%s", answer);
    cr_expect(!strstr(answer, "100 Continue"));

    static const char alone[] = "POST /kl_div HTTP/1.1\r\nHost: x\r\nContent-Length: 1025\r\n\r\n";
    talk(&server, alone, sizeof alone - 1, answer, sizeof answer, 5);
    cr_expect(strncmp(answer, "HTTP/1.1 413 ", 13) == 0, "no byte of the body was sent: %s",
              answer);

    static const char *const without_expect[] = {"Expect:", NULL};
    struct fetched f = fetch(&server, "POST", "/kl_div", without_expect, body, sizeof body);
    cr_expect_eq(f.status, 413);
    cr_expect_str_eq(text_of(f.json, "code"), "body_too_large");
    fetched_free(&f);
    f = fetch(&server, "POST", "/kl_div", chunked, body, sizeof body);
    cr_expect_eq(f.status, 413);
    fetched_free(&f);
    f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Clients that send the whole body before they read, as urllib does, receive the refusal. */
Test(refusals, refusals_of_large_bodies_can_be_read)
{
    static const char *const flags[] = {"--max-body", "150M", NULL};
    enum { BODY = 100 << 20, PIECE = 1 << 20 };
    static const struct {
        const char *head;
        size_t length;
        int status;
    } cases[] = {
        {"POST /nothing HTTP/1.1\r\nHost: a\r\n", BODY, 404},
        {"PUT /kl_div HTTP/1.1\r\nHost: a\r\n", BODY, 405},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n", BODY, 406},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\n", 151 << 20, 413},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Type: text/csv\r\n", BODY, 415},
        {"POST /v2/models/kl_div/infer HTTP/1.1\r\nHost: a\r\nContent-Encoding: br\r\n", BODY, 415},
    };
    struct server server = server_start(flags);
    char *piece = calloc(1, PIECE);
    for (size_t i = 0; i < 5 * COUNT(cases); i++) {
        char head[300], answer[4000] = "";
        int fd = dial(&server);
        int n = snprintf(head, sizeof head, "%sContent-Length: %zu\r\n\r\n",
                         cases[i % COUNT(cases)].head, cases[i % COUNT(cases)].length);
        cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
        size_t sent = 0, size = cases[i % COUNT(cases)].length;
        while (sent < size && sent < BODY) {
            ssize_t more = send(fd, piece, PIECE, MSG_NOSIGNAL);
            if (more < 0)
                break;
            sent += (size_t)more;
        }
        cr_expect_geq(sent, (size_t)BODY, "%s: reset after %zu", head, sent);
        cr_expect_gt(recv(fd, answer, sizeof answer - 1, 0), 0, "%s", head);
        cr_expect_eq(atoi(answer + 9), cases[i % COUNT(cases)].status, "%s: %.40s", head, answer);
        close(fd);
    }
    free(piece);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(refusals, framing_that_could_smuggle_is_refused)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", 200},
        {"GET /livez HTTP/1.0\r\n\r\n", 200},
        {"GET http://a/livez HTTP/1.1\r\nHost: a\r\n\r\n", 200},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n"
         "Content-Length: 2\r\n\r\n{}",
         400},
        {"G(T /livez HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /livez HTTP/1.1\r\n\r\n", 400},
        {"GET /livez HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"GET /livez HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
        {"GET /livez HTTP/1.1\r\nHost: a,b\r\n\r\n", 400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
         400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}", 400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\n{}", 400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: "
         "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
         400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
         400},
        {"POST /kl_div HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 400},
        {"GET /livez HTTP/1.1\r\nHost: a\r\nX(y): z\r\n\r\n", 400},
        {"GET /livez HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400},
        {"GET /../livez HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /livez%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /live\\z HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET livez HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 204},
        {"GET https://a/livez HTTP/1.1\r\nHost: a\r\n\r\n", 200},
        {"GET /a..b HTTP/1.1\r\nHost: a\r\n\r\n", 404},
        {"GET /a/.. HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: x\r\n\r\n{}", 417},
    };
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char answer[4000], status[20];
        snprintf(status, sizeof status, "HTTP/1.%d %d ", strstr(cases[i].request, "/1.0\r") ? 0 : 1,
                 cases[i].status);
        talk(&server, cases[i].request, strlen(cases[i].request), answer, sizeof answer, 0.3);
        bool right = strncmp(answer + 9, status + 9, 3) == 0;
        cr_expect(right, "%s\n%s", cases[i].request, answer);
        cr_expect(!strstr(answer, "problem+json") || !strstr(answer + 1, "HTTP/1.1 4"),
                  "answered twice: %s", answer);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A body in chunks is refused once it is larger than its endpoint takes, not once it has come, and holds no more memory. */
Test(refusals, small_bodies_in_chunks_are_refused_as_they_come)
{
    enum { CHUNK = 8 << 10 };
    static const struct {
        const char *line;
        size_t max;
    } cases[] = {{"POST /monitors/g/m/notes", 16 << 10},
                 {"POST /monitors/g/m/mute", 16 << 10},
                 {"PATCH /monitors/g/m", 64 << 10},
                 {"POST /v2/logging", 16 << 10}};
    struct server server = server_start(NULL);
    char *chunk = calloc(1, CHUNK + 20);
    size_t size = (size_t)sprintf(chunk, "%x\r\n", CHUNK) + CHUNK;
    memcpy(chunk + size, "\r\n", 2);
    static const char config[] = "{\"bins\":{\"edges\":[0,1,2]},\"reference\":{\"counts\":[5,5]}}";
    struct fetched f = fetch(&server, "PUT", "/monitors/g/m", NULL, config, sizeof config - 1);
    cr_assert_eq(f.status, 201);
    fetched_free(&f);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char head[200], answer[4000] = "";
        int fd = dial(&server);
        int n =
            snprintf(head, sizeof head,
                     "%s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", cases[i].line);
        cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
        for (size_t sent = 0; sent <= cases[i].max; sent += CHUNK)
            cr_assert_eq(send(fd, chunk, size + 2, MSG_NOSIGNAL), (ssize_t)size + 2);
        cr_expect_eq(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5000), 1,
                     "%s waits for the end of its body", cases[i].line);
        cr_expect_gt(recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT), 0);
        cr_expect_eq(atoi(answer + 9), 413, "%s: %.40s", cases[i].line, answer);
        close(fd);
    }
    free(chunk);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Chunked bodies outgrow what is taken while they arrive. The client looks at the answer when it has
 * sent all. */
Test(refusals, refusals_of_chunked_bodies_can_be_read)
{
    static const char *const flags[] = {"--max-body", "1M", NULL};
    enum { CHUNKS = 100, CHUNK = 1 << 20 };
    static const struct {
        const char *path;
        int status;
    } cases[] = {{"/kl_div", 413}, {"/nothing", 404}};
    struct server server = server_start(flags);
    char *chunk = calloc(1, CHUNK + 20);
    size_t size = (size_t)sprintf(chunk, "%x\r\n", CHUNK) + CHUNK;
    memcpy(chunk + size, "\r\n", 2);
    for (size_t i = 0; i < 3 * COUNT(cases); i++) {
        char head[200], answer[4000] = "";
        int fd = dial(&server), sent = 0;
        int n = snprintf(head, sizeof head,
                         "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                         cases[i % COUNT(cases)].path);
        cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
        while (sent < CHUNKS && send(fd, chunk, size + 2, MSG_NOSIGNAL) == (ssize_t)size + 2)
            sent++;
        cr_expect_eq(sent, CHUNKS, "reset after %d MiB", sent);
        cr_expect_gt(recv(fd, answer, sizeof answer - 1, 0), 0);
        cr_expect_eq(atoi(answer + 9), cases[i % COUNT(cases)].status, "%.40s", answer);
        close(fd);
    }
    free(chunk);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* libmicrohttpd's pool has no room for a record of each of so many parameters. */
Test(refusals, queries_of_many_parameters_are_answered_and_leave_nothing)
{
    enum { PARAMETERS = 2000, ROUNDS = 200 };
    static char request[PARAMETERS * 6 + 1000];
    static const char *const flags[] = {"--log-level", "warning", NULL};
    struct server server = server_start(flags);
    char answer[8000];
    for (int i = 0; i < ROUNDS; i++) {
        int n = sprintf(request, i % 2 ? "GET /livez?" : "POST /kl_div?reduction=sum");
        for (int j = 0; j < PARAMETERS; j++)
            n += sprintf(request + n, i % 2 ? "&" : "&dim=0");
        n += sprintf(request + n,
                     i % 2 ? " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                           : " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: "
                             "28\r\n\r\n{\"input\":[-1],\"target\":[1]}\n");
        talk(&server, request, (size_t)n, answer, sizeof answer, 5);
        cr_assert_eq(atoi(answer + 9), 200, "round %d: %.200s", i, answer);
    }
    struct fetched f = fetch(&server, "GET", "/metrics", NULL, NULL, 0);
    cr_expect(strstr(f.body.data, "kldiv_http_requests_in_flight 1\n"));
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Heads of requests that are refused before their bodies. */
static const struct {
    const char *head;
    int status;
} early[] = {
    {"POST /nothing HTTP/1.1\r\nHost: a\r\n", 404},
    {"PUT /kl_div HTTP/1.1\r\nHost: a\r\n", 405},
    {"POST /kl_div HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n", 406},
    {"PUT /monitors/a/b HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n", 403},
    {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Type: text/csv\r\n", 415},
    {"POST /kl_div HTTP/1.1\r\nHost: a\r\nIdempotency-Key: b\r\nIdempotency-Key: c\r\n", 400},
};
static const char *const lengths[] = {"Content-Length: 7\r\n\r\n", "Content-Length: 900000\r\n\r\n",
                                      "Transfer-Encoding: chunked\r\n\r\n"};

/* Sends a head, and gives its descriptor. */
static int send_head(const struct server *server, size_t i, size_t length)
{
    char head[300];
    int fd = dial(server), n = snprintf(head, sizeof head, "%s%s", early[i].head, lengths[length]);
    cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
    return fd;
}

Test(refusals, refusals_do_not_wait_for_the_body)
{
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(early); i++)
        for (size_t j = 0; j < COUNT(lengths); j++) {
            double start = now_seconds();
            int fd = send_head(&server, i, j), status = read_status(fd, 5);
            cr_expect_eq(status, early[i].status, "%s%s%d", early[i].head, lengths[j], status);
            cr_expect_lt(now_seconds() - start, 1, "%s%s", early[i].head, lengths[j]);
            close(fd);
        }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* All send their bodies a moment after their heads, and read when they have sent all: more clients than the
 * server waits for at once. */
Test(refusals, refusals_of_small_bodies_can_be_read)
{
    enum { CLIENTS = 150, BODY = 900000 };
    allow_files(4096);
    struct server server = server_start(NULL);
    char *body = calloc(1, BODY);
    for (size_t length = 0; length < 2; length++) {
        size_t clients = length ? 20 : CLIENTS, size = length ? BODY : 7;
        int sockets[CLIENTS];
        for (size_t i = 0; i < clients; i++) {
            sockets[i] = send_head(&server, i % COUNT(early), length);
            if (i % 10 == 9)
                wait_ms(10);
            for (size_t j = i - i % 10; i % 10 == 9 && j <= i; j++)
                cr_expect_eq(send(sockets[j], body, size, MSG_NOSIGNAL), (ssize_t)size);
        }
        for (size_t i = 0; i < clients; i++)
            cr_expect_eq(read_status(sockets[i], 5), early[i % COUNT(early)].status, "%zu", i);
        close_many(sockets, clients);
    }
    free(body);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* All are refused before any sends its body. */
Test(refusals, many_refusals_at_once_can_be_read)
{
    enum { CLIENTS = 200, MIN_LINGERING = 64, BODY = 900000 };
    allow_files(4096);
    struct server server = server_start(NULL);
    int sockets[CLIENTS];
    struct rlimit descriptors;
    char *body = calloc(1, BODY);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    size_t clients = descriptors.rlim_max < 2048 ? MIN_LINGERING : CLIENTS;
    for (size_t i = 0; i < clients; i++)
        sockets[i] = send_head(&server, 0, 1);
    wait_ms(200);
    for (size_t i = 0; i < clients; i++)
        cr_expect_eq(send(sockets[i], body, BODY, MSG_NOSIGNAL), BODY, "%zu", i);
    for (size_t i = 0; i < clients; i++)
        cr_expect_eq(read_status(sockets[i], 5), early[0].status, "%zu", i);
    close_many(sockets, clients);
    free(body);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(refusals, refusals_keep_the_connection_where_the_body_came_along)
{
    static const char again[] = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    static const char *const bodies[] = {"Content-Length: 7\r\n\r\n1234567",
                                         "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"};
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(early); i++)
        for (size_t j = 0; j < COUNT(bodies); j++) {
            char requests[600], answers[6000];
            int n = snprintf(requests, sizeof requests, "%s%s%s", early[i].head, bodies[j], again);
            talk(&server, requests, (size_t)n, answers, sizeof answers, 2);
            cr_expect_eq(atoi(answers + 9), early[i].status, "%s\n%s", requests, answers);
            cr_expect(strstr(answers, "HTTP/1.1 200 OK"), "%s\n%s", requests, answers);
        }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* The server gives up a body while the client still sends, and the client reads when it has sent all. */
Test(refusals, a_client_whose_body_was_given_up_reads_why)
{
    static const char *const flags[] = {"--request-timeout", "1", NULL};
    static const char head[] = POST "Content-Length: 200000000\r\n\r\n";
    enum { PIECE = 1 << 20, FIRST = 10, PIECES = 190 };
    struct server server = server_start(flags);
    char *piece = calloc(1, PIECE);
    int fd = dial(&server), sent = 0;
    cr_assert_eq(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), (ssize_t)sizeof head - 1);
    double start = now_seconds();
    while (sent < PIECES && send(fd, piece, PIECE, MSG_NOSIGNAL) == PIECE)
        if (++sent == FIRST)
            wait_ms(1500);
    cr_expect_eq(sent, PIECES, "reset after %d MiB", sent);
    cr_expect_eq(read_status(fd, 5), 408);
    cr_expect_lt(now_seconds() - start, 10);
    close(fd);
    free(piece);
    cr_expect_eq(server_stop(&server, false), 0);
}
