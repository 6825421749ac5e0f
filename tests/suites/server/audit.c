/* Who did what: the lines of requests that write, the addresses of clients, behind proxies too, and traces. */
#include "server/net/client_address.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TOKEN "operator-operator-operator"

static char tokens_file[] = "/tmp/kldiv-tokens-XXXXXX";

static void write_tokens(void)
{
    close(mkstemp(tokens_file));
    write_file(tokens_file, "ops read,write " TOKEN "\nviewer read viewer-viewer-viewer\n");
}

/* True for what changes something, by the verbs of the document; these POSTs only compute or ask. */
static bool writes(const char *method, const char *path)
{
    static const char *const reads[] = {"/kl_div",      "/infer",         "/evaluate",
                                        "/logging",     "/trace/setting", "/repository/index",
                                        "/kl_div/load", "/kl_div/unload", "/compare"};
    if (strcmp(method, "get") == 0)
        return false;
    for (size_t i = 0; strcmp(method, "post") == 0 && i < COUNT(reads); i++)
        if (strlen(path) >= strlen(reads[i]) &&
            strcmp(path + strlen(path) - strlen(reads[i]), reads[i]) == 0)
            return false;
    return true;
}

/* Sends the request of an operation; its id is that of the operation. */
static void send_operation(const struct server *server, const char *method, const char *path,
                           const char *id)
{
    char verb[20], target[300], id_field[200];
    const char *const headers[] = {"Authorization: Bearer " TOKEN, id_field, NULL};
    size_t n = 0;
    for (const char *p = path; *p; p++) /* {name} becomes name */
        if (*p != '{' && *p != '}')
            target[n++] = *p;
    target[n] = '\0';
    for (n = 0; method[n]; n++)
        verb[n] = (char)(method[n] - 'a' + 'A');
    verb[n] = '\0';
    snprintf(id_field, sizeof id_field, "X-Request-Id: %s", id);
    struct fetched f =
        fetch(server, verb, target, headers, strcmp(verb, "GET") == 0 ? NULL : "", 0);
    cr_expect(f.status >= 200, "%s %s: %ld", verb, target, f.status);
    fetched_free(&f);
}

/* The line of a request in a log of JSON, which the caller frees; NULL if there is none. */
static json_t *line_of(const char *log, const char *id)
{
    char field[200];
    snprintf(field, sizeof field, "\"id\":\"%s\"", id);
    const char *at = strstr(log, field), *start = at;
    if (!at)
        return NULL;
    cr_expect_not(strstr(at + 1, field), "%s has two lines", id);
    while (start > log && start[-1] != '\n')
        start--;
    return json_loadb(start, strcspn(start, "\n"), JSON_REJECT_DUPLICATES, NULL);
}

static bool is_method(const char *member) { return strcmp(member, "parameters") != 0; }

static void expect_line(const char *log, const char *method, const char *path, const char *id)
{
    json_t *line = line_of(log, id);
    bool is_write = writes(method, path);
    cr_expect_str_eq(text_of(line, "kind"), is_write ? "audit" : "", "%s %s", method, path);
    if (is_write) {
        cr_expect_str_eq(text_of(line, "token"), "ops", "%s %s", method, path);
        cr_expect_str_eq(text_of(line, "client"), "127.0.0.1", "%s %s", method, path);
        cr_expect(strcasecmp(text_of(line, "method"), method) == 0, "%s %s", method, path);
        cr_expect(*text_of(line, "target") == '/', "%s %s", method, path);
        cr_expect(json_integer_value(json_object_get(line, "status")) >= 200, "%s %s", method,
                  path);
    }
    json_decref(line);
}

