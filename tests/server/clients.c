/* The programs of tests/clients, and those of pages about clients, against the real server. `make deps` installs their
 * languages. */
#include "tests/support/process.h"
#include "tests/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Output of each program: the loss of float64, then that of float32. */
static const char *const losses[] = {"0.247258", "0.247258"};

/* Verdicts that the programs print on what has drifted. */
static const char *const verdicts[] = {"critical"};

static const struct client {
    const char *name;
    const char *run;  /* format of a command, with the URL, or the path of a socket */
    const char *path; /* of that URL; NULL: the socket's */
} clients[] = {
    {"curl.sh", "sh tests/clients/curl.sh %s", "kl_div"},
    {"stdlib.py", "python3 tests/clients/stdlib.py %s", "kl_div"},
    {"with_numpy.py", "/usr/bin/python3 tests/clients/with_numpy.py %s", "kl_div"},
    {"fetch.mjs", "node tests/clients/fetch.mjs %s", "kl_div"},
    {"libcurl.c", "cc tests/clients/libcurl.c -o build/client -lcurl && build/client %s", "kl_div"},
    {"with_httr.R", "Rscript tests/clients/with_httr.R %s", "kl_div"},
    {"local.py", "python3 tests/clients/local.py %s", NULL},
    {"local.mjs", "node tests/clients/local.mjs %s", NULL},
    {"shared_memory.py", "python3 tests/clients/shared_memory.py %s", "v2"},
    {"monitors.py", "/usr/bin/python3 tests/clients/monitors.py %s", "monitors"},
    {"monitors.R", "Rscript tests/clients/monitors.R %s", "monitors"},
};

static void check(const struct client *client, const char *url)
{
    char command[300], output[2000] = "";
    snprintf(command, sizeof command, client->run, url);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = '\0';
    cr_expect_eq(pclose(pipe), 0, "%s failed (make deps installs its language)", client->name);
    bool is_of_loss = !client->path || strcmp(client->path, "monitors") != 0;
    const char *p = output, *const *expected = is_of_loss ? losses : verdicts;
    size_t n = is_of_loss ? COUNT(losses) : COUNT(verdicts);
    for (size_t i = 0; i < n && p; i++) {
        p = strstr(p, expected[i]);
        cr_expect(p, "%s printed %s", client->name, output);
        p = p ? p + 1 : NULL;
    }
}

Test(clients, get_losses_and_verdicts)
{
    char path[60], url[100], address[70];
    snprintf(path, sizeof path, "/tmp/kldiv-clients-%d", (int)getpid());
    snprintf(address, sizeof address, "unix:%s", path);
    const char *const flags[] = {"--listen",        "127.0.0.1:0",    "--listen", address,
                                 "--shared-memory", "kldiv_example_", NULL};
    struct server server = server_start(flags);
    for (size_t i = 0; i < COUNT(clients); i++) {
        snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", server.port,
                 clients[i].path ? clients[i].path : "");
        check(&clients[i], clients[i].path ? url : path);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* Pages, and the languages of their blocks that need no package of ours. */
static const char *const pages[] = {
    "api/clients/README.md c go java r rust sh",
    "api/clients/R/README.md r",
};

Test(clients, of_pages_do_what_these_say)
{
    const char *const flags[] = {"--listen", "127.0.0.1:0", NULL};
    struct server server = server_start(flags);
    for (size_t i = 0; i < COUNT(pages); i++) {
        char command[200];
        snprintf(command, sizeof command,
                 "python3 -B tests/clients/pasted.py http://127.0.0.1:%d %s", server.port,
                 pages[i]);
        cr_expect_eq(system(command), 0, "%s (make deps installs languages)", command);
    }
    cr_expect_eq(server_stop(&server, false), 0);
}

/* tests/clients/README.md quotes the programs (make readme). */
Test(clients, are_those_of_the_readme)
{
    size_t size;
    char *readme = read_file("tests/clients/README.md", &size);
    for (size_t i = 0; i < COUNT(clients); i++) {
        char path[100];
        snprintf(path, sizeof path, "tests/clients/%s", clients[i].name);
        char *source = read_file(path, &size);
        cr_expect(strstr(readme, source), "tests/clients/README.md has another %s: make readme",
                  path);
        free(source);
    }
    free(readme);
}
