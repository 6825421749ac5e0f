/* The log: one line an event, whatever bytes clients send; no bodies; what others wrote is no field of its own. */
#include "server/telemetry/log.h"
#include "tests/suites/support/log_lines.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const odd[] = {
    "GET /a\"b\\c HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /x%0Ayear=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\" HTTP/1.1\r\nHost: a\r\nX-Request-Id: a b\r\n\r\n",
    "G\"T /livez HTTP/1.1\r\nHost: a\r\n\r\n",
    "\xff\xfe\r\n\r\n",
    "POST /kl_div HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sesame-sesame\r\nContent-Length: "
    "11\r\n"
    "\r\nopen sesame",
};

/* Waits until the log has `n` lines of requests; the caller frees it. */
static char *log_with(const struct server *server, int n)
{
    for (int i = 0;; i++) {
        char *log = server_log_text(server);
        int lines = 0;
        for (const char *p = log; (p = strstr(p, "status")); p++)
            lines++;
        if (lines >= n || i == 100)
            return log;
        free(log);
        usleep(20000);
    }
}

static void send_odd_requests(const struct server *server)
{
    char answer[4000];
    for (size_t i = 0; i < COUNT(odd); i++)
        talk(server, odd[i], strlen(odd[i]), answer, sizeof answer, 0.3);
}

Test(logs, in_json_always_parse)
{
    static const char *const flags[] = {"--log-format", "json", "--log-level", "debug", NULL};
    setenv("KLDIV_\"\n\x1b\xff", "1", 1);
    struct server server = server_start(flags);
    send_odd_requests(&server);
    char *log = log_with(&server, COUNT(odd)), *rest = NULL;
    int requests = 0;
    for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_error_t error;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        cr_expect(object, "%s: %s", line, error.text);
        cr_expect(!strstr(line, "sesame"), "%s", line);
        requests += json_object_get(object, "status") != NULL;
        json_decref(object);
    }
    cr_expect_eq(requests, COUNT(odd), "%d", requests);
    free(log);
    cr_expect_eq(server_stop(&server, true), 0);
}

Test(logs, in_text_are_printable_lines)
{
    setenv("KLDIV_\"\n\x1b\xff", "1", 1);
    struct server server = server_start(NULL);
    send_odd_requests(&server);
    char *log = log_with(&server, COUNT(odd));
    for (const char *p = log; *p; p++)
        cr_assert((*p >= ' ' && *p < 0x7f) || *p == '\n', "byte %d in %s", *p, log);
    for (const char *line = log; *line; line = strchr(line, '\n') + 1)
        cr_assert(strncmp(line, "20", 2) == 0 && strstr(line, "Z "), "%s", line);
    cr_expect(!strstr(log, "sesame"));
    free(log);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* ---- Texts of others */

/* Looks like fields, like a line of its own, and like nothing; \u202e turns the direction of text. */
#define HOSTILE                                                                                    \
    "x kind=audit token=root method=DELETE \"q\\\n2026-01-01T00:00:00.000Z info request "          \
    "kind=audit "                                                                                  \
    "\x1b[31m\u202e\U0001f600\t\x7f"

/* The texts of a line of fields, as they were given; the log of this process goes to the file. */
static void expect_text(const char *path, const char *text)
{
    write_file(path, "");
    srv_log(SRV_LOG_WARNING, "it failed file=%s n=%zu error=%s", text, (size_t)7, text);
    srv_log_access(&(struct srv_access){
        .request_id = text, .method = text, .target = text, .token = text, .client = text});
    size_t size, n = 0;
    char *log = read_file(path, &size);
    for (const char *line = log; *line; line += strcspn(line, "\n") + 1, n++) {
        json_t *fields = log_line_read(line);
        cr_assert(fields, "%s", line);
        cr_expect_str_eq(text_of(fields, n ? "target" : "file"), text, "%s", line);
        cr_expect_str_eq(text_of(fields, n ? "client" : "error"), text, "%s", line);
        cr_expect_str_eq(text_of(fields, "kind"), "");
        json_decref(fields);
    }
    cr_expect_eq(n, 2, "%s", log);
    free(log);
}

/* A random text of one to 30 characters, of which most mean something to a reader of lines. */
static void fill(char *text)
{
    static const char *const parts[] = {
        " ", "=",          "\"", "\\",     "\n",     "\r",     "\x1b",       "\x7f",     "\t",
        "a", "kind=audit", "%s", "\u202e", "\u00e9", "\u2028", "\U0001f600", "\xc2\x85", "\\u0022"};
    *text = '\0';
    for (int n = 1 + rand() % 30; n > 0; n--)
        strcat(text, parts[(size_t)rand() % COUNT(parts)]);
}

Test(logs, texts_of_others_come_back_whole_and_are_no_fields)
{
    char path[] = "/tmp/kldiv-log-XXXXXX", text[1000];
    int fd = mkstemp(path), log = open(path, O_WRONLY | O_APPEND), standard = dup(STDERR_FILENO);
    cr_assert(fd >= 0 && log >= 0 && dup2(log, STDERR_FILENO) == STDERR_FILENO);
    expect_text(path, HOSTILE);
    expect_text(path, "");
    srand(1);
    for (int i = 0; i < 5; i++) {
        fill(text);
        expect_text(path, text);
    }
    dup2(standard, STDERR_FILENO);
    unlink(path);
}

/* Values of parameters that may be secrets are not shown; others are as they came. */
Test(logs, tokens_in_a_query_are_not_shown)
{
    static const struct {
        const char *target, *shown;
    } cases[] = {{"/kl_div?token=sesame&reduction=sum", "/kl_div?token=***&reduction=sum"},
                 {"/kl_div?a=1&Access_Token=sesame", "/kl_div?a=1&Access_Token=***"},
                 {"/kl_div?api_key=sesame=&password=x", "/kl_div?api_key=***&password=***"},
                 {"/kl_div?token&=&&dim=1&x=key", "/kl_div?token&=&&dim=1&x=key"},
                 {"/kl_div?%74oken=sesame&a=1;client_secret=b?pwd=c",
                  "/kl_div?%74oken=***&a=1;client_secret=***?pwd=***"},
                 {"/kl_div?", "/kl_div?"},
                 {"/token=sesame", "/token=sesame"}};
    char path[] = "/tmp/kldiv-log-XXXXXX";
    int log = mkstemp(path), standard = dup(STDERR_FILENO);
    cr_assert(log >= 0 && dup2(log, STDERR_FILENO) == STDERR_FILENO);
    for (size_t i = 0; i < COUNT(cases); i++)
        srv_log_access(&(struct srv_access){.target = cases[i].target});
    dup2(standard, STDERR_FILENO);
    size_t size, n = 0;
    char *text = read_file(path, &size);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1, n++) {
        json_t *fields = log_line_read(line);
        cr_expect_str_eq(text_of(fields, "target"), cases[n].shown, "%s", line);
        json_decref(fields);
    }
    cr_expect_eq(n, COUNT(cases));
    free(text);
    unlink(path);
}