Test(audit, each_operation_that_writes_says_so_and_no_other)
{
    const char *const flags[] = {
        "--listen", "127.0.0.1:0", "--log-format", "json", "--auth-token-file", tokens_file, NULL};
    write_tokens();
    struct server server = server_start(flags);
    size_t size;
    char *text = read_file("api/openapi.json", &size);
    json_t *document = json_loads(text, 0, NULL), *methods, *operation;
    const char *path, *method;
    size_t n = 0, n_writes = 0;
    json_object_foreach(json_object_get(document, "paths"), path, methods)
        json_object_foreach(methods, method, operation) if (is_method(method))
    {
        send_operation(&server, method, path, text_of(operation, "operationId"));
        n++;
        n_writes += writes(method, path);
    }
    cr_expect(n > 50 && n_writes > 15, "%zu, %zu", n, n_writes);
    cr_expect(server_logs(&server, "\"kind\":\"audit\"", n_writes));
    free(text);
    text = server_log_text(&server);
    json_object_foreach(json_object_get(document, "paths"), path, methods)
        json_object_foreach(methods, method, operation) if (is_method(method))
            expect_line(text, method, path, text_of(operation, "operationId"));
    json_decref(document);
    free(text);
    cr_expect_eq(server_stop(&server, true), 0);
    unlink(tokens_file);
}

static json_t *ask_for_line(struct server *server, const char *method, const char *token,
                            const char *body)
{
    static int number;
    char id[30], id_field[60], expected[60];
    const char *const headers[] = {token, id_field, "Content-Type: application/json", NULL};
    snprintf(id, sizeof id, "case-%d", number++);
    snprintf(id_field, sizeof id_field, "X-Request-Id: %s", id);
    snprintf(expected, sizeof expected, "\"id\":\"%s\"", id);
    struct fetched f =
        fetch(server, method, "/monitors/g/a", headers, body, body ? strlen(body) : 0);
    fetched_free(&f);
    cr_assert(server_logs(server, expected, 1), "%s", expected);
    char *log = server_log_text(server);
    json_t *line = line_of(log, id);
    free(log);
    return line;
}

/* The outcome is there whatever it is: stored, refused for its token, its scope, or its body. */
Test(audit, a_write_says_its_outcome)
{
    static const struct {
        const char *method, *token, *body;
        int status;
        const char *name, *kind;
    } cases[] = {
        {"PUT", "Authorization: Bearer " TOKEN,
         "{\"bins\": {\"edges\": [0, 1, 2]}, \"reference\": {\"counts\": [5, 5]}}", 201, "ops",
         "audit"},
        {"PUT", "Authorization: Bearer " TOKEN, "{", 400, "ops", "audit"},
        {"DELETE", "Authorization: Bearer viewer-viewer-viewer", NULL, 403, "viewer", "audit"},
        {"DELETE", "X-None: ", NULL, 401, "", "audit"},
        {"GET", "Authorization: Bearer viewer-viewer-viewer", NULL, 200, "viewer", ""},
        {"POST", "Authorization: Bearer " TOKEN, "{}", 405, "ops", ""},
        {"DELETE", "Authorization: Bearer " TOKEN, NULL, 204, "ops", "audit"},
    };
    const char *const flags[] = {"--log-format", "json", "--auth-token-file", tokens_file, NULL};
    write_tokens();
    struct server server = server_start(flags);
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *line = ask_for_line(&server, cases[i].method, cases[i].token, cases[i].body);
        cr_expect_eq(json_integer_value(json_object_get(line, "status")), cases[i].status,
                     "case %zu: %s", i, text_of(line, "code"));
        cr_expect_str_eq(text_of(line, "token"), cases[i].name, "case %zu", i);
        cr_expect_str_eq(text_of(line, "kind"), cases[i].kind, "case %zu", i);
        json_decref(line);
    }
    cr_expect_eq(server_stop(&server, true), 0);
    unlink(tokens_file);
}

/* ---- Addresses */

