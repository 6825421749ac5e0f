/* Requests by their raw bytes: framing that a proxy might read in another way is answered once, with
 * 400, logged and counted, and its connection is closed. */
#include "server/connection/framing.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/raw_requests.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* Counted requests of a status. */
static double counted(const struct server *server, int status)
{
    char label[40];
    double total = 0;
    struct fetched f = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    snprintf(label, sizeof label, "code=\"%d\"} ", status);
    for (const char *p = f.body.data; (p = strstr(p, label)); p++)
        total += atof(p + strlen(label));
    fetched_free(&f);
    return total;
}

static void check_refusal(const char *request, size_t size, int status, const char *answer)
{
    cr_expect_eq(atoi(answer + 9), status, "%.*s\n%s", (int)size, request, answer);
    cr_expect_eq(count_of(answer, "Cache-Control: "), 1, "%.*s\n%s", (int)size, request, answer);
    cr_expect_eq(count_of(answer, "Connection: close"), 1, "%s", answer);
    cr_expect_eq(count_of(answer, "application/problem+json"), 1, "%s", answer);
}

Test(framing, that_is_ambiguous_is_refused_once_counted_and_logged)
{
    struct server server = server_start(NULL);
    double before = counted(&server, 400);
    int bad = 0;
    for (size_t i = 0; i < COUNT(refused); i++) {
        char answer[4000];
        talk(&server, refused[i].bytes, refused[i].size, answer, sizeof answer, 2);
        check_refusal(refused[i].bytes, refused[i].size, refused[i].status, answer);
        bad += refused[i].status == 400;
    }
    cr_expect_eq(counted(&server, 400) - before, bad, "%g", counted(&server, 400) - before);
    int logged = 0;
    for (int i = 0; i < 100 && logged < bad; i++) { /* lines are written some ms later */
        char *log = server_log_text(&server);
        logged = count_of(log, "code=bad_request");
        free(log);
        usleep(20000);
    }
    cr_expect_eq(logged, bad, "%d of %d", logged, bad);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A libmicrohttpd that reads past the door: nobody has checked what it hands on. */
Test(framing, that_nobody_would_check_is_told_at_the_start)
{
    static const char *const flags[] = {"--listen", "127.0.0.1:0", NULL};
    char output[4000];
    setenv("KLDIV_SERVER", KLDIV_UNADAPTED, 1);
    cr_expect_eq(run_server(flags, output, sizeof output), 1);
    cr_expect(strstr(output, "kldivd: libmicrohttpd "), "%s", output);
}

/* Bytes in two pieces, cut anywhere: libmicrohttpd must not judge the first one by itself. */
Test(framing, that_is_ambiguous_is_refused_the_same_in_two_pieces)
{
    static const char *const bodies[] = {"x\r\n", "2x\r\n", "2;\x01\r\n", "2\r\n{}x", "g\r\n"};
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(bodies); i++)
        for (size_t cut = 1; cut < strlen(bodies[i]); cut++) {
            char answer[2000] = "";
            size_t got = 0;
            int fd = dial(&server);
            cr_assert_geq(send(fd, CHUNKED, sizeof CHUNKED - 1, MSG_NOSIGNAL), 0);
            cr_assert_geq(send(fd, bodies[i], cut, MSG_NOSIGNAL), 0);
            usleep(20000);
            send(fd, bodies[i] + cut, strlen(bodies[i]) - cut, MSG_NOSIGNAL);
            for (ssize_t n = 1; n > 0 && got<sizeof answer - 1; got += n> 0 ? (size_t)n : 0)
                n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
            answer[got] = '\0';
            check_refusal(bodies[i], strlen(bodies[i]), 400, answer);
            close(fd);
        }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Each refusal after a good request on the same connection, sent at once, and in two pieces: the good
 * one is answered first. */
Test(framing, behind_a_good_request_is_refused_after_its_answer)
{
    static const char good[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    struct server server = server_start(NULL);
    for (size_t i = 0; i < 2 * COUNT(refused); i++) {
        char both[500], answer[6000] = "", *second;
        size_t size = refused[i / 2].size, all = sizeof good - 1 + size, got = 0;
        size_t first = i % 2 ? sizeof good - 1 + size / 2 : all;
        memcpy(both, good, sizeof good - 1);
        memcpy(both + sizeof good - 1, refused[i / 2].bytes, size);
        int fd = dial(&server);
        cr_assert_eq(send(fd, both, first, MSG_NOSIGNAL), (ssize_t)first);
        if (first < all) {
            struct pollfd readable = {.fd = fd, .events = POLLIN};
            poll(&readable, 1, 1000);
            send(fd, both + first, all - first, MSG_NOSIGNAL);
        }
        for (ssize_t n = 1; n > 0 && got < sizeof answer - 1;) {
            struct pollfd readable = {.fd = fd, .events = POLLIN};
            n = poll(&readable, 1, 2000) > 0 ? recv(fd, answer + got, sizeof answer - 1 - got, 0)
                                             : 0;
            got += n > 0 ? (size_t)n : 0;
        }
        answer[got] = '\0';
        close(fd);
        cr_expect_eq(atoi(answer + 9), 200, "case %zu: %s", i, answer);
        second = strstr(answer + 1, "HTTP/1.1 ");
        cr_assert(second, "case %zu: %s", i, answer);
        check_refusal(refused[i / 2].bytes, size, refused[i / 2].status, second);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* The beginning of a request that came with a good one has 10 s, and is then told so. */
Test(framing, of_a_request_that_begins_behind_another_has_its_time)
{
    static const char both[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\nGET /livez HT";
    struct server server = server_start(NULL);
    char answer[4000], *second;
    talk(&server, both, sizeof both - 1, answer, sizeof answer, 14);
    second = strstr(answer + 1, "HTTP/1.1 ");
    cr_expect(second && atoi(second + 9) == 408, "%s", answer);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Refusals past the library have all of their header. */
Test(framing, refusals_of_long_chunked_bodies_have_their_header)
{
    static const struct {
        const char *head, *has;
        int status;
    } cases[] = {{"PUT /kl_div HTTP/1.1\r\nHost: a\r\n", "Allow: POST\r\n", 405},
                 {"OPTIONS /kl_div HTTP/1.1\r\nHost: a\r\n", "Allow: POST\r\n", 204},
                 {POST "Content-Type: a/b\r\n", "Accept: ", 415}};
    enum { SIZE = 2 << 20 };
    struct server server = server_start(NULL);
    char *request = malloc(SIZE + 400);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char answer[4000];
        int n = sprintf(request, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n", cases[i].head, SIZE);
        memset(request + n, ' ', SIZE);
        talk(&server, request, (size_t)n + SIZE, answer, sizeof answer, 5);
        cr_expect_eq(atoi(answer + 9), cases[i].status, "%s", answer);
        cr_expect(strstr(answer, cases[i].has) && strstr(answer, "nosniff"), "%s", answer);
        cr_expect(!strstr(answer, "(null)"), "%s", answer);
    }
    free(request);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Requests in order, cut into pieces of every size. */
Test(framing, of_good_requests_is_accepted_in_any_pieces)
{
    static const char good[] =
        "\r\nGET http://a:80/x?%20y HTTP/1.0\r\n\r\n" CHUNKED
        "2;ext=\"a b\"\r\n{}\r\nA\r\n0123456789\r\n000\r\nX: y\r\n\r\n"
        "OPTIONS * HTTP/1.1\r\nHost: [::1]:8080\r\nExpect: 100-continue\r\n\r\n" POST
        "X:\r\nY: a\tb \xc3\xa9\r\nContent-Length: 7\r\nCOOKIE: a=b; "
        "c=secret;\t\r\n\r\n\n\0\r\nGET";
    for (size_t piece = 1; piece < sizeof good; piece++) {
        struct srv_framing framing = {0};
        int headers = 0;
        char bytes[sizeof good];
        memcpy(bytes, good, sizeof good);
        for (size_t at = 0; at < sizeof good - 1; at += piece) {
            size_t n = sizeof good - 1 - at < piece ? sizeof good - 1 - at : piece;
            for (size_t used = 0; used < n;) {
                enum srv_part part;
                used += srv_framing_step(&framing, bytes + at + used, n - used, &part);
                cr_assert(!framing.error.code, "piece %zu at %zu: %s", piece, at,
                          framing.error.detail);
                headers += part == SRV_PART_HEADER_END;
            }
        }
        cr_expect_eq(headers, 4);
        cr_expect(srv_framing_is_between_requests(&framing));
        srv_framing_free(&framing);
    }
}

static void expect_status(const struct server *server, const char *request, size_t n, int status)
{
    char answer[4000];
    talk(server, request, n, answer, sizeof answer, 2);
    cr_expect_eq(atoi(answer + 9), status, "%s", answer);
}

/* Sizes at the limits, and one above. */
Test(framing, has_limits)
{
    static char request[3 << 20];
    struct server server = server_start(NULL);
    for (int over = 0; over < 2; over++) {
        size_t n = (size_t)sprintf(request, "GET /livez?");
        while (n < SRV_HEADER_SIZE - 22 + 12 * (size_t)over)
            request[n++] = 'x';
        n += (size_t)sprintf(request + n, " HTTP/1.1\r\n%s", over ? "" : "Host: a\r\n\r\n");
        expect_status(&server, request, n, over ? 414 : 200);

        n = (size_t)sprintf(request, "GET /livez HTTP/1.1\r\nHost: a\r\n");
        for (int i = 1; i < SRV_HEADER_FIELDS + over; i++)
            n += (size_t)sprintf(request + n, "X: y\r\n");
        n += (size_t)sprintf(request + n, "\r\n");
        expect_status(&server, request, n, over ? 431 : 200);

        n = (size_t)sprintf(request, "GET /livez HTTP/1.1\r\nHost: a\r\n");
        for (int i = 2; i < SRV_HEADER_FIELDS; i++)
            n += (size_t)sprintf(request + n, "X: y\r\n");
        n += (size_t)sprintf(request + n, "%sCookie: ", over ? "Cookie: c=d\r\n" : "");
        while (n < SRV_HEADER_SIZE - 6)
            n += (size_t)sprintf(request + n, "a;");
        n += (size_t)sprintf(request + n, "\r\n\r\n");
        expect_status(&server, request, n, over ? 431 : 200);

        n = (size_t)sprintf(request, CHUNKED "2\r\n{}\r\n0\r\n");
        for (int i = 2; i < SRV_HEADER_FIELDS + over; i++)
            n += (size_t)sprintf(request + n, "X: %0150d\r\n", i);
        n += (size_t)sprintf(request + n, "\r\n");
        expect_status(&server, request, n, over ? 431 : 422);

        n = (size_t)sprintf(request, CHUNKED);
        for (int i = 0; i < SRV_CHUNKS + over; i++)
            n += (size_t)sprintf(request + n, "1\r\n%c\r\n", " {}"[i < 2 ? 1 + i : 0]);
        n += (size_t)sprintf(request + n, "0\r\n\r\n");
        expect_status(&server, request, n, over ? 400 : 422);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A cookie is a field, whatever it holds; the service reads none. */
Test(framing, cookies_count_once)
{
    static const char *const parts[] = {"a=b; ", "a;",          ";", ",",  "=",
                                        "\"",    "a=\"b,c\"; ", "x", "\t", "\xc3\xa9"};
    static const size_t sizes[] = {
        0, 1, 101, 2100, 8300, 16000, SRV_HEADER_SIZE - 200, SRV_HEADER_SIZE};
    static char request[1 << 16];
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(parts); i++)
        for (size_t j = 0; j < COUNT(sizes); j++) {
            size_t n = (size_t)sprintf(request, "GET /livez HTTP/1.1\r\nHost: a\r\ncOOKIE:");
            for (size_t begin = n; n < begin + sizes[j];)
                n += (size_t)sprintf(request + n, "%s", parts[i]);
            n += (size_t)sprintf(request + n, "\r\nConnection: close\r\n\r\n");
            expect_status(&server, request, n, sizes[j] < SRV_HEADER_SIZE ? 200 : 431);
        }
    static const char control[] = "GET /livez HTTP/1.1\r\nHost: a\r\nCookie: a=\x01\r\n\r\n",
                      bare[] = "GET /livez HTTP/1.1\r\nHost: a\r\nCookie: a=\rb\r\n\r\n";
    expect_status(&server, control, sizeof control - 1, 400);
    expect_status(&server, bare, sizeof bare - 1, 400);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* The preface of HTTP/2, by which clients with prior knowledge begin. */
Test(framing, of_http_2_is_refused_by_its_version)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    struct server server = server_start(NULL);
    for (size_t size = 16; size < sizeof preface; size++) {
        char answer[4000] = "";
        talk(&server, preface, size, answer, sizeof answer, 2);
        check_refusal(preface, size, 505, answer);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A request without a body that expects 100-continue, and the next one. */
Test(framing, of_pipelined_requests_that_expect_100_continue)
{
    static const char two[] = "GET /livez HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"
                              "GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    struct server server = server_start(NULL);
    char answer[4000];
    talk(&server, two, sizeof two - 1, answer, sizeof answer, 2);
    cr_expect_eq(count_of(answer, "HTTP/1.1 200 OK"), 2, "%s", answer);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Fields of which the first line does not stand for all. */
Test(framing, fields_that_may_come_once_are_refused_twice)
{
    static const char *const once[] = {
        "Authorization",  "Content-Encoding", "Content-Type", "Idempotency-Key",
        "If-Match",       "If-None-Match",    "Origin",       "Inference-Header-Content-Length",
        "sec-fetch-site", "Transfer-Encoding"};
    static const char *const often[] = {"Accept", "Accept-Encoding", "Connection", "X-Request-Id",
                                        "X"};
    struct server server = server_start(NULL);
    char request[400], answer[4000];
    for (size_t i = 0; i < COUNT(once) + COUNT(often); i++) {
        const char *name = i < COUNT(once) ? once[i] : often[i - COUNT(once)];
        int n = snprintf(request, sizeof request,
                         "POST /kl_div HTTP/1.1\r\nHost: a\r\n%s: b\r\n%s: b\r\n\r\n", name, name);
        talk(&server, request, (size_t)n, answer, sizeof answer, 0.2);
        bool refused_for_it = atoi(answer + 9) == 400 && strstr(answer, "at most one ");
        cr_expect_eq(refused_for_it, i < COUNT(once), "%s\n%s", request, answer);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Connection is a list; what the next request says is of no concern to this one. */
Test(framing, each_request_says_whether_it_is_the_last)
{
    enum { KEEPS = 'k', CLOSES = 'c' };
    static const struct {
        const char *fields[3], *answers; /* of each request; how each answer of them all ends */
    } cases[] = {
        {{""}, "k"},
        {{"Connection: close\r\n"}, "c"},
        {{"Connection: close, TE\r\nTE: trailers\r\n"}, "c"},
        {{"Connection: TE ,\tCLOSE\r\n"}, "c"},
        {{"Connection: TE\r\nConnection: close\r\n"}, "c"},
        {{"Connection: closed, not-close\r\n"}, "k"},
        {{"Connection: close\r\n", ""}, "c"},
        {{"", "Connection: close\r\n"}, "kc"},
        {{"", "", "Connection: close\r\n"}, "kkc"},
        {{"", "Connection: TE, close\r\n", ""}, "kc"},
    };
    struct server server = server_start(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char requests[1000] = "", answers[8000], ends[10] = "";
        for (size_t j = 0; j < 3 && cases[i].fields[j]; j++)
            snprintf(requests + strlen(requests), sizeof requests - strlen(requests),
                     "GET /livez HTTP/1.1\r\nHost: a\r\n%s\r\n", cases[i].fields[j]);
        talk(&server, requests, strlen(requests), answers, sizeof answers, 0.3);
        for (char *a = answers; (a = strstr(a, "HTTP/1.1 200 ")); a++) {
            char *end = strstr(a, "\r\n\r\n");
            cr_assert(end && strlen(ends) < sizeof ends - 1);
            *end = '\0';
            bool closes = strstr(a, "Connection: close"), keeps = strstr(a, "Keep-Alive: timeout=");
            ends[strlen(ends)] = closes && !keeps ? CLOSES : keeps && !closes ? KEEPS : '?';
            *end = '\r';
        }
        cr_expect_str_eq(ends, cases[i].answers, "%s\n%s", requests, answers);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A refused request without a body, and the begin of the next one, whose body comes later. */
Test(framing, of_pipelined_requests_of_which_the_first_is_refused)
{
    static const char two[] =
        "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
        "POST /kl_div HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: 30\r\n\r\n{\"input\"";
    static const char rest[] = ": [-1], \"target\": [1]}";
    struct server server = server_start(NULL);
    char answer[4000] = "";
    int client = dial(&server);
    cr_assert_eq(send(client, two, sizeof two - 1, MSG_NOSIGNAL), sizeof two - 1);
    usleep(100000);
    cr_assert_eq(send(client, rest, sizeof rest - 1, MSG_NOSIGNAL), sizeof rest - 1);
    for (size_t n = 0; n < sizeof answer - 1;) {
        ssize_t size = recv(client, answer + n, sizeof answer - 1 - n, 0);
        if (size <= 0)
            break;
        n += (size_t)size;
        answer[n] = '\0';
    }
    cr_expect_eq(count_of(answer, "HTTP/1.1 404 "), 1, "%s", answer);
    cr_expect_eq(count_of(answer, "HTTP/1.1 200 OK"), 1, "%s", answer);
    close(client);
    cr_expect_eq(server_stop(&server, false), 0);
}
