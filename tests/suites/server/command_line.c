/* The server's flags, environment, help and log. */
#include "server/config/cgroup.h"
#include "server/config/options.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

Test(command_line, bad_options_are_told_in_one_line_that_names_them)
{
    static const struct {
        const char *const flags[5];
        const char *says;
    } cases[] = {
        {{"--nonsense"}, "--nonsense"},
        {{"--max-body", "12Q"}, "--max-body"},
        {{"--max-body"}, "--max-body"},
        {{"--max-memory", "10"}, "--max-memory: 10 bytes are too few"},
        {{"--threads", "-1"}, "--threads"},
        {{"--log-format=xml"}, "--log-format=xml"},
        {{"--simd", "mmx"}, "--simd"},
        {{"--listen", "nowhere"}, "--listen"},
        {{"--listen", "127.0.0.1:99999"}, "--listen"},
        {{"--listen", "127.0.0.1:0", "--port-file", "/nonexistent/file"}, "--port-file"},
        {{"--allowed-hosts", "a,,b"}, "--allowed-hosts"},
        {{"--cors-origin", "https://example.org/"}, "--cors-origin"},
        {{"--cors-origin", "example.org"}, "--cors-origin"},
        {{"--auth-token-file", "/nonexistent/file"}, "--auth-token-file"},
        {{"--tls-cert", "/nonexistent/file"}, "--tls-key"},
        {{"--tls-key", "/nonexistent/file"}, "--tls-cert"},
        {{"--tls-cert", "/nonexistent/file", "--tls-key", "/dev/null"}, "--tls-cert"},
        {{"--seccomp", "maybe"}, "is not one of 1 true yes on, or 0 false no off"},
        {{"--ready-needs-store=1"}, "--ready-needs-store=1"},
        {{"--audit-log", "-"}, "--audit-log: '-' is not the name of a file"},
        {{"--audit-log", ""}, "--audit-log: '' is not the name of a file"},
        {{"--backup", ""}, "--backup: '' is not the name of a file"},
        {{"--port-file=-"}, "--port-file=-: '-' is not the name of a file"},
    };
    char output[1000];
    for (size_t i = 0; i < COUNT(cases); i++) {
        cr_expect_eq(run_server(cases[i].flags, output, sizeof output), 1, "%s", output);
        cr_expect(strstr(output, cases[i].says), "%s", output);
    }
}

Test(command_line, a_taken_port_is_told)
{
    struct server server = server_start(NULL);
    char address[40], output[1000];
    snprintf(address, sizeof address, "127.0.0.1:%d", server.port);
    const char *const flags[] = {"--listen", address, NULL};
    cr_expect_eq(run_server(flags, output, sizeof output), 1);
    cr_expect(strstr(output, "--listen") && strstr(output, "in use"), "%s", output);
    const char *const check[] = {"--healthcheck", "--listen", address, NULL};
    cr_expect_eq(run_server(check, output, sizeof output), 0, "%s", output);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(run_server(check, output, sizeof output), 1);
}

/* 85 % of what the machine or the container has, and at most 4 GiB, unless told. */
Test(command_line, memory_follows_the_machine)
{
    static const char *const given[] = {"--max-memory", "100M", NULL};
    bool in_cgroup;
    size_t max = (size_t)4 << 30, memory = srv_memory(&in_cgroup) / 100 * 85;
    for (int i = 0; i < 2; i++) {
        struct server server = server_start(i ? given : NULL);
        char line[100];
        struct fetched f = fetch(&server, "GET", "/metrics", NULL, NULL, 0);
        snprintf(line, sizeof line, "kldiv_memory_limit_bytes %zu\n",
                 i              ? (size_t)100 << 20
                 : memory < max ? memory
                                : max);
        cr_expect(strstr(f.body.data, line), "no %s in %s", line, f.body.data);
        fetched_free(&f);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        char *log = server_log_text(&server);
        cr_expect(strstr(log, "memory for requests"), "%s", log);
        free(log);
        cr_expect_eq(server_stop(&server, false), 0);
    }
}

/* systemd's ProcSubset=pid hides /proc/stat, which the boot's time was read from. Mounting is a
 * privilege. */
Test(command_line, the_start_time_needs_no_proc_stat_as_root)
{
    static const char hide[] = "unshare --mount sh -c 'mount -t proc -o subset=pid proc /proc && ";
    char command[600];
    snprintf(command, sizeof command, "%s ! test -e /proc/stat' 2>/dev/null", hide);
    if (system(command) != 0)
        cr_skip("mounting /proc needs a privilege");
    const char *binary = getenv("KLDIV_SERVER") ? getenv("KLDIV_SERVER") : KLDIV_BINARY;
    snprintf(
        command, sizeof command,
        "%s f=$(mktemp -u); \"$0\" --listen 127.0.0.1:0 --port-file $f --log-level error & p=$!; "
        "while ! [ -s $f ]; do sleep 0.05; done; curl -s http://127.0.0.1:$(cat $f)/metrics | "
        "grep -qE \"^process_start_time_seconds 1[6-9][0-9]{8}\"; s=$?; kill $p; rm $f; exit $s' "
        "%s",
        hide, binary);
    cr_expect_eq(system(command), 0);
}

