/* srv_sandbox_policy: what serving still needs once the server listens; all else is refused by seccomp, which restricts this
 * thread, and threads that it starts later, for ever. It needs no_new_privs or CAP_SYS_ADMIN. */
#pragma once

#include <stdbool.h>

struct srv_sandbox_policy {
    bool has_store_file; /* files are made, written, locked and removed */
    bool appends;        /* a file is made again, and appended to */
    bool removes;        /* files are removed at the end */
    bool shared_memory;  /* files that exist are written */
    bool connects;       /* to other hosts, and to sockets of this one */
};

/* seccomp: filters system calls. Calls that serving needs are allowed, and those that the
 * policy names. Others fail:
 *
 * - with EPERM: new sockets, connect, bind, opening for writing, memory that can be run, changes of
 *   user, mount, bpf, io_uring, keys, and all that is not named. Libraries try such calls on their
 *   own and go on without.
 * - with ENOSYS: clone3, whose flags a filter cannot read, so that libc falls back to clone; and
 *   newer calls, such as those that libseccomp does not know yet. A newer libc tries them first, and
 *   takes only ENOSYS as a reason to use older ones.
 * - by the end of the process, with SIGSYS and a line in the kernel's log: execve, new processes,
 *   ptrace, and calls of another instruction set. No library makes them in a running server: an attacker
 *   does who has taken the process over, and who could read other requests' memory if it went on.
 *
 * Returns 0; -ENOSYS if the kernel lacks filters; or another negative errno, with nothing refused. */
int srv_seccomp_enter(const struct srv_sandbox_policy *policy);
