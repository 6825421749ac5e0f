/* Preloaded into a server: names that end in .hangs take a minute to be looked up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
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
