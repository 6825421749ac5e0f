/* Hosts, tokens, scopes and the headers for browsers, by requests handled in this process. */
#include "api/request/access.h"
#include "api/endpoints.h"
#include "api/text/hosts.h"
#include "api/web/web.h"
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <string.h>

#define READER "Bearer reader-reader-reader"
#define WRITER "Bearer writer-writer-writer"
#define BOTH "Bearer both-both-both-both"

static bool put(struct api_exchange *x)
{
    x->response.status = 204;
    return true;
}

static bool get(struct api_exchange *x)
{
    x->response.content_type = "text/plain";
    api_append_text(&x->response.body, "thing\n");
    return true;
}

static const struct api_steps get_steps = {.write = get}, put_steps = {.write = put};
static const struct api_endpoint rows[] = {
    {"GET", "/health", "Health", API_HEALTH, &get_steps},
    {"GET", "/metrics", "Metrics", API_PROBE, &get_steps},
    {"GET", "/thing", "A thing", 0, &get_steps},
    {"PUT", "/thing", "A thing", API_WRITES, &put_steps},
    {"POST", "/v2/question", "A question", 0, &get_steps},
    {0},
};

static struct api_tokens *make_tokens(void)
{
    static const char text[] = "reader read reader-reader-reader\n"
                               "writer write writer-writer-writer\n"
                               "both-both-both-both\n";
    struct api_tokens *tokens = api_tokens_new();
    struct api_parse_error mistake;
    cr_assert(tokens && api_tokens_read(tokens, text, sizeof text - 1, &mistake));
    return tokens;
}

static struct api_service service_of_rows(void)
{
    struct api_service service = service_of(1 << 20);
    service.endpoints = rows;
    return service;
}

Test(access, tokens_open_what_their_scopes_name)
{
    static const char challenge[] = "Bearer realm=\"kldiv\"";
    static const struct {
        const char *method, *path, *token;
        int status;
        const char *says; /* in WWW-Authenticate */
    } cases[] = {
        {"GET", "/health", NULL, 200, NULL},
        {"HEAD", "/health", "Bearer wrong-wrong-wrong", 200, NULL},
        {"POST", "/health", NULL, 405, NULL},
        {"GET", "/metrics", NULL, 401, ""},
        {"GET", "/metrics", READER, 200, NULL},
        {"GET", "/thing", NULL, 401, ""},
        {"GET", "/thing", "Basic dXNlcjpwYXNzd29yZA==", 401, ""},
        {"GET", "/thing", "Bearer wrong-wrong-wrong", 401, ", error=\"invalid_token\""},
        {"GET", "/thing", READER, 200, NULL},
        {"HEAD", "/thing", READER, 200, NULL},
        {"GET", "/thing", BOTH, 200, NULL},
        {"GET", "/thing", WRITER, 403, ", error=\"insufficient_scope\", scope=\"read\""},
        {"PUT", "/thing", NULL, 401, ""},
        {"PUT", "/thing", READER, 403, ", error=\"insufficient_scope\", scope=\"write\""},
        {"PUT", "/thing", WRITER, 204, NULL},
        {"PUT", "/thing", BOTH, 204, NULL},
        {"DELETE", "/thing", NULL, 401, ""},
        {"DELETE", "/thing", READER, 405, NULL},
        {"GET", "/nothing", NULL, 401, ""},
        {"GET", "/nothing", READER, 404, NULL},
        {"OPTIONS", "/thing", NULL, 204, NULL},
        {"OPTIONS", "/nothing", NULL, 401, ""},
        {"POST", "/v2/question", NULL, 401, ""},
        {"POST", "/v2/question", READER, 200, NULL},
        {"POST", "/v2/nothing", NULL, 401, ""},
    };
    struct api_service service = service_of_rows();
    service.tokens = make_tokens();
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {.method = cases[i].method,
                                          .path = cases[i].path,
                                          .others = {{"Authorization", cases[i].token}}};
        struct answer answer = ask_question(&question, &service, "", 0);
        const char *wanted = header_of_answer(&answer, "WWW-Authenticate");
        cr_expect_eq(answer.status, cases[i].status, "case %zu: %d", i, answer.status);
        if (cases[i].says)
            cr_expect(strncmp(wanted, challenge, sizeof challenge - 1) == 0 &&
                          strcmp(wanted + sizeof challenge - 1, cases[i].says) == 0,
                      "case %zu: %s", i, wanted);
        else
            cr_expect_str_eq(wanted, "", "case %zu", i);
        cr_expect(answer.status != 401 || !*header_of_answer(&answer, "Allow"));
        answer_free(&answer);
    }
    api_tokens_free(service.tokens);
}

