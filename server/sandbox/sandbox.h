/* Gives up, once the server listens, what serving does not need. */
#pragma once

#include "server/config/options.h"
#include "server/sandbox/sandbox_policy.h"

/* srv_sandbox: what is in force. A part that is has 0. A negative errno says why a part is not: -ENOSYS if the kernel lacks it, -ECANCELED if an option switches it off, -ENOTSUP in a build
 * with a sanitizer, which makes calls that would be refused. */
struct srv_sandbox {
    int no_new_privs, capabilities, seccomp;
};

/* Enters the parts that the options leave on, for ever. They hold for this thread and those that it starts later:
 * call it before any thread is started, with the sockets listening and the files read.
 *
 * - no_new_privs: programs that are run gain no rights. seccomp needs it, so --drop-privileges off leaves it on with
 *   that.
 * - capabilities: none are left in any set. The bounding set, which has no effect under no_new_privs, can be emptied only with
 *   CAP_SETPCAP. A server that was started by root then reads only what root may read as a plain user.
 * - seccomp: see sandbox_policy.h.
 *
 * The policy says which rights are left. Core dumps stay possible. */
struct srv_sandbox srv_sandbox_enter(const struct srv_options *options,
                                     const struct srv_sandbox_policy *policy);

/* Logs which parts are in force, and why others are not: a warning if they should be, otherwise info. */
void srv_sandbox_log(const struct srv_sandbox *sandbox);
