#include "tests/suites/support/crowd.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

void dial_many(const struct server *server, int *sockets, size_t n, const char *bytes)
{
    for (size_t i = 0; i < n; i++) {
        sockets[i] = dial(server);
        cr_assert_geq(send(sockets[i], bytes, strlen(bytes), MSG_NOSIGNAL), 0);
    }
}

void send_many(const int *sockets, size_t n, const void *bytes, size_t size)
{
    for (size_t i = 0; i < n; i++)
        if (send(sockets[i], bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            continue; /* the server has closed it */
}

void close_many(const int *sockets, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close(sockets[i]);
}

long status_of(const struct server *server, const char *method, const char *target,
               const char *body)
{
    struct fetched f = fetch(server, method, target, NULL, body, body ? strlen(body) : 0);
    long status = f.status;
    fetched_free(&f);
    return status;
}

/* Value of a line of /metrics. */
double metric(const struct server *server, const char *name)
{
    struct fetched f = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    const char *line = strstr(f.body.data, name);
    double value = line ? atof(line + strlen(name)) : -1;
    cr_expect_eq(f.status, 200, "/metrics: %ld %.300s", f.status, f.body.data);
    fetched_free(&f);
    return value;
}

/* True if a response has come to its end. */
static bool is_whole(const char *answer, size_t size)
{
    const char *length = strcasestr(answer, "\r\nContent-Length: "),
               *end = strstr(answer, "\r\n\r\n");
    return length && end && length < end &&
           size >= (size_t)(end + 4 - answer) + strtoul(length + 18, NULL, 10);
}

int read_status(int fd, double limit)
{
    char answer[4000] = "";
    size_t got = 0;
    double end = now_seconds() + limit;
    while (!is_whole(answer, got) && got < sizeof answer - 1 && now_seconds() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)((end - now_seconds()) * 1000)) <= 0)
            break;
        ssize_t n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return strlen(answer) > 9 ? atoi(answer + 9) : 0;
}

struct api_buffer outer_call(size_t n, size_t m, const char *reduction)
{
    struct api_buffer body = {0};
    char header[400];
    int size =
        snprintf(header, sizeof header,
                 "{\"__metadata__\":{\"broadcast\":\"true\",\"input_space\":\"logit\","
                 "\"target_space\":\"logit\",\"reduction\":\"%s\"},"
                 "\"input\":{\"dtype\":\"F32\",\"shape\":[%zu,1],\"data_offsets\":[0,%zu]},"
                 "\"target\":{\"dtype\":\"F32\",\"shape\":[1,%zu],\"data_offsets\":[%zu,%zu]}}",
                 reduction, n, 4 * n, m, 4 * n, 4 * (n + m));
    api_append(&body, &(uint64_t){(uint64_t)size}, 8);
    api_append(&body, header, (size_t)size);
    for (size_t i = 0; i < n + m; i++)
        api_append(&body, &(float){0.5f}, sizeof(float));
    return body;
}

struct api_buffer heavy_call(size_t n, size_t m) { return outer_call(n, m, "sum"); }

size_t as_long(size_t n)
{
#ifdef __SANITIZE_ADDRESS__
    return n / 8;
#else
    return getenv("KLDIV_SERVER") ? n / 40 : n; /* ThreadSanitizer's */
#endif
}

int send_heavy(const struct server *server, const struct api_buffer *body)
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

void *upload(void *argument)
{
    struct upload *u = argument;
    struct fetched f = fetch(u->server, "POST", "/kl_div", NULL, u->body, u->size);
    u->status = f.status;
    fetched_free(&f);
    return NULL;
}
