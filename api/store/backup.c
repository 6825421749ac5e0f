#include "api/store/backup.h"
#include "api/store/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets the reason; false. */
static bool refuse(char *reason, size_t size, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(reason, size, format, values);
    va_end(values);
    return false;
}

static bool is_database(int fd)
{
    char header[16] = "";
    return fd >= 0 && read(fd, header, sizeof header) == sizeof header &&
           memcmp(header, "SQLite format 3", sizeof header) == 0;
}

/* Removes SQLite's journal of a part. A journal would be rolled back into the next part of that name. */
static void remove_journal(const char *part)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s-journal", part);
    unlink(path);
}

/* True if nothing has the name of the copy, nor of a log or journal, which SQLite would read into the copy. */
static bool is_free(const char *file, char *reason, size_t size)
{
    static const char *const suffixes[] = {"", "-wal", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[PATH_MAX + 16];
        struct stat status;
        snprintf(path, sizeof path, "%s%s", file, suffixes[i]);
        if (lstat(path, &status) == 0)
            return refuse(reason, size, "%s exists, and is left as it is", path);
    }
    return true;
}

/* SQLite finds the log by the name of the file: under another name it would miss what is in the log. */
static bool has_one_name(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_nlink == 1;
}

/* Opens an empty file, also in place of one that a command which was killed has left; -1 if another command writes it, or a
 * server has it open. */
static int open_part(const char *path, char *reason, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0, is_served = false;
    if (good)
        is_served = !api_sqlite_lock(fd) && (errno == EAGAIN || errno == EACCES);
    if (good && !is_served && ftruncate(fd, 0) == 0) {
        remove_journal(path);
        return fd;
    }
    refuse(reason, size, "%s cannot be written: %s", path,
           is_served ? "a server has it open" : strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Copies to an empty file, in one transaction that reads. The connection writes nothing while a server has the store open;
 * where none has, it moves a log that was left into the store as it closes, and leaves no files beside it. */
static bool copy(const char *path, const char *to, char *reason, size_t size)
{
    enum { WAIT_MS = 5000 }; /* for a server that starts or ends */
    sqlite3 *store = NULL;
    sqlite3_stmt *vacuum = NULL;
    if (sqlite3_open_v2(path, &store, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(store, WAIT_MS) == SQLITE_OK &&
        sqlite3_prepare_v2(store, "VACUUM INTO ?1", -1, &vacuum, NULL) == SQLITE_OK &&
        sqlite3_bind_text(vacuum, 1, to, -1, SQLITE_STATIC) == SQLITE_OK)
        sqlite3_step(vacuum);
    int code = sqlite3_errcode(store), problem = sqlite3_system_errno(store);
    bool good = code == SQLITE_DONE;
    if (code == SQLITE_BUSY)
        refuse(reason, size,
               "%s is open in a process that lets none read it: another program, or kldivd of a "
               "version before",
               path);
    else if (!good)
        refuse(reason, size, "%s cannot be copied to %s: %s", path, to,
               problem ? strerror(problem) : sqlite3_errmsg(store));
    sqlite3_finalize(vacuum);
    sqlite3_close(store);
    return good;
}

/* Puts what is complete in its place, on the disk. */
static bool put(int fd, const char *part, const char *file, int64_t *bytes, char *reason,
                size_t size)
{
    struct stat status;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", file);
    int place = open(dirname(folder), O_RDONLY | O_CLOEXEC);
    bool good = place >= 0 && fsync(fd) == 0 && fstat(fd, &status) == 0 &&
                (renameat2(AT_FDCWD, part, AT_FDCWD, file, RENAME_NOREPLACE) == 0 ||
                 (errno == EINVAL && rename(part, file) == 0)) &&
                fsync(place) == 0;
    *bytes = good ? status.st_size : 0;
    if (!good)
        refuse(reason, size, "%s cannot be written: %s", file, strerror(errno));
    if (place >= 0)
        close(place);
    return good;
}

bool api_store_backup(const char *location, const char *file, int64_t *bytes, char *reason,
                      size_t size)
{
    static const char prefix[] = "sqlite:";
    const char *path = location + strlen(prefix);
    char part[PATH_MAX];
    if (strncmp(location, "postgres", 8) == 0)
        return refuse(reason, size,
                      "PostgreSQL is copied by pg_dump, see Backup and restore in the manual");
    if (strncmp(location, prefix, strlen(prefix)) != 0)
        return refuse(reason, size, "%s is lost at the end, and has nothing to copy", location);
    if (!is_free(file, reason, size))
        return false;
    snprintf(part, sizeof part, "%s.part", file);
    /* Both are closed after SQLite, whose locks of a file end when a descriptor of it is closed. */
    int store = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), to = -1;
    bool good =
        (is_database(store) || refuse(reason, size, "%s is no store that can be read", path)) &&
        (has_one_name(store) ||
         refuse(reason, size, "%s has another name, a hard link, whose log would be missed",
                path)) &&
        (flock(store, LOCK_EX | LOCK_NB) == 0 ||
         refuse(reason, size, "%s is being copied by another kldivd --backup", path)) &&
        (to = open_part(part, reason, size)) >= 0;
    if (good &&
        !(good = copy(path, part, reason, size) && put(to, part, file, bytes, reason, size))) {
        unlink(part);
        remove_journal(part);
    }
    if (to >= 0)
        close(to);
    if (store >= 0)
        close(store);
    return good;
}
