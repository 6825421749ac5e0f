#include "server/sandbox/sandbox.h"

#include "server/telemetry/log.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZER = 1 };
#else
enum { SANITIZER = 0 };
#endif

/* Empties the bounding set first, which takes a capability. The ambient set follows the others. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    for (unsigned long c = 0; prctl(PR_CAPBSET_READ, c) >= 0; c++)
        if (prctl(PR_CAPBSET_DROP, c) != 0 && errno != EPERM)
            return -errno;
    return syscall(SYS_capset, &header, none) == 0 ? 0 : -errno;
}

struct srv_sandbox srv_sandbox_enter(const struct srv_options *options,
                                     const struct srv_sandbox_policy *policy)
{
    struct srv_sandbox sandbox = {-ECANCELED, -ECANCELED, -ECANCELED};
    tzset(); /* reads a file, which the first line of the log would do */
    if (options->drop_privileges || options->seccomp)
        sandbox.no_new_privs = prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 ? 0 : -errno;
    if (options->drop_privileges)
        sandbox.capabilities = drop_capabilities();
    if (options->seccomp) /* the last, because it refuses the calls above */
        sandbox.seccomp = SANITIZER ? -ENOTSUP : srv_seccomp_enter(policy);
    return sandbox;
}

static const char *reason(int result)
{
    return result == -ECANCELED ? "switched off"
           : result == -ENOSYS  ? "the kernel lacks it"
           : result == -ENOTSUP ? "a build with a sanitizer"
                                : strerror(-result);
}

/* Appends a part to a list of them. */
static void append(char *list, size_t size, const char *name, const char *note)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s%s%s%s", used ? ", " : "", name, *note ? " (" : "",
             note, *note ? ")" : "");
}

void srv_sandbox_log(const struct srv_sandbox *sandbox)
{
    char in_force[200] = "", missing[400] = "";
    enum srv_log_level level = SRV_LOG_INFO;
    const struct {
        const char *name;
        int result;
    } parts[] = {{"no_new_privs", sandbox->no_new_privs},
                 {"no capabilities", sandbox->capabilities},
                 {"seccomp", sandbox->seccomp}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int result = parts[i].result;
        if (result >= 0)
            append(in_force, sizeof in_force, parts[i].name, "");
        else
            append(missing, sizeof missing, parts[i].name, reason(result));
        if (result < 0 && result != -ECANCELED && result != -ENOSYS && result != -ENOTSUP)
            level = SRV_LOG_WARNING;
    }
    srv_log(level, *missing ? "locked in: by=%s not=%s" : "locked in: by=%s",
            *in_force ? in_force : "nothing", missing);
}