/* Each endpoint of the service but those that tell of health, and the files of pages. */
Test(access, every_endpoint_but_health_and_pages_wants_a_token)
{
    bool has_pages = api_file_find("dashboard/index.html");
    const struct {
        const char *path;
        int status;
    } open[] = {{"/livez", 200},
                {"/readyz", 200},
                {"/healthz", 200},
                {"/v2/health/live", 200},
                {"/v2/health/ready", 200},
                {"/v2/models/kl_div[/versions/1]/ready", 200},
                {"/dashboard", has_pages ? 308 : 404},
                {"/dashboard/{file}", 404},
                {"/docs", has_pages ? 200 : 404},
                {"/docs/{file}", 404}};
    struct api_service service = service_of(1 << 20);
    service.tokens = make_tokens();
    size_t n_open = 0;
    for (const struct api_endpoint *e = api_endpoints; e->path; e++) {
        char path[100];
        const char *bracket = strchr(e->path, '['), *rest = bracket ? strchr(bracket, ']') + 1 : "";
        snprintf(path, sizeof path, "%.*s%s", (int)strcspn(e->path, "["), e->path, rest);
        const struct question question = {.method = e->method, .path = path};
        struct answer answer = ask_question(&question, &service, "", 0);
        int status = 401;
        for (size_t i = 0; i < COUNT(open); i++)
            if (strcmp(open[i].path, e->path) == 0)
                status = open[i].status;
        n_open += status != 401;
        cr_expect_eq(answer.status, status, "%s: %d", e->path, answer.status);
        answer_free(&answer);
    }
    cr_expect_eq(n_open, COUNT(open));
    api_tokens_free(service.tokens);
}

Test(access, refusals_have_the_form_of_their_path)
{
    struct api_service service = service_of(1 << 20);
    service.tokens = make_tokens();
    service.allowed_hosts = "here";
    struct question question = {.path = "/kl_div", .others = {{"Host", "here"}}};
    struct answer answer = ask_question(&question, &service, "", 0);
    cr_expect_str_eq(text_of(answer.json, "code"), "unauthorized");
    cr_expect_str_eq(answer.response.content_type, "application/problem+json");
    answer_free(&answer);
    question.path = "/v2/models/kl_div/infer";
    answer = ask_question(&question, &service, "", 0);
    cr_expect_eq(answer.status, 401);
    cr_expect(*text_of(answer.json, "error"));
    cr_expect_eq(json_object_size(answer.json), 1);
    answer_free(&answer);
    question.others[0].value = "there";
    answer = ask_question(&question, &service, "", 0);
    cr_expect_eq(answer.status, 421);
    cr_expect(strstr(text_of(answer.json, "error"), "'there'"));
    answer_free(&answer);
    api_tokens_free(service.tokens);
}

/* ---- Hosts */

Test(access, hosts_are_those_of_the_list)
{
    static const char names[] = "example.org, Other.Example.,*.wild.example,10.0.0.1,::1,"
                                "[2001:db8::1]:8443,ported.example:8080,standard.example:80";
    static const struct {
        const char *host;
        bool allowed;
    } cases[] = {
        {"example.org", true},
        {"EXAMPLE.ORG", true},
        {"example.org.", true},
        {"example.org:1234", true},
        {"example.org:", true},
        {"example.org.:80", true},
        {"other.example", true},
        {"www.example.org", false},
        {"example.org.evil.example", false},
        {"evil-example.org", false},
        {"example.orgx", false},
        {"example.org..", false},
        {"a.wild.example", true},
        {"a.b.WILD.example.:1", true},
        {"wild.example", false},
        {".wild.example", false},
        {"*.wild.example", false},
        {"awild.example", false},
        {"10.0.0.1", true},
        {"10.0.0.1:8080", true},
        {"10.0.0.11", false},
        {"[::1]", true},
        {"[::1]:8080", true},
        {"[0:0::0:1]", true},
        {"::1", false},
        {"[::2]", false},
        {"[::1", false},
        {"[::1]x", false},
        {"[2001:DB8:0::1]:8443", true},
        {"[2001:db8::1]", false},
        {"[2001:db8::1]:8444", false},
        {"ported.example:8080", true},
        {"ported.example:08080", true},
        {"ported.example:8081", false},
        {"ported.example", false},
        {"standard.example", true},
        {"standard.example:443", false},
        {"example.org:x", false},
        {"example.org:80:80", false},
        {"example.org:99999", false},
        {"user@example.org", false},
        {"example.org/", false},
        {"", false},
        {".", false},
        {":80", false},
    };
    cr_assert(api_hosts_valid(names));
    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect_eq(api_hosts_have(names, cases[i].host, 80), cases[i].allowed, "%s",
                     cases[i].host);
    cr_expect(api_hosts_have("a:443", "a", 443));
    char longest[400];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    cr_expect(!api_hosts_have(names, longest, 80));
}