/* Each of more formats than the 16 that were told apart once. */
Test(logs, warnings_of_each_format_are_limited)
{
    enum { FORMATS = 40, EACH = 15, WRITTEN = 10 };
    static char formats[FORMATS][20];
    char path[] = "/tmp/kldiv-log-XXXXXX";
    int log = mkstemp(path), standard = dup(STDERR_FILENO);
    cr_assert(log >= 0 && dup2(log, STDERR_FILENO) == STDERR_FILENO);
    for (int i = 0; i < FORMATS; i++)
        snprintf(formats[i], sizeof formats[i], "warning %d of many", i);
    for (int n = 0; n < EACH; n++)
        for (int i = 0; i < FORMATS; i++)
            srv_log(SRV_LOG_WARNING, formats[i], "");
    dup2(standard, STDERR_FILENO);
    size_t size, lines = 0;
    char *text = read_file(path, &size);
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    cr_expect_eq(lines, (size_t)FORMATS * WRITTEN, "%zu lines", lines);
    free(text);
    unlink(path);
}

/* Invalid UTF-8 is replaced. */
Test(logs, bytes_that_are_no_text_are_replaced)
{
    char path[] = "/tmp/kldiv-log-XXXXXX";
    int log = mkstemp(path), standard = dup(STDERR_FILENO);
    cr_assert(log >= 0 && dup2(log, STDERR_FILENO) == STDERR_FILENO);
    srv_log(SRV_LOG_INFO, "it failed error=%s", "\xff\xc3(\xed\xa0\x80");
    dup2(standard, STDERR_FILENO);
    size_t size;
    char *line = read_file(path, &size);
    cr_expect(strstr(line, "error=\"\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\"\n"), "%s", line);
    free(line);
    unlink(path);
}

/* Copies what is in the strings of a call, from its first quote to the end of the first string that no other follows; the
 * next format begins behind it. */
static const char *copy_format(const char *p, char *to, size_t size)
{
    size_t n = 0;
    while (*p == '"') {
        for (p++; *p && *p != '"'; p++)
            if (n + 1 < size)
                to[n++] = *p;
        p++;
        while (strchr(" \n", *p) && *p)
            p++;
        for (; *p == 'K'; p += strspn(p, "KLDIV_ERSON \n")) /* KLDIV_VERSION */
            ;
    }
    to[n] = '\0';
    return p;
}

/* Formats have words, then key=value; texts are values, but for an address. */
static size_t check_formats(const char *path, const regex_t *allowed)
{
    size_t size, n = 0;
    char *source = read_file(path, &size), format[1000];
    for (const char *call = source; (call = strstr(call, "srv_log(SRV_LOG_"));) {
        const char *end = strstr(call, ");\n");
        for (const char *p = call; p < end && (p = strchr(p, '"')) && p < end; n++) {
            p = copy_format(p, format, sizeof format);
            cr_expect_eq(regexec(allowed, format, 0, NULL, 0), 0, "%s: %s", path, format);
        }
        call = end;
    }
    free(source);
    return n;
}

