#include "api/store/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* APPLICATION_ID: "kldv", which marks a file as a store. */
enum { APPLICATION_ID = 0x6b6c6476 };

static bool script(sqlite3 *sqlite, const char *text)
{
    return sqlite3_exec(sqlite, text, NULL, NULL, NULL) == SQLITE_OK;
}

/* ---- Before it is opened */

/* True if these bytes begin a store: a string, and at byte 68 the application's number, big-endian
 * (sqlite.org/fileformat.html). */
static bool is_store(const unsigned char *header)
{
    unsigned id = (unsigned)header[68] << 24 | (unsigned)header[69] << 16 |
                  (unsigned)header[70] << 8 | header[71];
    return memcmp(header, "SQLite format 3", 16) == 0 && id == APPLICATION_ID;
}

/* Gives the first page of a database that is marked, and keeps a log; NULL if memory is exhausted. The
 * caller frees it by sqlite3_free. */
static unsigned char *make_page(size_t *size)
{
    enum { LOG = 2, WRITE_VERSION = 18, READ_VERSION = 19 }; /* of the file's format */
    char pragma[100];
    sqlite3 *sqlite = NULL;
    sqlite3_int64 n = 0;
    unsigned char *page = NULL;
    snprintf(pragma, sizeof pragma, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = %d",
             APPLICATION_ID);
    if (sqlite3_open(":memory:", &sqlite) == SQLITE_OK && script(sqlite, pragma))
        page = sqlite3_serialize(sqlite, "main", &n, 0);
    sqlite3_close(sqlite);
    if (page)
        page[WRITE_VERSION] = page[READ_VERSION] = LOG;
    *size = (size_t)n;
    return page;
}

/* Writes the first page, at once: a process that is killed leaves an empty file or a store. */
static int write_page(int fd)
{
    size_t size;
    unsigned char *page = make_page(&size);
    ssize_t n = page ? pwrite(fd, page, size, 0) : -1;
    int problem = !page ? ENOMEM : n < 0 ? errno : n < (ssize_t)size ? ENOSPC : 0;
    sqlite3_free(page);
    if (!problem && fsync(fd) != 0)
        problem = errno;
    if (problem && ftruncate(fd, 0) != 0) /* a part of a page is no store */
        return problem;
    return problem;
}

/* Sets the reason; false. */
#define REFUSE(...) (snprintf(reason, size, __VA_ARGS__), false)

/* Opens a file, or makes it. O_NONBLOCK: a pipe does not wait for another end. */
static bool open_file(const char *path, int *fd, char *reason, size_t size)
{
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno != ENOENT)
        return REFUSE("%s cannot be opened: %s", path, strerror(errno));
    if (*fd < 0)
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    return *fd >= 0 || REFUSE("the folder of %s cannot be written: %s", path, strerror(errno));
}

/* By a lock of the descriptor on a byte that SQLite leaves alone (sqlite.org/lockingv3.html). A server of a former version
 * locks the whole file, which SQLite refuses while another process has it open. */
bool api_sqlite_lock(int fd)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000 + 512, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Opens and locks a file that is a store, or is one once its first page is written. */
static bool prepare(const char *path, struct api_sqlite_file *file, bool *had_log, char *reason,
                    size_t size)
{
    unsigned char header[72];
    if (!open_file(path, &file->lock, reason, size))
        return false;
    if (fstat(file->lock, &file->status) != 0 || !S_ISREG(file->status.st_mode))
        return REFUSE("%s is not a store of kldiv, and is left as it is", path);
    if (!api_sqlite_lock(file->lock))
        return REFUSE("%s cannot be opened: %s", path,
                      errno == EAGAIN || errno == EACCES ? "another process has it open"
                                                         : strerror(errno));
    ssize_t n = pread(file->lock, header, sizeof header, 0);
    int problem = n < 0 ? errno : n == 0 ? write_page(file->lock) : 0;
    if (problem)
        return REFUSE(n < 0 ? "%s cannot be opened: %s" : "%s cannot be written: %s", path,
                      strerror(problem));
    if (n > 0 && (n < (ssize_t)sizeof header || !is_store(header)))
        return REFUSE("%s is not a store of kldiv, and is left as it is", path);
    file->path = realpath(path, NULL);
    if (!file->path || asprintf(&file->log_path, "%s-wal", file->path) < 0) {
        file->log_path = NULL;
        return REFUSE("%s cannot be opened: %s", path, strerror(errno));
    }
    *had_log = stat(file->log_path, &file->log) == 0 && file->log.st_size > 0;
    return true;
}

/* lstat: a link that leads nowhere is something, too. True if memory is exhausted. */
bool api_sqlite_has_place(const char *path)
{
    struct stat status;
    char *copy = strdup(path);
    bool has = !copy || lstat(path, &status) == 0 ||
               faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) == 0;
    free(copy);
    return has;
}

/* ---- Opening */

static int note_number(void *context, int n, char **values, char **names)
{
    (void)names;
    *(long long *)context = n > 0 && values[0] ? atoll(values[0]) : 0;
    return 0;
}

bool api_sqlite_number(sqlite3 *sqlite, const char *query, long long *number)
{
    return sqlite3_exec(sqlite, query, note_number, number, NULL) == SQLITE_OK;
}

/* WHOLE: pages of the largest file that is looked at as a whole, which takes some seconds: 6 ms a
 * MiB. */
enum { WHOLE = (256 << 20) / 4096 };

/* Looks for damage in all pages but those of large values. Otherwise damage would be found only when its page is
 * needed, maybe years later. In a large file the check reads only the pages that a start reads. */
