#include "api/store/backup.h"

#include "api/text/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };
static const char prefix[] = "sqlite:", wanted[] = "-backup-wanted", made[] = "-backup-unfinished";

/* The path of a file beside another. */
static const char *beside(const char *path, const char *suffix, char to[MAX_PATH])
{
    snprintf(to, MAX_PATH, "%s%s", path, suffix);
    return to;
}

/* ---- The server's side */

/* Opens the file of a copy, which who wants it has synced: no journal is needed for what is new. */
static sqlite3 *open_copy(const char *path)
{
    sqlite3 *to = NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || close(fd) != 0 || sqlite3_open(path, &to) != SQLITE_OK ||
        sqlite3_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL, NULL) !=
            SQLITE_OK) {
        sqlite3_close(to);
        return NULL;
    }
    return to;
}

static void close_copy(struct api_sqlite_copy *copy)
{
    sqlite3_backup_finish(copy->backup);
    sqlite3_close(copy->to);
    copy->backup = NULL;
    copy->to = NULL;
}

static void remove_beside(const char *path, const char *suffix)
{
    char name[MAX_PATH];
    unlink(beside(path, suffix, name));
}

/* Forgets who wanted a copy. */
static void forget(struct api_sqlite_copy *copy)
{
    if (copy->wanted > 0)
        close(copy->wanted);
    copy->wanted = 0;
}

/* Finds who wants a copy; one that has ended, and has left files, wants none. False if there is nobody, or no more to do. */
static bool is_wanted(struct api_sqlite_copy *copy, const char *path)
{
    char name[MAX_PATH];
    struct stat status;
    bool is_new = copy->wanted == 0;
    if (is_new)
        copy->wanted = open(beside(path, wanted, name), O_RDONLY | O_CLOEXEC);
    if (copy->wanted > 0 && flock(copy->wanted, LOCK_EX | LOCK_NB) != 0)
        return is_new || copy->to;
    if (copy->wanted > 0) {
        if (fstat(copy->wanted, &status) == 0 && status.st_nlink > 0)
            remove_beside(path, wanted); /* that very file, and not that of another one */
        close_copy(copy);
        remove_beside(path, made);
    }
    forget(copy);
    return false;
}

/* Ends a copy, or tells in its place why there is none. A part of a copy that cannot be removed is wanted still. */
static void finish(struct api_sqlite_copy *copy, const char *path, int result)
{
    char name[MAX_PATH];
    int finished = sqlite3_backup_finish(copy->backup);
    result = result == SQLITE_DONE ? finished : result;
    copy->backup = NULL;
    close_copy(copy);
    beside(path, made, name);
    bool is_told = result == SQLITE_OK || unlink(name) == 0 || errno == ENOENT || errno == EISDIR;
    FILE *file = result == SQLITE_OK ? NULL : fopen(name, "we");
    if (file) {
        fputs(sqlite3_errstr(result), file);
        fclose(file);
    }
    if (is_told)
        remove_beside(path, wanted);
    else
        forget(copy);
}

void api_sqlite_copy_end(struct api_sqlite_copy *copy, const char *path)
{
    if (copy->to)
        finish(copy, path, SQLITE_INTERRUPT);
    forget(copy);
}

void api_sqlite_copy_clear(const char *path)
{
    char name[MAX_PATH];
    if (access(beside(path, wanted, name), F_OK) != 0)
        remove_beside(path, made);
}

bool api_sqlite_copy_step(struct api_sqlite_copy *copy, sqlite3 *from, const char *path)
{
    enum { PAGES = 64 };
    static const double max_s = 0.01; /* for which requests wait */
    char name[MAX_PATH];
    double end = api_seconds() + max_s;
    int result = SQLITE_OK;
    if (!is_wanted(copy, path))
        return false;
    if (!copy->to) {
        copy->to = open_copy(beside(path, made, name));
        copy->backup = copy->to ? sqlite3_backup_init(copy->to, "main", from, "main") : NULL;
        result = copy->backup ? SQLITE_OK : copy->to ? SQLITE_NOMEM : SQLITE_CANTOPEN;
    }
    while (result == SQLITE_OK && api_seconds() < end)
        result = sqlite3_backup_step(copy->backup, PAGES);
    if (result == SQLITE_OK || result == SQLITE_BUSY || result == SQLITE_LOCKED)
        return result == SQLITE_OK;
    finish(copy, path, result);
    return false;
}