Test(audit, lists_of_proxies_are_addresses_and_networks)
{
    static const char *const good[] = {"10.0.0.1",
                                       "10.0.0.0/8,192.168.0.0/16",
                                       "::1",
                                       "fd00::/8",
                                       "unix",
                                       "unix,127.0.0.1",
                                       "0.0.0.0/0",
                                       "::/0",
                                       "::ffff:10.0.0.1"};
    static const char *const bad[] = {
        "",      ",",           "10.0.0.1,",   "10.0.0.0/33", "::/129",    "10.0.0.0/",
        "host",  "10.0.0",      "10.0.0.1/-1", "Unix",        "10.0.0.1 ", "::1/+5",
        "[::1]", "10.0.0.1:80", "1/0001",      "0x7f.0.0.1",  "::1%eth",   "::1/00000008"};
    static const char one[] = ",10.0.0.1";
    enum { SIZE = sizeof one - 1 };
    char many[(SRV_MAX_PROXIES + 1) * SIZE + 1] = "";
    for (size_t i = 0; i < COUNT(good); i++)
        cr_expect(srv_proxies_are_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect_not(srv_proxies_are_valid(bad[i]), "%s", bad[i]);
    for (size_t i = 0; i <= SRV_MAX_PROXIES; i++) {
        cr_expect(i == 0 || srv_proxies_are_valid(many + 1), "%zu", i);
        memcpy(many + i * SIZE, one, SIZE);
    }
    cr_expect_not(srv_proxies_are_valid(many + 1));
}

Test(audit, forwarded_for_counts_as_far_as_proxies_are_trusted)
{
    static const struct {
        const char *lines[3];
        const char *client; /* NULL: that of the connection */
    } cases[] = {
        {{"192.0.2.7"}, "192.0.2.7"},
        {{"6.6.6.6, 192.0.2.7"}, "192.0.2.7"},
        {{"6.6.6.6, 192.0.2.7, 10.1.2.3"}, "192.0.2.7"},
        {{"6.6.6.6, 192.0.2.7", "10.1.2.3,10.1.2.4"}, "192.0.2.7"},
        {{"6.6.6.6", "192.0.2.7"}, "192.0.2.7"},
        {{"10.9.9.9, 10.1.2.3"}, "10.9.9.9"},
        {{"192.0.2.7, unknown, 10.1.2.3"}, "10.1.2.3"},
        {{"192.0.2.7, unknown"}, NULL},
        {{"unknown, 192.0.2.7"}, "192.0.2.7"},
        {{"192.0.2.7:4711"}, "192.0.2.7"},
        {{"[2001:DB8::1]:4711"}, "2001:db8::1"},
        {{"[2001:db8::1]"}, "2001:db8::1"},
        {{"2001:db8::1"}, "2001:db8::1"},
        {{"::ffff:192.0.2.7"}, "192.0.2.7"},
        {{"::ffff:10.0.0.1, fd12::1"}, "10.0.0.1"},
        {{"[::1"}, NULL},
        {{"[::1]x"}, NULL},
        {{"192.0.2.7:80x"}, NULL},
        {{"192.0.2.7\x1b[31m"}, NULL},
        {{"\"192.0.2.7\""}, NULL},
        {{"192.0.2.7 admin=1"}, NULL},
        {{"1.2.3.4.5"}, NULL},
        {{""}, NULL},
        {{" , ,"}, NULL},
        {{"[]"}, NULL},
        {{":80"}, NULL},
        {{",192.0.2.7,,"}, "192.0.2.7"},
    };
    srv_proxies_set("10.0.0.0/8,fd00::/8");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct srv_forwarded forwarded = {.is_found = false};
        char text[SRV_ADDRESS_TEXT] = "";
        for (size_t j = 0; j < 3 && cases[i].lines[j]; j++)
            srv_forwarded_add(&forwarded, cases[i].lines[j]);
        bool found = srv_forwarded_text(&forwarded, text);
        cr_expect_eq(found, cases[i].client != NULL, "case %zu: %s", i, text);
        cr_expect_str_eq(text, cases[i].client ? cases[i].client : "", "case %zu", i);
    }
}

Test(audit, networks_have_their_bits)
{
    static const struct {
        const char *list, *address;
        bool is_proxy;
    } cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true},   {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/9", "10.127.0.1", true},       {"10.0.0.0/9", "10.128.0.1", false},
        {"10.0.0.1", "10.0.0.2", false},          {"10.0.0.1/32", "10.0.0.1", true},
        {"0.0.0.0/0", "203.0.113.1", true},       {"192.168.4.0/22", "192.168.7.255", true},
        {"192.168.4.0/22", "192.168.8.0", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sockaddr_in address = {.sin_family = AF_INET};
        char text[SRV_ADDRESS_TEXT];
        inet_pton(AF_INET, cases[i].address, &address.sin_addr);
        srv_proxies_set(cases[i].list);
        cr_expect_eq(srv_peer_read((struct sockaddr *)&address, text), cases[i].is_proxy, "%s %s",
                     cases[i].list, cases[i].address);
        cr_expect_str_eq(text, cases[i].address);
    }
}

