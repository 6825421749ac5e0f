#include "server/watch_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static struct watched {
    char *path;
    struct stat status;
} watched[SRV_MAX_WATCHED];
static size_t n_watched;

/* Times of one file's change, also of its rights, differ. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
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
    struct watched former[SRV_MAX_WATCHED];
    size_t n_former = n_watched;
    memcpy(former, watched, sizeof former);
    n_watched = 0;
    for (size_t i = 0; i < n; i++) {
        char *path = files[i] ? strdup(files[i]) : NULL;
        if (path)
            watched[n_watched++] = (struct watched){path, status_of(path, former, n_former)};
    }
    for (size_t i = 0; i < n_former; i++)
        free(former[i].path);
}

/* Compares all, and keeps what they are now. */
static bool compare(void)
{
    bool changed = false;
    for (size_t i = 0; i < n_watched; i++) {
        struct stat now;
        if (stat(watched[i].path, &now) != 0 || is_same(&now, &watched[i].status))
            continue;
        watched[i].status = now;
        changed = true;
    }
    return changed;
}

bool srv_files_changed(void)
{
    enum { SETTLE_NS = 300000000 };
    if (!compare())
        return false;
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
    compare();
    return true;
}
