#include "api/regions/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *without_slash(const char *name) { return name + (*name == '/'); }

bool api_object_prefix_is_valid(const char *prefix)
{
    return *prefix && !strchr(without_slash(prefix), '/') && strlen(prefix) < API_OBJECT_NAME;
}

static bool is_name(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') &&
           strlen(name) < API_OBJECT_NAME - 1;
}

static bool check_key(const char *prefix, const char *key, const char *location,
                      struct api_problem *problem)
{
    const char *name = without_slash(key), *start = without_slash(prefix);
    if (!is_name(name))
        return api_fail_at(problem, API_BODY, location, "region_invalid",
                           "the key '%.60s' is not a name of a shared memory object", key);
    return strncmp(name, start, strlen(start)) == 0 ||
           api_fail_at(problem, API_BODY, location, "region_invalid",
                       "the key '%.60s' does not start with '%.60s', the prefix of --shared-memory",
                       key, start);
}

static void fail_to_open(const char *key, bool writes, const char *location,
                         struct api_problem *problem)
{
    static const char owner[] = ": its owner and mode must allow this server";
    if (errno == ENOENT) {
        api_fail_at(problem, API_BODY, location, "region_invalid",
                    "there is no shared memory object '%.60s' in the /dev/shm of this server", key);
        return;
    }
    api_fail_at(problem, API_BODY, location, "region_invalid",
                "the shared memory object '%.60s' cannot be opened for %s: %s%s (user %u)", key,
                writes ? "writing" : "reading", strerror(errno), errno == EACCES ? owner : "",
                (unsigned)geteuid());
}

int api_object_open(const char *prefix, const char *key, bool writes, struct stat *status,
                    const char *location, struct api_problem *problem)
{
    char name[API_OBJECT_NAME + 1];
    if (!check_key(prefix, key, location, problem))
        return -1;
    snprintf(name, sizeof name, "/%s", without_slash(key));
    int fd = shm_open(name, (writes ? O_RDWR : O_RDONLY) | O_NONBLOCK, 0); /* a pipe would block */
    if (fd >= 0 && fstat(fd, status) == 0 && S_ISREG(status->st_mode))
        return fd;
    if (fd >= 0) {
        close(fd);
        errno = EINVAL;
    }
    fail_to_open(key, writes, location, problem);
    return -1;
}

/* Asks for holes of the object, not of a mapping: mincore would take all pages of others' objects for
 * present, and a mapping may be lost. */
size_t api_object_holes(int fd, size_t offset, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), holes = 0;
    struct stat now;
    if (size == 0 || fstat(fd, &now) != 0)
        return 0;
    off_t at = (off_t)(offset / page * page), end = (off_t)(offset + size);
    if (end > now.st_size)
        end = now.st_size;
    while (at < end) {
        off_t hole = lseek(fd, at, SEEK_HOLE);
        if (hole < 0 || hole >= end)
            break;
        at = lseek(fd, hole, SEEK_DATA);
        if (at < 0 || at > end)
            at = end;
        holes += ((size_t)(at - hole) + page - 1) / page * page;
    }
    return holes;
}
