#include "server/config/written_files.h"

#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The path of a file that may not be there yet, without links in its folder; a copy of `path` where that has none. */
static void find_whole(const char *path, char whole[PATH_MAX])
{
    char folder[PATH_MAX], name[PATH_MAX], *real = realpath(path, NULL);
    if (real) {
        snprintf(whole, PATH_MAX, "%s", real);
    } else {
        snprintf(folder, sizeof folder, "%s", path);
        snprintf(name, sizeof name, "%s", path);
        real = realpath(dirname(folder), NULL);
        snprintf(whole, PATH_MAX, "%s%s%s", real ? real : "", real ? "/" : "",
                 real ? basename(name) : path);
    }
    free(real);
}

/* True for one regular file by whatever names, and for one that may be made under both. */
static bool is_same(const char *first, const char *second)
{
    char a[PATH_MAX], b[PATH_MAX];
    struct stat p, q;
    bool are_there = stat(first, &p) == 0 && stat(second, &q) == 0;
    if (are_there)
        return S_ISREG(p.st_mode) && p.st_dev == q.st_dev && p.st_ino == q.st_ino;
    find_whole(first, a);
    find_whole(second, b);
    return strcmp(a, b) == 0;
}

static bool is_of_store(const char *path, const char *store)
{
    static const char prefix[] = "sqlite:";
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char whole[PATH_MAX], file[PATH_MAX + 20];
    if (strncmp(store, prefix, sizeof prefix - 1) != 0)
        return false;
    if (is_same(path, store + sizeof prefix - 1))
        return true;
    find_whole(store + sizeof prefix - 1, whole);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(file, sizeof file, "%s%s", whole, suffixes[i]);
        if (is_same(path, file))
            return true;
    }
    return false;
}

bool srv_written_files_check(const struct srv_options *options, FILE *errors)
{
    const struct {
        const char *option, *path;
        bool is_written;
    } files[] = {{"--port-file", options->port_file, true},
                 {"--audit-log", options->audit_log, true},
                 {"--notify", options->notify, false},
                 {"--auth-token-file", options->auth_token_file, false},
                 {"--tls-cert", options->tls_cert, false},
                 {"--tls-key", options->tls_key, false}};
    enum { FILES = sizeof files / sizeof *files };
    for (size_t i = 0; i < FILES && files[i].is_written; i++) {
        if (!files[i].path)
            continue;
        const char *other = is_of_store(files[i].path, options->store) ? "--store" : NULL;
        for (size_t j = i + 1; !other && j < FILES; j++)
            if (files[j].path && is_same(files[i].path, files[j].path))
                other = files[j].option;
        if (other) {
            fprintf(errors, "kldivd: %s: %s is the file of %s\n", files[i].option, files[i].path,
                    other);
            return false;
        }
    }
    return true;
}
