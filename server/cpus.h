/* How many CPUs this process may use. */
#ifndef KLDIV_SERVER_CPUS_H
#define KLDIV_SERVER_CPUS_H

#include <stddef.h>

/* The CPUs of the affinity mask, or fewer if a cgroup's cpu.max says so (rounded up); at least
 * 1. */
size_t srv_cpus(void);

#endif