/* The pipe of standard error is full, and nobody reads it. */
Test(command_line, a_log_that_nobody_reads_does_not_hold_up_the_end)
{
    static const char script[] =
        "d=$(mktemp -d); mkfifo $d/log; sleep 30 < $d/log & reader=$!;"
        "\"$0\" --listen 127.0.0.1:0 --port-file $d/port 2> $d/log & server=$!;"
        "while ! [ -s $d/port ]; do sleep 0.05; done;"
        "query=$(printf %08000d 0);"
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "
        "curl -s -o $d/answer \"http://127.0.0.1:$(cat $d/port)/nothing?$query\"; done;"
        "sleep 0.2; kill -TERM $server; (sleep 10; kill -KILL $server) 2>/dev/null & killer=$!;"
        "wait $server; status=$?; kill $reader $killer 2>/dev/null; rm -r $d; exit $status";
    char command[1500];
    snprintf(command, sizeof command, "sh -c '%s' %s 2>/dev/null", script,
             getenv("KLDIV_SERVER") ? getenv("KLDIV_SERVER") : KLDIV_BINARY);
    cr_expect_eq(system(command), 0);
}

Test(command_line, unknown_variables_are_told)
{
    setenv("KLDIV_MAXBODY", "10", 1);
    setenv("KLDIV_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KLDIV_PORT", "tcp://10.0.0.1:80", 1);
    setenv("KLDIV_PORT_80_TCP", "tcp://10.0.0.1:80", 1);
    struct server server = server_start(NULL);
    static const char told[] =
        "variable is not an option name=KLDIV_MAXBODY did_you_mean=KLDIV_MAX_BODY\n";
    char *log = server_log_text(&server);
    for (int i = 0; i < 100 && !strstr(log, told); i++) { /* a thread writes it */
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        free(log);
        log = server_log_text(&server);
    }
    cr_expect(strstr(log, told), "%s", log);
    cr_expect(!strstr(log, "KLDIV_SERVICE_HOST") && !strstr(log, "KLDIV_PORT"), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Simulates a container's health check, which has no flags, with the server as process 1.
 * Creating process 1 needs a privilege. */
Test(command_line, the_health_check_finds_a_server_that_is_process_1_as_root)
{
    if (system("unshare --pid --fork --mount-proc true 2>/dev/null") != 0)
        cr_skip("unshare --pid needs a privilege");
    char command[900];
    const char *binary = getenv("KLDIV_SERVER") ? getenv("KLDIV_SERVER") : KLDIV_BINARY;
    snprintf(
        command, sizeof command,
        "unshare --pid --fork --mount-proc --kill-child sh -c '"
        "f=$(mktemp -u); (sleep 0.3; for i in 1 2 3 4 5 6 7 8 9; do [ -s $f ] || sleep 0.3; done;"
        " KLDIV_LISTEN=0.0.0.0:1 \"$0\" --healthcheck; echo $? > $f.status; kill -TERM 1) &"
        " exec \"$0\" --listen 127.0.0.1:0 --port-file $f --log-level error' %s "
        "2>/dev/null; test 0 = \"$(cat /tmp/tmp.*.status)\"; s=$?; rm -f /tmp/tmp.*.status; "
        "exit $s",
        binary);
    cr_expect_eq(system(command), 0);
}

Test(command_line, environment_sets_what_flags_do_not)
{
    setenv("KLDIV_MAX_BODY", "10", 1);
    setenv("KLDIV_LOG_FORMAT", "json", 1);
    static const char *const flags[] = {"--log-format", "text", NULL};
    struct server server = server_start(flags);
    struct fetched f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 413);
    fetched_free(&f);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    char *log = server_log_text(&server);
    cr_expect(strstr(log, " info listening on http://127.0.0.1:"), "%s", log);
    cr_expect(strstr(log, "target=/kl_div status=413 code=body_too_large"), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Reads a switch, which has a value in the environment and none as a flag, and one that always has one. */
Test(command_line, switches_are_set_by_many_words)
{
    static const char *const on[] = {"1", "true", "Yes", "ON"}, *const off[] = {"0", "FALSE", "no",
                                                                                "oFf"};
    static const char *const bad[] = {"2", "tru", "on ", "-"};
    char *argv[] = {(char *)"kldivd"}, *line = NULL;
    struct srv_options options;
    size_t size;
    for (size_t i = 0; i < COUNT(on); i++) {
        const struct {
            const char *word;
            bool is_on;
        } cases[] = {{on[i], true}, {off[i], false}};
        for (size_t j = 0; j < COUNT(cases); j++) {
            setenv("KLDIV_READY_NEEDS_STORE", cases[j].word, 1);
            setenv("KLDIV_SECCOMP", cases[j].word, 1);
            cr_expect(srv_options_read(&options, 1, argv, stderr));
            cr_expect_eq(options.ready_needs_store, cases[j].is_on, "%s", cases[j].word);
            cr_expect_eq(options.seccomp, cases[j].is_on, "%s", cases[j].word);
        }
        setenv("KLDIV_READY_NEEDS_STORE", bad[i], 1);
        FILE *errors = open_memstream(&line, &size);
        cr_expect(!srv_options_read(&options, 1, argv, errors));
        fclose(errors);
        cr_expect(strncmp(line, "kldivd: KLDIV_READY_NEEDS_STORE: '", 34) == 0 &&
                      strstr(line, "is not one of 1 true yes on, or 0 false no off"),
                  "%s", line);
        free(line);
    }
}

/* Status of a POST of blanks without a Content-Length. */
static long status_of_chunks(const struct server *server, size_t size)
{
    static const char *const chunked[] = {"Transfer-Encoding: chunked", "Expect:", NULL};
    char *blanks = malloc(size);
    cr_assert(blanks);
    memset(blanks, ' ', size);
    struct fetched f = fetch(server, "POST", "/kl_div", chunked, blanks, size);
    long status = f.status;
    free(blanks);
    fetched_free(&f);
    return status;
}

/* A body that exceeds the memory for requests could never arrive. */
Test(command_line, the_memory_bounds_a_body)
{
    static const char *const given[] = {"--max-memory", "64M", "--max-body", "100M", NULL};
    static const char body[] =
        "POST /kl_div HTTP/1.1\r\nHost: a\r\nContent-Length: 80000000\r\n\r\n";
    for (int i = 0; i < 2; i++) {
        const char *flags[] = {given[0], given[1], i ? given[2] : NULL, given[3], NULL};
        struct server server = server_start(flags);
        char answer[2000];
        cr_expect(server_logs(&server, "locked in", 1));
        char *log = server_log_text(&server);
        const char *warning = strstr(log, " warning ");
        cr_expect_eq(warning != NULL, i == 1, "%s", log);
        cr_expect(!warning || strstr(warning, "--max-body is 104857600 bytes, but --max-memory"),
                  "%s", log);
        free(log);
        talk(&server, body, sizeof body - 1, answer, sizeof answer, 5);
        cr_expect_eq(atoi(answer + 9), 413, "%s", answer);
        cr_expect_eq(status_of_chunks(&server, 80000000), 413);
        cr_expect_eq(server_stop(&server, i == 1), 0);
    }
}

Test(command_line, json_log_lines_are_json_and_health_checks_are_not_among_them)
{
    static const char *const flags[] = {"--log-format=json", NULL};
    struct server server = server_start(flags);
    struct fetched f = fetch(&server, "GET", "/livez", NULL, NULL, 0);
    fetched_free(&f);
    f = post_json(&server, "/kl_div?reduction=sum", TWO_BY_TWO);
    fetched_free(&f);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    char *log = server_log_text(&server), *rest = NULL;
    size_t requests = 0;
    for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *json = json_loads(line, 0, NULL);
        cr_expect(json, "%s", line);
        requests += strcmp(text_of(json, "message"), "request") == 0;
        cr_expect(!strstr(line, "livez"));
        json_decref(json);
    }
    cr_expect_eq(requests, 1);
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Formats an option's name for roff: \-\- for --. */
static void as_roff(const char *name, size_t size, char *to)
{
    for (size_t i = 0; i < size; i++) {
        if (name[i] == '-')
            *to++ = '\\';
        *to++ = name[i];
    }
    *to = '\0';
}

Test(command_line, readme_and_manual_page_have_every_option)
{
    static const char *const help[] = {"--help", NULL};
    char output[8000], *rest = NULL;
    size_t size;
    char *readme = read_file("server/README.md", &size),
         *manual = read_file("server/kldivd.1", &size);
    cr_expect_eq(run_server(help, output, sizeof output), 0);
    for (char *line = strtok_r(output, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char roff[100];
        const char *flag = line + 2;
        if (strncmp(line, "  --", 4) != 0)
            continue;
        as_roff(flag, strcspn(flag, " "), roff);
        cr_expect(strstr(readme, line), "server/README.md lacks %s: make readme", line);
        cr_expect(strstr(manual, roff), "kldivd.1 lacks %s", flag);
    }
    free(readme);
    free(manual);
}

Test(command_line, help_and_version_print_and_exit)
{
    char output[8000];
    static const char *const help[][2] = {{"--help"}, {"-h"}}, *const version[] = {"--version",
                                                                                   NULL};
    for (size_t i = 0; i < COUNT(help); i++) {
        cr_expect_eq(run_server(help[i], output, sizeof output), 0);
        cr_expect(strstr(output, "--drain-timeout SECONDS"), "%s", output);
    }
    cr_expect_eq(run_server(version, output, sizeof output), 0);
    cr_expect(strncmp(output, "kldivd ", 7) == 0);
}
