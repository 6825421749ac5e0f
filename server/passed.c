#include "server/passed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* FIRST: the first descriptor that is passed. MOST: for --listen, and one for --admin-listen. */
enum { FIRST = 3, MOST = SRV_ADDRESSES + 1 };

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/* True for a socket that can be accepted from; it will not block, and no program that is run has it. */
static bool prepare(int fd)
{
    int domain = option_of(fd, SO_DOMAIN), flags = fcntl(fd, F_GETFL);
    return (domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX) &&
           option_of(fd, SO_TYPE) == SOCK_STREAM && option_of(fd, SO_ACCEPTCONN) == 1 &&
           fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool take(struct srv_passed *passed, int fd, const char *name, int size, FILE *errors)
{
    bool is_admin = size == 5 && memcmp(name, "admin", 5) == 0;
    if (is_admin ? passed->admin >= 0 : passed->n == SRV_ADDRESSES) {
        fprintf(errors,
                "kldivd: LISTEN_FDS: descriptor %d (%.*s) is too many; at most %d are served, and "
                "one more named admin\n",
                fd, size, name, SRV_ADDRESSES);
        return false;
    }
    if (!prepare(fd)) {
        fprintf(errors,
                "kldivd: LISTEN_FDS: descriptor %d (%.*s) is not a listening TCP or unix socket\n",
                fd, size, name);
        return false;
    }
    if (is_admin)
        passed->admin = fd;
    else
        passed->listen[passed->n++] = fd;
    return true;
}

/* Takes descriptors by their number and their names, which have colons between. */
static bool take_all(struct srv_passed *passed, const char *number, const char *names, FILE *errors)
{
    char *end;
    unsigned long n = strtoul(number, &end, 10);
    if (*number < '0' || *number > '9' || *end) {
        fprintf(errors, "kldivd: LISTEN_FDS: '%s' is not a number\n", number);
        return false;
    }
    for (unsigned long i = 0; i < n && i <= MOST; i++) { /* one more is refused, by its place */
        int size = (int)strcspn(names, ":");
        if (!take(passed, FIRST + (int)i, names, size, errors))
            return false;
        names += size + (names[size] == ':');
    }
    return true;
}

bool srv_passed_read(struct srv_passed *passed, FILE *errors)
{
    const char *pid = getenv("LISTEN_PID"), *number = getenv("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    *passed = (struct srv_passed){.admin = -1};
    bool good = !pid || !number || strtol(pid, NULL, 10) != getpid() ||
                take_all(passed, number, names ? names : "", errors);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return good;
}
