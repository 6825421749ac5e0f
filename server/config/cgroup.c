#include "server/config/cgroup.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 1024 };

/* Reads up to two numbers of a file; words such as "max" and unreadable files give 0. */
static void read_numbers(const char *folder, const char *name, unsigned long long numbers[2])
{
    char path[MAX_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    numbers[0] = numbers[1] = 0;
    if (file && fscanf(file, "%llu %llu", &numbers[0], &numbers[1]) < 1)
        numbers[0] = 0;
    if (file)
        fclose(file);
}

static void lower(size_t *limit, unsigned long long to)
{
    if (to > 0 && to < *limit)
        *limit = (size_t)to;
}

static unsigned long long quotient_up(unsigned long long quota, unsigned long long period)
{
    return period > 0 ? quota / period + (quota % period != 0) : 0;
}

/* Reads the limits of one cgroup's folder, which has only the files of its own version. In v1 no
 * quota is -1, and no memory limit is close to 2^63 bytes. */
static void read_group(const char *folder, struct srv_limits *limits)
{
    unsigned long long v[2], period[2];
    read_numbers(folder, "cpu.max", v);
    lower(&limits->cpus, quotient_up(v[0], v[1]));
    read_numbers(folder, "memory.max", v);
    lower(&limits->memory, v[0]);

    read_numbers(folder, "cpu.cfs_quota_us", v);
    read_numbers(folder, "cpu.cfs_period_us", period);
    if (v[0] < INT64_MAX)
        lower(&limits->cpus, quotient_up(v[0], period[0]));
    read_numbers(folder, "memory.limit_in_bytes", v);
    lower(&limits->memory, v[0]);
}

/* Reads the group at `path` below `top` and all its ancestors. In a container `path` may be the
 * host's, of which only the top is mounted. */
static void read_groups(const char *top, const char *path, struct srv_limits *limits)
{
    char folder[MAX_PATH];
    size_t root_size = strlen(top);
    if (snprintf(folder, sizeof folder, "%s%s", top, path) >= (int)sizeof folder)
        folder[root_size] = '\0';
    for (;;) {
        read_group(folder, limits);
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + root_size)
            return;
        *slash = '\0';
    }
}

/* Parses lines "number:controllers:path", without controllers in v2; v1 mounts each set of
 * controllers by its name. */
struct srv_limits srv_cgroup_limits(const char *membership, const char *root)
{
    struct srv_limits limits = {SIZE_MAX, SIZE_MAX};
    char line[MAX_PATH], top[MAX_PATH];
    FILE *file = fopen(membership, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *path = NULL;
        if (controllers)
            path = strchr(++controllers, ':');
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (snprintf(top, sizeof top, "%s%s%s", root, *controllers ? "/" : "", controllers) <
            (int)sizeof top)
            read_groups(top, path, &limits);
    }
    if (file)
        fclose(file);
    return limits;
}

static const char own[] = "/proc/self/cgroup", root_folder[] = "/sys/fs/cgroup";

/* CPUs in the affinity mask, of which the kernel's may be longer than cpu_set_t; those that are online if no
 * mask is long enough. */
static size_t count_cpus(void)
{
    enum { MOST = 1 << 20 };
    long cpus = 0;
    for (size_t n = CPU_SETSIZE; n <= MOST && cpus == 0; n *= 2) {
        size_t size = CPU_ALLOC_SIZE(n);
        cpu_set_t *set = CPU_ALLOC(n);
        if (set && sched_getaffinity(0, size, set) == 0)
            cpus = CPU_COUNT_S(size, set);
        CPU_FREE(set);
    }
    cpus = cpus > 0 ? cpus : sysconf(_SC_NPROCESSORS_ONLN);
    return cpus > 0 ? (size_t)cpus : 1;
}

size_t srv_cpus(void)
{
    size_t cpus = count_cpus(), limit = srv_cgroup_limits(own, root_folder).cpus;
    return limit < cpus ? limit : cpus;
}

size_t srv_memory(bool *in_cgroup)
{
    size_t pages = (size_t)sysconf(_SC_PHYS_PAGES), page = (size_t)sysconf(_SC_PAGESIZE);
    size_t memory = pages * page, limit = srv_cgroup_limits(own, root_folder).memory;
    *in_cgroup = limit < memory;
    return *in_cgroup ? limit : memory;
}
