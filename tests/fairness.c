/* Clients that are slow, lie, or leave: what they cost others. */
#include "server/deadlines.h"
#include "tests/process.h"
#include "tests/support.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define POST "POST /kl_div HTTP/1.1\r\nHost: a\r\n"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void dial_many(const struct server *server, int *sockets, size_t n, const char *bytes)
{
    for (size_t i = 0; i < n; i++) {
        sockets[i] = dial(server);
        cr_assert_geq(send(sockets[i], bytes, strlen(bytes), MSG_NOSIGNAL), 0);
    }
}

static void send_many(const int *sockets, size_t n, const void *bytes, size_t size)
{
    for (size_t i = 0; i < n; i++)
        if (send(sockets[i], bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            continue; /* the server has closed it */
}

static void close_many(const int *sockets, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close(sockets[i]);
}

static long status_of(const struct server *server, const char *method, const char *target,
                      const char *body)
{
    struct fetched f = fetch(server, method, target, NULL, body, body ? strlen(body) : 0);
    long status = f.status;
    fetched_free(&f);
    return status;
}

/* Value of a line of /metrics. */
static double metric(const struct server *server, const char *name)
{
    struct fetched f = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    const char *line = strstr(f.body.data, name);
    double value = line ? atof(line + strlen(name)) : -1;
    fetched_free(&f);
    return value;
}

/* Reads what the server sends until it closes, for at most `limit` seconds; gives the status. */
static int read_status(int fd, double limit)
{
    char answer[4000] = "";
    size_t got = 0;
    double end = seconds() + limit;
    while (got < sizeof answer - 1 && seconds() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)((end - seconds()) * 1000)) <= 0)
            break;
        ssize_t n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
        if (strstr(answer, "HTTP/1.1 200") && strstr(answer, "\"loss\""))
            break;
    }
    const char *last = strstr(answer, "100 Continue\r\n\r\n");
    return got > 9 ? atoi((last ? strstr(last, "\r\n\r\n") + 4 : answer) + 9) : 0;
}

/* A call that takes a second or more of a processor: (n, 1) against (1, m) logits. */
static struct api_buffer heavy_call(size_t n, size_t m)
{
    struct api_buffer body = {0};
    char header[400];
    int size =
        snprintf(header, sizeof header,
                 "{\"__metadata__\":{\"broadcast\":\"true\",\"input_space\":\"logit\","
                 "\"target_space\":\"logit\",\"reduction\":\"sum\"},"
                 "\"input\":{\"dtype\":\"F32\",\"shape\":[%zu,1],\"data_offsets\":[0,%zu]},"
                 "\"target\":{\"dtype\":\"F32\",\"shape\":[1,%zu],\"data_offsets\":[%zu,%zu]}}",
                 n, 4 * n, m, 4 * n, 4 * (n + m));
    api_append(&body, &(uint64_t){(uint64_t)size}, 8);
    api_append(&body, header, (size_t)size);
    for (size_t i = 0; i < n + m; i++)
        api_append(&body, &(float){0.5f}, sizeof(float));
    return body;
}

static int send_heavy(const struct server *server, const struct api_buffer *body)
{
    char head[200];
    int fd = dial(server);
    int n = snprintf(head, sizeof head,
                     POST "Content-Type: application/safetensors\r\nContent-Length: %zu\r\n\r\n",
                     body->size);
    cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
    cr_assert_eq(send(fd, body->data, body->size, MSG_NOSIGNAL), (ssize_t)body->size);
    return fd;
}

/* ---- Places */

