/* Unix sockets and several addresses: files that are made, replaced and removed; who asks is logged. */
#include "tests/suites/support/certificate.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A folder of each test, and an address in it. */
static char folder[] = "/tmp/kldiv-unix-XXXXXX", path[60], address[70];

static void make_folder(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(address, sizeof address, "unix:%s", path);
}

static void remove_folder(void)
{
    unlink(path);
    cr_expect_eq(rmdir(folder), 0, "something is left in %s", folder);
}

static bool is_there(void) { return access(path, F_OK) == 0; }

static void expect_loss(const struct server *server)
{
    struct fetched f = post_json(server, "/kl_div?reduction=batchmean", TWO_BY_TWO);
    cr_expect(f.body.data && strstr(f.body.data, "{\"loss\":0.04095267979964768,"), "%s %ld",
              f.body.data, f.status);
    fetched_free(&f);
}

/* Expects that a server with these flags ends at once with one line that has the text. */
static void expect_refusal(const char *const *flags, const char *text)
{
    char output[1000];
    cr_expect_eq(run_server(flags, output, sizeof output), 1);
    cr_expect(strstr(output, text) && strchr(output, '\n') == strrchr(output, '\n'), "%s: %s", text,
              output);
}

/* Expects a refusal of an address for --listen. */
static void expect_refused(const char *where, const char *text)
{
    const char *const flags[] = {"--listen", where, NULL};
    expect_refusal(flags, text);
}

static bool has_logged(const struct server *server, const char *text)
{
    char *log = server_log_text(server);
    bool found = strstr(log, text);
    free(log);
    return found;
}

/* ---- Files */

Test(unix_sockets, answers_on_a_unix_socket_and_removes_it, .init = make_folder,
     .fini = remove_folder)
{
    struct server server = server_start_at(address, NULL);
    char text[100];
    snprintf(text, sizeof text, " info listening on http://%s\n", address);
    cr_expect(server_logs(&server, text, 1));
    expect_loss(&server);
    cr_expect(is_there());
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect(!is_there());
}

Test(unix_sockets, gives_its_socket_the_mode_that_is_wanted, .init = make_folder,
     .fini = remove_folder)
{
    static const struct {
        const char *flags[3];
        unsigned mode;
    } cases[] = {{{NULL}, 0660},
                 {{"--listen-mode", "0600", NULL}, 0600},
                 {{"--listen-mode", "666", NULL}, 0666}};
    static const char *const wrong[] = {"--listen-mode", "668", NULL}, *const too_much[] = {
                                                                           "--listen-mode", "1777",
                                                                           NULL};
    umask(027);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct stat status;
        struct server server = server_start_at(address, cases[i].flags);
        cr_assert_eq(lstat(path, &status), 0);
        cr_expect_eq(status.st_mode, S_IFSOCK | cases[i].mode, "%o", status.st_mode);
        cr_expect_eq(server_stop(&server, false), 0);
    }
    expect_refusal(wrong, "--listen-mode: '668'");
    expect_refusal(too_much, "--listen-mode: '1777'");
}

Test(unix_sockets, replaces_a_socket_that_is_left, .init = make_folder, .fini = remove_folder)
{
    struct server first = server_start_at(address, NULL);
    server_kill(&first, false);
    cr_expect(is_there(), "kill -9 leaves the file");
    struct server second = server_start_at(address, NULL);
    expect_loss(&second);
    cr_expect_eq(server_stop(&second, false), 0);
    cr_expect(!is_there());
}

