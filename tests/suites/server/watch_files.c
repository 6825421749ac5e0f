/* Files that are read again when they change, as Kubernetes and others change them, by a server that is locked in. */
#include "tests/suites/support/certificate.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kldiv-watch-XXXXXX";

/* The path of a name in the folder; four are kept. */
static const char *in_folder(const char *name)
{
    static char paths[4][80];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void make_folder(void) { cr_assert(mkdtemp(folder)); }

static void remove_folder(void)
{
    char command[80];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

/* Puts a secret's file as the kubelet does: a folder of its own, and a link that is swapped. */
static void put_secret(const char *name, const char *text)
{
    static int version;
    char data[24], file[130], before[100] = "";
    if (readlink(in_folder("..data"), before, sizeof before - 1) < 0)
        *before = '\0';
    snprintf(data, sizeof data, "..version_%d", ++version);
    snprintf(file, sizeof file, "%s/%s", data, name);
    cr_assert_eq(mkdir(in_folder(data), 0755), 0);
    write_file(in_folder(file), text);
    cr_assert_eq(symlink(data, in_folder("..data_tmp")), 0);
    cr_assert_eq(rename(in_folder("..data_tmp"), in_folder("..data")), 0);
    snprintf(file, sizeof file, "..data/%s", name);
    if (!*before) {
        cr_assert_eq(symlink(file, in_folder(name)), 0);
        return;
    }
    snprintf(file, sizeof file, "%s/%s", before, name);
    unlink(in_folder(file));
    rmdir(in_folder(before));
}

static long status_with(const struct server *server, const char *token)
{
    char header[80];
    const char *const headers[] = {header, NULL};
    snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    struct fetched f = fetch(server, "GET", "/v2", headers, NULL, 0);
    long status = f.status;
    fetched_free(&f);
    return status;
}

/* Waits for a status, for 5 s at most. */
static bool gets(const struct server *server, const char *token, long status)
{
    double end = now_seconds() + 5;
    while (status_with(server, token) != status && now_seconds() < end)
        wait_ms(20);
    return status_with(server, token) == status;
}

static size_t count(const struct server *server, const char *text)
{
    size_t n = 0;
    char *log = server_log_text(server);
    for (const char *p = log; (p = strstr(p, text)); p++)
        n++;
    free(log);
    return n;
}

/* The tokens that are served, and what the metric says, by a token that is always there. */
static bool says_reload(const struct server *server, const char *token, int good)
{
    char header[80], line[60];
    const char *const headers[] = {header, NULL};
    snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    snprintf(line, sizeof line, "\nkldiv_config_last_reload_successful %d\n", good);
    struct fetched f = fetch(server, "GET", "/metrics", headers, NULL, 0);
    bool says = strstr(f.body.data, line);
    fetched_free(&f);
    return says;
}

#define FIRST "first-first-first-first"
#define SECOND "second-second-second"
#define THIRD "third-third-third-third"

Test(watch_files, a_secret_that_is_swapped_is_read, .init = make_folder, .fini = remove_folder)
{
    put_secret("tokens", "a " FIRST "\n");
    const char *const flags[] = {"--auth-token-file", in_folder("tokens"), NULL};
    struct server server = server_start(flags);
    cr_expect_eq(status_with(&server, FIRST), 200);
    put_secret("tokens", "a " SECOND "\n");
    cr_expect(gets(&server, SECOND, 200));
    cr_expect_eq(status_with(&server, FIRST), 401);
    cr_expect(says_reload(&server, SECOND, 1));

    put_secret("tokens", "a too/short*\n");
    cr_expect(server_logs(&server, " stay in use option=--auth-token-file error=", 1));
    cr_expect_eq(status_with(&server, SECOND), 200);
    cr_expect(says_reload(&server, SECOND, 0));

    for (int i = 0; i < 3; i++) { /* within the time in which others may come */
        put_secret("tokens", "a " FIRST "\n");
        put_secret("tokens", "a " THIRD "\n");
    }
    cr_expect(gets(&server, THIRD, 200));
    cr_expect(says_reload(&server, THIRD, 1));
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Ways in which editors and programs put a file; others in its folder are none of it. */
Test(watch_files, a_file_is_read_however_it_is_put, .init = make_folder, .fini = remove_folder)
{
    const char *path = in_folder("tokens");
    write_file(path, "a " FIRST "\n");
    const char *const flags[] = {"--auth-token-file", path, NULL};
    struct server server = server_start(flags);
    write_file(path, "a " SECOND "\n");
    cr_expect(gets(&server, SECOND, 200), "written in place");
    write_file(in_folder("new"), "a " THIRD "\n");
    cr_assert_eq(rename(in_folder("new"), path), 0);
    cr_expect(gets(&server, THIRD, 200), "renamed");
    cr_assert_eq(unlink(path), 0);
    wait_ms(1500);
    cr_expect_eq(status_with(&server, THIRD), 200, "none is there");
    write_file(in_folder("real"), "a " FIRST "\n");
    cr_assert_eq(symlink("real", path), 0);
    cr_expect(gets(&server, FIRST, 200), "a link");
    write_file(in_folder("real"), "a " SECOND "\n");
    cr_expect(gets(&server, SECOND, 200), "written behind the link");
    if (geteuid() != 0) {
        cr_assert_eq(chmod(in_folder("real"), 0), 0);
        cr_expect(server_logs(&server, "Permission denied", 1));
        cr_assert_eq(chmod(in_folder("real"), 0600), 0);
    }
    wait_ms(1500);
    size_t n = count(&server, " read 1 token ");
    for (int i = 0; i < 5; i++, wait_ms(100))
        write_file(in_folder("other"), "a " THIRD "\n");
    wait_ms(1500);
    cr_expect_eq(count(&server, " read 1 token "), n);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* The folder may be searched, and not read. */
Test(watch_files, a_file_of_a_closed_folder_is_read, .init = make_folder, .fini = remove_folder)
{
    const char *path = in_folder("tokens");
    write_file(path, "a " FIRST "\n");
    const char *const flags[] = {"--auth-token-file", path, NULL};
    cr_assert_eq(chmod(folder, 0311), 0);
    struct server server = server_start(flags);
    write_file(path, "a " SECOND "\n");
    cr_expect(gets(&server, SECOND, 200));
    wait_ms(1500);
    cr_expect_eq(count(&server, " read 1 token "), 2);
    kill(server.pid, SIGHUP);
    cr_expect(server_logs(&server, " read 1 token ", 3));
    cr_assert_eq(chmod(folder, 0700), 0);
    cr_expect_eq(server_stop(&server, true), 0);
}

/* Certificate and key come one after the other, and no handshake fails; the receivers of --notify, too. */
Test(watch_files, a_certificate_and_receivers_are_read, .init = make_folder, .fini = remove_folder)
{
    char cert[80], key[80], notify[80];
    strcpy(cert, in_folder("cert"));
    strcpy(key, in_folder("key"));
    strcpy(notify, in_folder("notify"));
    make_certificate(cert, key, GNUTLS_PK_ECDSA, 30);
    write_file(notify,
               "[{\"name\": \"a\", \"format\": \"json\", \"url\": \"http://127.0.0.1:9/\"}]");
    const char *const flags[] = {"--tls-cert", cert, "--tls-key", key, "--notify", notify, NULL};
    struct server server = server_start(flags);
    make_certificate(in_folder("cert.new"), in_folder("key.new"), GNUTLS_PK_ECDSA, 60);
    cr_assert_eq(rename(in_folder("cert.new"), cert), 0);
    wait_ms(50);
    cr_assert_eq(rename(in_folder("key.new"), key), 0);
    cr_expect(server_logs(&server, "info read the certificate file=", 2));
    write_file(notify, "[]");
    cr_expect(server_logs(&server, "info read 0 receivers of notifications ", 1));
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Puts the tokens of a release into a folder of its own, and lets the link lead there. */
static void put_release(const char *link, const char *target, const char *text)
{
    char file[100];
    snprintf(file, sizeof file, "%s/%s/tokens", folder, target);
    *strrchr(file, '/') = '\0';
    cr_assert_eq(mkdir(file, 0755), 0);
    strcat(file, "/tokens");
    write_file(file, text);
    unlink(in_folder("next"));
    cr_assert_eq(symlink(*link == '/' ? in_folder(target) : target, in_folder("next")), 0);
    cr_assert_eq(rename(in_folder("next"), in_folder(link + (*link == '/'))), 0);
}

/* A link in the middle of the path leads elsewhere: relative or absolute, and one that leads to another. */
Test(watch_files, a_folder_that_is_swapped_is_read, .init = make_folder, .fini = remove_folder)
{
    static const char *const links[] = {"current", "/current"};
    cr_assert_eq(mkdir(in_folder("releases"), 0755), 0);
    for (int i = 0; i < 2; i++) {
        char target[40];
        const char *link = links[i];
        snprintf(target, sizeof target, "releases/%d-1", i);
        put_release(link, target, "a " FIRST "\n");
        const char *const flags[] = {"--auth-token-file",
                                     in_folder(i ? "outer/tokens" : "current/tokens"), NULL};
        if (i)
            cr_assert_eq(symlink("current", in_folder("outer")), 0);
        struct server server = server_start(flags);
        cr_expect_eq(status_with(&server, FIRST), 200);
        static const char *const tokens[] = {SECOND, THIRD, FIRST};
        for (int j = 0; j < 3; j++) {
            char text[60];
            snprintf(target, sizeof target, "releases/%d-%d", i, j + 2);
            snprintf(text, sizeof text, "a %s\n", tokens[j]);
            put_release(link, target, text);
            cr_expect(gets(&server, tokens[j], 200), "%s to %s", link, target);
        }
        cr_expect_eq(server_stop(&server, false), 0);
    }
}

/* What a reload names first is watched from then on, and what it names no more is not. */
Test(watch_files, files_that_a_reload_names_are_watched, .init = make_folder, .fini = remove_folder)
{
    static const char receivers[] = "[{\"name\": \"a\", \"format\": \"json\", \"url\": "
                                    "\"http://127.0.0.1:9/\", \"secret_file\": \"%s\"}]";
    static const char reads[] = "info read 1 receivers of notifications ";
    char notify[80], secret[80], text[300];
    strcpy(notify, in_folder("notify"));
    strcpy(secret, in_folder("more/secret"));
    cr_assert_eq(mkdir(in_folder("more"), 0755), 0);
    write_file(secret, "one");
    write_file(notify, "[]");
    const char *const flags[] = {"--notify", notify, NULL};
    struct server server = server_start(flags);
    snprintf(text, sizeof text, receivers, secret);
    write_file(notify, text);
    cr_expect(server_logs(&server, reads, 1));
    for (size_t i = 2; i < 4; i++) {
        write_file(secret, "another");
        cr_expect(server_logs(&server, reads, i), "%zu", i);
    }
    write_file(notify, "[]");
    cr_expect(server_logs(&server, "info read 0 receivers of notifications ", 2));
    write_file(secret, "nobody's");
    wait_ms(1800);
    cr_expect_eq(count(&server, reads), 3);
    cr_expect_eq(server_stop(&server, false), 0);
}
