#include "server/config/options.h"

#include "api/regions/regions.h"
#include "server/config/cgroup.h"
#include "server/memory.h"
#include "server/request/http.h"
#include "server/sockets.h"
#include "server/telemetry/log.h"

#include <sys/resource.h>

/* Default upper bound of --max-memory, in bytes. */
static const size_t max_memory = (size_t)4 << 30;

/* The smallest container of `make memory`, in bytes. */
static const size_t least_memory = (size_t)64 << 20;

/* Descriptors that are neither connections nor sockets that listen: threads, the log, libraries. */
enum { OTHER_FILES = 97 };

/* REGIONS_SHARE: part of the descriptors that regions of shared memory may have, one each. */
enum { REGIONS_SHARE = 8 };

/* The machine and the container as they were at the start: later their files may be out of reach. */
static struct {
    size_t memory;
    bool in_cgroup,
        is_lowered; /* is_lowered: --max-memory, to what the process leaves of the cgroup */
} found;

/* The number of descriptors that the process may have, at most `wanted`: the table of connections has
 * an entry for each. */
static size_t raise_file_limit(size_t wanted)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return OTHER_FILES;
    files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur;
}

/* Bytes that the default of --max-memory leaves of what the process may have: for the program, its
 * threads and libraries, connections, SQLite's pages, and blocks that malloc has in parts. 40 MiB of 64,
 * 64 of 256, 15 % of more than 427. */
static size_t own_memory(size_t memory)
{
    enum { MIB = 1 << 20, BASE = 32 * MIB, ENOUGH = 64 * MIB };
    size_t own = BASE + memory / 8, part = memory / 100 * 15;
    own = own < ENOUGH ? own : ENOUGH;
    own = own > part ? own : part;
    return own < memory / 8 * 5 ? own : memory / 8 * 5;
}

/* The number of connections that fit into `own` bytes, which a container leaves beside --max-memory. */
static size_t connections_in(size_t own)
{
    enum { PROGRAM = 28 << 20, EACH = 32 << 10, FEW = 64 };
    size_t n = own > PROGRAM ? (own - PROGRAM) / EACH : 0;
    return n > FEW ? n : FEW;
}

void srv_limits_apply(struct srv_options *options, struct api_budget *budget)
{
    found.memory = srv_memory(&found.in_cgroup);
    size_t others = OTHER_FILES + srv_sockets_descriptors();
    size_t files = raise_file_limit(options->max_connections + srv_http_descriptors() + 2 * others +
                                    (options->shared_memory ? API_REGIONS : 0));
    size_t regions = options->shared_memory ? files / REGIONS_SHARE : 0;
    options->max_regions = regions < API_REGIONS ? regions : API_REGIONS;
    others += options->max_regions;
    size_t connections = files > 2 * others ? files - others : files / 2;
    if (options->threads == 0)
        options->threads = srv_cpus();
    if (options->http_threads == 0)
        options->http_threads = srv_cpus();
    size_t left = found.memory - own_memory(found.memory);
    if (options->max_memory == 0)
        options->max_memory = left < max_memory ? left : max_memory;
    size_t own = found.memory - (options->max_memory < found.memory ? options->max_memory : 0);
    if (found.in_cgroup && connections_in(own) < connections)
        connections = connections_in(own);
    if (options->max_connections > connections)
        options->max_connections = connections;
    options->max_files = files;
    size_t available = found.in_cgroup ? srv_memory_bound(budget, found.memory) : SIZE_MAX;
    found.is_lowered = available < options->max_memory;
    if (found.is_lowered)
        options->max_memory = available;
    budget->limit = options->max_memory;
}

void srv_limits_log(const struct srv_options *options)
{
    bool too_much = options->max_memory > found.memory;
    srv_log(SRV_LOG_INFO,
            found.in_cgroup ? "memory for requests: %zu bytes; the cgroup's limit is %zu"
                            : "memory for requests: %zu bytes; the machine has %zu",
            options->max_memory, found.memory);
    if (found.is_lowered)
        srv_log(SRV_LOG_WARNING, "--max-memory is lowered to what the process leaves of that");
    else if (too_much)
        srv_log(SRV_LOG_WARNING, "--max-memory is more than that");
    if (found.in_cgroup && found.memory < least_memory)
        srv_log(SRV_LOG_WARNING,
                "the cgroup's limit is less than %zu bytes, the least with which the process is "
                "not killed whatever clients do",
                least_memory);
    if (options->max_body_given && options->max_body > options->max_memory)
        srv_log(SRV_LOG_WARNING,
                "--max-body is %zu bytes, but --max-memory %zu: no body can be larger than that",
                options->max_body, options->max_memory);
    srv_log(SRV_LOG_INFO, "connections: at most %zu; file descriptors: at most %zu",
            options->max_connections, options->max_files);
}