Test(unix_sockets, leaves_a_socket_that_is_used, .init = make_folder, .fini = remove_folder)
{
    struct server server = server_start_at(address, NULL);
    expect_refused(address, "--listen: cannot listen on unix:/tmp/kldiv-unix-");
    expect_refused(address, "in use");
    expect_loss(&server);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Servers that start at the same moment where a socket is left: one has it, and keeps it. */
Test(unix_sockets, one_of_many_that_start_at_once_has_the_socket, .init = make_folder,
     .fini = remove_folder)
{
    static const char script[] =
        "for i in 1 2 3 4 5 6; do \"$0\" --listen $1 --log-level error 2>> $2/errors & p=\"$p "
        "$!\"; done;"
        "for i in $(seq 100); do [ $(grep -c 'in use' $2/errors) = 5 ] && break; sleep 0.1; done;"
        "for i in $(seq 100); do \"$0\" --healthcheck --listen $1 2> $2/health && break; sleep "
        "0.1; done;"
        "[ $i -lt 100 ] && [ $(grep -c . $2/errors) = 5 ]; status=$?;"
        "kill $p 2> /dev/null; wait; rm $2/errors $2/health; exit $status";
    char command[1000];
    const char *binary = getenv("KLDIV_SERVER");
    struct server left = server_start_at(address, NULL);
    server_kill(&left, false);
    snprintf(command, sizeof command, "sh -c '%s' %s %s %s", "eval \"$SCRIPT\"",
             binary ? binary : KLDIV_BINARY, address, folder);
    setenv("SCRIPT", script, 1);
    cr_expect_eq(system(command), 0);
}

Test(unix_sockets, leaves_the_socket_of_another_that_has_replaced_its_own, .init = make_folder,
     .fini = remove_folder)
{
    struct server first = server_start_at(address, NULL);
    unlink(path);
    struct server second = server_start_at(address, NULL);
    cr_expect_eq(server_stop(&first, false), 0);
    expect_loss(&second);
    cr_expect_eq(server_stop(&second, false), 0);
    cr_expect(!is_there());
}

Test(unix_sockets, touches_no_other_file, .init = make_folder, .fini = remove_folder)
{
    size_t size;
    write_file(path, "mine");
    expect_refused(address, "there is a file that is not a socket");
    char *text = read_file(path, &size);
    cr_expect_str_eq(text, "mine");
    free(text);
    unlink(path);
    cr_assert_eq(symlink("/nowhere", path), 0);
    expect_refused(address, "there is a file that is not a socket");
}

Test(unix_sockets, tells_why_it_cannot_listen_on_a_path, .init = make_folder, .fini = remove_folder)
{
    char text[400];
    snprintf(text, sizeof text, "unix:%s/%0120d", folder, 0);
    expect_refused(text, "a path or name has 1 to 107 bytes");
    snprintf(text, sizeof text, "unix:@%0107d", 0);
    expect_refused(text, "a path or name has 1 to 107 bytes");
    snprintf(text, sizeof text, "unix:%s/%0320d", folder, 0);
    expect_refused(text, "each of 1 to 299 bytes");
    snprintf(text, sizeof text, "unix:%s/none/socket", folder);
    expect_refused(text, "its folder is missing");
    expect_refused("unix:", "1 to 107 bytes");
    expect_refused("unix:@", "1 to 107 bytes");
    expect_refused("127.0.0.1:0,", "--listen: '127.0.0.1:0,': at most 16 addresses");
    expect_refused("127.0.0.1:0,nothing", "--listen: 'nothing' is not HOST:PORT, unix:PATH");
    if (geteuid() != 0)
        expect_refused("unix:/kldiv.sock", "Permission denied");
    const char *const with_port_file[] = {"--listen", address, "--port-file", "/tmp/none", NULL};
    expect_refusal(with_port_file, "--port-file: no address of --listen is HOST:PORT");
    cr_expect(!is_there(), "a server that does not start leaves nothing");
    snprintf(text, sizeof text, "%s,127.0.0.1:99999", address);
    expect_refused(text, "--listen: '127.0.0.1:99999'");
    cr_expect(!is_there());
}

/* ---- Names and addresses */

Test(unix_sockets, answers_on_an_abstract_socket)
{
    char name[60], text[100];
    snprintf(name, sizeof name, "unix:@kldiv-test-%d", (int)getpid());
    struct server server = server_start_at(name, NULL);
    snprintf(text, sizeof text, " info listening on http://%s\n", name);
    cr_expect(server_logs(&server, text, 1));
    expect_loss(&server);
    expect_refused(name, "in use");
    const char *const check[] = {"--healthcheck", "--listen", name, NULL};
    cr_expect_eq(run_server(check, text, sizeof text), 0, "%s", text);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Expects the loss by TCP and by the path. */
static void expect_both(const struct server *server)
{
    struct server local = *server;
    expect_loss(server);
    snprintf(local.path, sizeof local.path, "%s", path);
    expect_loss(&local);
}

Test(unix_sockets, answers_on_several_addresses, .init = make_folder, .fini = remove_folder)
{
    char list[100];
    const char *const flags[] = {"--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                                 "--listen", address,       NULL};
    struct server server = server_start(flags);
    expect_both(&server);
    cr_expect(server_logs(&server, "listening on http://127.0.0.1:", 2));
    char *log = server_log_text(&server);
    snprintf(list, sizeof list, "info listening on http://127.0.0.1:%d\n", server.port);
    cr_expect_eq(strstr(log, list), strstr(log, "info "), "the first address is the first line");
    free(log);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect(!is_there());
}

/* Reads the port of a server, whose file is empty until it answers: that is after it listens. */
static int wait_for_port(const char *port_file)
{
    int port = 0;
    for (int i = 0; i < 3000 && port == 0; i++, usleep(5000)) {
        size_t size;
        char *text = read_file(port_file, &size);
        port = atoi(text);
        free(text);
    }
    return port;
}

Test(unix_sockets, takes_addresses_of_the_environment_unless_flags_give_others, .init = make_folder,
     .fini = remove_folder)
{
    char list[100], port_file[80], output[300];
    const char *const ports[] = {"--port-file", port_file, NULL},
                      *const check[] = {"--healthcheck", NULL},
                      *const flags[] = {"--listen", "127.0.0.1:0", NULL};
    snprintf(port_file, sizeof port_file, "%s/port", folder);
    snprintf(list, sizeof list, "%s,127.0.0.1:0", address);
    setenv("KLDIV_LISTEN", list, 1);
    struct server server = server_start_at(address, ports), other = server_start(flags);
    *server.path = '\0';
    server.port = wait_for_port(port_file);
    expect_both(&server);
    cr_expect_eq(run_server(check, output, sizeof output), 0, "%s", output);
    cr_expect(server_logs(&other, "listening on", 1) && !has_logged(&other, "unix:"));
    unlink(port_file);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect_eq(server_stop(&other, false), 0);
}

Test(unix_sockets, answers_health_on_a_unix_socket_of_its_own, .init = make_folder,
     .fini = remove_folder)
{
    char output[300];
    const char *const flags[] = {"--admin-listen", address, NULL};
    struct server server = server_start(flags), admin = server;
    snprintf(admin.path, sizeof admin.path, "%s", path);
    cr_expect_eq(status_of(&admin, "GET", "/metrics", NULL), 200);
    cr_expect_eq(status_of(&admin, "GET", "/openapi.json", NULL), 404);
    cr_expect_eq(status_of(&server, "GET", "/openapi.json", NULL), 200);
    cr_expect(server_logs(&server, " info health and metrics on http://unix:/tmp/", 1));
    const char *const check[] = {"--healthcheck",  "--listen", "127.0.0.1:1",
                                 "--admin-listen", address,    NULL};
    cr_expect_eq(run_server(check, output, sizeof output), 0, "%s", output);
    cr_expect_eq(server_stop(&server, false), 0);
    cr_expect(!is_there());
    cr_expect_eq(run_server(check, output, sizeof output), 1);
}

Test(unix_sockets, finds_itself_healthy_by_its_first_address, .init = make_folder,
     .fini = remove_folder)
{
    char output[300];
    struct server server = server_start_at(address, NULL);
    const char *const good[] = {"--healthcheck", "--listen",    address,
                                "--listen",      "127.0.0.1:1", NULL},
                      *const bad[] = {"--healthcheck", "--listen", "127.0.0.1:1",
                                      "--listen",      address,    NULL};
    cr_expect_eq(run_server(good, output, sizeof output), 0, "%s", output);
    cr_expect_eq(run_server(bad, output, sizeof output), 1);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(unix_sockets, speaks_tls_on_a_unix_socket, .init = make_folder, .fini = remove_folder)
{
    char cert[70], key[70], output[500];
    snprintf(cert, sizeof cert, "%s/cert", folder);
    snprintf(key, sizeof key, "%s/key", folder);
    make_certificate(cert, key, GNUTLS_PK_ECDSA, 30);
    const char *const flags[] = {"--tls-cert", cert, "--tls-key", key, NULL};
    struct server server = server_start_at(address, flags);
    cr_expect_eq(status_of(&server, "GET", "/livez", NULL), 400, "it is not plain");
    server.certificate = cert;
    expect_loss(&server);
    cr_expect(server_logs(&server, "listening on https://unix:/tmp/", 1));
    cr_expect(server_logs(&server, " uid=", 1));
    const char *const check[] = {"--healthcheck", "--listen", address, "--tls-cert", cert,
                                 "--tls-key",     key,        NULL};
    cr_expect_eq(run_server(check, output, sizeof output), 0, "%s", output);
    cr_expect_eq(server_stop(&server, false), 0);
    unlink(cert);
    unlink(key);
}

/* ---- Who asks */

Test(unix_sockets, logs_the_process_that_asks_over_a_unix_socket, .init = make_folder,
     .fini = remove_folder)
{
    static const char *const json[] = {"--log-format", "json", NULL};
    char text[100];
    struct server server = server_start_at(address, NULL);
    expect_loss(&server);
    snprintf(text, sizeof text, " pid=%d uid=%d gid=%d\n", (int)getpid(), (int)getuid(),
             (int)getgid());
    cr_expect(server_logs(&server, text, 1));
    cr_expect_eq(server_stop(&server, false), 0);

    server = server_start_at(address, json);
    expect_loss(&server);
    snprintf(text, sizeof text, ",\"peer_pid\":%d,\"peer_uid\":%d,\"peer_gid\":%d}\n",
             (int)getpid(), (int)getuid(), (int)getgid());
    cr_expect(server_logs(&server, text, 1));
    cr_expect_eq(server_stop(&server, false), 0);

    server = server_start(NULL);
    *server.path = '\0';
    expect_loss(&server);
    cr_expect(server_logs(&server, " status=200 ", 1));
    cr_expect(!has_logged(&server, " uid="), "of TCP nothing is known");
    cr_expect_eq(server_stop(&server, false), 0);
}

/* ---- Sockets that are passed */

static int listen_locally(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    cr_assert_eq(listen(fd, 128), 0);
    return fd;
}

/* The manager's socket stays, for the next process. */
Test(unix_sockets, serves_a_unix_socket_that_it_is_passed, .init = make_folder,
     .fini = remove_folder)
{
    static const char *const flags[] = {"--listen", "127.0.0.1:0", NULL};
    static const char request[] = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    server_pass(listen_locally(), -1);
    for (int round = 0; round < 2; round++) {
        struct server server = server_start_at(address, flags);
        expect_loss(&server);
        cr_expect(server_logs(&server, ", a socket of the service manager\n", 1));
        cr_expect_eq(server_stop(&server, false), 0);
        cr_expect(is_there());
    }
    struct server gone = {.port = 0};
    snprintf(gone.path, sizeof gone.path, "%s", path);
    int waiting = dial(&gone);
    cr_assert_eq(send(waiting, request, sizeof request - 1, 0), (ssize_t)sizeof request - 1);
    struct server next = server_start_at(address, flags);
    cr_expect_eq(read_status(waiting, 5), 200);
    close(waiting);
    cr_expect_eq(server_stop(&next, false), 0);
}
