/* The Dockerfile: what it sets, the server knows. `make image-test` builds it. */
#include "lib/kldiv.h"
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Sets the variables that the last stage sets, but for what names places of a container. */
static size_t set_variables(char *dockerfile)
{
    size_t n = 0;
    char *rest = NULL, *last = strstr(dockerfile, "\nFROM scratch");
    cr_assert(last);
    for (char *word = strtok_r(last, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        char *value = strchr(word, '=');
        if (strncmp(word, "KLDIV_", 6) != 0 || !value)
            continue;
        *value++ = '\0';
        setenv(word, strcmp(word, "KLDIV_STORE") == 0 ? "sqlite:/nonexistent/kldiv.db" : value, 1);
        n++;
    }
    return n;
}

Test(image, sets_options_of_the_server)
{
    size_t size;
    char *dockerfile = read_file("Dockerfile", &size);
    cr_expect_eq(set_variables(dockerfile), 5);
    static const char *const flags[] = {"--drain-delay", "0", NULL};
    struct server server = server_start(flags); /* on 127.0.0.1 */
    struct fetched f = post_json(&server, "/kl_div", TWO_BY_TWO);
    cr_expect_eq(f.status, 200);
    fetched_free(&f);
    cr_expect(server_logs(&server, "monitors are kept in memory", 1));
    char *log = server_log_text(&server);
    cr_expect(*log == '{' && !strstr(log, "is not an option"), "%s", log);
    free(log);
    cr_expect_eq(server_stop(&server, true), 0);
    free(dockerfile);
}

Test(image, has_the_version_of_the_library)
{
    size_t size;
    char *dockerfile = read_file("Dockerfile", &size);
    cr_expect(strstr(dockerfile, "org.opencontainers.image.version=\"" KLDIV_VERSION "\""));
    free(dockerfile);
}
