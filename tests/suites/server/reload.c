/* Tokens of the server as a process: the file, the log, SIGHUP. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST "first-first-first-first"
#define SECOND "second-second-second"

static long status_with(const struct server *server, const char *target, const char *header)
{
    const char *const headers[] = {header, NULL};
    bool posts = strcmp(target, "/kl_div") == 0;
    struct fetched f = fetch(server, posts ? "POST" : "GET", target, headers,
                             posts ? TWO_BY_TWO : NULL, sizeof TWO_BY_TWO - 1);
    long status = f.status;
    fetched_free(&f);
    return status;
}

static bool says_reload(const struct server *server, int good)
{
    char line[60];
    static const char *const header[] = {"Authorization: Bearer " SECOND, NULL};
    struct fetched f = fetch(server, "GET", "/metrics", header, NULL, 0);
    snprintf(line, sizeof line, "\nkldiv_config_last_reload_successful %d\n", good);
    bool says = strstr(f.body.data, line);
    fetched_free(&f);
    return says;
}

Test(reload, tokens_are_wanted_named_in_the_log_and_read_again_at_sighup)
{
    char path[] = "/tmp/kldiv-tokens-XXXXXX", port[40], output[1000];
    close(mkstemp(path));
    write_file(path, "# tokens\nfirst read " FIRST "\n");
    const char *const flags[] = {"--auth-token-file", path, NULL};
    struct server server = server_start(flags);
    snprintf(port, sizeof port, "127.0.0.1:%d", server.port);
    const char *const check[] = {"--healthcheck", "--listen", port, NULL};
    cr_expect_eq(run_server(check, output, sizeof output), 0, "%s", output);
    cr_expect_eq(status_with(&server, "/readyz", NULL), 200);
    cr_expect_eq(status_with(&server, "/metrics", NULL), 401);
    cr_expect_eq(status_with(&server, "/kl_div", NULL), 401);
    cr_expect_eq(status_with(&server, "/kl_div", "Authorization: Bearer " SECOND), 401);
    cr_expect_eq(status_with(&server, "/kl_div", "Authorization: Bearer " FIRST), 200);

    write_file(path, "second " SECOND "\n");
    kill(server.pid, SIGHUP);
    cr_expect(server_logs(&server, "read 1 token file=/tmp/", 2));
    cr_expect_eq(status_with(&server, "/kl_div", "Authorization: Bearer " FIRST), 401);
    cr_expect_eq(status_with(&server, "/kl_div", "Authorization: Bearer " SECOND), 200);
    cr_expect(says_reload(&server, 1));

    write_file(path, "second " SECOND "\nthird too/short*\n");
    kill(server.pid, SIGHUP);
    cr_expect(server_logs(&server, "line 2: the token is not 1", 1));
    cr_expect(says_reload(&server, 0));
    cr_expect_eq(status_with(&server, "/kl_div", "Authorization: Bearer " SECOND), 200);
    unlink(path);
    kill(server.pid, SIGHUP);
    cr_expect(server_logs(&server, " option=--auth-token-file error=\"cannot read", 1));
    cr_expect_eq(status_with(&server, "/kl_div", "Authorization: Bearer " SECOND), 200);

    cr_expect(server_logs(&server, "target=/kl_div token=first status=200", 1));
    cr_expect(server_logs(&server, "target=/kl_div token=second status=200", 3));
    cr_expect(server_logs(&server, "target=/kl_div status=401 code=unauthorized", 3));
    char *log = server_log_text(&server);
    cr_expect(!strstr(log, FIRST) && !strstr(log, SECOND) && !strstr(log, "too/short"), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, true), 0);
}

Test(reload, a_token_is_wanted_before_the_body)
{
    static const char head[] = "POST /kl_div HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
                               "Expect: 100-continue\r\n\r\n";
    char path[] = "/tmp/kldiv-tokens-XXXXXX", answer[2000];
    close(mkstemp(path));
    write_file(path, FIRST);
    const char *const flags[] = {"--auth-token-file", path, NULL};
    struct server server = server_start(flags);
    talk(&server, head, sizeof head - 1, answer, sizeof answer, 5);
    cr_expect(strncmp(answer, "HTTP/1.1 401 ", 13) == 0, "%s", answer);
    cr_expect(strstr(answer, "\r\nWWW-Authenticate: Bearer realm=\"kldiv\"\r\n"), "%s", answer);
    cr_expect(strstr(answer, "\"code\":\"unauthorized\""), "%s", answer);
    cr_expect_eq(server_stop(&server, false), 0);
    unlink(path);
}

Test(reload, bad_token_files_are_told_without_the_token)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "there is no token in it"},
        {FIRST "\n" FIRST "\n", "line 2: the token is given twice"},
        {FIRST "\nsecond everything " SECOND, "line 2: the scopes are not"},
        {NULL, "cannot read /tmp/kldiv-tokens-"},
    };
    char path[] = "/tmp/kldiv-tokens-XXXXXX", output[1000];
    close(mkstemp(path));
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const flags[] = {"--listen", "127.0.0.1:0", "--auth-token-file", path, NULL};
        if (cases[i].text)
            write_file(path, cases[i].text);
        else
            unlink(path);
        cr_expect_eq(run_server(flags, output, sizeof output), 1, "case %zu", i);
        cr_expect(strstr(output, "kldivd: --auth-token-file: "), "%s", output);
        cr_expect(strstr(output, cases[i].says), "%s", output);
        cr_expect(strchr(output, '\n') == strrchr(output, '\n'), "%s", output);
        cr_expect(!strstr(output, FIRST) && !strstr(output, SECOND), "%s", output);
    }
}

Test(reload, sighup_without_a_file_changes_nothing)
{
    struct server server = server_start(NULL);
    kill(server.pid, SIGHUP);
    cr_expect(server_logs(&server, "SIGHUP: there is no file to read again", 1));
    cr_expect_eq(status_with(&server, "/kl_div", NULL), 200);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* An absolute target names the host, whatever Host says (RFC 9112, 3.2.2). */
Test(reload, hosts_that_are_not_listed_are_refused)
{
    static const struct {
        const char *target, *host;
        int status;
    } cases[] = {
        {"/", "good.example", 200},
        {"/", "GOOD.example.:99", 200},
        {"/", "evil.example", 421},
        {"http://good.example:1/", "evil.example", 200},
        {"http://evil.example/?x=1", "good.example", 421},
        {"http://good.example?x", "good.example", 200},
        {"http://x@good.example/", "good.example", 421},
        {"http:///", "good.example", 421},
        {"/livez", "evil.example", 200},
        {"http://evil.example/readyz", "evil.example", 200},
    };
    static const char *const flags[] = {"--allowed-hosts", "good.example", NULL};
    struct server server = server_start(flags);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char request[300], answer[5000], status[20];
        int size = snprintf(request, sizeof request,
                            "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                            cases[i].target, cases[i].host);
        talk(&server, request, (size_t)size, answer, sizeof answer, 5);
        snprintf(status, sizeof status, "HTTP/1.1 %d ", cases[i].status);
        cr_expect(strncmp(answer, status, strlen(status)) == 0, "case %zu: %.100s", i, answer);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}
