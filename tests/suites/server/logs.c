/* The log: one line an event, whatever bytes clients send; no bodies. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
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
