/* The programs of tests/clients, in the languages that are here, against the real server. */
#include "tests/process.h"
#include "tests/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* What each prints twice: once of float64, once of float32. */
static const char *const losses[] = {"0.247258", "0.247258"};

static const struct client {
    const char *name;
    const char *is_here; /* a command that succeeds where the language is */
    const char *run;     /* a format of a command, for the URL */
} clients[] = {
    {"curl.sh", "command -v curl", "sh tests/clients/curl.sh %s"},
    {"stdlib.py", "command -v python3", "python3 tests/clients/stdlib.py %s"},
    {"with_numpy.py", "/usr/bin/python3 -c 'import numpy'",
     "/usr/bin/python3 tests/clients/with_numpy.py %s"},
    {"fetch.mjs", "node -e 'fetch'", "node tests/clients/fetch.mjs %s"},
    {"libcurl.c", "command -v cc",
     "cc tests/clients/libcurl.c -o build/client -lcurl && build/client %s"},
    {"with_httr.R", "Rscript -e 'library(httr)'", "Rscript tests/clients/with_httr.R %s"},
};

static bool succeeds(const char *command)
{
    char quiet[300];
    snprintf(quiet, sizeof quiet, "{ %s; } >/dev/null 2>&1", command);
    return system(quiet) == 0;
}

static void check(const struct client *client, const char *url)
{
    char command[300], output[2000] = "";
    snprintf(command, sizeof command, client->run, url);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = '\0';
    cr_expect_eq(pclose(pipe), 0, "%s", client->name);
    const char *p = output;
    for (size_t i = 0; i < COUNT(losses); i++) {
        p = strstr(p, losses[i]);
        cr_assert(p, "%s printed %s", client->name, output);
        p++;
    }
}

Test(clients, get_the_loss_by_json_and_by_a_binary_format)
{
    struct server server = server_start(NULL);
    char url[100];
    size_t ran = 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/kl_div", server.port);
    for (size_t i = 0; i < COUNT(clients); i++) {
        if (!succeeds(clients[i].is_here)) {
            fprintf(stderr, "(not run, its language is not here: %s)\n", clients[i].name);
            continue;
        }
        check(&clients[i], url);
        ran++;
    }
    cr_expect_geq(ran, 2);
    cr_expect_eq(server_stop(&server, false), 0);
}

/* README.md shows them as they are here (make readme). */
Test(clients, are_those_of_the_readme)
{
    size_t size;
    char *readme = read_file("README.md", &size);
    for (size_t i = 0; i < COUNT(clients); i++) {
        char path[100];
        snprintf(path, sizeof path, "tests/clients/%s", clients[i].name);
        char *source = read_file(path, &size);
        cr_expect(strstr(readme, source), "README.md has another %s: make readme", path);
        free(source);
    }
    free(readme);
}
