/* CPUs and memory that this process may use: the machine's, or the limits of its cgroups (v2 and
 * v1), by which containers bound both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Number of CPUs in the affinity mask, or of the cgroup's quota, rounded up, if that is less; at
 * least 1. */
size_t srv_cpus(void);

/* Usable memory in bytes: the smallest of the machine's and the cgroups' limits. *in_cgroup
 * becomes true if a cgroup's limit is the smallest. */
size_t srv_memory(bool *in_cgroup);

/* Smallest limits among the cgroups of a process and their ancestors: CPUs and bytes, SIZE_MAX
 * for no limit. `membership` is a file such as /proc/self/cgroup, `root` a folder such as
 * /sys/fs/cgroup. */
struct srv_limits {
    size_t cpus, memory;
};
struct srv_limits srv_cgroup_limits(const char *membership, const char *root);
