/* Clients that post observations without a pause, and keep book of what was acknowledged. */
#pragma once

#include "tests/suites/support/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* POSTERS: connections. GROUPS: tables of COLUMNS columns, with windows of a batch, seconds, a count. */
enum { POSTERS = 24, GROUPS = 3, COLUMNS = 3, MAX_POSTS = 200000 };

/* post: one request. With a key it is sent again until it is acknowledged. */
enum fate { UNSENT, UNKNOWN, STORED };
struct post {
    enum fate fate;
    long window; /* number that the answer gave */
};

struct load;
struct poster {
    struct load *load;
    pthread_t thread;
    int fd;
    long pending; /* post with a key that is to be sent again, or -1 */
};

struct load {
    const struct server *server;
    struct post *posts;
    bool redials; /* each post has a connection of its own; posters end when none is accepted */
    atomic_long n, replayed, refused,
        lost; /* lost: sent on a connection of its own, not answered */
    atomic_bool stop;
    struct poster posters[POSTERS];
};

void load_init(struct load *load);
void load_free(struct load *load);

/* Makes the tables. */
void load_define(const struct server *server);

/* Connects all posters and lets them post. Waits for their end, which comes when the server is gone or
 * `stop` is set. */
void load_begin(struct load *load, const struct server *server);
void load_end(struct load *load);

/* Sends what has a key and is not acknowledged. */
void load_settle(struct load *load, const struct server *server);

/* Rows of posts of a group that are certainly stored, and those that may be. */
struct bounds {
    double min, max;
};
struct bounds load_bounds(const struct load *load, int group);

/* Expects that a server has what was acknowledged, and no half of a post. */
void load_expect(const struct load *load, const struct server *server);

/* Rows of a group in a file. Expects that nothing in it contradicts itself. */
double load_rows(const struct database *database, int group);
void load_expect_sound(const struct database *database);

/* Expects likewise of the file, each window of a batch by its number. */
void load_expect_file(const struct load *load, const struct database *database);
