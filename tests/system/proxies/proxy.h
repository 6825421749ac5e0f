/* Starts nginx or HAProxy before servers, with a configuration of its own, as a plain process. */
#pragma once

#include "tests/suites/support/process.h"

/* Kinds: nginx as it is, which reads a body before it passes it on with a Content-Length; nginx that
 * passes a body on as it comes, in chunks; HAProxy. */
enum proxy_kind { NGINX, NGINX_STREAMING, HAPROXY, PROXIES };

/* proxy: `front` is what clients of the tests connect to, as if it was a server. */
struct proxy {
    enum proxy_kind kind;
    pid_t pid;
    struct server front;
};

/* setting: the text that a test adds to the configuration: of nginx's `upstream`, of each of its
 * servers; of HAProxy's backend, of each of its servers. NULL adds nothing. */
struct setting {
    const char *upstream, *upstream_server, *backend, *backend_server;
};

/* Skips the test, saying so, if the program is not installed. */
void proxy_needed(enum proxy_kind kind);

/* Starts a proxy before servers on these ports of 127.0.0.1, and waits until it listens. */
struct proxy proxy_start(enum proxy_kind kind, const int *ports, size_t n,
                         const struct setting *setting);

/* Gives the text of a file from `begin` to the next blank line, or all of it if that is "". The caller frees it. */
char *proxy_text(const char *path, const char *begin);

/* proxy_address: a text, such as "127.0.0.1:8080", that becomes 127.0.0.1 and a port; 0 is the proxy's own. */
struct proxy_address {
    const char *in_text;
    int port;
};

/* Starts nginx with this text in its `http`, or HAProxy with this text after its defaults. Addresses end with a
 * NULL; each is replaced wherever it stands. */
struct proxy proxy_start_text(enum proxy_kind kind, const char *text,
                              const struct proxy_address *addresses);

/* Starts NGINX or HAPROXY with the file that the project gives, docker/nginx.conf or docker/haproxy.cfg, before two
 * servers. */
struct proxy proxy_start_shipped(enum proxy_kind kind, const int ports[2]);

/* Starts a server on a port of 127.0.0.1, 0 for any, with a drain delay in seconds. */
struct server replica_start(int port, const char *drain_delay);

/* Ends it and removes its files. */
void proxy_stop(struct proxy *proxy);

/* Number of requests that it has passed on, by its log; each try of one counts. */
double proxy_passed(const struct proxy *proxy);

/* Number of clients, at most 200, that descriptors suffice for; their bound is raised. nginx and HAProxy
 * close kept connections when they come near to it. */
size_t proxy_clients(void);
