/* What the server can be told, by flags and environment variables. */
#ifndef KLDIV_SERVER_OPTIONS_H
#define KLDIV_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum srv_log_format { SRV_LOG_TEXT, SRV_LOG_JSON };
enum srv_log_level { SRV_LOG_ERROR, SRV_LOG_WARNING, SRV_LOG_INFO, SRV_LOG_DEBUG };

/* Strings are borrowed from argv and the environment. */
struct srv_options {
    const char *listen;    /* "host:port" */
    const char *port_file; /* or NULL */
    size_t threads;        /* that compute; 0 is one per CPU */
    size_t http_threads;   /* that serve connections; 0 is one per two CPUs */
    size_t max_body;       /* bytes */
    size_t max_memory;     /* bytes; 0 is what the machine or the cgroup suggests */
    size_t max_connections;
    const char *cors_origin; /* or NULL */
    size_t timeout;          /* seconds */
    size_t drain_delay;      /* seconds */
    size_t drain_timeout;    /* seconds */
    size_t log_format;       /* enum srv_log_format */
    size_t log_level;        /* enum srv_log_level */
    const char *simd;
    bool healthcheck, version, help;
};

/* Defaults, then KLDIV_* from the environment, then flags. False, with one line on `errors` that
 * names the option, if a value is bad. */
bool srv_options_read(struct srv_options *options, int argc, char **argv, FILE *errors);

/* Calls `tell` for each KLDIV_ name of the environment that is no option's, with the nearest name or
 * NULL. Names that Kubernetes gives for a service called kldiv are passed over. */
void srv_options_unknown(void (*tell)(const char *name, const char *nearest));

/* The text of --help. */
void srv_options_help(FILE *out);

#endif
