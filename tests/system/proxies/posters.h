/* Clients that each post a body again and again on a kept connection. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* posters: numbers of answers. `other`: of another status, the last of which is kept, or 200 with a wrong
 * loss; `lost`: no answer came. Requests are `min` to `max` seconds apart, at random. `together`: all clients send
 * at the same times, so that a proxy needs many connections, which are all idle in between. */
struct posters {
    int port;
    double min, max, start;
    bool together;
    size_t elements; /* of each tensor, for bodies of 8 bytes each; 0: a small one of JSON */
    size_t n;
    pthread_t threads[256];
    atomic_bool stopping;
    atomic_ulong served, other, lost;
    atomic_int status;
};

/* Starts `n` clients; fails the test if it cannot. The structure must stay until posters_stop. */
void posters_start(struct posters *posters, int port, size_t n, double min, double max,
                   bool together);

/* Starts them with large bodies: two tensors of so many float32. */
void posters_start_large(struct posters *posters, int port, size_t n, double min, double max,
                         size_t elements);

/* Lets all finish their requests. */
void posters_stop(struct posters *posters);

/* Logs the numbers; fails the test if one answer is missing, or is not as it should be. */
void posters_expect_all_served(const struct posters *posters, const char *which);
