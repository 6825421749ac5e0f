/* Large bodies are received where they stay: every byte arrives, in order, and no byte of the next
 * request goes there. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N = 1 << 19 }; /* numbers of a tensor */

/* A safetensors body: logarithms -i mod 61, weights 1: the sum is exact in float32. */
static size_t make_body(char **body)
{
    char header[300];
    size_t bytes = N * sizeof(float);
    snprintf(header, sizeof header,
             "{\"input\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%zu]},"
             "\"target\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}   ",
             N, bytes, N, bytes, 2 * bytes);
    uint64_t length = strlen(header);
    size_t size = 8 + (size_t)length + 2 * bytes;
    *body = malloc(size);
    memcpy(*body, &length, 8);
    memcpy(*body + 8, header, (size_t)length);
    for (size_t i = 0; i < 2 * N; i++) {
        float x = i < N ? -(float)(i % 61) : 1;
        memcpy(*body + 8 + length + i * sizeof x, &x, sizeof x);
    }
    return size;
}

/* Sends two large requests and a small one on one connection, each in pieces of up to `piece` bytes. */
static size_t send_three(int fd, size_t piece)
{
    static const char last[] = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char *body, head[300];
    size_t size = make_body(&body);
    int n = snprintf(head, sizeof head,
                     "POST /kl_div?reduction=sum HTTP/1.1\r\nHost: x\r\n"
                     "Content-Type: application/vnd.safetensors\r\nContent-Length: %zu\r\n\r\n",
                     size);
    size_t one = (size_t)n + size, all = 2 * one + sizeof last - 1;
    char *bytes = malloc(all);
    for (size_t i = 0; i < 2; i++) {
        memcpy(bytes + i * one, head, (size_t)n);
        memcpy(bytes + i * one + (size_t)n, body, size);
    }
    memcpy(bytes + 2 * one, last, sizeof last - 1);
    for (size_t at = 0; at < all;) {
        size_t some = 1 + (size_t)lrand48() % piece;
        ssize_t sent = send(fd, bytes + at, some < all - at ? some : all - at, MSG_NOSIGNAL);
        cr_assert(sent > 0);
        at += (size_t)sent;
    }
    free(bytes);
    free(body);
    return all;
}

Test(uploads, large_requests_without_a_pause_between_them)
{
    static const size_t pieces[] = {20000, 1 << 20, 32 << 20};
    struct server server = server_start(NULL);
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += (double)(i % 61);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        char answer[8000] = "", loss[60];
        int fd = dial(&server), used = 0;
        send_three(fd, pieces[i]);
        for (ssize_t n; used < 7999 && (n = recv(fd, answer + used, 7999 - (size_t)used, 0)) > 0;)
            used += (int)n;
        close(fd);
        snprintf(loss, sizeof loss, "{\"loss\":%.1f,", sum);
        const char *first = strstr(answer, loss), *second = first ? strstr(first + 1, loss) : NULL;
        cr_expect(second && strstr(second, "{\"status\":\"ok\"}"), "%s\n%s", loss, answer);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A client that leaves, or is refused, while bytes of its body wait in their place. */
Test(uploads, that_end_early_leave_nothing_behind)
{
    struct server server = server_start(NULL);
    for (int i = 0; i < 20; i++) {
        char *body, head[300];
        size_t size = make_body(&body);
        int fd = dial(&server),
            n = snprintf(head, sizeof head,
                         "POST /kl_div HTTP/1.1\r\nHost: x\r\nContent-Type: "
                         "application/vnd.safetensors\r\nContent-Length: %zu\r\n\r\n",
                         size);
        send(fd, head, (size_t)n, MSG_NOSIGNAL);
        for (size_t at = 0, end = size / 2 + (size_t)i * 1000; at < end;) {
            ssize_t sent = send(fd, body + at, end - at, MSG_NOSIGNAL);
            cr_assert(sent > 0);
            at += (size_t)sent;
        }
        close(fd);
        free(body);
    }
    struct fetched f = post_json(&server, "/kl_div?reduction=sum", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    cr_expect_eq(server_stop(&server, false), 0);
}
