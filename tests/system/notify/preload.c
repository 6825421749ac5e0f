/* Preloaded into a server: names that end in .hangs take a minute to be looked up, and its clock is ahead by as many seconds
 * as AHEAD says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(
            RTLD_NEXT, "getaddrinfo");
    const char *end = node ? strrchr(node, '.') : NULL;
    if (end && strcmp(end, ".hangs") == 0)
        sleep(60);
    return next(node, service, hints, list);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static long ahead = -1;
    if (ahead < 0)
        ahead = getenv("AHEAD") ? atol(getenv("AHEAD")) : 0;
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    now->tv_sec += clock == CLOCK_REALTIME ? ahead : 0;
    return result;
}