Test(access, lists_of_hosts_are_checked_at_the_start)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "a,",
                                      "a,,b",
                                      "*",
                                      "*.",
                                      "a.*",
                                      "*a.b",
                                      "*.*.b",
                                      "a b",
                                      "a:x",
                                      "a:70000",
                                      "[::1",
                                      "[::g]",
                                      "::1::",
                                      "[a]",
                                      "a/b",
                                      "http://a",
                                      "*.b:x",
                                      "a@b",
                                      "[::1]80",
                                      "a\x80"
                                      "b",
                                      "a;b",
                                      "[]",
                                      "[::1%1]"};
    static const char *const good[] = {"a",    " a , b ", "*.b",       "*.b:1",
                                       "[::]", "::",      "1.2.3.4:5", "a_b"};
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect(!api_hosts_valid(bad[i]), "%s", bad[i]);
    for (size_t i = 0; i < COUNT(good); i++)
        cr_expect(api_hosts_valid(good[i]), "%s", good[i]);
}

Test(access, an_origin_is_one_that_browsers_send)
{
    static const char *const bad[] = {"",           "example.org",        "https://", "https://a/",
                                      "https://a ", "https://A",          "://a",     "a, b",
                                      "https://a?", "https://a https://b"};
    static const char *const good[] = {"*", "null", "https://example.org", "http://[::1]:8080",
                                       "chrome-extension://abc"};
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect(!api_origin_is_valid(bad[i]), "%s", bad[i]);
    for (size_t i = 0; i < COUNT(good); i++)
        cr_expect(api_origin_is_valid(good[i]), "%s", good[i]);
}

Test(access, the_host_comes_before_all_else_but_health)
{
    static const struct {
        const char *method, *path, *host;
        int status;
    } cases[] = {
        {"GET", "/thing", "here:8080", 200},  {"GET", "/thing", "there", 421},
        {"GET", "/thing", NULL, 421},         {"OPTIONS", "/thing", "there", 421},
        {"GET", "/nothing", "there", 421},    {"DELETE", "/thing", "there", 421},
        {"GET", "/metrics", "10.0.0.7", 421}, {"GET", "/health", "10.0.0.7:8080", 200},
        {"GET", "/health", NULL, 200},
    };
    struct api_service service = service_of_rows();
    service.allowed_hosts = "here";
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct question question = {
            .method = cases[i].method, .path = cases[i].path, .others = {{"Host", cases[i].host}}};
        struct answer answer = ask_question(&question, &service, "", 0);
        cr_expect_eq(answer.status, cases[i].status, "case %zu: %d", i, answer.status);
        if (answer.status == 421)
            cr_expect_str_eq(text_of(answer.json, "code"), "host_not_allowed");
        answer_free(&answer);
    }
}

/* A page that was loaded by a name of its own, which then leads to this server, has the same Host and
 * Origin. */