/* libmicrohttpd loses the end of a connection that comes with bytes. */
Test(server, uploads_that_are_given_up_free_their_places)
{
    enum { CLIENTS = 80 };
    static const char *const flags[] = {"--max-connections", "100", NULL};
    struct server server = server_start(flags);
    int sockets[CLIENTS];
    char body[20000];
    memset(body, ' ', sizeof body);
    for (int round = 0; round < 5; round++) {
        dial_many(&server, sockets, CLIENTS, POST "Content-Length: 1000000\r\n\r\n");
        send_many(sockets, CLIENTS, body, sizeof body);
        close_many(sockets, CLIENTS);
    }
    double start = seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && seconds() < start + 20)
        wait_ms(20);
    cr_expect_lt(seconds() - start, 5);
    wait_ms(200);
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, bodies_that_were_refused_hold_no_place)
{
    enum { CLIENTS = 80 };
    static const char *const flags[] = {"--max-connections", "20", NULL};
    struct server server = server_start(flags);
    int sockets[CLIENTS];
    dial_many(&server, sockets, CLIENTS,
              "POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\n");
    for (int i = 0; i < 20; i++) {
        send_many(sockets, CLIENTS, "1234567890", 10);
        cr_expect_eq(status_of(&server, "GET", "/readyz", NULL), 200);
        cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
        wait_ms(50);
    }
    close_many(sockets, CLIENTS);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Slow clients of every kind hold all places: a new client gets that of the slowest. */
Test(server, the_slowest_client_makes_room)
{
    static const char *const begun[] = {"", "GET /li", "GET /livez HTTP/1.1\r\nHost: a\r\nX:",
                                        POST "Content-Length: 1000000\r\n\r\n{"};
    enum { CLIENTS = 40 };
    static const char *const flags[] = {"--max-connections", "10", NULL};
    for (size_t i = 0; i < COUNT(begun); i++) {
        struct server server = server_start(flags);
        int sockets[CLIENTS];
        dial_many(&server, sockets, CLIENTS, begun[i]);
        cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 503, "%s", begun[i]);
        wait_ms(1200);
        for (int j = 0; j < 30; j++)
            cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200, "%s", begun[i]);
        close_many(sockets, CLIENTS);
        cr_expect_eq(server_stop(&server, false), 0);
    }
}

