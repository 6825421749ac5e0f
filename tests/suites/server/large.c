/* Tensors in mapped blocks, through the real server. */
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends 64 MiB of float32 and receives 32 MiB: both are mapped blocks. */
Test(large, takes_and_gives_large_tensors)
{
    enum { N = 8 << 20 };
    static const char *const headers[] = {"Content-Type: application/vnd.safetensors",
                                          "Accept: application/x-npy", NULL};
    char header[300];
    size_t bytes = N * sizeof(float);
    snprintf(header, sizeof header,
             "{\"input\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%zu]},"
             "\"target\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}",
             N, bytes, N, bytes, 2 * bytes);
    uint64_t length = strlen(header);
    size_t size = 8 + (size_t)length + 2 * bytes;
    char *body = malloc(size);
    cr_assert(body);
    memcpy(body, &length, 8);
    memcpy(body + 8, header, (size_t)length);
    float *x = malloc(bytes);
    for (size_t i = 0; i < N; i++)
        x[i] = -(float)(i % 1000) / 100;
    memcpy(body + 8 + length, x, bytes);
    for (size_t i = 0; i < N; i++)
        x[i] = 1;
    memcpy(body + 8 + length + bytes, x, bytes);

    struct server server = server_start(NULL);
    for (int i = 0; i < 3; i++) {
        struct fetched f = fetch(&server, "POST", "/kl_div?reduction=none", headers, body, size);
        cr_assert_eq(f.status, 200);
        cr_assert_eq(f.body.size, 128 + bytes + 1, "with the NUL that fetch adds");
        memcpy(x, f.body.data + 128, bytes);
        size_t wrong = 0;
        for (size_t j = 0; j < N; j++)
            wrong += x[j] != (float)(j % 1000) / 100;
        cr_expect_eq(wrong, 0);
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);
    free(x);
    free(body);
}

/* ---- What the kernel takes of a response that nobody reads */

/* Reads until the server closes, or is silent: for a second after bytes, before the first for as long as a loaded machine
 * takes to make a response. Gives the bytes. */
static size_t read_rest(int fd)
{
    static char bytes[1 << 20];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t got = 0;
    ssize_t n;
    while (poll(&p, 1, got ? 1000 : 30000) == 1 && (n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        got += (size_t)n;
    return got;
}

/* Connects a client whose own buffer stays small, so that the server's shows. */
static int dial_narrowly(const struct server *server)
{
    int fd = dial(server);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){64 << 10}, sizeof(int));
    return fd;
}

static void scrape(int fd)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    cr_assert_gt(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), 0);
}

/* Asks for 1 MiB. */
static void ask_for_a_mib(int fd)
{
    struct api_buffer body = outer_call(512, 512, "none");
    char head[200];
    int n = snprintf(head, sizeof head,
                     "POST /kl_div HTTP/1.1\r\nHost: x\r\nContent-Type: application/safetensors\r\n"
                     "Accept: application/safetensors\r\nContent-Length: %zu\r\n\r\n",
                     body.size);
    cr_assert_eq(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
    cr_assert_eq(send(fd, body.data, body.size, MSG_NOSIGNAL), (ssize_t)body.size);
    api_buffer_free(&body);
}

/* The kernel takes little of a scrape, so that scrapes that nobody reads take no memory. Of the next response on the same
 * connection it takes as much as of any other: a response that it took as a whole arrives even after --timeout. */
Test(large, a_scrape_leaves_the_connection_as_it_was)
{
    enum { COLUMNS = 3000, ASKED = 1 << 20 };
    static const char *const flags[] = {"--timeout", "2", "--listen", "127.0.0.1:0", NULL};
    struct server server = server_start(flags);
    struct api_buffer table = {0};
    for (int i = 0; i < COLUMNS; i++)
        api_append_format(&table, i ? ",c%d" : "c%d", i);
    for (int i = 0; i < 2 * COLUMNS; i++)
        api_append_format(&table, i % COLUMNS ? ",%d" : "\n%d", i / COLUMNS);
    struct fetched f =
        fetch(&server, "PUT", "/monitors/wide",
              (const char *const[]){"Content-Type: text/csv", NULL}, table.data, table.size);
    cr_assert_eq(f.status, 201);
    fetched_free(&f);
    api_buffer_free(&table);

    int kept = dial_narrowly(&server), fresh = dial_narrowly(&server),
        unread = dial_narrowly(&server);
    scrape(kept);
    size_t whole = read_rest(kept);
    cr_assert_gt(whole, ASKED);
    ask_for_a_mib(kept);
    ask_for_a_mib(fresh);
    scrape(unread);
    sleep(5);
    cr_assert_gt(read_rest(fresh), ASKED);
    cr_expect_gt(read_rest(kept), ASKED);
    cr_expect_lt(read_rest(unread), ASKED);
    close(kept);
    close(fresh);
    close(unread);
    cr_expect_eq(server_stop(&server, true), 0);
}
