#include "server/sandbox/sandbox_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Calls that are allowed with any arguments. The kernel knows these by number alone, and does not run
 * the filter for them: requests pay nothing. */
static const int allowed[] = {
    /* connections */
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(getpeername), SCMP_SYS(getsockname),
    SCMP_SYS(getsockopt), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
    SCMP_SYS(sendto), SCMP_SYS(setsockopt), SCMP_SYS(shutdown),
    /* waiting */
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_wait),
    SCMP_SYS(eventfd2), SCMP_SYS(pipe2), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(pselect6),
    SCMP_SYS(select),
    /* descriptors, files that are open */
    SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(fstat), SCMP_SYS(getdents64), SCMP_SYS(lseek),
    SCMP_SYS(newfstatat), SCMP_SYS(pread64), SCMP_SYS(read), SCMP_SYS(readlink),
    SCMP_SYS(readlinkat), SCMP_SYS(readv), SCMP_SYS(statx), SCMP_SYS(write), SCMP_SYS(writev),
    /* memory */
    SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(mremap), SCMP_SYS(munmap),
    /* threads */
    SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(futex), SCMP_SYS(get_robust_list),
    SCMP_SYS(membarrier), SCMP_SYS(rseq), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_yield),
    SCMP_SYS(set_robust_list),
    /* signals */
    SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigpending), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigtimedwait),
    SCMP_SYS(sigaltstack),
    /* time, and what the process is */
    SCMP_SYS(clock_getres), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(getcpu),
    SCMP_SYS(getegid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getpid), SCMP_SYS(getrandom),
    SCMP_SYS(getrusage), SCMP_SYS(gettid), SCMP_SYS(gettimeofday), SCMP_SYS(getuid),
    SCMP_SYS(nanosleep), SCMP_SYS(sysinfo), SCMP_SYS(time), SCMP_SYS(uname)};

/* Calls of a store that keeps files. */
static const int allowed_with_files[] = {SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(fallocate),
                                         SCMP_SYS(fchmod), SCMP_SYS(fchown),    SCMP_SYS(fdatasync),
                                         SCMP_SYS(fsync),  SCMP_SYS(ftruncate), SCMP_SYS(getcwd),
                                         SCMP_SYS(openat), SCMP_SYS(pwrite64)};

/* Calls of a store that keeps files, and of a server that removes its unix sockets. */
static const int allowed_to_remove[] = {SCMP_SYS(unlink), SCMP_SYS(unlinkat)};

/* Calls of a store that connects to its database, and asks the name server for it; and of notifications. libcurl waits
 * for the name server by a pair of sockets. */
static const int allowed_to_connect[] = {SCMP_SYS(access),    SCMP_SYS(connect),
                                         SCMP_SYS(faccessat), SCMP_SYS(sendmmsg),
                                         SCMP_SYS(socket),    SCMP_SYS(socketpair)};

/* Flags of openat by which a file is written or made; O_TMPFILE takes one of them as well. */
#define WRITES (O_ACCMODE | O_CREAT | O_TRUNC)

/* Calls that are allowed, or end the process, by an argument: (argument & mask) == value. */
static const struct row {
    int call;
    unsigned argument;
    scmp_datum_t mask, value;
    uint32_t action;
} by_argument[] = {
#define ALL UINT64_MAX
    {SCMP_SYS(mmap), 2, PROT_EXEC, 0, SCMP_ACT_ALLOW},
    {SCMP_SYS(mprotect), 2, PROT_EXEC, 0, SCMP_ACT_ALLOW},
    {SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD, SCMP_ACT_ALLOW},
    {SCMP_SYS(clone), 0, CLONE_THREAD, 0, SCMP_ACT_KILL_PROCESS},
    {SCMP_SYS(prctl), 0, ALL, PR_SET_NAME, SCMP_ACT_ALLOW},
    {SCMP_SYS(ioctl), 1, ALL, FIONREAD, SCMP_ACT_ALLOW},
    {SCMP_SYS(ioctl), 1, ALL, FIONBIO, SCMP_ACT_ALLOW},
    {SCMP_SYS(ioctl), 1, ALL, SIOCOUTQ, SCMP_ACT_ALLOW},
    {SCMP_SYS(fcntl), 1, ALL, F_DUPFD_CLOEXEC, SCMP_ACT_ALLOW},
    {SCMP_SYS(fcntl), 1, ALL, F_GETFD, SCMP_ACT_ALLOW},
    {SCMP_SYS(fcntl), 1, ALL, F_SETFD, SCMP_ACT_ALLOW},
    {SCMP_SYS(fcntl), 1, ALL, F_GETFL, SCMP_ACT_ALLOW},
    {SCMP_SYS(fcntl), 1, ALL, F_SETFL, SCMP_ACT_ALLOW},
    {SCMP_SYS(prlimit64), 2, ALL, 0, SCMP_ACT_ALLOW}, /* reads limits */
};

