/* srv_sandbox_policy: what serving still needs once the server listens; all else is refused, by Landlock and
 * seccomp. Both restrict this thread, and threads that it starts later, for ever. Both need no_new_privs or
 * CAP_SYS_ADMIN. */
#pragma once

#include <stdbool.h>

/* Lists of paths end with NULL, and may be NULL. Without `writable` no file can be made, and without
 * `removable`, too, none removed. */
struct srv_sandbox_policy {
    const char *const *readable;  /* files that are read again later */
    const char *const *writable;  /* folders of files that are made and written */
    const char *const *appended;  /* files that are made again, and appended to */
    const char *const *removable; /* files that are removed at the end */
    bool shared_memory;           /* objects of /dev/shm, read and written */
    bool connects;                /* to other hosts, and to sockets of this one */
};

/* Landlock: restricts files and connections. Left are reading in the process's own folder of /proc; reading
 * in the folders of the readable files; in the writable folders reading, writing, making and removing
 * files; making and writing in the folders of the appended files; removing in those of the removable files; and with shared memory reading and writing in
 * /dev/shm.
 *
 * The whole folder of a file is left, as are those that symbolic links lead to: files are replaced by
 * renaming others over them, and Kubernetes swaps a link beside them. Keep such files in a folder of
 * their own. A folder that is missing now, or put in the place of one later, is refused. Descriptors
 * that are open keep their rights. Looking at a file's size and times is not restricted.
 *
 * TCP connections, unless the policy has them, and bound TCP sockets are refused from ABI 4 (Linux 6.7),
 * abstract sockets and signals to other processes from ABI 6 (Linux 6.12).
 *
 * Returns the ABI in force, at most 6; -ENOSYS if the kernel, or a filter around this process, lacks
 * Landlock; or another negative errno, with nothing restricted. */
int srv_landlock_enter(const struct srv_sandbox_policy *policy);

/* seccomp: filters system calls. Calls that serving needs are allowed, and by the policy: with writable
 * folders opening files for writing, locks, removal; with appended files opening for writing that makes and does not empty
 * them; with removable files removal; with shared memory opening
 * files that exist for writing; with connections new sockets, and connecting them. Others fail:
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
