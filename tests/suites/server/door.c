/* Requests as the door reads them: whatever the order of a connection's requests is and however their bytes are cut, each
 * is answered in its turn, plain and by TLS. */
#include "tests/suites/support/certificate.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- A pipeline of random requests */

enum { REQUESTS = 40, LARGE = 300000 };

/* pipeline: the bytes of requests, and the status of each; X-Request-Id is its number. */
struct pipeline {
    struct api_buffer bytes;
    int statuses[REQUESTS];
    bool is_head[REQUESTS];
};

static void add_body(struct api_buffer *out, size_t size, bool chunked)
{
    char *body = malloc(size + 1);
    memset(body, ' ', size);
    body[size] = '\0';
    memcpy(body, TWO_BY_TWO, strlen(TWO_BY_TWO));
    if (chunked) {
        api_append_text(out, "Transfer-Encoding: chunked\r\n\r\n");
    } else {
        api_append_format(out, "Content-Length: %zu\r\n\r\n", size);
        api_append(out, body, size);
    }
    for (size_t at = 0, n; chunked && at < size; at += n) {
        n = 1 + (size_t)lrand48() % (size / 3);
        n = n < size - at ? n : size - at;
        api_append_format(out, "%zx;x\r\n", n);
        api_append(out, body + at, n);
        api_append_text(out, "\r\n");
    }
    if (chunked)
        api_append_text(out, "0\r\nX: y\r\n\r\n");
    free(body);
}

static void add_request(struct pipeline *p, int i)
{
    static const struct {
        const char *method, *target;
        int status;
        size_t size; /* of a body, and at most as much more; 0 for none */
    } kinds[] = {
        {"GET", "/livez", 200, 0},
        {"HEAD", "/livez", 200, 0},
        {"GET", "/nothing?a=b&c=d", 404, 0},
        {"GET", "http://a/livez?x", 200, 0},
        {"DELETE", "/kl_div", 405, 0},
        {"POST", "/kl_div", 422, 200},
        {"POST", "/kl_div?reduction=sum", 200, 200},
        {"POST", "/kl_div?reduction=sum", 200, 30000},
        {"POST", "/kl_div?reduction=sum", 200, LARGE},
    };
    size_t k = (size_t)lrand48() % COUNT(kinds);
    struct api_buffer *out = &p->bytes;
    p->statuses[i] = kinds[k].status;
    p->is_head[i] = strcmp(kinds[k].method, "HEAD") == 0;
    api_append_format(out, "%s%s %s HTTP/1.1\r\nHost: a\r\nX-Request-Id: %d\r\n",
                      lrand48() % 8 ? "" : "\r\n", kinds[k].method, kinds[k].target, i);
    if (lrand48() % 8 == 0)
        api_append_format(out, "Cookie: %0900d\r\n", 0);
    if (kinds[k].size == 0)
        api_append_text(out, "\r\n");
    else if (kinds[k].status == 422)
        api_append_format(out, "Content-Length: 2\r\n\r\n{}");
    else
        add_body(out, kinds[k].size + (size_t)lrand48() % kinds[k].size, lrand48() % 2);
}

static struct pipeline make_pipeline(void)
{
    struct pipeline p = {.bytes = {0}};
    for (int i = 0; i < REQUESTS; i++)
        add_request(&p, i);
    return p;
}

/* channel: a plain connection, or one by TLS. */
struct channel {
    int fd;
    struct tls_client *tls;
};

