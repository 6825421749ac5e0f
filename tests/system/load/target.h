/* The server that is tested, as a process: what it answers, logs and holds. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct target {
    pid_t pid;
    atomic_int port, admin_port;
    int log; /* pipe from the server */
    pthread_t reader;
    atomic_ulong warnings, errors; /* lines of the log */
    char first[2][200];            /* first warning, first error; read after target_stop */
};

/* Starts the program with flags, NULL at the end, on free ports of 127.0.0.1; false if it does not
 * serve within 30 s. */
bool target_start(struct target *target, const char *program, const char *const *flags);

/* Sends SIGTERM; returns the exit status, or -1 if the server did not exit by itself within 60 s. */
int target_stop(struct target *target);

/* held: what a process holds, in bytes and numbers; `peak` is of `resident` since its start. */
struct held {
    double resident, peak, threads, descriptors;
};
struct held target_holds(const struct target *target);

/* Value of a metric without labels, -1 if there is no answer. */
double target_metric(const struct target *target, const char *name);
