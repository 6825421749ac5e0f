/* The library that is preloaded into a server: calls fail as the test's page says. */
#include "tests/tools/preload/faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REPLACED __attribute__((visibility("default")))

/* Declares `next`, the function of this name that would be called without this library. */
#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next)                                                                                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

static struct faults nothing_armed, *page = &nothing_armed;

/* Runs after the constructors of the other libraries: the loader calls those of the first library last. */
__attribute__((constructor)) static void map_page(void)
{
    const char *path = getenv(FAULTS_VARIABLE);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        page = mapped;
}

/* spared: true while calls of this thread do not fail. The model needs no function, which a sanitizer
 * would replace before it is ready. */
static _Thread_local bool spared __attribute__((tls_model("initial-exec")));

/* True if this call of a kind fails; errno is set then. */
static bool fails(enum fault kind)
{
    if (spared || atomic_load(&page->armed) != kind)
        return false;
    long call = atomic_fetch_add(&page->seen, 1);
    if (call < atomic_load(&page->first) || call >= atomic_load(&page->end))
        return false;
    atomic_fetch_add(&page->failed, 1);
    int reason = atomic_load(&page->reason);
    while (reason == 0 && atomic_load(&page->armed) == kind)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    errno = reason;
    return reason != 0;
}

/* Defines a function that gives `failure` where it fails. */
#define FAULTY(type, name, kind, failure, parameters, arguments)                                   \
    REPLACED type name parameters                                                                  \
    {                                                                                              \
        NEXT(name);                                                                                \
        return fails(kind) ? failure : next arguments;                                             \
    }

/* ---- What does not survive */

/* libseccomp 2.5.4 without memory: seccomp_load never returns, or loads a part of the filter. */
REPLACED int seccomp_load(const scmp_filter_ctx filter)
{
    NEXT(seccomp_load);
    spared = true;
    int result = next(filter);
    spared = false;
    return result;
}

/* ---- Memory */

REPLACED void *malloc(size_t size)
{
    NEXT(malloc);
    void *block = fails(FAULT_MEMORY) ? NULL : next(size);
    atomic_fetch_add(&page->blocks, block != NULL);
    return block;
}

REPLACED void *calloc(size_t n, size_t size)
{
    NEXT(calloc);
    void *block = fails(FAULT_MEMORY) ? NULL : next(n, size);
    atomic_fetch_add(&page->blocks, block != NULL);
    return block;
}

REPLACED void *realloc(void *old, size_t size)
{
    NEXT(realloc);
    if (fails(FAULT_MEMORY))
        return NULL;
    void *block = next(old, size);
    atomic_fetch_add(&page->blocks, !old && block);
    atomic_fetch_sub(&page->blocks, old && size == 0);
    return block;
}

REPLACED void free(void *block)
{
    static bool asked; /* by dlsym, which frees its last message */
    static __typeof__(free) *next;
    if (!next && asked)
        return;
    asked = true;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "free");
    atomic_fetch_sub(&page->blocks, block != NULL);
    next(block);
}

REPLACED void *mmap(void *place, size_t size, int rights, int flags, int fd, off_t offset)
{
    NEXT(mmap);
    void *pages = fails(FAULT_MMAP) ? MAP_FAILED : next(place, size, rights, flags, fd, offset);
    atomic_fetch_add(&page->mapped, pages == MAP_FAILED ? 0 : (long)size);
    return pages;
}

REPLACED int munmap(void *place, size_t size)
{
    NEXT(munmap);
    atomic_fetch_sub(&page->mapped, (long)size);
    return next(place, size);
}

/* Counts a move as the server makes it: to a fixed place that was mapped before. */
REPLACED void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    NEXT(mremap);
    va_list arguments;
    va_start(arguments, flags);
    void *place = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    if (fails(FAULT_MREMAP))
        return MAP_FAILED;
    void *moved = next(old, old_size, size, flags, place);
    atomic_fetch_sub(&page->mapped, moved == MAP_FAILED ? 0 : (long)old_size);
    return moved;
}

/* ---- Threads, descriptors */

