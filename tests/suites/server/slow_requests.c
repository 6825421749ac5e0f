/* --log-slow: requests that take long, and where their time went. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/log_lines.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *const spans[] = {"read_ms", "queue_ms", "store_ms", "compute_ms", "send_ms"};

static double ms(const json_t *line, const char *name) { return atof(text_of(line, name)); }

/* The line of a slow request of a target, once it is written, which has to add up; the caller drops it. */
static json_t *slow_line(const struct server *server, const char *target)
{
    char field[200];
    snprintf(field, sizeof field, " target=%s ", target);
    cr_assert(server_logs(server, " warning slow request id=", 1));
    char *log = server_log_text(server), *line = strstr(log, "warning slow request");
    for (; line && strstr(line, field) != strstr(line, " target=");)
        line = strstr(line + 1, "warning slow request");
    cr_assert(line, "%s", log);
    while (line > log && line[-1] != '\n')
        line--;
    json_t *fields = log_line_read(line);
    cr_assert(fields, "%s", line);
    double sum = 0;
    for (size_t i = 0; i < COUNT(spans); i++)
        sum += ms(fields, spans[i]);
    cr_expect_lt(fabs(sum - ms(fields, "ms")), 0.01, "%g, %s", sum, line);
    cr_expect(*text_of(fields, "id") && *text_of(fields, "method") && *text_of(fields, "status"));
    free(log);
    return fields;
}

/* The span has at least so many ms, and no other has as many. */
static void expect_longest(const json_t *line, const char *span, double at_least)
{
    cr_expect_geq(ms(line, span), at_least, "%s: %g", span, ms(line, span));
    for (size_t i = 0; i < COUNT(spans); i++)
        cr_expect(ms(line, spans[i]) <= ms(line, span), "%s: %g", spans[i], ms(line, spans[i]));
}

/* A POST of two arrays of so many numbers, on a connection that then ends. */
static struct api_buffer call(size_t n, const char *target)
{
    struct api_buffer body = {0}, request = {0};
    for (int i = 0; i < 2; i++) {
        api_append_text(&body, i ? ",\"target\":[0.5" : "{\"input\":[-0.5");
        for (size_t j = 1; j < n; j++)
            api_append_text(&body, i ? ",0.25" : ",-1.5");
        api_append_text(&body, "]");
    }
    api_append_text(&body, "}");
    api_append_format(
        &request, "POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
        target, body.size);
    api_append(&request, body.data, body.size);
    api_buffer_free(&body);
    return request;
}

static int dial_and_send(const struct server *server, const struct api_buffer *request)
{
    int fd = dial(server);
    for (size_t at = 0; at < request->size;) {
        ssize_t n = send(fd, request->data + at, request->size - at, MSG_NOSIGNAL);
        cr_assert_gt(n, 0);
        at += (size_t)n;
    }
    return fd;
}

static void read_to_the_end(int fd)
{
    static char answer[1 << 16];
    while (recv(fd, answer, sizeof answer, 0) > 0)
        ;
    close(fd);
}

Test(slow_requests, a_body_that_comes_slowly_is_read)
{
    static const char *const flags[] = {"--log-slow", "100ms", NULL};
    static const char head[] = POST "Content-Length: 71\r\n\r\n";
    char answer[2000];
    struct server server = server_start(flags);
    cr_expect_eq(status_of(&server, "POST", "/kl_div?reduction=sum", TWO_BY_TWO), 200);
    int fd = dial(&server);
    cr_assert_eq(send(fd, head, sizeof head - 1, 0), sizeof head - 1);
    wait_ms(300);
    cr_assert_eq(send(fd, TWO_BY_TWO, 71, 0), 71);
    cr_assert_gt(recv(fd, answer, sizeof answer, 0), 0);
    close(fd);
    json_t *line = slow_line(&server, "/kl_div");
    expect_longest(line, "read_ms", 200);
    json_decref(line);
    char *log = server_log_text(&server);
    cr_expect(!strstr(strstr(log, "slow request"), "reduction=sum"), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, true), 0);
}