/* Rows of which one half applies: openat without files, locks with them. */
static const struct row read_only[] = {{SCMP_SYS(openat), 2, WRITES, 0, SCMP_ACT_ALLOW}};
static const struct row appending[] = {
    {SCMP_SYS(openat), 2, WRITES, O_WRONLY | O_CREAT, SCMP_ACT_ALLOW}};
static const struct row shared_memory[] = {{SCMP_SYS(openat), 2, WRITES, O_RDWR, SCMP_ACT_ALLOW}};
static const struct row locks[] = {{SCMP_SYS(fcntl), 1, ALL, F_GETLK, SCMP_ACT_ALLOW},
                                   {SCMP_SYS(fcntl), 1, ALL, F_SETLK, SCMP_ACT_ALLOW},
                                   {SCMP_SYS(fcntl), 1, ALL, F_SETLKW, SCMP_ACT_ALLOW}};

static const int deadly[] = {SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork),
                             SCMP_SYS(ptrace)};

/* Calls that libraries try first, and do without. */
static const int newer[] = {SCMP_SYS(clone3),     SCMP_SYS(close_range), SCMP_SYS(epoll_pwait2),
                            SCMP_SYS(faccessat2), SCMP_SYS(futex_waitv), SCMP_SYS(openat2)};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Adds rules, unless one before had a problem, a negative errno. */
static void add_calls(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t n,
                      int *problem)
{
    for (size_t i = 0; !*problem && i < n; i++)
        *problem = seccomp_rule_add_array(filter, action, calls[i], 0, NULL);
}

static void add_rows(scmp_filter_ctx filter, const struct row *rows, size_t n, int *problem)
{
    for (const struct row *row = rows; !*problem && row < rows + n; row++) {
        const struct scmp_arg_cmp compared = {row->argument, SCMP_CMP_MASKED_EQ, row->mask,
                                              row->value};
        *problem = seccomp_rule_add_array(filter, row->action, row->call, 1, &compared);
    }
}

/* Bounds of calls that libseccomp may not know yet: clone3's number, from which all machines share
 * numbers, and one that Linux will not reach for years. */
enum { FIRST_SHARED = 435, FUTURE = 600 };

static void add_unknown(scmp_filter_ctx filter, int *problem)
{
    add_calls(filter, SCMP_ACT_ERRNO(ENOSYS), newer, COUNT(newer), problem);
    for (int call = FIRST_SHARED; call < FUTURE; call++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call);
        if (!name)
            add_calls(filter, SCMP_ACT_ERRNO(ENOSYS), &call, 1, problem);
        free(name);
    }
}

static int add_all(scmp_filter_ctx filter, const struct srv_sandbox_policy *policy)
{
    /* abort and raise signal this process by tgkill. */
    const struct row own = {SCMP_SYS(tgkill), 0, ALL, (scmp_datum_t)getpid(), SCMP_ACT_ALLOW};
    int problem = 0;
    add_calls(filter, SCMP_ACT_ALLOW, allowed, COUNT(allowed), &problem);
    add_calls(filter, SCMP_ACT_KILL_PROCESS, deadly, COUNT(deadly), &problem);
    add_rows(filter, by_argument, COUNT(by_argument), &problem);
    add_rows(filter, &own, 1, &problem);
    if (policy->has_store_file || policy->removes)
        add_calls(filter, SCMP_ACT_ALLOW, allowed_to_remove, COUNT(allowed_to_remove), &problem);
    if (policy->connects)
        add_calls(filter, SCMP_ACT_ALLOW, allowed_to_connect, COUNT(allowed_to_connect), &problem);
    if (policy->has_store_file) {
        add_calls(filter, SCMP_ACT_ALLOW, allowed_with_files, COUNT(allowed_with_files), &problem);
        add_rows(filter, locks, COUNT(locks), &problem);
    } else {
        add_rows(filter, read_only, COUNT(read_only), &problem);
        if (policy->appends)
            add_rows(filter, appending, COUNT(appending), &problem);
        if (policy->shared_memory)
            add_rows(filter, shared_memory, COUNT(shared_memory), &problem);
    }
    add_unknown(filter, &problem);
    return problem;
}

/* Attributes. SSB: without it, kernels before 5.16 slow all code down, against code that reads its own
 * process; there is none here. SYSRAWRC: loading returns the kernel's errno. */
static int set_attributes(scmp_filter_ctx filter)
{
    int problem = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (!problem)
        problem = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    return problem ? problem : seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
}

int srv_seccomp_enter(const struct srv_sandbox_policy *policy)
{
    if (prctl(PR_GET_SECCOMP) < 0)
        return -ENOSYS;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return -ENOMEM;
    int problem = set_attributes(filter);
    if (!problem)
        problem = add_all(filter, policy);
    if (!problem)
        problem = seccomp_load(filter);
    seccomp_release(filter);
    return problem == -EOPNOTSUPP ? -ENOSYS : problem; /* an action that the kernel lacks */
}
