/* The programs of tests/clients against the real server. `make deps` installs their languages. */
#include "tests/process.h"
#include "tests/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Output of each program: the loss of float64, then that of float32. */
static const char *const losses[] = {"0.247258", "0.247258"};

static const struct client {
    const char *name;
    const char *run; /* format of a command, with the URL */
} clients[] = {
    {"curl.sh", "sh tests/clients/curl.sh %s"},
    {"stdlib.py", "python3 tests/clients/stdlib.py %s"},
    {"with_numpy.py", "/usr/bin/python3 tests/clients/with_numpy.py %s"},
    {"fetch.mjs", "node tests/clients/fetch.mjs %s"},
    {"libcurl.c", "cc tests/clients/libcurl.c -o build/client -lcurl && build/client %s"},
    {"with_httr.R", "Rscript tests/clients/with_httr.R %s"},
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
    const char *p = output;
    for (size_t i = 0; i < COUNT(losses) && p; i++) {
        p = strstr(p, losses[i]);
        cr_expect(p, "%s printed %s", client->name, output);
        p = p ? p + 1 : NULL;
    }
}

Test(clients, get_the_loss_by_json_and_by_a_binary_format)
{
    struct server server = server_start(NULL);
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/kl_div", server.port);
    for (size_t i = 0; i < COUNT(clients); i++)
        check(&clients[i], url);
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
