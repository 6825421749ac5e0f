/* Bad clients: slow, silent, greedy, or gone in the middle. They connect again when the server ends
 * them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Number of kinds, and what came of the clients of each since the start. */
#define BAD_KINDS 7
struct bad_result {
    const char *name;
    size_t clients;
    unsigned long connections, served, late, refused, other; /* 200; 408; 503; others */
    unsigned long unanswered, left; /* ended without a word; by the client itself */
    int worst;                      /* a 5xx that is not 503, or 0 */
};

/* Starts `n` clients of all kinds in equal shares, in a thread of their own; false if it cannot. */
bool bad_start(int port, size_t n);

/* Closes all their connections and fills BAD_KINDS results. */
void bad_stop(struct bad_result *results);
