/* Bodies of more than there is memory for. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A declared length is no reason to reserve memory. */
Test(scarce_memory, bodies_hold_what_has_arrived)
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

/* SCARCE: --max-memory, of which a body takes a quarter: what 16 bodies begin with is half of it. */
#define SCARCE "2M"
enum { QUARTER = 512 << 10 };

/* Uploads again and again until it is served, for at most 20 s; each refusal says that memory is short. */
static void *upload_until_served(void *argument)
{
    struct upload *u = argument;
    double start = now_seconds();
    do {
        upload(u);
        cr_expect(u->status == 200 || u->status == 503, "%ld", u->status);
        wait_ms(u->status == 200
                    ? 0
                    : 10); /* each refusal is a line of the log, which has a limit here */
    } while (u->status != 200 && now_seconds() < start + 20);
    return NULL;
}

/* Sends 16 bodies at once, which together need four times the memory: nobody waits for it, and who is refused is
 * served when it comes again. */
static void expect_uploads(const struct server *server)
{
    enum { UPLOADS = 16 };
    struct upload uploads[UPLOADS];
    pthread_t threads[UPLOADS];
    char *body = malloc(QUARTER + 1);
    memset(body, ' ', QUARTER);
    strcpy(body + QUARTER + 1 - sizeof TWO_BY_TWO, TWO_BY_TWO);
    for (int i = 0; i < UPLOADS; i++) {
        uploads[i] = (struct upload){.server = server, .body = body, .size = QUARTER};
        cr_assert_eq(pthread_create(&threads[i], NULL, upload_until_served, &uploads[i]), 0);
    }
    for (int i = 0; i < UPLOADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(uploads[i].status, 200, "upload %d: %ld", i, uploads[i].status);
    }
    free(body);
}

Test(scarce_memory, bodies_without_memory_are_refused_until_there_is_some)
{
    static const char *const flags[] = {"--max-memory", SCARCE, NULL};
    struct server server = server_start(flags);
    expect_uploads(&server);
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* A body that declares more than is free is refused before its client sends it, and the connection closes. */
Test(scarce_memory, a_declared_length_beyond_what_is_free_is_refused_from_the_header)
{
    enum { HELD = 29 << 20 }; /* of 31,000,000 bytes */
    static const char header[] = POST "Content-Length: 12000000\r\nExpect: 100-continue\r\n\r\n";
    static const char *const flags[] = {"--max-memory", "40M", NULL};
    struct server server = server_start(flags);
    char answer[4000], *body = malloc(HELD);
    int holder;
    memset(body, ' ', HELD);
    dial_many(&server, &holder, 1, POST "Content-Length: 31000000\r\n\r\n");
    for (size_t sent = 0; sent < HELD;) {
        ssize_t n = send(holder, body + sent, HELD - sent, MSG_NOSIGNAL);
        cr_assert_gt(n, 0);
        sent += (size_t)n;
    }
    double end = now_seconds() + 60;
    while (metric(&server, "\nkldiv_memory_reserved_bytes ") < HELD && now_seconds() < end)
        wait_ms(10);
    cr_assert_lt(now_seconds(), end, "the body does not arrive");
    talk(&server, header, sizeof header - 1, answer, sizeof answer, 2);
    cr_expect(strncmp(answer, "HTTP/1.1 503 ", 13) == 0, "%s", answer);
    cr_expect(strstr(answer, "\r\nRetry-After: 1\r\n"), "%s", answer);
    cr_expect(strstr(answer, "\"out_of_memory\""), "%s", answer);
    cr_expect_eq(status_of(&server, "POST", "/kl_div", TWO_BY_TWO), 200);
    close(holder);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Clients that stop half-way hold most of the memory: small bodies are served at once, large ones
 * once the holders are slow. */
Test(scarce_memory, the_slowest_client_gives_its_memory)
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
    double start = now_seconds();
    upload_until_served(&large);
    cr_expect_eq(large.status, 200, "%ld", large.status);
    cr_expect_lt(now_seconds() - start, 9);
    close_many(sockets, CLIENTS);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Clients that send 4 MiB at once and then nothing hold the memory, among others that are as slow and
 * hold little: those that hold much make room. */
Test(scarce_memory, bytes_that_came_early_are_no_credit)
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
    upload_until_served(&large);
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

Test(scarce_memory, bodies_without_memory_are_refused_beside_small_ones)
{
    static const char *const flags[] = {"--max-memory", SCARCE, NULL};
    struct server server = server_start(flags);
    int small;
    dial_many(&server, &small, 1, POST "Content-Length: 100\r\n\r\n{");
    expect_uploads(&server);
    close(small);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Clients that reset while memory is short leave nothing behind. */
Test(scarce_memory, bodies_that_are_reset_are_forgotten)
{
    enum { CLIENTS = 12, SENT = 4 << 20 };
    static const char *const flags[] = {"--max-memory", "32M", NULL};
    struct server server = server_start(flags);
    int sockets[CLIENTS];
    char *body = malloc(SENT);
    memset(body, ' ', SENT);
    dial_many(&server, sockets, CLIENTS, POST "Content-Length: 16000000\r\n\r\n");
    for (size_t sent = 0; sent < SENT; sent += 1 << 16) {
        send_many(sockets, CLIENTS, body, 1 << 16);
        wait_ms(5); /* a unix socket holds 200 KB */
    }
    wait_ms(300);
    for (int i = 0; i < CLIENTS; i++) {
        setsockopt(sockets[i], SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
                   sizeof(struct linger));
        close(sockets[i]);
    }
    double start = now_seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && now_seconds() < start + 5)
        wait_ms(20);
    cr_expect_lt(now_seconds() - start, 3);
    wait_ms(100);
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    free(body);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* A body of unknown length may take nearly all of the memory when it is alone. */
Test(scarce_memory, chunked_bodies_may_be_large)
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
