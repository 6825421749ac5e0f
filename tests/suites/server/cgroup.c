/* Limits of cgroups, read from folders with the kernel's layout. */
#include "server/config/cgroup.h"
#include "tests/suites/lib/arrays.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ABSENT SIZE_MAX

struct file {
    const char *path, *text;
};

static const struct {
    const char *name, *membership;
    struct file files[6];
    struct srv_limits limits;
} cases[] = {
    {"no cgroup", "", {{0}}, {ABSENT, ABSENT}},
    {"v2, in a container",
     "0::/\n",
     {{"cpu.max", "150000 100000\n"}, {"memory.max", "268435456\n"}},
     {2, 268435456}},
    {"v2, unlimited",
     "0::/\n",
     {{"cpu.max", "max 100000\n"}, {"memory.max", "max\n"}},
     {ABSENT, ABSENT}},
    {"v2, a group within a smaller one",
     "0::/a/b\n",
     {{"a/cpu.max", "100000 100000"},
      {"a/b/cpu.max", "400000 100000"},
      {"a/memory.max", "900"},
      {"a/b/memory.max", "800"}},
     {1, 800}},
    {"v1",
     "5:memory:/x\n3:cpu,cpuacct:/x\n1:name=systemd:/x\n",
     {{"memory/x/memory.limit_in_bytes", "1000000"},
      {"cpu,cpuacct/x/cpu.cfs_quota_us", "250000"},
      {"cpu,cpuacct/x/cpu.cfs_period_us", "100000"}},
     {3, 1000000}},
    {"v1, the host's path in a container",
     "5:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n",
     {{"memory/memory.limit_in_bytes", "1000000"},
      {"cpu,cpuacct/cpu.cfs_quota_us", "50000"},
      {"cpu,cpuacct/cpu.cfs_period_us", "100000"}},
     {1, 1000000}},
    {"v1, unlimited",
     "5:memory:/\n3:cpu,cpuacct:/\n",
     {{"memory/memory.limit_in_bytes", "9223372036854771712"},
      {"cpu,cpuacct/cpu.cfs_quota_us", "-1"},
      {"cpu,cpuacct/cpu.cfs_period_us", "100000"}},
     {ABSENT, 9223372036854771712u}},
};

static void write_file(const char *folder, const char *path, const char *text)
{
    char whole[300];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    for (char *slash = whole + strlen(folder); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", whole);
}

Test(cgroup, the_smallest_limit_of_all_groups_counts)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char folder[] = "/tmp/kldiv-cgroup-XXXXXX", membership[64], remove[64];
        cr_assert(mkdtemp(folder));
        snprintf(membership, sizeof membership, "%s/self", folder);
        write_file(folder, "self", cases[i].membership);
        for (const struct file *f = cases[i].files; f->path; f++)
            write_file(folder, f->path, f->text);
        struct srv_limits limits = srv_cgroup_limits(membership, folder);
        cr_expect_eq(limits.cpus, cases[i].limits.cpus, "%s: %zu", cases[i].name, limits.cpus);
        cr_expect_eq(limits.memory, cases[i].limits.memory, "%s: %zu", cases[i].name,
                     limits.memory);
        snprintf(remove, sizeof remove, "rm -r %s", folder);
        cr_expect_eq(system(remove), 0);
    }
}

/* ---- Kernels with many processors */

/* possible: the processors that this process' kernel seems to have; 0 for those that it has. allowed: of these. */
static size_t possible, allowed;

/* In the place of libc's: fails as the kernel does if the set has no bit for some possible processor. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    if (possible == 0)
        return syscall(SYS_sched_getaffinity, pid, size, set) < 0 ? -1 : 0;
    if (size * 8 < possible) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(size, set);
    for (size_t i = possible - allowed; i < possible; i++)
        CPU_SET_S(i, size, set);
    return 0;
}

Test(cgroup, processors_beyond_1024_count)
{
    static const size_t kernels[][2] = {{4, 3},       {1024, 1024}, {1025, 1025},  {2048, 1},
                                        {4096, 3000}, {8192, 8192}, {65536, 40000}};
    size_t quota = srv_cgroup_limits("/proc/self/cgroup", "/sys/fs/cgroup").cpus;
    for (size_t i = 0; i < COUNT(kernels); i++) {
        possible = kernels[i][0];
        allowed = kernels[i][1];
        cr_expect_eq(srv_cpus(), quota < allowed ? quota : allowed, "%zu of %zu: %zu", allowed,
                     possible, srv_cpus());
    }
    possible = SIZE_MAX; /* no set is large enough */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cr_expect_eq(srv_cpus(), quota < (size_t)online ? quota : (size_t)online);
    possible = 0;
}