Test(access, pages_write_under_a_name_that_is_the_servers)
{
    static const struct {
        const char *host, *origin, *site;
        int status; /* with default flags */
    } cases[] = {
        {"evil.example:8080", "http://evil.example:8080", NULL, 421},
        {"evil.example", "http://evil.example", "same-origin", 421},
        {"evil.example", NULL, "same-origin", 421},
        {"evil.example", NULL, "none", 421},
        {"evil.example", "http://other.example", NULL, 403},
        {"localhost.evil.example", "http://localhost.evil.example", NULL, 421},
        {"127.0.0.1.evil.example", "http://127.0.0.1.evil.example", NULL, 421},
        {"127.1", "http://127.1", NULL, 421},
        {"xlocalhost", "http://xlocalhost", NULL, 421},
        {"", "http://", NULL, 421},
        {"evil.example", NULL, NULL, 204},
        {"localhost", "http://localhost", NULL, 204},
        {"LocalHost.:8080", "http://localhost.:8080", NULL, 204},
        {"kl.localhost:1", "http://kl.localhost:1", NULL, 204},
        {"127.0.0.1:8080", "http://127.0.0.1:8080", NULL, 204},
        {"192.168.1.7", "http://192.168.1.7", NULL, 204},
        {"[::1]:8080", "http://[::1]:8080", "same-origin", 204},
    };
    enum { DEFAULT, TOKENS, HOSTS, TLS, CORS, ANY, SETTINGS };
    for (int setting = DEFAULT; setting < SETTINGS; setting++) {
        struct api_service service = service_of_rows();
        service.tokens = setting == TOKENS ? make_tokens() : NULL;
        service.allowed_hosts = setting == HOSTS ? "*.example,evil.example" : NULL;
        service.tls = setting == TLS;
        service.cors_origin = setting == CORS  ? "https://friend.example"
                              : setting == ANY ? "*"
                                               : NULL;
        for (size_t i = 0; i < COUNT(cases); i++) {
            struct question question = {.method = "PUT",
                                        .path = "/thing",
                                        .others = {{"Host", cases[i].host},
                                                   {"Sec-Fetch-Site", cases[i].site},
                                                   {"Origin", cases[i].origin},
                                                   {"Authorization", WRITER}}};
            bool listed = setting != HOSTS || strstr(cases[i].host, "evil.example");
            bool trusted = setting == TOKENS || setting == HOSTS || setting == TLS ||
                           (setting == ANY && cases[i].origin);
            int status = !listed                             ? 421
                         : setting == ANY && trusted         ? 204
                         : cases[i].status == 421 && trusted ? 204
                                                             : cases[i].status;
            struct answer answer = ask_question(&question, &service, "", 0);
            cr_expect_eq(answer.status, status, "setting %d, case %zu: %d", setting, i,
                         answer.status);
            if (answer.status == 421) {
                cr_expect_str_eq(text_of(answer.json, "code"), "host_not_allowed");
                cr_expect(strstr(text_of(answer.json, "detail"), "--allowed-hosts"));
            }
            answer_free(&answer);
            question.method = "GET";
            answer = ask_question(&question, &service, "", 0);
            cr_expect_eq(answer.status, !listed ? 421 : setting == TOKENS ? 403 : 200, "%zu", i);
            answer_free(&answer);
        }
        if (service.tokens)
            api_tokens_free(service.tokens);
    }
}

/* ---- Headers for browsers */

Test(access, browsers_are_told_what_they_must_not_do)
{
    static const struct {
        const char *method, *path;
        bool is_shown;
    } cases[] = {
        {"GET", "/thing", true},      {"HEAD", "/thing", true},        {"GET", "/nothing", true},
        {"PUT", "/thing", false},     {"POST", "/v2/question", false}, {"POST", "/nothing", false},
        {"OPTIONS", "/thing", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int variant = 0; variant < 4; variant++) {
            struct api_service service = service_of_rows();
            service.cors_origin = variant & 1 ? "*" : NULL;
            service.tls = variant & 2;
            const struct question question = {.method = cases[i].method, .path = cases[i].path};
            struct answer answer = ask_question(&question, &service, "", 0);
            bool is_shown = cases[i].is_shown;
            cr_expect_str_eq(header_of_answer(&answer, "X-Content-Type-Options"), "nosniff");
            cr_expect_str_eq(header_of_answer(&answer, "Strict-Transport-Security"),
                             service.tls ? "max-age=31536000" : "");
            cr_expect_str_eq(header_of_answer(&answer, "Content-Security-Policy"),
                             is_shown ? "default-src 'none'; frame-ancestors 'none'" : "");
            cr_expect_str_eq(header_of_answer(&answer, "Referrer-Policy"),
                             is_shown ? "no-referrer" : "");
            cr_expect_str_eq(header_of_answer(&answer, "Cross-Origin-Resource-Policy"),
                             is_shown && !service.cors_origin ? "same-origin" : "");
            cr_expect_lt(answer.response.n_headers, COUNT(answer.response.headers), "room for all");
            answer_free(&answer);
        }
}
