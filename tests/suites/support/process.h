/* Starts the real server as a process; connects clients to it. */
#pragma once

#include "api/memory/buffer.h"

#include <jansson.h>
#include <sys/types.h>

struct server {
    pid_t pid;
    int port; /* 0 where it listens on unix sockets alone */
    char path
        [110]; /* of a unix socket that clients connect to; @NAME if abstract; "" for the port */
    char folder[40];         /* contains the port file and the log */
    const char *certificate; /* set by the test: file to verify a server with TLS by; else NULL */
};

/* Starts kldivd on a free port of 127.0.0.1, or where --listen of the flags says, with additional flags,
 * NULL at the end, and waits until it listens. Clients of half of the tests connect to a unix socket instead of the
 * port; KLDIV_OVER decides for all. */
struct server server_start(const char *const *flags);

/* Starts it on "unix:PATH" or "unix:@NAME" alone, where its clients connect. With KLDIV_LISTEN it is told no
 * address by flags. */
struct server server_start_at(const char *address, const char *const *flags);

/* Lets this test, and servers that it starts from then on, have so many descriptors, or as many as it may. Else a server
 * has as many as the test, 256 under `make check`, and cannot raise that. Gives how many there are. */
size_t allow_files(size_t files);

/* Starts it with at most `files` descriptors for the server. */
struct server server_start_with_files(const char *const *flags, size_t files);

/* Starts it likewise; the port is 0 if it ends before it listens, or does neither in 15 s. */
struct server server_try(const char *const *flags);

/* Plays the service manager for servers that are started from then on: passes them these sockets, with the names
 * http and admin; -1 passes none. */
void server_pass(int http, int admin);

/* Sends SIGTERM and returns the exit status, or -1 if it did not exit normally. Fails the test if the
 * log has a warning or an error, unless `may_complain`. */
int server_stop(struct server *server, bool may_complain);

/* Kills it; fails the test if the log has a warning or an error, unless it may complain. */
void server_kill(struct server *server, bool may_complain);

/* Text of the server's log so far; the caller frees it. */
char *server_log_text(const struct server *server);

/* Waits until the log has a text `n` times; false after 10 s. */
bool server_logs(const struct server *server, const char *text, size_t n);

/* Writes a file for the server to read. */
void write_file(const char *path, const char *text);

/* Runs kldivd with these flags until it exits; returns the exit status and fills its output. */
int run_server(const char *const *flags, char *output, size_t size);

/* fetched: one exchange by libcurl. `headers` are lines, NULL at the end; a NULL `body` makes a
 * GET. /metrics is asked again, for some 200 ms at most, until no other request is in flight: a
 * request ends just after its client has the answer. */
struct fetched {
    long status;
    bool lost; /* connected and sent, but got no answer */
    struct api_buffer head, body;
    json_t *json;
};
struct fetched fetch(const struct server *server, const char *method, const char *target,
                     const char *const *headers, const char *body, size_t body_size);
void fetched_free(struct fetched *fetched);

/* Sends a POST with a JSON body. */
struct fetched post_json(const struct server *server, const char *target, const char *body);

#define TWO_BY_TWO "{\"input\": [[-1, -0.5], [-2, -0.2]], \"target\": [[0.4, 0.6], [0.1, 0.9]]}"

/* Value of a header, or "". */
const char *header_in(const struct fetched *fetched, const char *name, char *to, size_t size);

/* Sends bytes on a new connection and reads until the server closes it or is silent for
 * `seconds`. Returns the number of bytes read. */
size_t talk(const struct server *server, const char *bytes, size_t size, char *answer, size_t room,
            double seconds);

/* Connects a socket to the server; -1 if nobody listens, which the first fails on. */
int dial(const struct server *server);
int try_to_dial(const struct server *server);
