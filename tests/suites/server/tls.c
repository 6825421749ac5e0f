/* HTTPS of the server as a process. */
#include "api/request/response.h"
#include "api/text/clock.h"
#include "tests/suites/support/certificate.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <curl/curl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Files of a test, and the server that reads them. */
static struct {
    char folder[40], cert[60], key[60], other_cert[60], other_key[60];
    struct server server;
} secure;

static void make_files(void)
{
    strcpy(secure.folder, "/tmp/kldiv-tls-XXXXXX");
    cr_assert(mkdtemp(secure.folder));
    snprintf(secure.cert, sizeof secure.cert, "%s/cert", secure.folder);
    snprintf(secure.key, sizeof secure.key, "%s/key", secure.folder);
    snprintf(secure.other_cert, sizeof secure.other_cert, "%s/other-cert", secure.folder);
    snprintf(secure.other_key, sizeof secure.other_key, "%s/other-key", secure.folder);
}

static void remove_files(void)
{
    unlink(secure.cert);
    unlink(secure.key);
    unlink(secure.other_cert);
    unlink(secure.other_key);
    rmdir(secure.folder);
}

/* Starts a server with a new certificate and at most 4 more flags. */
static void start(gnutls_pk_algorithm_t algorithm, const char *const *more)
{
    const char *flags[10] = {"--tls-cert", secure.cert, "--tls-key", secure.key};
    make_files();
    make_certificate(secure.cert, secure.key, algorithm, 30);
    for (size_t i = 0; more && more[i]; i++)
        flags[4 + i] = more[i];
    secure.server = server_start(flags);
    secure.server.certificate = secure.cert;
}

static void stop(bool may_complain)
{
    cr_expect_eq(server_stop(&secure.server, may_complain), 0);
    remove_files();
}

