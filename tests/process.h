/* The real server as a process, and clients for it. */
#ifndef KLDIV_TESTS_PROCESS_H
#define KLDIV_TESTS_PROCESS_H

#include "api/memory/buffer.h"

#include <jansson.h>
#include <sys/types.h>

struct server {
    pid_t pid;
    int port;
    char folder[40]; /* holds the port file and the log */
};

/* Starts kldivd on a free port of 127.0.0.1 with further flags (NULL at the end), and waits
 * until it listens. */
struct server server_start(const char *const *flags);

/* Sends SIGTERM and gives the exit status, or -1 if it did not exit by itself. Fails the test if
 * the log holds a warning or an error, unless those are expected. */
int server_stop(struct server *server, bool may_complain);

/* What it has logged so far; the caller frees it. */
char *server_log_text(const struct server *server);

/* Runs kldivd to its end with these flags; gives the exit status and what it printed. */
int run_server(const char *const *flags, char *output, size_t size);

/* One exchange by libcurl. `headers` are lines, NULL at the end; `body` NULL is a GET. */
struct fetched {
    long status;
    bool lost; /* connected and sent, and got no answer */
    struct api_buffer head, body;
    json_t *json;
};
struct fetched fetch(const struct server *server, const char *method, const char *target,
                     const char *const *headers, const char *body, size_t body_size);
void fetched_free(struct fetched *fetched);

/* POST of a JSON body. */
struct fetched post_json(const struct server *server, const char *target, const char *body);

#define TWO_BY_TWO "{\"input\": [[-1, -0.5], [-2, -0.2]], \"target\": [[0.4, 0.6], [0.1, 0.9]]}"

/* A header's value, or "" */
const char *header_in(const struct fetched *fetched, const char *name, char *to, size_t size);

/* Sends bytes as they are on a connection of their own and reads until the server closes it or
 * is silent for `seconds`. Gives the number of bytes. */
size_t talk(const struct server *server, const char *bytes, size_t size, char *answer, size_t room,
            double seconds);

/* A connected socket. */
int dial(const struct server *server);

#endif
