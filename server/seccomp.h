/* seccomp: system calls that the kernel refuses from then on. */
#pragma once

#include "server/sandbox_policy.h"

/* Filters the system calls of this thread, and of threads that it starts later, for ever. Calls that
 * serving needs are allowed, and by rights: with writable folders opening files for writing, locks,
 * removal; with removable files removal; with shared memory opening files that exist for writing; with
 * connections new sockets, and connecting them. Others fail:
 *
 * - with EPERM: new sockets, connect, bind, opening for writing, memory that can be run, changes of
 *   user, mount, bpf, io_uring, keys, and all that is not named. Libraries try such calls on their
 *   own and go on without.
 * - with ENOSYS: clone3, whose flags a filter cannot read, so that libc falls back to clone; and
 *   newer calls, such as those that libseccomp does not know yet. A newer libc tries them first, and
 *   takes only ENOSYS as a reason to use older ones.
 * - by the end of the process, with SIGSYS and a line in the kernel's log: execve, new processes,
 *   ptrace, and calls of another instruction set. No library makes them in a running server, so
 *   that whoever does has taken it over; to go on would leave this one other requests' memory.
 *
 * Needs CAP_SYS_ADMIN or no_new_privs, which it sets. Returns 0; -ENOSYS if the kernel lacks
 * filters; or another negative errno, with nothing refused. */
int srv_seccomp_enter(const struct srv_sandbox_policy *rights);
