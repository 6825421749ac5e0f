/* Gives up, once the server listens, what serving does not need. */
#pragma once

#include "server/config/options.h"
#include "server/sandbox/sandbox_policy.h"

/* srv_sandbox: what is in force. 0 or more is; for landlock it is the ABI. A negative errno tells why
 * not: -ENOSYS if the kernel lacks it, -ECANCELED if an option switches it off, -ENOTSUP in a build
 * with a sanitizer, which makes the calls that are refused. */
struct srv_sandbox {
    int no_new_privs, capabilities, landlock, seccomp;
};

/* Enters what the options leave on, for ever. It holds for this thread and those that it starts later:
 * call it before any thread is started, with the sockets listening and the files read.
 *
 * - no_new_privs: programs that are run gain no rights. seccomp and Landlock need it, so that
 *   --drop-privileges off leaves it on beside them.
 * - capabilities: none are left in any set. The bounding set, which no_new_privs makes idle, can be
 *   emptied only with CAP_SETPCAP. A server that was started by root then reads only what root may
 *   read as a plain user.
 * - landlock and seccomp: see sandbox_policy.h.
 *
 * The policy is what is left. Core dumps stay possible. */
struct srv_sandbox srv_sandbox_enter(const struct srv_options *options,
                                     const struct srv_sandbox_policy *policy);

/* Logs what is in force, and what is not and why: a warning if it should be, else info. */
void srv_sandbox_log(const struct srv_sandbox *sandbox);
