/* Clients that are slow, lie, or leave: the places and the time that they cost others. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Places */

/* libmicrohttpd loses the end of a connection that comes with bytes. */
Test(fairness, uploads_that_are_given_up_free_their_places)
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
    double start = now_seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && now_seconds() < start + 20)
        wait_ms(20);
    cr_expect_lt(now_seconds() - start, 5);
    wait_ms(200);
    cr_expect_eq(metric(&server, "\nkldiv_memory_reserved_bytes "), 0);
    cr_expect_eq(server_stop(&server, true),
                 0); /* with few descriptors it may have to wait for one */
}

/* Sends the same call until it is answered with 200, for a second at most: so long may a client that was
 * refused stay. */
static bool has_place_within_a_second(const struct server *server)
{
    double start = now_seconds();
    while (status_of(server, "POST", "/kl_div", TWO_BY_TWO) != 200) {
        if (now_seconds() > start + 1)
            return false;
        wait_ms(20);
    }
    return true;
}

Test(fairness, bodies_that_were_refused_hold_no_place)
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
        cr_expect(has_place_within_a_second(&server));
        wait_ms(50);
    }
    close_many(sockets, CLIENTS);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Slow clients of every kind hold all places: a new client gets that of the slowest. */
Test(fairness, the_slowest_client_makes_room)
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
Test(fairness, clients_without_a_descriptor_are_told)
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

Test(fairness, a_slow_body_is_told_so)
{
    struct server server = server_start(NULL);
    int fd = dial(&server);
    static const char head[] = POST "Content-Length: 4000000\r\n\r\n";
    double start = now_seconds();
    cr_assert_eq(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), (ssize_t)sizeof head - 1);
    while (now_seconds() < start + 20) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        send(fd, "          ", 10, MSG_NOSIGNAL);
        if (poll(&p, 1, 100) > 0)
            break;
    }
    cr_expect_eq(read_status(fd, 2), 408);
    cr_expect(now_seconds() - start > 9 && now_seconds() - start < 15, "%g s",
              now_seconds() - start);
    close(fd);
    cr_expect(server_logs(&server, "status=408 code=request_timeout", 1));
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(fairness, connections_stay_for_another_request_and_say_how_long)
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
    double start = now_seconds();
    talk(&server, request, sizeof request - 1, answer, sizeof answer, 10);
    cr_expect(strstr(answer, "Keep-Alive: timeout=2\r\n"), "%s", answer);
    cr_expect(now_seconds() - start > 1.5 && now_seconds() - start < 6, "%g s",
              now_seconds() - start);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(fairness, a_response_that_nobody_reads_ends)
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
    double start = now_seconds();
    while (metric(&server, "\nkldiv_http_requests_in_flight ") > 1 && now_seconds() < start + 20)
        wait_ms(50);
    cr_expect_lt(now_seconds() - start, 10);
    close(fd);
    api_buffer_free(&body);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(fairness, a_request_is_bounded_as_a_whole)
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
    cr_expect_eq(server_stop(&server, true), 0); /* --max-body exceeds --max-memory */
}

/* ---- Probes */

static struct server admin_of(const struct server *server)
{
    cr_assert(server_logs(server, "health and metrics on ", 1));
    char *log = server_log_text(server);
    const char *line = strstr(log, "health and metrics on http://127.0.0.1:");
    cr_assert(line, "%s", log);
    struct server admin = *server;
    *admin.path = '\0';
    admin.port = atoi(line + strlen("health and metrics on http://127.0.0.1:"));
    free(log);
    return admin;
}

Test(fairness, the_admin_address_has_health_and_metrics_alone)
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