static bool is_sound(sqlite3 *sqlite)
{
    static const char whole[] = "SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'";
    static const char parts[] =
        "SELECT count(*) FROM sqlite_schema s,"
        " pragma_quick_check(s.name) q WHERE type = 'table' AND quick_check <> 'ok' AND name IN"
        " ('kldiv_meta', 'kldiv_monitors', 'kldiv_revisions', 'meta', 'monitors', 'revisions')";
    long long pages = 0, faults = 0;
    return api_sqlite_number(sqlite, "PRAGMA page_count", &pages) &&
           api_sqlite_number(sqlite, pages <= WHOLE ? whole : parts, &faults) && faults == 0;
}

/* One connection alone writes and checkpoints, beside backups that read: SQLite before 3.51.3 loses what two do at once. */
static bool begin(sqlite3 *sqlite, bool *is_empty)
{
    long long tables = 0;
    bool good = script(sqlite, "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA "
                               "cache_size = -16384; PRAGMA secure_delete = ON; BEGIN IMMEDIATE; "
                               "COMMIT") &&
                api_sqlite_number(sqlite, "SELECT count(*) FROM sqlite_schema", &tables);
    *is_empty = tables == 0;
    return good;
}

static bool begin_log(sqlite3 *sqlite)
{
    return script(sqlite, "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 67108864;"
                          "BEGIN IMMEDIATE; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
}

static bool explain(sqlite3 *sqlite, const char *path, char *reason, size_t size)
{
    int whole = sqlite3_extended_errcode(sqlite), code = whole & 0xff;
    int system = whole == SQLITE_READONLY_DIRECTORY ? EACCES : sqlite3_system_errno(sqlite);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        snprintf(reason, size, "%s cannot be opened: another process has it open", path);
    else if (system && (code == SQLITE_CANTOPEN || code == SQLITE_READONLY))
        snprintf(reason, size, "the folder of %s cannot be written: %s", path, strerror(system));
    else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_OK)
        snprintf(reason, size, "%s is damaged, and is left as it is", path);
    else
        snprintf(reason, size, "%s cannot be opened: %s", path, sqlite3_errmsg(sqlite));
    return false;
}

bool api_sqlite_open(const char *path, struct api_sqlite_file *file, sqlite3 **sqlite,
                     bool *had_log, bool *is_empty, char *reason, size_t size)
{
    enum { WAIT_MS = 2000 }; /* for a backup that opens or closes the file */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (*path && !prepare(path, file, had_log, reason, size))
        return false;
    bool good = sqlite3_open_v2(*path ? path : ":memory:", sqlite, flags, NULL) == SQLITE_OK;
    if (*sqlite) /* NULL if memory is exhausted */
        sqlite3_extended_result_codes(*sqlite, 1);
    good = good && sqlite3_busy_timeout(*sqlite, WAIT_MS) == SQLITE_OK &&
           (*path || script(*sqlite, "PRAGMA auto_vacuum = INCREMENTAL")) &&
           begin(*sqlite, is_empty) && is_sound(*sqlite) && begin_log(*sqlite);
    if (!good)
        return explain(*sqlite, *path ? path : "memory", reason, size);
    sqlite3_busy_timeout(*sqlite, 0);
    if (*path && stat(file->log_path, &file->log) != 0)
        file->log = (struct stat){0};
    return true;
}

/* ---- While it is open */

void api_sqlite_close_file(struct api_sqlite_file *file)
{
    if (file->lock > 0)
        close(file->lock);
    free(file->path);
    free(file->log_path);
}

static bool is_same(const char *path, const struct stat *was)
{
    struct stat now;
    return was->st_nlink == 0 ||
           (stat(path, &now) == 0 && now.st_dev == was->st_dev && now.st_ino == was->st_ino);
}

bool api_sqlite_is_in_place(const struct api_sqlite_file *file)
{
    return !file->path ||
           (is_same(file->path, &file->status) && is_same(file->log_path, &file->log));
}

bool api_sqlite_empty_log(sqlite3 *sqlite)
{
    long long is_busy = 1;
    return api_sqlite_number(sqlite, "PRAGMA wal_checkpoint(TRUNCATE)", &is_busy) && !is_busy;
}

/* FREE: pages that are kept for what comes next, or an eighth of all. STEP: those that are given back at
 * once. REWRITTEN: the most pages that a file of former versions, which cannot give back single ones, is
 * written anew with; that takes as much memory. */
enum { FREE = 256, STEP = 256, REWRITTEN = 4096 };

bool api_sqlite_shrink(sqlite3 *sqlite)
{
    char step[60];
    long long pages = 0, unused = 0, can_vacuum = 0;
    bool good = api_sqlite_number(sqlite, "PRAGMA page_count", &pages) &&
                api_sqlite_number(sqlite, "PRAGMA freelist_count", &unused) &&
                api_sqlite_number(sqlite, "PRAGMA auto_vacuum", &can_vacuum);
    long long kept = pages / 8 > FREE ? pages / 8 : FREE;
    bool is_former = !can_vacuum;
    if (!good || unused <= kept || (is_former && pages - unused > REWRITTEN))
        return false;
    snprintf(step, sizeof step, "PRAGMA incremental_vacuum(%d)", STEP);
    good = script(sqlite, is_former ? "PRAGMA auto_vacuum = INCREMENTAL; VACUUM" : step);
    if (good && !is_former && unused - STEP > kept)
        return true;
    script(sqlite,
           "PRAGMA wal_checkpoint(PASSIVE)"); /* the file is cut by what moves the log into it */
    return false;
}
