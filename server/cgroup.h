/* The CPUs and the memory that this process may use: what the machine has, or the limits of its
 * cgroups (v2 and v1), which is how containers bound both. */
#ifndef KLDIV_SERVER_CGROUP_H
#define KLDIV_SERVER_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

/* The CPUs of the affinity mask, or fewer if a quota says so (rounded up); at least 1. */
size_t srv_cpus(void);

/* Bytes of memory: the least of the machine's and of the cgroups' limits. *in_cgroup becomes
 * whether a cgroup's limit is the least. */
size_t srv_memory(bool *in_cgroup);

/* The least limits among the cgroups of a process and those around them: CPUs and bytes, SIZE_MAX
 * where there is no limit. `membership` is a file such as /proc/self/cgroup, `root` a folder such as
 * /sys/fs/cgroup. */
struct srv_limits {
    size_t cpus, memory;
};
struct srv_limits srv_cgroup_limits(const char *membership, const char *root);

#endif