/* ---- The side of who wants one */

/* request: what is copied, where to, and why it failed. */
struct request {
    const char *path, *file;
    char *reason;
    size_t size;
    int store; /* descriptor of what is copied */
    char wanted[MAX_PATH], made[MAX_PATH], part[MAX_PATH];
};

static bool fail(const struct request *r, const char *path, const char *what)
{
    snprintf(r->reason, r->size, "%s %s", path, what);
    return false;
}

static bool fail_by_errno(const struct request *r, const char *path)
{
    char what[200];
    snprintf(what, sizeof what, "cannot be written: %s", strerror(errno));
    return fail(r, path, what);
}

static bool is_database(const char *path)
{
    char header[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, header, sizeof header) == sizeof header &&
              memcmp(header, "SQLite format 3", sizeof header) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

/* Copies a store that no server has open. *is_open tells whether one has. */
static bool copy_alone(const struct request *r, bool *is_open)
{
    sqlite3 *from = NULL;
    int result = sqlite3_open_v2(r->path, &from, SQLITE_OPEN_READWRITE, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(from, "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT",
                              NULL, NULL, NULL);
    *is_open = (result & 0xff) == SQLITE_BUSY;
    struct api_sqlite_copy copy = {.to = result == SQLITE_OK ? open_copy(r->part) : NULL};
    if (result == SQLITE_OK && !copy.to)
        result = SQLITE_CANTOPEN;
    if (copy.to)
        copy.backup = sqlite3_backup_init(copy.to, "main", from, "main");
    if (copy.backup)
        result = sqlite3_backup_step(copy.backup, -1);
    close_copy(&copy);
    sqlite3_close(from);
    return result == SQLITE_DONE || *is_open || fail(r, r->path, sqlite3_errstr(result));
}

/* True if a process has the store open, which SQLite's locks tell (sqlite.org/lockingv3.html). */
static bool is_open_anywhere(const struct request *r)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
    return fcntl(r->store, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Waits for the server. One that writes nothing for longer than it ever stands still knows of no copies; one that has ended
 * has some seconds to be started again. */
static bool wait_for_server(const struct request *r)
{
    enum { PATIENCE_S = 30, RESTART_S = 5, LOOK_NS = 50000000 };
    char text[200] = "could not be copied by its server: its disk may be full";
    struct stat now, last = {.st_size = -1};
    double end = api_seconds() + PATIENCE_S, seen = api_seconds();
    while (access(r->wanted, F_OK) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        if (stat(r->made, &now) == 0 && now.st_size != last.st_size) {
            end = api_seconds() + PATIENCE_S;
            last = now;
        }
        if (is_open_anywhere(r))
            seen = api_seconds();
        if (api_seconds() > seen + RESTART_S)
            return fail(r, r->path, "was not copied, because its server has ended: try again");
        if (api_seconds() > end)
            return fail(r, r->path,
                        "is open in a process that does not copy it: another program, or "
                        "kldivd of a version before");
    }
    if (is_database(r->made))
        return true;
    FILE *file = fopen(r->made, "re");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n > 0 ? n : strlen(text)] = '\0';
    if (file)
        fclose(file);
    return fail(r, r->path, text);
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    ssize_t n = 0;
    for (; size > 0 && n >= 0; bytes += n, size -= (size_t)n)
        if ((n = write(fd, bytes, size)) < 0)
            return false;
    return true;
}

/* Copies what the server has made to another file system. */
static bool copy_bytes(const char *from, const char *to)
{
    enum { PIECE = 1 << 20 };
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char *piece = malloc(PIECE);
    ssize_t n = piece && in >= 0 && out >= 0 ? 1 : -1;
    while (n > 0)
        if ((n = read(in, piece, PIECE)) > 0 && !write_all(out, piece, (size_t)n))
            n = -1;
    free(piece);
    int problem = errno;
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0 && n == 0) {
        n = -1;
        problem = errno;
    }
    errno = problem;
    return n == 0;
}

/* Makes the file that tells the server, which may be another user, and locks it; again if the server has removed it
 * meanwhile, as one that was left. */
static int make_wanted(const struct request *r)
{
    struct stat status = {.st_nlink = 0};
    int fd;
    while ((fd = open(r->wanted, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) >= 0) {
        if (fchmod(fd, 0644) == 0 && flock(fd, LOCK_EX) == 0 && fstat(fd, &status) == 0 &&
            status.st_nlink > 0)
            break;
        close(fd);
    }
    return fd;
}

/* Has the server make a copy, and puts it beside the file that is wanted. */
static bool copy_by_server(const struct request *r)
{
    int fd = make_wanted(r);
    if (fd < 0)
        return fail_by_errno(r, r->wanted);
    bool good = wait_for_server(r);
    if (good && rename(r->made, r->part) != 0)
        good = (errno == EXDEV && copy_bytes(r->made, r->part)) || fail_by_errno(r, r->part);
    unlink(r->wanted);
    unlink(r->made);
    close(fd);
    return good;
}

/* Puts what is complete in its place, on the disk. */
static bool put(const struct request *r, int64_t *bytes)
{
    struct stat status;
    char folder[MAX_PATH];
    snprintf(folder, sizeof folder, "%s", r->file);
    int fd = open(r->part, O_RDONLY | O_CLOEXEC),
        place = open(dirname(folder), O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && place >= 0 && fsync(fd) == 0 && fstat(fd, &status) == 0 &&
                (renameat2(AT_FDCWD, r->part, AT_FDCWD, r->file, RENAME_NOREPLACE) == 0 ||
                 (errno == EINVAL && rename(r->part, r->file) == 0)) &&
                fsync(place) == 0;
    *bytes = good ? status.st_size : 0;
    if (!good)
        fail_by_errno(r, r->file);
    if (fd >= 0)
        close(fd);
    if (place >= 0)
        close(place);
    return good;
}

static bool copy(const struct request *r, int64_t *bytes)
{
    bool is_open = false;
    int fd = open(r->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || close(fd) != 0)
        return fail_by_errno(r, r->part);
    bool good = copy_alone(r, &is_open) && (!is_open || copy_by_server(r)) && put(r, bytes);
    if (!good)
        unlink(r->part);
    return good;
}

bool api_store_backup(const char *location, const char *file, int64_t *bytes, char *reason,
                      size_t size)
{
    struct request r = {
        .path = location + strlen(prefix), .file = file, .reason = reason, .size = size};
    struct stat status;
    if (strncmp(location, "postgres", 8) == 0)
        return fail(&r, "PostgreSQL", "is copied by pg_dump, see Backup and restore in the manual");
    if (strncmp(location, prefix, strlen(prefix)) != 0)
        return fail(&r, location, "is lost at the end, and has nothing to copy");
    if (lstat(file, &status) == 0)
        return fail(&r, file, "exists, and is left as it is");
    if (!is_database(r.path))
        return fail(&r, r.path, "is no store that can be read");
    char *path = realpath(r.path, NULL);
    r.path = path ? path : r.path;
    beside(r.path, wanted, r.wanted);
    beside(r.path, made, r.made);
    beside(file, ".part", r.part);
    r.store = open(r.path, O_RDONLY | O_CLOEXEC); /* SQLite has locks of another kind */
    bool good = flock(r.store, LOCK_EX | LOCK_NB) == 0
                    ? copy(&r, bytes)
                    : fail(&r, r.path, "is being copied by another kldivd --backup");
    close(r.store);
    free(path);
    return good;
}