Test(slow_requests, a_response_that_is_not_read_is_sent)
{
    static const char *const flags[] = {"--log-slow", "100ms", NULL};
    static const char target[] = "/kl_div?reduction=none";
    struct server server = server_start(flags);
    struct api_buffer request = call(1 << 19, target);
    int fd = dial_and_send(&server, &request);
    cr_assert_eq(recv(fd, &(char){0}, 1, MSG_PEEK), 1); /* until it begins to be sent */
    wait_ms(500);
    read_to_the_end(fd);
    json_t *line = slow_line(&server, "\"/kl_div?reduction=none\"");
    cr_expect_gt(ms(line, "send_ms"), 300);
    cr_expect_gt(ms(line, "compute_ms"), 1);
    json_decref(line);
    api_buffer_free(&request);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* One computes; the others wait for its thread, the last one for as long as the quickest takes. */
Test(slow_requests, what_waits_for_a_thread_is_queued)
{
    enum { CLIENTS = 4 };
    static const char *const flags[] = {"--log-slow", "1ms", "--threads", "1", NULL};
    struct server server = server_start(flags);
    struct api_buffer request = call(1 << 20, "/kl_div?reduction=sum");
    int sockets[CLIENTS];
    double longest = 0, computed = (double)INFINITY;
    for (int i = 0; i < CLIENTS; i++)
        sockets[i] = dial_and_send(&server, &request);
    for (int i = 0; i < CLIENTS; i++)
        read_to_the_end(sockets[i]);
    cr_assert(server_logs(&server, " warning slow request id=", CLIENTS));
    char *log = server_log_text(&server);
    for (const char *line = log; *line; line += strcspn(line, "\n") + 1) {
        json_t *fields = log_line_read(line);
        bool is_slow = strcmp(text_of(fields, "message"), "slow request") == 0;
        longest = is_slow ? fmax(longest, ms(fields, "queue_ms")) : longest;
        computed = is_slow ? fmin(computed, ms(fields, "compute_ms")) : computed;
        json_decref(fields);
    }
    cr_expect(computed > 5 && longest > computed / 2, "%g, %g", longest, computed);
    free(log);
    api_buffer_free(&request);
    cr_expect_eq(server_stop(&server, true), 0);
}

Test(slow_requests, what_the_store_takes_is_store)
{
    static const char *const flags[] = {"--log-slow", "1ms", NULL};
    struct database database = database_new();
    struct api_buffer table = {0};
    struct server server = store_start(&database, flags);
    for (int row = 0; row < 4; row++)
        for (int i = 0; i < 300; i++)
            api_append_format(&table, "%s%d%s", row ? "" : "c", i + row, i < 299 ? "," : "\n");
    api_append(&table, "", 1);
    free(expect_status(&server, "PUT", "/monitors/g", table.data, 201));
    json_t *line = slow_line(&server, "/monitors/g");
    cr_expect_gt(ms(line, "store_ms"), 1, "%g", ms(line, "store_ms"));
    json_decref(line);
    api_buffer_free(&table);
    cr_expect_eq(server_stop(&server, true), 0);
    database_free(&database);
}

/* The log stays small if all requests are slow. */
Test(slow_requests, are_told_ten_in_ten_seconds)
{
    enum { REQUESTS = 25, TOLD = 10 };
    static const char *const flags[] = {"--log-slow", "1ms", NULL};
    struct server server = server_start(flags);
    struct api_buffer request = call(1 << 19, "/kl_div?reduction=sum");
    size_t n = 0;
    time_t began = time(NULL);
    for (int i = 0; i < REQUESTS; i++)
        read_to_the_end(dial_and_send(&server, &request));
    cr_assert(server_logs(&server, " info request id=", REQUESTS));
    char *log = server_log_text(&server);
    for (const char *p = log; (p = strstr(p, " warning slow request id=")); p++)
        n++;
    size_t tens = (size_t)(time(NULL) - began + 1) / 10 + 1; /* of ten seconds, on a slow machine */
    cr_expect(n >= TOLD && n <= TOLD * tens, "%zu in %zu times ten seconds", n, tens);
    free(log);
    api_buffer_free(&request);
    cr_expect_eq(server_stop(&server, true), 0);
}

Test(slow_requests, a_time_has_a_unit)
{
    static const char *const bad[] = {
        "", "0", "5", "5x", "ms", "0ms", "-1s", "1.5s", "1 s", "1441m", "99999999999999999999s"};
    char output[1000];
    for (size_t i = 1; i < COUNT(bad); i++) {
        const char *const flags[] = {"--log-slow", bad[i], NULL};
        cr_expect_eq(run_server(flags, output, sizeof output), 1, "%s", bad[i]);
        cr_expect(strstr(output, "kldivd: --log-slow: '"), "%s", output);
    }
}