static ssize_t put(const struct channel *c, const char *bytes, size_t size)
{
    return c->tls ? gnutls_record_send(c->tls->session, bytes, size)
                  : send(c->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t get(const struct channel *c, char *bytes, size_t size)
{
    return c->tls ? gnutls_record_recv(c->tls->session, bytes, size)
                  : recv(c->fd, bytes, size, MSG_DONTWAIT);
}

/* Reads until a text has come, for 5 s at most. */
static bool reads(const struct channel *c, const char *text)
{
    struct api_buffer got = {0};
    char bytes[16384];
    bool has_come = false;
    for (double end = now_seconds() + 5; !has_come && now_seconds() < end;) {
        ssize_t n = get(c, bytes, sizeof bytes);
        if (n == 0)
            break;
        if (n < 0)
            poll(&(struct pollfd){.fd = c->fd, .events = POLLIN}, 1, 20);
        if (n > 0)
            api_append(&got, bytes, (size_t)n);
        api_append(&got, "", 1);
        has_come = strstr(got.data, text);
        got.size--;
    }
    api_buffer_free(&got);
    return has_come;
}

/* Length of the response that the bytes begin with; 0 if it is not complete. */
static size_t length_of(const char *bytes, bool is_head)
{
    const char *end = strstr(bytes, "\r\n\r\n"), *length = strstr(bytes, "\r\nContent-Length: ");
    if (!end)
        return 0;
    size_t size = is_head || !length || length > end ? 0 : strtoul(length + 18, NULL, 10);
    size += (size_t)(end + 4 - bytes);
    return strlen(bytes) >= size ? size : 0;
}

/* Sends in pieces of up to `piece` bytes while it reads; gives the number of responses that are as they should be. */
static int exchange(const struct channel *c, const struct pipeline *p, size_t piece)
{
    struct api_buffer got = {0};
    size_t sent = 0;
    int answered = 0;
    char bytes[16384], id[40];
    double end = now_seconds() + 20;
    while (answered < REQUESTS && now_seconds() < end) {
        size_t size = 1 + (size_t)lrand48() % piece, left = p->bytes.size - sent;
        size = size < left ? size : left;
        ssize_t n = size > 0 ? put(c, p->bytes.data + sent, size) : 0;
        sent += n > 0 ? (size_t)n : 0;
        n = get(c, bytes, sizeof bytes);
        if (n > 0)
            api_append(&got, bytes, (size_t)n);
        if (n <= 0 && size == 0)
            poll(&(struct pollfd){.fd = c->fd, .events = POLLIN}, 1, 20);
        api_append(&got, "", 1);
        got.size--;
        for (size_t length;
             answered < REQUESTS && (length = length_of(got.data, p->is_head[answered])) > 0;
             answered++) {
            snprintf(id, sizeof id, "\r\nX-Request-Id: %d\r\n", answered);
            if (atoi(got.data + 9) != p->statuses[answered] || !strstr(got.data, id))
                end = 0;
            cr_expect(end > 0, "%d of %d: %s", answered, p->statuses[answered], got.data);
            memmove(got.data, got.data + length, got.size - length + 1);
            got.size -= length;
        }
    }
    api_buffer_free(&got);
    return answered;
}

static const size_t pieces[] = {60, 1500, 20000, 200000, 1 << 20};

Test(door, answers_random_pipelines_in_order)
{
    struct server server = server_start(NULL);
    for (size_t i = 0; i < 2 * COUNT(pieces); i++) {
        struct pipeline p = make_pipeline();
        struct channel c = {.fd = dial(&server)};
        cr_expect_eq(exchange(&c, &p, pieces[i / 2]), REQUESTS, "pieces of %zu", pieces[i / 2]);
        close(c.fd);
        api_buffer_free(&p.bytes);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Files of the certificate of start_secure(). */
static char cert[40], key[40];

static struct server start_secure(const char *address)
{
    const char *const flags[] = {"--tls-cert", cert, "--tls-key", key, NULL};
    strcpy(cert, "/tmp/kldiv-door-XXXXXX");
    strcpy(key, cert);
    close(mkstemp(cert));
    close(mkstemp(key));
    make_certificate(cert, key, GNUTLS_PK_ECDSA, 30);
    struct server server = address ? server_start_at(address, flags) : server_start(flags);
    server.certificate = cert;
    return server;
}

static void stop_secure(struct server *server)
{
    cr_expect_eq(server_stop(server, false), 0);
    unlink(cert);
    unlink(key);
}

static struct tls_client connect_secure(const struct server *server)
{
    struct tls_client client = tls_connect(server, "NORMAL", NULL);
    cr_assert_eq(client.result, 0);
    fcntl(client.fd, F_SETFL, O_NONBLOCK);
    return client;
}

Test(door, answers_random_pipelines_by_tls)
{
    struct server server = start_secure(NULL);
    for (size_t i = 1; i < COUNT(pieces); i++) {
        struct pipeline p = make_pipeline();
        struct tls_client client = connect_secure(&server);
        struct channel c = {.fd = client.fd, .tls = &client};
        cr_expect_eq(exchange(&c, &p, pieces[i]), REQUESTS, "pieces of %zu", pieces[i]);
        tls_close(&client);
        api_buffer_free(&p.bytes);
    }
    stop_secure(&server);
}

/* ---- A drain while a record arrives */

/* record: bytes that GnuTLS would send. */
struct record {
    char bytes[400];
    size_t size;
};

static ssize_t hold_back(gnutls_transport_ptr_t to, const void *bytes, size_t size)
{
    struct record *record = to;
    cr_assert_leq(size, sizeof record->bytes - record->size);
    memcpy(record->bytes + record->size, bytes, size);
    record->size += size;
    return (ssize_t)size;
}

/* Makes the record of a request, of which nothing is sent. */
static struct record make_record(struct tls_client *client)
{
    static const char get[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    struct record record = {.size = 0};
    gnutls_transport_set_ptr2(client->session, (gnutls_transport_ptr_t)(intptr_t)client->fd,
                              &record);
    gnutls_transport_set_push_function(client->session, hold_back);
    cr_assert_eq(gnutls_record_send(client->session, get, sizeof get - 1), sizeof get - 1);
    return record;
}

/* Kept connections on which a part of a request's record has come: of its header, all of that, of its bytes. The last one
 * has sent nothing more, and ends. */
Test(door, a_drain_waits_for_a_record_that_has_begun)
{
    static const size_t cuts[] = {1, 4, 5, 6, 30, 0};
    struct tls_client clients[COUNT(cuts)];
    struct record records[COUNT(cuts)];
    struct server server = start_secure(NULL);
    for (size_t i = 0; i < COUNT(cuts); i++) {
        clients[i] = connect_secure(&server);
        cr_expect_eq(tls_get(&clients[i], "/livez"), 200);
        records[i] = make_record(&clients[i]);
        send(clients[i].fd, records[i].bytes, cuts[i], MSG_NOSIGNAL);
    }
    wait_ms(100);
    kill(server.pid, SIGTERM);
    cr_expect(server_logs(&server, "info draining", 1));
    wait_ms(300);
    for (size_t i = 0; i < COUNT(cuts); i++) {
        struct channel c = {.fd = clients[i].fd, .tls = &clients[i]};
        send(clients[i].fd, records[i].bytes + cuts[i], records[i].size - cuts[i], MSG_NOSIGNAL);
        cr_expect_eq(reads(&c, "HTTP/1.1 200 "), cuts[i] > 0, "cut %zu", cuts[i]);
        tls_close(&clients[i]);
    }
    stop_secure(&server);
}

/* ---- 100 Continue that meets a full socket */

#define ALIVE "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"

/* Number of requests that the server has answered, `least` or more, once it answers no more. */
static int answered_at_rest(const struct server *server, int least)
{
    static const char name[] =
        "\nkldiv_http_requests_total{route=\"/livez\",method=\"GET\",code=\"200\"} ";
    double n = -1, before = -2;
    for (double end = now_seconds() + 10; (n < least || n != before) && now_seconds() < end;) {
        before = n;
        wait_ms(100);
        n = metric(server, name);
    }
    return (int)n;
}

/* Sends `n` requests, and a call that waits for leave to send its body. */
static void send_requests(const struct channel *c, int n)
{
    struct api_buffer bytes = {0};
    for (int i = 0; i < n; i++)
        api_append_text(&bytes, ALIVE);
    api_append_text(&bytes, POST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    for (size_t sent = 0; sent < bytes.size;) {
        ssize_t size = put(c, bytes.data + sent, bytes.size - sent);
        cr_assert_gt(size, 0);
        sent += (size_t)size;
    }
    api_buffer_free(&bytes);
}

/* Where about as many responses as the socket has room for come before it, 100 Continue comes when the client reads, and
 * nothing of the response behind it is lost. */
static void expect_leave(const struct server *server, bool tls)
{
    enum { TOO_MANY = 1000, AROUND = 2 };
    int most = 0, before = 0;
    for (int i = -AROUND - 1; i <= AROUND; i++) {
        struct tls_client client = {.fd = -1};
        if (tls)
            client = connect_secure(server);
        struct channel c = {.fd = tls ? client.fd : dial(server), .tls = tls ? &client : NULL};
        int n = most ? most + i : TOO_MANY;
        send_requests(&c, n);
        if (most) {
            answered_at_rest(server, before + (i < 0 ? n : most));
            cr_expect(reads(&c, "HTTP/1.1 100 Continue\r\n\r\n"), "no leave after %d", n);
            put(&c, "{}", 2);
            cr_expect(reads(&c, "HTTP/1.1 422 "), "no answer after %d", n);
            before += n;
        } else {
            before = most = answered_at_rest(server, 10);
            cr_assert(most < TOO_MANY);
        }
        if (tls)
            tls_close(&client);
        else
            close(c.fd);
    }
}

Test(door, gives_leave_when_a_full_socket_has_room)
{
    char address[60];
    snprintf(address, sizeof address, "unix:@kldiv-door-%d", getpid());
    struct server server = server_start_at(address, NULL);
    expect_leave(&server, false);
    cr_expect_eq(server_stop(&server, false), 0);
    server = start_secure(address);
    expect_leave(&server, true);
    stop_secure(&server);
}

/* The longest header that a response may have fits into what libmicrohttpd has for it, also where the door's request takes
 * its half. */
Test(door, sends_the_longest_header)
{
    enum { ID = 128, ORIGIN = 300 };
    char origin[ORIGIN + 40] = "https://", id[ID + 1], two[1000], answer[8000];
    memset(origin + 8, 'o', ORIGIN - 8);
    memset(id, 'i', ID);
    id[ID] = '\0';
    const char *const flags[] = {"--cors-origin", origin, NULL};
    struct server server = server_start(flags);
    int n = snprintf(two, sizeof two,
                     POST "X-Request-Id: %s\r\nContent-Type: a/b\r\n"
                          "Content-Length: 2\r\n\r\n{}"
                          "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                     id);
    talk(&server, two, (size_t)n, answer, sizeof answer, 2);
    cr_expect(strstr(answer, " 415 ") && strstr(answer, id) && strstr(answer, origin), "%s",
              answer);
    cr_expect(strstr(answer, "{\"status\":\"ok\"}"), "%s", answer);
    cr_expect_eq(server_stop(&server, false), 0);
}
