#include "server/watch_files.h"

#include "server/telemetry/log.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 120 };

static struct {
    int fd, problem; /* an errno: why a folder is not watched */
    size_t n;
    struct {
        const char *path;
        struct stat status;
    } files[MAX_FILES];
} watch = {.fd = -1};

/* Times of one file's change, also of its rights, differ. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void watch_folder_of(const char *file)
{
    char *path = file ? strdup(file) : NULL;
    if (path && inotify_add_watch(watch.fd, dirname(path),
                                  IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB) < 0)
        watch.problem = errno;
    free(path);
}

void srv_watch_files(const char *const *files, size_t n)
{
    if (n == 0)
        return;
    watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch.fd < 0 || fcntl(watch.fd, F_SETOWN, getpid()) != 0 ||
        fcntl(watch.fd, F_SETFL, O_NONBLOCK | O_ASYNC) != 0) {
        watch.problem = errno;
        return;
    }
    for (watch.n = 0; watch.n < n && watch.n < MAX_FILES; watch.n++) {
        char *real = realpath(files[watch.n], NULL);
        watch.files[watch.n].path = files[watch.n];
        watch_folder_of(files[watch.n]);
        watch_folder_of(real);
        free(real);
    }
    srv_files_changed(false);
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
