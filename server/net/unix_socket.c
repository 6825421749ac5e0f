#include "server/net/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char scheme[] = "unix:";

/* LONGEST: bytes of a path or a name: a NUL follows, which libraries of clients want. */
enum { LONGEST = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1 };

/* LOCK_TRIES: how often, every 10 ms, a folder's lock is tried; anyone who may read the folder may hold its lock. */
enum { LOCK_TRIES = 100 };

bool srv_unix_is(const char *address) { return strncmp(address, scheme, strlen(scheme)) == 0; }

const char *srv_unix_path(const char *address)
{
    const char *path = address + strlen(scheme);
    return srv_unix_is(address) && *path != '@' ? path : NULL;
}

socklen_t srv_unix_name(const char *address, struct sockaddr_un *name)
{
    const char *text = address + strlen(scheme);
    size_t size = strlen(text);
    bool is_abstract = *text == '@';
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (size <= is_abstract || size > LONGEST)
        return 0;
    memcpy(name->sun_path, text, size);
    if (is_abstract)
        name->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + !is_abstract);
}

void srv_unix_text(const struct sockaddr_un *name, socklen_t size, char *to, size_t room)
{
    size_t n = size > offsetof(struct sockaddr_un, sun_path)
                   ? size - offsetof(struct sockaddr_un, sun_path)
                   : 0;
    bool is_abstract = n > 0 && !name->sun_path[0];
    snprintf(to, room, "%s%s%.*s", scheme, is_abstract ? "@" : "", (int)n - is_abstract,
             name->sun_path + is_abstract);
}

/* ---- Listening */

/* Waits for the lock of the folder that a path is in. Without the lock, two servers that start at once could each
 * remove the other's new socket as one left by a killed server. Returns the descriptor, or -1; after LOCK_TRIES, and
 * where there are no locks, the server goes on without one. */
static int lock_folder(const char *path)
{
    char copy[LONGEST + 1];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return fd;
}

static int bind_with_mode(int fd, const struct sockaddr_un *name, socklen_t size, mode_t mode)
{
    mode_t before = umask(~mode & 0777);
    int result = bind(fd, (const struct sockaddr *)name, size);
    umask(before); /* keeps errno */
    return result;
}

/* Reason why the file at the path may not be removed; NULL if it is a socket that a killed server left. */
static const char *reason_to_keep(const struct sockaddr_un *name, socklen_t size)
{
    struct stat status;
    if (lstat(name->sun_path, &status) != 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (!S_ISSOCK(status.st_mode))
        return "there is a file that is not a socket";
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int result = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)name, size), reason = errno;
    if (fd >= 0)
        close(fd);
    if (result == 0 || reason == EAGAIN) /* EAGAIN: its backlog is full */
        return "the address is in use: a server answers there";
    return reason == ECONNREFUSED || reason == ENOENT ? NULL
           : reason == EPROTOTYPE                     ? "there is a socket of another kind"
                                                      : strerror(reason);
}

/* Binds; gives the reason if that fails, else NULL. */
static const char *bind_or_replace(int fd, const struct sockaddr_un *name, socklen_t size,
                                   mode_t mode)
{
    if (bind_with_mode(fd, name, size, mode) == 0)
        return NULL;
    if (errno == ENOENT)
        return "its folder is missing";
    if (errno != EADDRINUSE)
        return strerror(errno);
    if (!*name->sun_path)
        return "the address is in use: a server has that name";
    const char *reason = reason_to_keep(name, size);
    if (reason)
        return reason;
    unlink(name->sun_path);
    return bind_with_mode(fd, name, size, mode) == 0 ? NULL : strerror(errno);
}

int srv_unix_listen(const char *option, const char *address, mode_t mode, FILE *errors)
{
    struct sockaddr_un name;
    socklen_t size = srv_unix_name(address, &name);
    if (size == 0) {
        fprintf(errors, "kldivd: %s: '%s': a path or name has 1 to %d bytes\n", option, address,
                LONGEST);
        return -1;
    }
    int lock = *name.sun_path ? lock_folder(name.sun_path) : -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const char *reason = fd < 0 ? strerror(errno) : bind_or_replace(fd, &name, size, mode);
    if (!reason && listen(fd, SOMAXCONN) != 0) {
        reason = strerror(errno);
        unlink(name.sun_path); /* an abstract name is no path: nothing is there */
    }
    if (reason) {
        fprintf(errors, "kldivd: %s: cannot listen on %s: %s\n", option, address, reason);
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    if (lock >= 0)
        close(lock);
    return fd;
}

/* ---- The file */

struct srv_unix_file srv_unix_file(const char *address)
{
    struct stat status;
    const char *path = srv_unix_path(address);
    if (!path || lstat(path, &status) != 0)
        return (struct srv_unix_file){0};
    return (struct srv_unix_file){path, status.st_dev, status.st_ino};
}

bool srv_unix_remove(struct srv_unix_file *file)
{
    struct stat status;
    const char *path = file->path;
    file->path = NULL;
    if (!path || lstat(path, &status) != 0 || status.st_dev != file->device ||
        status.st_ino != file->inode)
        return true;
    return unlink(path) == 0;
}

/* ---- Clients */

void srv_unix_peer(int fd, struct ucred *peer)
{
    socklen_t size = sizeof *peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &size) != 0)
        *peer = (struct ucred){0};
}