static void expect_client(const char *proxies, const char *format, const char *says,
                          const char *says_not)
{
    static const char request[] = "GET /v2 HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\n"
                                  "x-forwarded-for: 192.0.2.7\r\nConnection: close\r\n\r\n";
    const char *const flags[] = {
        "--listen", "127.0.0.1:0", "--log-format", format, proxies ? "--trusted-proxies" : NULL,
        proxies,    NULL};
    char answer[2000];
    struct server server = server_start(flags);
    talk(&server, request, strlen(request), answer, sizeof answer, 3);
    cr_expect_eq(strncmp(answer, "HTTP/1.1 200", 12), 0, "%s", answer);
    cr_expect(server_logs(&server, says, 1), "%s", says);
    char *log = server_log_text(&server);
    cr_expect_not(strstr(log, says_not), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(audit, only_trusted_proxies_name_clients)
{
    expect_client(NULL, "text", " client=127.0.0.1\n", "192.0.2.7");
    expect_client("10.0.0.0/8", "json", "\"client\":\"127.0.0.1\"", "proxy");
    expect_client("127.0.0.0/8,unix", "text", " client=192.0.2.7 proxy=127.0.0.1\n", "6.6.6.6");
    expect_client("::1,127.0.0.1", "json", "\"client\":\"192.0.2.7\",\"proxy\":\"127.0.0.1\"",
                  "6.6.6.6");
}

Test(audit, clients_of_unix_sockets_have_a_process)
{
    const char *const flags[] = {"--trusted-proxies", "unix", NULL};
    static const char *const headers[] = {"X-Forwarded-For: 2001:db8::1", NULL};
    char path[60];
    snprintf(path, sizeof path, "unix:/tmp/kldiv-audit-%d", (int)getpid());
    struct server server = server_start_at(path, flags);
    struct fetched f = fetch(&server, "GET", "/v2", headers, NULL, 0);
    fetched_free(&f);
    f = fetch(&server, "GET", "/v2", NULL, NULL, 0);
    fetched_free(&f);
    cr_expect(server_logs(&server, " client=2001:db8::1 proxy=unix ", 1));
    cr_expect(server_logs(&server, " client=unix ", 1));
    cr_expect(server_logs(&server, " uid=", 2));
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- Traces */

static void expect_trace(const char *fields, const char *format, const char *says, bool is_there)
{
    char request[1000], answer[2000];
    const char *const flags[] = {"--log-format", format, NULL};
    struct server server = server_start(flags);
    snprintf(request, sizeof request,
             "GET /nothing HTTP/1.1\r\nHost: a\r\n%sConnection: close\r\n\r\n", fields);
    talk(&server, request, strlen(request), answer, sizeof answer, 3);
    cr_expect_eq(strncmp(answer, "HTTP/1.1 404", 12), 0, "%s", answer);
    cr_expect_eq(!!strstr(answer, "\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\""), is_there,
                 "%s", answer);
    cr_expect(server_logs(&server, "not_found", 1));
    char *log = server_log_text(&server);
    cr_expect_eq(!!strstr(log, says), is_there, "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
}

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

Test(audit, traces_are_in_the_log_and_in_errors)
{
    expect_trace("traceparent: " PARENT "\r\n", "text",
                 " trace_id=0af7651916cd43dd8448eb211c80319c span_id=b7ad6b7169203331", true);
    expect_trace(
        "TraceParent:\t" PARENT " \r\n", "json",
        "\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\",\"span_id\":\"b7ad6b7169203331\"", true);
    expect_trace("traceparent: " PARENT "\r\ntraceparent: " PARENT "\r\n", "text", "trace_id",
                 false);
    expect_trace("traceparent: " PARENT "-extra\r\n", "text", "trace_id", false);
}
