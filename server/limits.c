#include "server/limits.h"

#include "server/cgroup.h"
#include "server/http.h"
#include "server/log.h"

#include <sys/resource.h>

/* Default upper bound of --max-memory, in bytes. */
static const size_t most_memory = (size_t)4 << 30;

/* Descriptors that are not connections: health checks, threads, the log, libraries. */
enum { OTHER_FILES = 100 };

/* The machine and the container as they were at the start: later their files may be out of reach. */
static struct {
    size_t memory;
    bool in_cgroup;
} found;

/* The number of descriptors that the process may have, at most `wanted`: the table of connections has
 * a place for each. */
static size_t open_files(size_t wanted)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return OTHER_FILES;
    files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur;
}

void srv_limits_apply(struct srv_options *options)
{
    found.memory = srv_memory(&found.in_cgroup);
    size_t memory = found.memory / 100 * 85;
    size_t files =
        open_files(options->max_connections + srv_http_descriptors() + (size_t)2 * OTHER_FILES);
    size_t connections = files > (size_t)2 * OTHER_FILES ? files - OTHER_FILES : files / 2;
    if (options->threads == 0)
        options->threads = srv_cpus();
    if (options->http_threads == 0)
        options->http_threads = srv_cpus();
    if (options->max_memory == 0)
        options->max_memory = memory < most_memory ? memory : most_memory;
    if (options->max_connections > connections)
        options->max_connections = connections;
    options->max_files = files;
}

void srv_limits_log(const struct srv_options *options)
{
    bool too_much = options->max_memory > found.memory;
    srv_log(too_much ? SRV_LOG_WARNING : SRV_LOG_INFO, "memory for requests: %zu bytes; %s %zu%s",
            options->max_memory, found.in_cgroup ? "the cgroup's limit is" : "the machine has",
            found.memory, too_much ? "; --max-memory exceeds it" : "");
    srv_log(SRV_LOG_INFO, "connections: at most %zu; file descriptors: at most %zu",
            options->max_connections, options->max_files);
}