Test(tls, tls_answers_a_client_that_verifies_it)
{
    char address[40], output[1000], value[100];
    start(GNUTLS_PK_ECDSA, NULL);
    struct fetched f = post_json(&secure.server, "/kl_div?reduction=sum", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    cr_expect(*header_in(&f, "Strict-Transport-Security", value, sizeof value));
    fetched_free(&f);
    snprintf(address, sizeof address, "127.0.0.1:%d", secure.server.port);
    const char *const check[] = {"--healthcheck", "--listen",  address,    "--tls-cert",
                                 secure.cert,     "--tls-key", secure.key, NULL};
    cr_expect_eq(run_server(check, output, sizeof output), 0, "%s", output);
    cr_expect(server_logs(&secure.server, "listening on https://127.0.0.1:", 1));
    stop(false);
}

/* The server, and not the client, must end the handshake. libmicrohttpd sends no alert. */
static void expect_refusal(const char *priorities)
{
    struct tls_client client = tls_connect(&secure.server, priorities, NULL);
    cr_expect(client.result == GNUTLS_E_PREMATURE_TERMINATION ||
                  client.result == GNUTLS_E_FATAL_ALERT_RECEIVED,
              "%s: %s", priorities, gnutls_strerror(client.result));
    tls_close(&client);
}

/* An RSA certificate would allow all of the key exchanges. */
Test(tls, tls_is_1_2_and_1_3_with_forward_secrecy_and_aead)
{
    static const char *const good[] = {
        "NORMAL",
        "NORMAL:-VERS-ALL:+VERS-TLS1.3",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+CHACHA20-POLY1305",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-GROUP-ALL:+GROUP-SECP384R1",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:+VERS-TLS1.0:+RSA",
    };
    static const char *const bad[] = {
        "NORMAL:-VERS-ALL:+VERS-TLS1.0",
        "NORMAL:-VERS-ALL:+VERS-TLS1.1",
        "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+DHE-RSA",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ANON-ECDH",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC:+AES-256-CBC",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+3DES-CBC",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+NULL:-MAC-ALL:+SHA256",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CCM:+AES-256-CCM-8",
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:-SIGN-ALL:+SIGN-RSA-SHA1",
    };
    start(GNUTLS_PK_RSA, NULL);
    for (size_t i = 0; i < COUNT(good); i++) {
        struct tls_client client = tls_connect(&secure.server, good[i], NULL);
        cr_expect_eq(client.result, 0, "%s: %s", good[i], gnutls_strerror(client.result));
        cr_expect_eq(tls_get(&client, "/livez"), 200, "%s", good[i]);
        tls_close(&client);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_refusal(bad[i]);
    stop(false);
}

Test(tls, tls_is_neither_renegotiated_nor_resumed)
{
    gnutls_datum_t session;
    start(GNUTLS_PK_ECDSA, NULL);
    struct tls_client client = tls_connect(&secure.server, "NORMAL:-VERS-ALL:+VERS-TLS1.2", NULL);
    cr_assert_eq(client.result, 0);
    cr_expect_eq(tls_get(&client, "/livez"), 200);
    cr_assert_eq(gnutls_session_get_data2(client.session, &session), 0);
    cr_expect_lt(gnutls_handshake(client.session), 0);
    tls_close(&client);

    client = tls_connect(&secure.server, "NORMAL:-VERS-ALL:+VERS-TLS1.2", &session);
    cr_expect_eq(client.result, 0);
    cr_expect(!gnutls_session_is_resumed(client.session));
    cr_expect_eq(tls_get(&client, "/livez"), 200);
    tls_close(&client);
    gnutls_free(session.data);
    stop(false);
}

/* HTTP is told that this is TLS. Other bytes that are no handshake end the connection, and nothing else. */
Test(tls, plain_requests_to_a_tls_port_are_told_of_it)
{
    static const char plain[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char *const odd[] = {"\x16\x03\x01\x3f\xff\x01", "\x16\x03\x03\x00\x00",
                                      "\x15\x03\x03\x00\x02\x02\x28", "\x17\x03\x03\xff\xff"};
    char answer[1000];
    start(GNUTLS_PK_ECDSA, NULL);
    talk(&secure.server, plain, sizeof plain - 1, answer, sizeof answer, 5);
    cr_expect(strncmp(answer, "HTTP/1.1 400 ", 13) == 0, "%s", answer);
    cr_expect(strstr(answer, "\r\n\r\nthis address speaks TLS: use https://\n"), "%s", answer);
    for (size_t i = 0; i < COUNT(odd); i++)
        talk(&secure.server, odd[i], 5, answer, sizeof answer, 0.1);
    struct fetched f = fetch(&secure.server, "GET", "/livez", NULL, NULL, 0);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    f = fetch(&secure.server, "GET", "/metrics", NULL, NULL, 0);
    static const char ends[] = "\nkldiv_tls_certificate_expiry_timestamp_seconds ";
    const char *line = strstr(f.body.data, ends);
    cr_expect(line && atof(line + sizeof ends - 1) > (double)time(NULL));
    fetched_free(&f);
    stop(false);
}

/* Processor time of the server so far, in seconds. */
static double processor_time(void)
{
    clockid_t clock;
    struct timespec t;
    cr_assert_eq(clock_getcpuclockid(secure.server.pid, &clock), 0);
    cr_assert_eq(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The server must end the connection, after the 10 s of a header. */
static void expect_end(int fd)
{
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    cr_expect_eq(poll(&p, 1, 20000), 1);
    cr_expect_leq(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    close(fd);
}

/* libmicrohttpd under epoll asks the socket again and again instead of waiting. */
Test(tls, tls_waits_for_a_slow_handshake_without_work_and_not_for_ever)
{
    start(GNUTLS_PK_ECDSA, NULL);
    int silent = dial(&secure.server), slow = dial(&secure.server);
    cr_assert_eq(send(slow, "\x16", 1, MSG_NOSIGNAL), 1);
    double before = processor_time();
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    cr_expect_lt(processor_time() - before, 0.5);
    expect_end(silent);
    expect_end(slow);
    stop(false);
}

/* Makes a safetensors file of two float32 tensors of n elements, 0 but for a few. */
static struct api_buffer make_body(size_t n)
{
    struct api_buffer body = {0};
    char json[300];
    size_t size = (size_t)snprintf(
        json, sizeof json,
        "{\"input\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]},"
        "\"target\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}}",
        n, 4 * n, n, 4 * n, 8 * n);
    uint64_t length = size;
    api_append(&body, &length, sizeof length);
    api_append(&body, json, size);
    cr_assert(api_buffer_room(&body, 8 * n));
    for (size_t i = 0; i < 2 * n; i++) {
        float value = i < n ? -1.0f - (float)(i % 7) : (float)(i % 5) / 8;
        api_append(&body, &value, sizeof value);
    }
    return body;
}

static const char *const tensors[] = {"Content-Type: application/x-safetensors",
                                      "Accept: application/x-safetensors", "Expect:", NULL};

Test(tls, tls_carries_large_bodies_both_ways)
{
    static const size_t sizes[] = {1, 1000, 5000, 1 << 20, 8 << 20};
    static const char query[] = "reduction=none&gradient=input";
    start(GNUTLS_PK_ECDSA, NULL);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct api_buffer body = make_body(sizes[i]);
        const struct question question = {.query = query,
                                          .content_type = "application/x-safetensors",
                                          .accept = "application/x-safetensors"};
        struct answer ours = ask_question(&question, NULL, body.data, body.size);
        struct fetched f = fetch(&secure.server, "POST", "/kl_div?reduction=none&gradient=input",
                                 tensors, body.data, body.size);
        cr_expect_eq(f.status, 200, "%zu", sizes[i]);
        cr_assert_eq(f.body.size - 1, api_response_size(&ours.response), "%zu", sizes[i]);
        const char *at = f.body.data;
        cr_expect(memcmp(at, ours.response.body.data, ours.response.body.size) == 0);
        at += ours.response.body.size;
        for (size_t j = 0; j < ours.response.n_tensors; j++) {
            const struct api_buffer *tensor = &ours.response.tensors[j];
            cr_expect(memcmp(at, tensor->data, tensor->size) == 0, "%zu", sizes[i]);
            at += tensor->size;
        }
        fetched_free(&f);
        answer_free(&ours);
        api_buffer_free(&body);
    }
    stop(false);
}

/* Refusals before the body is read, while it is sent, and by a client that waits for leave. */
Test(tls, tls_refuses_bodies_that_are_too_large)
{
    static const char *const flags[] = {"--max-body", "1M", NULL};
    static const char *const waits[] = {"Content-Type: application/x-safetensors",
                                        "Expect: 100-continue", NULL};
    start(GNUTLS_PK_ECDSA, flags);
    for (size_t i = 0; i < 4; i++) {
        struct api_buffer body = make_body(i & 1 ? 10 << 20 : 1 << 20);
        struct fetched f =
            fetch(&secure.server, "POST", "/kl_div", i & 2 ? waits : tensors, body.data, body.size);
        cr_expect_eq(f.status, 413, "case %zu: %ld", i, f.status);
        fetched_free(&f);
        api_buffer_free(&body);
    }
    stop(false);
}

/* Refusals while a request arrives are told through TLS as well. */
Test(tls, tls_tells_refusals_of_bytes_and_of_bodies)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {"GET /livez HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n{   }", 400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}", 400},
        {"POST /kl_div HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
         "C\r\n{  \"input\": \r\n",
         413},
    };
    static const char *const flags[] = {"--max-body", "10", NULL};
    start(GNUTLS_PK_ECDSA, flags);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char answer[2000] = "";
        struct tls_client client = tls_connect(&secure.server, "NORMAL", NULL);
        cr_assert_eq(client.result, 0);
        gnutls_record_send(client.session, cases[i].request, strlen(cases[i].request));
        gnutls_record_recv(client.session, answer, sizeof answer - 1);
        cr_expect_eq(atoi(answer + 9), cases[i].status, "case %zu: %s", i, answer);
        tls_close(&client);
    }
    stop(false);
}

/* Requests that stop half-way end in time: the thread of a connection with TLS is woken in a way of its
 * own. */
Test(tls, tls_tells_those_that_are_late)
{
    static const char *const late[] = {
        "GET /livez HTTP/1.1\r\nHost: a\r\nX: ",
        "POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"};
    static const char *const flags[] = {"--timeout", "1", NULL};
    start(GNUTLS_PK_ECDSA, flags);
    for (size_t i = 0; i < COUNT(late); i++) {
        char answer[2000] = "";
        struct tls_client client = tls_connect(&secure.server, "NORMAL", NULL);
        struct pollfd readable = {.fd = client.fd, .events = POLLIN};
        ssize_t n = GNUTLS_E_AGAIN;
        cr_assert_eq(client.result, 0);
        gnutls_record_send(client.session, late[i], strlen(late[i]));
        while (n == GNUTLS_E_AGAIN && poll(&readable, 1, 5000) > 0)
            n = gnutls_record_recv(client.session, answer, sizeof answer - 1);
        cr_expect_eq(atoi(answer + 9), 408, "case %zu: %zd %s", i, n, answer);
        tls_close(&client);
    }
    stop(false);
}

/* A client's last message of the handshake is acknowledged at once: its request waits for that (Nagle's algorithm). An
 * acknowledgement that is delayed takes 40 ms; one of five connections is not late by chance. */
Test(tls, tls_1_3_acknowledges_the_handshake_at_once)
{
    double least = 1;
    start(GNUTLS_PK_ECDSA, NULL);
    for (int i = 0; i < 5; i++) {
        struct tls_client client =
            tls_connect(&secure.server, "NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL);
        double began = api_seconds();
        cr_expect_eq(tls_get(&client, "/livez"), 200);
        least = fmin(least, api_seconds() - began);
        tls_close(&client);
    }
    cr_expect_lt(least, 0.03, "the first request took %.3f s", least);
    stop(false);
}

/* A message of TLS that is no data does not hide the request behind it. The server is stopped, so that both are there
 * when it reads. */
Test(tls, tls_answers_a_request_behind_a_new_key)
{
    static const char get[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    static const unsigned peers[] = {0, GNUTLS_KU_PEER};
    static const struct timespec moment = {.tv_nsec = 100000000};
    start(GNUTLS_PK_ECDSA, NULL);
    for (size_t i = 0; i < COUNT(peers); i++) {
        char answer[2000] = "";
        ssize_t n = GNUTLS_E_AGAIN;
        struct tls_client client =
            tls_connect(&secure.server, "NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL);
        struct pollfd readable = {.fd = client.fd, .events = POLLIN};
        cr_expect_eq(tls_get(&client, "/livez"), 200);
        nanosleep(&moment, NULL); /* it waits for more by then */
        cr_assert_eq(kill(secure.server.pid, SIGSTOP), 0);
        nanosleep(&moment, NULL);
        cr_expect_eq(gnutls_session_key_update(client.session, peers[i]), 0);
        cr_expect_gt(gnutls_record_send(client.session, get, sizeof get - 1), 0);
        nanosleep(&moment, NULL);
        cr_assert_eq(kill(secure.server.pid, SIGCONT), 0);
        while (n == GNUTLS_E_AGAIN && poll(&readable, 1, 5000) > 0)
            n = gnutls_record_recv(client.session, answer, sizeof answer - 1);
        cr_expect_eq(atoi(answer + 9), 200, "case %zu: %zd %s", i, n, answer);
        tls_close(&client);
    }
    stop(false);
}

/* ---- SIGHUP */

static CURL *make_client(const char *certificate)
{
    char url[60];
    CURL *curl = curl_easy_init();
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", secure.server.port);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_CAINFO, certificate);
    curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    return curl;
}

/* Number of connections that a request made: 0 for one that was kept, -1 for no answer. */
static long connections_for_request(CURL *curl)
{
    long n = -1;
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &n);
    return n;
}

Test(tls, tls_takes_a_new_certificate_at_sighup_and_keeps_connections)
{
    start(GNUTLS_PK_ECDSA, NULL);
    make_certificate(secure.other_cert, secure.other_key, GNUTLS_PK_RSA, 30);
    CURL *old = make_client(secure.cert), *new = make_client(secure.other_cert);
    cr_expect_eq(connections_for_request(old), 1);
    cr_expect_eq(connections_for_request(old), 0);
    cr_expect_eq(connections_for_request(new), -1);

    char kept[60];
    snprintf(kept, sizeof kept, "%s/kept", secure.folder);
    cr_assert_eq(rename(secure.cert, kept), 0);
    cr_assert_eq(rename(secure.other_cert, secure.cert), 0);
    kill(secure.server.pid, SIGHUP); /* the key is still that of the old certificate */
    cr_expect(server_logs(&secure.server, " option=--tls-key error=\"the key in", 1));
    curl_easy_setopt(new, CURLOPT_CAINFO, secure.cert);
    cr_expect_eq(connections_for_request(new), -1);

    cr_assert_eq(rename(secure.other_key, secure.key), 0);
    kill(secure.server.pid, SIGHUP);
    cr_expect(server_logs(&secure.server, "info read the certificate file=", 2));
    cr_expect_eq(connections_for_request(new), 1);
    cr_expect_eq(connections_for_request(new), 0);
    cr_expect_eq(connections_for_request(old), 0, "an old connection goes on");
    curl_easy_cleanup(old);
    curl_easy_cleanup(new);
    unlink(kept);
    stop(true);
}

Test(tls, tls_warns_of_a_certificate_that_has_ended)
{
    start(GNUTLS_PK_ECDSA, NULL);
    make_certificate(secure.cert, secure.key, GNUTLS_PK_ECDSA, -1);
    kill(secure.server.pid, SIGHUP);
    cr_expect(server_logs(&secure.server, "warning read the certificate file=", 1));
    stop(true);
}

Test(tls, bad_certificates_are_told_in_one_line)
{
    char output[1000];
    make_files();
    make_certificate(secure.cert, secure.key, GNUTLS_PK_ECDSA, 30);
    make_certificate(secure.other_cert, secure.other_key, GNUTLS_PK_ECDSA, 30);
    const struct {
        const char *cert, *key, *says;
    } cases[] = {
        {secure.cert, secure.other_key, "--tls-key: the key in"},
        {secure.key, secure.key, "--tls-cert: "},
        {secure.cert, secure.cert, "--tls-key: "},
        {"/dev/null", secure.key, "--tls-cert: "},
        {secure.cert, "/dev/null", "--tls-key: "},
        {"/nonexistent", secure.key, "--tls-cert: cannot read /nonexistent"},
        {secure.cert, "/nonexistent", "--tls-key: cannot read /nonexistent"},
        {"/dev/zero", secure.key, "--tls-cert: cannot read /dev/zero: File too large"},
        {secure.folder, secure.key, "--tls-cert: cannot read"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const flags[] = {"--listen",  "127.0.0.1:0", "--tls-cert", cases[i].cert,
                                     "--tls-key", cases[i].key,  NULL};
        cr_expect_eq(run_server(flags, output, sizeof output), 1, "case %zu", i);
        cr_expect(strstr(output, cases[i].says), "case %zu: %s", i, output);
        cr_expect(strchr(output, '\n') == strrchr(output, '\n'), "%s", output);
    }
    remove_files();
}

/* ---- Load */

struct load {
    atomic_bool stop;
    atomic_ulong answered, lost;
};

static void *keep_asking(void *argument)
{
    struct load *load = argument;
    while (!atomic_load(&load->stop)) {
        struct fetched f = post_json(&secure.server, "/kl_div?reduction=sum", TWO_BY_TWO);
        atomic_fetch_add(f.status == 200 ? &load->answered : &load->lost,
                         f.status != 0 || f.lost ? 1 : 0);
        fetched_free(&f);
    }
    return NULL;
}

/* Each request is a connection with a handshake. Certificates change while handshakes go on; then
 * the server ends. */
Test(tls, tls_loses_no_request_by_sighup_and_sigterm)
{
    struct load load = {0};
    pthread_t clients[4];
    start(GNUTLS_PK_ECDSA, NULL);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (size_t i = 0; i < COUNT(clients); i++)
        pthread_create(&clients[i], NULL, keep_asking, &load);
    for (int i = 0; i < 100 || (i < 3000 && atomic_load(&load.answered) < 40); i++) {
        kill(secure.server.pid, SIGHUP);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    struct server server = secure.server;
    cr_expect_eq(server_stop(&server, false), 0);
    atomic_store(&load.stop, true);
    for (size_t i = 0; i < COUNT(clients); i++)
        pthread_join(clients[i], NULL);
    cr_expect_gt(atomic_load(&load.answered), 20);
    cr_expect_eq(atomic_load(&load.lost), 0, "%lu", atomic_load(&load.lost));
    remove_files();
}
