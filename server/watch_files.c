#include "server/watch_files.h"

#include "server/config/path_folders.h"
#include "server/telemetry/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 120 };

struct watched {
    char *path;
    struct stat status;
};

static struct {
    int fd, problem; /* an errno: why a folder is not watched */
    size_t n;
    struct watched files[MAX_FILES];
} watch = {.fd = -1};

/* Times of one file's change, also of its rights, differ. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void watch_folder(void *unused, const char *folder, enum srv_entry entry)
{
    (void)unused, (void)entry;
    if (inotify_add_watch(watch.fd, folder, IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB) <
        0)
        watch.problem = errno;
}

static bool open_watch(void)
{
    watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    bool good = watch.fd >= 0 && fcntl(watch.fd, F_SETOWN, getpid()) == 0 &&
                fcntl(watch.fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0;
    watch.problem = good ? 0 : errno;
    return good;
}

/* The status of a file at which it was compared last; of one that was not watched, what it is now. */
static struct stat status_of(const char *path, const struct watched *former, size_t n)
{
    struct stat status = {.st_size = 0};
    for (size_t i = 0; i < n; i++)
        if (strcmp(former[i].path, path) == 0)
            return former[i].status;
    stat(path, &status);
    return status;
}

void srv_watch_files(const char *const *files, size_t n)
{
    struct watched former[MAX_FILES];
    size_t n_former = watch.n;
    if (n == 0 || (watch.fd < 0 && !open_watch()))
        return;
    memcpy(former, watch.files, sizeof former);
    watch.problem = 0;
    watch.n = 0;
    for (size_t i = 0; i < n && i < MAX_FILES; i++) {
        struct watched *file = &watch.files[watch.n];
        srv_path_folders(files[i], watch_folder, NULL);
        file->path = strdup(files[i]);
        if (file->path)
            file->status = status_of(file->path, former, n_former);
        watch.n += file->path != NULL;
    }
    for (size_t i = 0; i < n_former; i++)
        free(former[i].path);
}

void srv_watch_log(void)
{
    if (watch.problem)
        srv_log(SRV_LOG_WARNING, "files are not watched, and read again at SIGHUP alone error=%s",
                strerror(watch.problem));
}

bool srv_files_changed(bool settle)
{
    enum { SETTLE_NS = 300000000 };
    char events[4096];
    bool changed = false;
    if (settle)
        nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
    while (watch.fd >= 0 && read(watch.fd, events, sizeof events) > 0)
        ;
    for (size_t i = 0; i < watch.n; i++) {
        struct stat now;
        if (stat(watch.files[i].path, &now) != 0 || is_same(&now, &watch.files[i].status))
            continue;
        watch.files[i].status = now;
        changed = true;
    }
    return changed;
}