REPLACED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*start)(void *), void *argument)
{
    NEXT(pthread_create);
    return fails(FAULT_THREAD) ? atomic_load(&page->reason)
                               : next(thread, attributes, start, argument);
}

FAULTY(int, dup, FAULT_DESCRIPTOR, -1, (int fd), (fd))

REPLACED int open(const char *path, int flags, ...)
{
    NEXT(open);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(FAULT_DESCRIPTOR) ? -1 : next(path, flags, mode);
}

FAULTY(FILE *, fopen, FAULT_DESCRIPTOR, NULL, (const char *path, const char *mode), (path, mode))
FAULTY(DIR *, opendir, FAULT_DESCRIPTOR, NULL, (const char *path), (path))

REPLACED ssize_t write(int fd, const void *bytes, size_t size)
{
    NEXT(write);
    return fd == STDERR_FILENO && fails(FAULT_LOG) ? -1 : next(fd, bytes, size);
}

/* ---- Files of SQLite */

REPLACED int open64(const char *path, int flags, ...)
{
    NEXT(open64);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(FAULT_FILE_OPEN) ? -1 : next(path, flags, mode);
}

FAULTY(ssize_t, pwrite64, FAULT_FILE_WRITE, -1,
       (int fd, const void *bytes, size_t size, off64_t at), (fd, bytes, size, at))
FAULTY(ssize_t, pwrite, FAULT_FILE_WRITE, -1, (int fd, const void *bytes, size_t size, off_t at),
       (fd, bytes, size, at))
/* No test cuts the power: what is written need not reach the disk, which takes milliseconds each time. */
REPLACED int fdatasync(int fd)
{
    (void)fd;
    return fails(FAULT_FILE_SYNC) ? -1 : 0;
}

REPLACED int fsync(int fd) { return fdatasync(fd); }
FAULTY(int, ftruncate64, FAULT_FILE_TRUNCATE, -1, (int fd, off64_t size), (fd, size))
FAULTY(int, ftruncate, FAULT_FILE_TRUNCATE, -1, (int fd, off_t size), (fd, size))

/* ---- Time */

REPLACED int clock_gettime(clockid_t clock, struct timespec *time)
{
    NEXT(clock_gettime);
    int result = next(clock, time);
    if (clock == CLOCK_REALTIME)
        time->tv_sec += atomic_load(&page->clock);
    return result;
}

/* ---- Events */

FAULTY(int, epoll_create1, FAULT_EPOLL, -1, (int flags), (flags))

REPLACED int epoll_ctl(int events, int operation, int fd, struct epoll_event *event)
{
    NEXT(epoll_ctl);
    return operation == EPOLL_CTL_ADD && fails(FAULT_EPOLL) ? -1
                                                            : next(events, operation, fd, event);
}

FAULTY(int, eventfd, FAULT_EVENT, -1, (unsigned value, int flags), (value, flags))
FAULTY(int, eventfd_write, FAULT_WAKE, -1, (int fd, eventfd_t value), (fd, value))
FAULTY(int, poll, FAULT_POLL, -1, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))

/* ---- Sockets */

FAULTY(int, socket, FAULT_SOCKET, -1, (int family, int type, int protocol),
       (family, type, protocol))
FAULTY(int, bind, FAULT_SOCKET, -1, (int fd, const struct sockaddr *address, socklen_t size),
       (fd, address, size))
FAULTY(int, listen, FAULT_SOCKET, -1, (int fd, int backlog), (fd, backlog))

REPLACED int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    NEXT(accept4);
    if (fails(FAULT_ACCEPT) || fails(FAULT_DESCRIPTOR))
        return -1;
    return next(fd, address, size, flags);
}

FAULTY(ssize_t, recv, FAULT_RECV, -1, (int fd, void *bytes, size_t size, int flags),
       (fd, bytes, size, flags))
FAULTY(ssize_t, send, FAULT_SEND, -1, (int fd, const void *bytes, size_t size, int flags),
       (fd, bytes, size, flags))
FAULTY(ssize_t, sendmsg, FAULT_SEND, -1, (int fd, const struct msghdr *message, int flags),
       (fd, message, flags))
