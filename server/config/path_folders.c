#include "server/config/path_folders.h"

#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MAX_LINKS: of a path, as many as the kernel follows. */
enum { MAX_LINKS = 40 };

/* Bytes of the shortest part of a path that is a link, whose target is read; those of the whole if none is. */
static size_t find_link(const char *path, char target[PATH_MAX])
{
    char part[PATH_MAX];
    *target = '\0';
    for (size_t size = 1;; size++) {
        size += strcspn(path + size, "/");
        snprintf(part, sizeof part, "%.*s", (int)size, path);
        ssize_t n = readlink(part, target, PATH_MAX - 1);
        target[n > 0 ? n : 0] = '\0';
        if (n > 0 || !path[size])
            return size;
    }
}

static enum srv_entry entry_of(const char *folder, const char *link, bool is_last)
{
    char *whole = realpath(folder, NULL), *to = realpath(link, NULL);
    size_t size = whole ? strlen(whole) : 0;
    bool is_below = whole && to && strncmp(whole, to, size) == 0 && to[size] == '/';
    free(whole);
    free(to);
    return is_last ? SRV_FILE : is_below ? SRV_LINK_BELOW : SRV_LINK_ELSEWHERE;
}

void srv_path_folders(const char *path,
                      void (*visit)(void *context, const char *folder, enum srv_entry entry),
                      void *context)
{
    char rest[PATH_MAX], link[PATH_MAX], target[PATH_MAX], next[2 * PATH_MAX];
    snprintf(rest, sizeof rest, "%s", path);
    for (int links = 0; *rest && links < MAX_LINKS; links++) {
        size_t size = find_link(rest, target);
        bool is_last = !rest[size], is_link = *target;
        char name[PATH_MAX];
        snprintf(link, sizeof link, "%.*s", (int)size, rest);
        memcpy(name, link, sizeof name);
        const char *folder = dirname(name);
        visit(context, folder, entry_of(folder, link, is_last));
        if (!is_link)
            return;
        snprintf(next, sizeof next, "%s%s%s%s", *target == '/' ? "" : folder,
                 *target == '/' ? "" : "/", target, rest + size);
        snprintf(rest, sizeof rest, "%.*s", PATH_MAX - 1, next);
    }
}