/* Few descriptors: a client for whom none is left is told. */
Test(server, clients_without_a_descriptor_are_told)
{
    enum { CLIENTS = 90 };
    int sockets[CLIENTS], answered = 0;
    struct server server = server_start_with_files(NULL, 64);
    dial_many(&server, sockets, CLIENTS, "");
    for (int i = 60; i < CLIENTS; i++) {
        static const char request[] = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        send(sockets[i], request, sizeof request - 1, MSG_NOSIGNAL);
    }
    for (int i = 60; i < CLIENTS; i++) {
        int status = read_status(sockets[i], 5);
        answered += status == 200 || status == 503;
    }
    cr_expect_eq(answered, CLIENTS - 60, "%d of %d", answered, CLIENTS - 60);
    close_many(sockets, CLIENTS);
    wait_ms(300);
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* ---- Time */

Test(server, a_slow_body_is_told_so)
{
    struct server server = server_start(NULL);
    int fd = dial(&server);
    static const char head[] = POST "Content-Length: 4000000\r\n\r\n";
    double start = seconds();
    cr_assert_eq(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), (ssize_t)sizeof head - 1);
    while (seconds() < start + 20) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        send(fd, "          ", 10, MSG_NOSIGNAL);
        if (poll(&p, 1, 100) > 0)
            break;
    }
    cr_expect_eq(read_status(fd, 2), 408);
    cr_expect(seconds() - start > 9 && seconds() - start < 15, "%g s", seconds() - start);
    close(fd);
    cr_expect(server_logs(&server, "status=408 code=request_timeout", 1));
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, connections_stay_for_another_request_and_say_how_long)
{
    static const char *const flags[] = {"--timeout", "2", NULL};
    static const char request[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    struct server server = server_start(NULL);
    char value[60], answer[2000];
    struct fetched f = fetch(&server, "GET", "/livez", NULL, NULL, 0);
    cr_expect_str_eq(header_in(&f, "Keep-Alive", value, sizeof value), "timeout=75");
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);

    server = server_start(flags);
    double start = seconds();
    talk(&server, request, sizeof request - 1, answer, sizeof answer, 10);
    cr_expect(strstr(answer, "Keep-Alive: timeout=2\r\n"), "%s", answer);
    cr_expect(seconds() - start > 1.5 && seconds() - start < 6, "%g s", seconds() - start);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, a_reply_that_nobody_reads_ends)
{
    enum { N = 4 << 20 };
    static const char *const flags[] = {"--timeout", "2", NULL};
    struct server server = server_start(flags);
    struct api_buffer body = {0};
    char head[300];
    uint64_t size = (uint64_t)snprintf(
        head, sizeof head,
        "{\"input\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%d]},\"target\":{"
        "\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
        N, 4 * N, N, 4 * N, 8 * N);
    api_append(&body, &size, 8);
    api_append(&body, head, size);
    api_buffer_room(&body, 8 * (size_t)N);
    memset(body.data + body.size, 0, 8 * (size_t)N);
    body.size += 8 * (size_t)N;
    int fd = dial(&server);
    int n = snprintf(head, sizeof head,
                     "POST /kl_div?reduction=none HTTP/1.1\r\nHost: a\r\nContent-Type: "
                     "application/safetensors\r\nAccept: application/safetensors\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     body.size);
    cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
    for (size_t sent = 0; sent < body.size;) {
        ssize_t more = send(fd, body.data + sent, body.size - sent, MSG_NOSIGNAL);
        cr_assert_gt(more, 0);
        sent += (size_t)more;
    }
    double start = seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && seconds() < start + 20)
        wait_ms(50);
    cr_expect_lt(seconds() - start, 10);
    close(fd);
    api_buffer_free(&body);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, a_request_is_bounded_as_a_whole)
{
    static const char *const flags[] = {"--request-timeout", "1", "--max-body", "32G", NULL};
    struct server server = server_start(flags);
    struct api_buffer heavy = heavy_call(60000, 60000);
    static const char head[] = POST "Content-Length: 4000000\r\n\r\n";
    int slow = dial(&server), computing = send_heavy(&server, &heavy);
    cr_assert_eq(send(slow, head, sizeof head - 1, MSG_NOSIGNAL), (ssize_t)sizeof head - 1);
    cr_expect_eq(read_status(slow, 8), 408);
    cr_expect_eq(read_status(computing, 8), 503);
    cr_expect(server_logs(&server, "status=503 code=compute_timeout", 1));
    close(slow);
    close(computing);
    api_buffer_free(&heavy);
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- Memory */

/* A declared length is no reason to reserve memory. */
Test(server, bodies_hold_what_has_arrived)
{
    enum { CLIENTS = 80, SENT = 1000, LARGE = 3 << 20 };
    static const char *const flags[] = {"--max-memory", "64M", "--max-body", "60M", NULL};
    struct server server = server_start(flags);
    int sockets[CLIENTS];
    char *body = malloc(LARGE);
    memset(body, ' ', LARGE);
    dial_many(&server, sockets, CLIENTS, POST "Content-Length: 60000000\r\n\r\n");
    send_many(sockets, CLIENTS, body, SENT);
    wait_ms(300);
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    double reserved = metric(&server, "\nkldiv_memory_reserved_bytes ");
    cr_expect(reserved >= CLIENTS * SENT && reserved <= CLIENTS * 66000.0, "%g", reserved);

    for (size_t sent = 0; sent < LARGE;) { /* one of them sends 3 MiB: at most twice that is held */
        ssize_t n = send(sockets[0], body + sent, LARGE - sent, MSG_NOSIGNAL);
        cr_assert_gt(n, 0);
        sent += (size_t)n;
    }
    wait_ms(300);
    double more = metric(&server, "\nkldiv_memory_reserved_bytes ") - reserved;
    cr_expect(more >= LARGE - 66000 && more <= 2.0 * LARGE + (2 << 20), "%g", more);
    close_many(sockets, CLIENTS);
    free(body);
    cr_expect_eq(server_stop(&server, false), 0);
}

struct upload {
    const struct server *server;
    const char *body;
    size_t size;
    long status;
};

static void *upload(void *argument)
{
    struct upload *u = argument;
    struct fetched f = fetch(u->server, "POST", "/kl_div", NULL, u->body, u->size);
    u->status = f.status;
    fetched_free(&f);
    return NULL;
}

/* Together they need four times the memory: reading stops until others are done. */
Test(server, bodies_wait_for_memory)
{
    enum { UPLOADS = 16, SIZE = 8 << 20 };
    static const char *const flags[] = {"--max-memory", "32M", NULL};
    struct server server = server_start(flags);
    struct upload uploads[UPLOADS];
    pthread_t threads[UPLOADS];
    char *body = malloc(SIZE + 1);
    memset(body, ' ', SIZE);
    strcpy(body + SIZE + 1 - sizeof TWO_BY_TWO, TWO_BY_TWO);
    for (int i = 0; i < UPLOADS; i++) {
        uploads[i] = (struct upload){.server = &server, .body = body, .size = SIZE};
        cr_assert_eq(pthread_create(&threads[i], NULL, upload, &uploads[i]), 0);
    }
    for (int i = 0; i < UPLOADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(uploads[i].status, 200, "upload %d: %ld", i, uploads[i].status);
    }
    free(body);
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Clients that stop half-way hold most of the memory: small bodies are served at once, large ones
 * after the slowest have ended. */
Test(server, the_slowest_client_gives_its_memory)
{
    enum { CLIENTS = 12, SENT = 4 << 20, SIZE = 12 << 20 };
    static const char *const flags[] = {"--max-memory", "40M", NULL};
    struct server server = server_start(flags);
    int sockets[CLIENTS];
    char *body = malloc(SIZE + 1);
    memset(body, ' ', SIZE);
    strcpy(body + SIZE + 1 - sizeof TWO_BY_TWO, TWO_BY_TWO);
    dial_many(&server, sockets, CLIENTS, POST "Content-Length: 16000000\r\n\r\n");
    for (size_t sent = 0; sent < SENT; sent += 1 << 16) {
        send_many(sockets, CLIENTS, body, 1 << 16);
        wait_ms(5);
    }
    wait_ms(200);
    for (int i = 0; i < 20; i++)
        cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    struct upload large = {.server = &server, .body = body, .size = SIZE};
    double start = seconds();
    upload(&large);
    cr_expect_eq(large.status, 200, "%ld", large.status);
    cr_expect_lt(seconds() - start, 9);
    close_many(sockets, CLIENTS);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Clients that send 4 MiB at once and then nothing hold the memory, among others that are as slow and
 * hold little: those that hold much make room. */
Test(server, bytes_that_came_early_are_no_credit)
{
    enum { HOLDERS = 8, OTHERS = 60, SENT = 4 << 20, SIZE = 12 << 20 };
    static const char *const flags[] = {"--max-memory", "40M", NULL};
    struct server server = server_start(flags);
    int holders[HOLDERS], others[OTHERS];
    char *body = malloc(SIZE + 1);
    memset(body, ' ', SIZE);
    strcpy(body + SIZE + 1 - sizeof TWO_BY_TWO, TWO_BY_TWO);
    dial_many(&server, others, OTHERS, POST "Content-Length: 16000000\r\n\r\n");
    send_many(others, OTHERS, body, 100);
    dial_many(&server, holders, HOLDERS, POST "Content-Length: 16000000\r\n\r\n");
    for (size_t sent = 0; sent < SENT; sent += 1 << 16)
        send_many(holders, HOLDERS, body, 1 << 16);
    wait_ms(1500);
    struct upload large = {.server = &server, .body = body, .size = SIZE};
    upload(&large);
    cr_expect_eq(large.status, 200, "%ld", large.status);
    for (int i = 0; i < OTHERS; i++) {
        char byte;
        cr_expect_eq(recv(others[i], &byte, 1, MSG_DONTWAIT), -1, "client %d was ended", i);
    }
    close_many(holders, HOLDERS);
    close_many(others, OTHERS);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* A small body under way is no reason to give memory to large ones that cannot end. */
Test(server, bodies_wait_for_memory_beside_small_ones)
{
    enum { UPLOADS = 16, SIZE = 8 << 20 };
    static const char *const flags[] = {"--max-memory", "32M", NULL};
    struct server server = server_start(flags);
    struct upload uploads[UPLOADS];
    pthread_t threads[UPLOADS];
    int small;
    char *body = malloc(SIZE + 1);
    memset(body, ' ', SIZE);
    strcpy(body + SIZE + 1 - sizeof TWO_BY_TWO, TWO_BY_TWO);
    dial_many(&server, &small, 1, POST "Content-Length: 100\r\n\r\n{");
    for (int i = 0; i < UPLOADS; i++) {
        uploads[i] = (struct upload){.server = &server, .body = body, .size = SIZE};
        cr_assert_eq(pthread_create(&threads[i], NULL, upload, &uploads[i]), 0);
    }
    for (int i = 0; i < UPLOADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(uploads[i].status, 200, "upload %d: %ld", i, uploads[i].status);
    }
    close(small);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Clients that reset while their bodies wait leave nothing behind, not even a count. */
Test(server, bodies_that_wait_and_are_reset_are_forgotten)
{
    enum { CLIENTS = 12, SENT = 4 << 20 };
    static const char *const flags[] = {"--max-memory", "32M", NULL};
    struct server server = server_start(flags);
    int sockets[CLIENTS];
    char *body = malloc(SENT);
    memset(body, ' ', SENT);
    dial_many(&server, sockets, CLIENTS, POST "Content-Length: 16000000\r\n\r\n");
    for (size_t sent = 0; sent < SENT; sent += 1 << 16)
        send_many(sockets, CLIENTS, body, 1 << 16);
    wait_ms(300);
    cr_expect_gt(metric(&server, "\nkldiv_bodies_waiting "), 0);
    for (int i = 0; i < CLIENTS; i++) {
        setsockopt(sockets[i], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
                   sizeof(struct linger));
        close(sockets[i]);
    }
    double start = seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && seconds() < start + 5)
        wait_ms(20);
    cr_expect_lt(seconds() - start, 3);
    cr_expect_eq(metric(&server, "\nkldiv_bodies_waiting "), 0);
    wait_ms(100);
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* A body of unknown length may take nearly all of the memory when it is alone. */
Test(server, chunked_bodies_may_be_large)
{
    enum { SIZE = 40 << 20 };
    static const char *const flags[] = {"--max-memory", "64M", "--max-body", "60M", NULL};
    static const char *const chunked[] = {"Transfer-Encoding: chunked", "Expect:", NULL};
    struct server server = server_start(flags);
    char *body = malloc(SIZE + 1);
    memset(body, ' ', SIZE);
    strcpy(body + SIZE + 1 - sizeof TWO_BY_TWO, TWO_BY_TWO);
    struct fetched f = fetch(&server, "POST", "/kl_div", chunked, body, SIZE);
    cr_expect_eq(f.status, 200, "%ld %s", f.status, f.body.data);
    fetched_free(&f);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* ---- Work */

/* The answer of a job is not lost because what follows it is refused. */
Test(server, a_job_is_answered_before_what_follows_is_refused)
{
    struct server server = server_start(NULL);
    struct api_buffer heavy = heavy_call(12000, 20000);
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

Test(server, a_client_that_closes_its_sending_side_gets_its_answer)
{
    struct server server = server_start(NULL);
    struct api_buffer heavy = heavy_call(12000, 20000);
    static const char small[] = POST "Content-Length: 29\r\n\r\n{\"input\": [-1],\"target\": [1]}";
    int fds[] = {send_heavy(&server, &heavy), dial(&server)};
    cr_assert_eq(send(fds[1], small, sizeof small - 1, 0), (ssize_t)sizeof small - 1);
    for (size_t i = 0; i < COUNT(fds); i++) {
        shutdown(fds[i], SHUT_WR);
        int status = read_status(fds[i], 30);
        cr_expect_eq(status, 200, "case %zu: %d", i, status);
        close(fds[i]);
    }
    api_buffer_free(&heavy);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, work_stops_when_its_client_leaves)
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
    double start = seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && seconds() < start + 30)
        wait_ms(20);
    cr_expect_lt(seconds() - start, 5, "%g s", seconds() - start);
    api_buffer_free(&heavy);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(server, queues_of_work_have_an_end)
{
    enum { CLIENTS = 24 };
    static const char *const flags[] = {"--max-body", "32G", NULL};
    struct server server = server_start(flags);
    struct api_buffer heavy = heavy_call(60000, 60000);
    int sockets[CLIENTS], refused = 0;
    for (int i = 0; i < CLIENTS; i++)
        sockets[i] = send_heavy(&server, &heavy);
    for (int i = 0; i < CLIENTS; i++) {
        struct pollfd p = {.fd = sockets[i], .events = POLLIN};
        if (poll(&p, 1, i == 0 ? 300 : 0) > 0)
            refused += read_status(sockets[i], 1) == 503;
    }
    cr_expect_gt(refused, 0);
    double start = seconds();
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    cr_expect_lt(seconds() - start, 5);
    close_many(sockets, CLIENTS);
    api_buffer_free(&heavy);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* 2 KB inflate to 2 MiB. */
Test(server, bodies_that_inflate_without_measure_are_refused)
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

/* ---- All at once */

static struct server admin_of(const struct server *server)
{
    cr_assert(server_logs(server, "health and metrics on ", 1));
    char *log = server_log_text(server);
    const char *line = strstr(log, "health and metrics on http://127.0.0.1:");
    cr_assert(line, "%s", log);
    struct server admin = *server;
    admin.port = atoi(line + strlen("health and metrics on http://127.0.0.1:"));
    free(log);
    return admin;
}

Test(server, the_admin_address_has_health_and_metrics_alone)
{
    static const char *const flags[] = {"--admin-listen", "127.0.0.1:0", NULL};
    struct server server = server_start(flags), admin = admin_of(&server);
    cr_expect_eq(status_of(&admin, "GET", "/livez", NULL), 200);
    cr_expect_eq(status_of(&admin, "GET", "/v2/health/ready", NULL), 200);
    cr_expect_eq(status_of(&admin, "GET", "/metrics", NULL), 200);
    cr_expect_eq(status_of(&admin, "POST", "/kl_div", TWO_BY_TWO), 404);
    cr_expect_eq(status_of(&admin, "GET", "/openapi.json", NULL), 404);
    cr_expect_eq(server_stop(&server, false), 0);
}
