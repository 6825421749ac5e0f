#include "server/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* "200000 100000" is two CPUs, "max 100000" no limit. A file that cannot be read is none. */
static size_t quota_of(const char *path, size_t cpus)
{
    FILE *file = fopen(path, "re");
    unsigned long quota, period;
    if (!file)
        return cpus;
    if (fscanf(file, "%lu %lu", &quota, &period) == 2 && period > 0) {
        size_t limit = (quota + period - 1) / period;
        if (limit > 0 && limit < cpus)
            cpus = limit;
    }
    fclose(file);
    return cpus;
}

/* The limit of this process's own cgroup (v2) and of those around it. */
static size_t cgroup_limit(size_t cpus)
{
    char group[512] = "", path[600];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return cpus;
    char line[512];
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0)
            snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    fclose(file);
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        cpus = quota_of(path, cpus);
        char *slash = strrchr(group, '/');
        if (!slash)
            return cpus;
        *slash = '\0';
    }
}

size_t srv_cpus(void)
{
    cpu_set_t set;
    size_t cpus = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cpus = (size_t)CPU_COUNT(&set);
    return cgroup_limit(cpus ? cpus : 1);
}
