/* The server under a path of a proxy, by the lines of docker/README.md: names arrive as they were sent, whatever
 * characters they have, and pages find their files. */
#include "tests/suites/support/support.h"
#include "tests/system/proxies/proxy.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    "plain",   "od280/od315_of_diluted_wines",
    "100%",    "%2F",
    "a b",     "what?",
    "a+b",     "größe",
    "a#b",     "a//b",
    "a\\b",    "a/../b",
    "q&a=1;2", "\"\'",
    "a:b@c,d", "~/.x",
};

/* Appends a name to a target, with all but unreserved characters as %XX. */
static void append_name(char *target, const char *name)
{
    target += strlen(target);
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        target += sprintf(target, isalnum(*p) || strchr("-._~", *p) ? "%c" : "%%%02X", *p);
}

/* Sends a request with the name's address and what follows it; true if the answer is of this status. */
static bool ask_for(const struct server *server, const char *method, const char *name,
                    const char *rest, const char *body, long status, json_t **json)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    char target[400] = "/kldiv/monitors/";
    append_name(target, name);
    strcat(target, "/");
    append_name(target, name);
    strcat(target, rest);
    struct fetched f = fetch(server, method, target, headers, body, body ? strlen(body) : 0);
    bool good = f.status == status;
    cr_expect(good, "%s %s: %ld for %ld", method, target, f.status, status);
    if (json)
        *json = json_incref(f.json);
    fetched_free(&f);
    return good;
}

static void check_name(const struct server *front, const char *name)
{
    json_t *config = NULL;
    ask_for(front, "PUT", name, "",
            "{\"bins\": {\"labels\": [\"a\", \"b\"]}, \"reference\": {\"counts\": [60, 40]}}", 201,
            NULL);
    ask_for(front, "POST", name, "/observations?timestamp=2026-01-31T12:00:00%2B01:00",
            "{\"counts\": [50, 50]}", 200, NULL);
    ask_for(front, "GET", name, "/windows?limit=1", NULL, 200, NULL);
    if (ask_for(front, "GET", name, "", NULL, 200, &config)) {
        cr_expect_str_eq(json_string_value(json_object_get(config, "group")), name);
        cr_expect_str_eq(json_string_value(json_object_get(config, "name")), name);
    }
    json_decref(config);
    ask_for(front, "DELETE", name, "", NULL, 204, NULL);
    ask_for(front, "GET", name, "", NULL, 404, NULL);
}

static void expect_status(const struct server *front, const char *target, long status)
{
    struct fetched f = fetch(front, "GET", target, NULL, NULL, 0);
    cr_expect_eq(f.status, status, "%s: %ld for %ld", target, f.status, status);
    fetched_free(&f);
}

/* frame: what stands around the lines of docker/README.md, which begin with `begin`. */
static void check(enum proxy_kind kind, const char *frame, const char *begin)
{
    char text[2000], *lines = proxy_text("docker/README.md", begin);
    proxy_needed(kind);
    struct server server = server_start(NULL);
    snprintf(text, sizeof text, frame, lines);
    struct proxy proxy = proxy_start_text(
        kind, text,
        (const struct proxy_address[]){{"PUBLIC", 0}, {"127.0.0.1:8080", server.port}, {NULL, 0}});
    for (size_t i = 0; i < COUNT(names); i++)
        check_name(&proxy.front, names[i]);
    expect_status(&proxy.front, "/kldiv/dashboard", 308);
    expect_status(&proxy.front, "/kldiv/dashboard/", 200);
    expect_status(&proxy.front, "/kldiv/dashboard/style.css", 200);
    expect_status(&proxy.front, "/livez", kind == HAPROXY ? 503 : 404);
    proxy_stop(&proxy);
    free(lines);
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(proxies, nginx_passes_names_on_under_a_prefix)
{
    check(NGINX, "server { listen PUBLIC;\n%s}\n", "location /kldiv/");
}

Test(proxies, haproxy_passes_names_on_under_a_prefix)
{
    check(HAPROXY, "frontend public\nbind PUBLIC\n%s", "use_backend kldiv");
}
