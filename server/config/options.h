/* Options of the server, from flags and environment variables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum srv_log_format { SRV_LOG_TEXT, SRV_LOG_JSON };

/* srv_log_level: in the order of enum api_log_level. */
enum srv_log_level { SRV_LOG_ERROR, SRV_LOG_WARNING, SRV_LOG_INFO, SRV_LOG_DEBUG };

/* SRV_ADDRESSES: maximal number of addresses of --listen. SRV_ADDRESS_SIZE: bytes of one, with its NUL. */
enum { SRV_ADDRESSES = 16, SRV_ADDRESS_SIZE = 300 };

/* srv_list: values of an option that may be given several times. */
struct srv_list {
    size_t n;
    char items[SRV_ADDRESSES][SRV_ADDRESS_SIZE];
};

/* srv_options: values of all options. Strings point into argv and the environment; lists are copies. */
struct srv_options {
    struct srv_list listen;   /* addresses for srv_listen, at least one */
    const char *admin_listen; /* or NULL */
    size_t listen_mode;       /* rights of unix sockets, as of files */
    const char *port_file;    /* or NULL */
    size_t threads;           /* for computing; 0: one per CPU */
    size_t http_threads;      /* for connections; 0: one per CPU */
    size_t max_body;          /* bytes */
    bool max_body_given;      /* not by default */
    size_t max_memory;        /* bytes; 0: by the machine's or the cgroup's memory */
    size_t max_connections;
    size_t max_files;   /* descriptors; set by srv_limits_apply */
    size_t max_regions; /* of shared memory; set by srv_limits_apply */
    const char *store;  /* "memory", "sqlite:PATH" */
    int store_fallback; /* 0: none; 1: memory */
    size_t max_store;   /* bytes; 0: no limit */
    size_t max_monitors;
    int monitor_metrics;         /* 0: monitors; 1: groups */
    bool ready_needs_store;      /* /readyz fails while the store does */
    const char *notify;          /* or NULL; read again at SIGHUP */
    const char *public_url;      /* or NULL */
    const char *shared_memory;   /* prefix of objects that clients may register; or NULL */
    const char *cors_origin;     /* or NULL */
    const char *allowed_hosts;   /* a list for api_hosts_have, or NULL */
    const char *auth_token_file; /* or NULL; read again at SIGHUP, as the next two are */
    const char *trusted_proxies; /* a list for srv_proxies_set, or NULL */
    const char *tls_cert;        /* or NULL */
    const char *tls_key;         /* or NULL */
    size_t timeout;              /* seconds */
    size_t request_timeout;      /* seconds; 0: none */
    size_t drain_delay;          /* seconds */
    size_t drain_timeout;        /* seconds */
    enum srv_log_format log_format;
    enum srv_log_level log_level;
    const char *audit_log; /* a path, "stderr", or NULL */
    double log_slow;       /* seconds; 0: none */
    const char *simd;
    bool drop_privileges, seccomp;
    const char *backup; /* or NULL */
    bool migrate, healthcheck, version, help;
};

/* Reads defaults, then KLDIV_* of the environment, then flags. False, with one line on `errors`
 * that names the option, if a value is invalid. */
bool srv_options_read(struct srv_options *options, int argc, char **argv, FILE *errors);

/* Calls `report` for each KLDIV_ variable that is no option, with the nearest name or NULL. Skips
 * variables that Kubernetes sets for a service called kldiv. */
void srv_options_unknown(void (*report)(const char *name, const char *nearest));

/* Writes the text of --help. */
void srv_options_help(FILE *out);

/* ---- limits.c: fits options to the machine and the container. */

/* Sets threads, http_threads and max_memory if they are 0; lowers max_connections to the limit
 * of descriptors, which is first raised to its hard limit; bounds the budget. Call it once, before threads start. */
struct api_budget;
void srv_limits_apply(struct srv_options *options, struct api_budget *budget);

/* Logs the resulting limits and their origin. */
void srv_limits_log(const struct srv_options *options);
