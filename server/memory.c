#include "server/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* statm: /proc/self/statm, which stays open; or -1. */
static int statm = -1;

/* Bytes of anonymous memory: pages of files can be read again, so the kernel does not kill for them. Shared memory that
 * clients register is not among them. The kernel may count some pages for each processor late. */
static size_t resident(void)
{
    char text[200] = "";
    size_t all = 0, of_files = 0;
    ssize_t n = pread(statm, text, sizeof text - 1, 0);
    if (n <= 0 || sscanf(text, "%*u %zu %zu", &all, &of_files) != 2)
        return 0;
    return (all - of_files) * (size_t)sysconf(_SC_PAGESIZE);
}

static int part(size_t memory, size_t divisor, size_t min, size_t max)
{
    size_t n = memory / divisor;
    return (int)(n < min ? min : n < max ? n : max);
}

/* By itself malloc has eight arenas for each processor, which keep what their threads have freed. It maps large blocks
 * alone, but from a size that it raises, up to 32 MiB, to that of each block which is freed; and an arena keeps twice as
 * much at its end. */
static void bound_malloc(size_t memory)
{
    mallopt(M_ARENA_MAX, part(memory, 256 * (size_t)MIB, 1, 16));
    mallopt(M_MMAP_THRESHOLD, part(memory, 256, API_LARGE, 4 * (size_t)MIB));
    mallopt(M_TRIM_THRESHOLD, part(memory, 64, MIB, 16 * (size_t)MIB));
}

/* Bytes of a cgroup for what is not the process's own: sockets, page tables, stacks in the kernel, the pages of the
 * program and its libraries that are in use. */
static size_t kernel_memory(size_t memory) { return 8 * (size_t)MIB + memory / 32; }

size_t srv_memory_bound(struct api_budget *budget, size_t memory)
{
    bound_malloc(memory);
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (statm < 0 || memory < kernel_memory(memory))
        return SIZE_MAX;
    budget->max_resident = memory - kernel_memory(memory);
    budget->resident = resident;
    size_t now = resident();
    return budget->max_resident > now ? budget->max_resident - now : 1;
}

void srv_memory_give_back(struct api_budget *budget)
{
    enum { KEEP_SECONDS = 10, QUIET = KEEP_SECONDS + 2, SOME = 2 * MIB };
    static size_t kept,
        claimed; /* bytes that the last trim left; that were claimed until the last call */
    static unsigned quiet; /* calls since any were */
    size_t some = budget->max_resident / 32 > SOME ? budget->max_resident / 32 : SOME;
    bool is_freed = api_budget_trim(budget, KEEP_SECONDS * INT64_C(1000000000));
    size_t now = api_budget_measure(budget), ever = atomic_load(&budget->claimed);
    kept = now < kept ? now : kept;
    quiet = ever == claimed ? quiet + 1 : 0;
    claimed = ever;
    if (!is_freed && now <= kept + some && quiet != QUIET)
        return;
    malloc_trim(0);
    kept = api_budget_measure(budget);
}
