/* Landlock: files and connections of a process that the kernel refuses from then on. */
#pragma once

#include "server/sandbox_policy.h"

/* Restricts this thread, and threads that it starts later, for ever. Left are reading in the process's
 * own folder of /proc; reading in the folders of the readable files; in the writable folders
 * reading, writing, making and removing files; removing in the folders of the removable files; and with
 * shared memory reading and writing in /dev/shm.
 *
 * The whole folder of a file is left, as are those that symbolic links lead to: files are replaced by
 * renaming others over them, and Kubernetes swaps a link beside them. Keep such files in a folder of
 * their own. A folder that is missing now, or put in the place of one later, is refused. Descriptors
 * that are open keep their rights. Looking at a file's size and times is not restricted.
 *
 * TCP connections, unless the rights have them, and bound TCP sockets are refused from ABI 4 (Linux 6.7), abstract sockets and signals
 * to other processes from ABI 6 (Linux 6.12).
 *
 * Needs no_new_privs or CAP_SYS_ADMIN. Returns the ABI in force, at most 6; -ENOSYS if the kernel, or a
 * filter around this process, lacks Landlock; or another negative errno, with nothing restricted. */
int srv_landlock_enter(const struct srv_sandbox_policy *rights);