Test(logs, formats_name_each_text_of_others)
{
    static const char words[] = "^([^%=\"\\]|%zu|%d|(listening|health and metrics) on %s)*"
                                "( [a-z_]+=(%s|%zu))*$";
    regex_t allowed;
    glob_t found;
    size_t n = 0;
    cr_assert_eq(regcomp(&allowed, words, REG_EXTENDED | REG_NOSUB), 0);
    cr_assert_eq(glob("server/*.c", 0, NULL, &found), 0);
    cr_assert_eq(glob("server/*/*.c", GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        n += check_formats(found.gl_pathv[i], &allowed);
    cr_expect_geq(n, 30, "%zu", n);
    cr_expect_neq(regexec(&allowed, "cannot read %s", 0, NULL, 0), 0);
    cr_expect_neq(regexec(&allowed, "took time=%lu", 0, NULL, 0), 0);
    cr_expect_neq(regexec(&allowed, "file=%s; it stays", 0, NULL, 0), 0);
    globfree(&found);
    regfree(&allowed);
}

/* Percent-encodes a text for a target. */
static void encode(const char *text, char *to)
{
    for (; *text; text++, to += 3)
        snprintf(to, 4, "%%%02X", (unsigned char)*text);
}

static void send_hostile_requests(const struct server *server)
{
    static const char *const requests[] = {
        "GET /" HOSTILE " HTTP/1.1\r\nHost: a\r\n\r\n",
        "DELETE /x\tkind=audit HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x?kind=audit&token=root HTTP/1.1\r\nHost: a\r\nX-Request-Id: " HOSTILE "\r\n\r\n",
        "GET /nothing HTTP/1.1\r\nHost: x kind=audit\r\nX-Request-Id: x kind=audit\r\n"
        "X-Forwarded-For: x kind=audit\r\ntraceparent: x kind=audit\r\nConnection: close\r\n\r\n",
        "kind=audit /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://x\"kind=audit/ HTTP/1.1\r\nHost: a\r\n\r\n"};
    char answer[4000], name[400], target[1000];
    for (size_t i = 0; i < COUNT(requests); i++)
        talk(server, requests[i], strlen(requests[i]), answer, sizeof answer, 0.3);
    encode("x kind=audit token=root method=DELETE \"\u202e", name);
    snprintf(target, sizeof target, "/monitors/%s/%s", name, name);
    static const char body[] = "{\"bins\": {\"edges\": [0, 1]}, \"reference\": {\"counts\": [5]}}";
    struct fetched f = fetch(server, "PUT", target, NULL, body, sizeof body - 1);
    cr_expect_eq(f.status, 201, "%ld %s", f.status, f.body.data);
    fetched_free(&f);
}

/* Each line is one of the server's, and one alone is of the kind audit. */
static void expect_strict(const char *log, const char *path)
{
    size_t n_audit = 0, n_path = 0;
    for (const char *line = log; *line; line += strcspn(line, "\n") + 1) {
        json_t *fields = log_line_read(line);
        cr_assert(fields, "%.*s", (int)strcspn(line, "\n"), line);
        n_audit += strcmp(text_of(fields, "kind"), "audit") == 0;
        n_path += strcmp(text_of(fields, "file"), path) == 0;
        cr_expect(!*text_of(fields, "token") || strcmp(text_of(fields, "token"), "root") != 0,
                  "%.*s", (int)strcspn(line, "\n"), line);
        json_decref(fields);
    }
    cr_expect_eq(n_audit, 1, "%s", log);
    cr_expect_eq(n_path, 1, "%s", log);
}

Test(logs, what_clients_and_files_say_is_no_field_of_a_line)
{
    char folder[] = "/tmp/kldiv-log-XXXXXX", path[200];
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x kind=audit token=root\n\x1b[31m\u202e", folder);
    write_file(path, "[{\"name\": \"a kind=audit token=root\", \"format\": \"json\", \"url\": "
                     "\"http://127.0.0.1:9\"}]");
    const char *const flags[] = {"--log-level",      "debug", "--notify", path, "--trusted-proxies",
                                 "127.0.0.0/8,unix", NULL};
    setenv("KLDIV_X kind=audit\n", "1", 1);
    struct server server = server_start(flags);
    send_hostile_requests(&server);
    write_file(path, "[{\"x kind=audit token=root\\n\": 1}]");
    kill(server.pid, SIGHUP);
    cr_expect(server_logs(&server, " option=--notify error=", 1));
    cr_expect(server_logs(&server, "status=201", 1));
    char *log = server_log_text(&server);
    expect_strict(log, path);
    free(log);
    cr_expect_eq(server_stop(&server, true), 0);
    unlink(path);
    rmdir(folder);
}
