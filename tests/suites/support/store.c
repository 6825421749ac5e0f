#include "tests/suites/support/store.h"

#include "api/store/counts.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Folders */

struct database database_new(void)
{
    struct database database = {.folder = "/tmp/kldiv-store-XXXXXX"};
    cr_assert(mkdtemp(database.folder));
    cr_assert_eq(chmod(database.folder, 0777), 0);
    snprintf(database.path, sizeof database.path, "%s/store.db", database.folder);
    snprintf(database.location, sizeof database.location, "sqlite:%s", database.path);
    return database;
}

static int is_file(const struct dirent *entry) { return entry->d_name[0] != '.'; }

void database_free(const struct database *database)
{
    struct dirent **entries;
    char path[PATH_MAX];
    if (database->is_mounted)
        cr_assert_eq(umount2(database->folder, MNT_DETACH), 0);
    int n = scandir(database->folder, &entries, is_file, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", database->folder, entries[i]->d_name);
        if (unlink(path) != 0)
            rmdir(path);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    rmdir(database->folder);
}

bool database_mount(struct database *database)
{
    database->is_mounted = unshare(CLONE_NEWNS) == 0 &&
                           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                           mount("none", database->folder, "tmpfs", 0, "size=32m,mode=777") == 0;
    return database->is_mounted;
}

void database_remount(const struct database *database, bool read_only)
{
    unsigned long flags = MS_REMOUNT | (read_only ? MS_RDONLY : 0);
    cr_assert_eq(mount("none", database->folder, "tmpfs", flags, "size=32m,mode=777"), 0);
}

/* Goes on with FNV-1a. */
static unsigned long long hash(unsigned long long value, const void *bytes, size_t size)
{
    for (const unsigned char *p = bytes; size-- > 0; p++)
        value = (value ^ *p) * 1099511628211U;
    return value;
}

unsigned long long hash_of_folder(const char *folder)
{
    struct dirent **entries;
    struct stat status;
    char path[PATH_MAX];
    unsigned long long value = 14695981039346656037U;
    int n = scandir(folder, &entries, is_file, alphasort);
    cr_assert_geq(n, 0);
    for (int i = 0; i < n; i++) {
        size_t size = 0;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        char *bytes =
            stat(path, &status) == 0 && S_ISREG(status.st_mode) ? read_file(path, &size) : NULL;
        value = hash(value, entries[i]->d_name, strlen(entries[i]->d_name) + 1);
        value = hash(value, &size, sizeof size);
        value = hash(value, bytes, size);
        free(bytes);
        free(entries[i]);
    }
    free(entries);
    return value;
}

/* ---- Servers */

struct server store_start(const struct database *database, const char *const *flags)
{
    enum { MAX = 14 };
    const char *all[MAX] = {"--store", database->location};
    for (size_t i = 0; flags && flags[i] && i + 3 < MAX; i++)
        all[i + 2] = flags[i];
    return server_start(all);
}

void expect_refused(const struct database *database, const char *location, const char *line)
{
    char output[2000], expected[1000];
    const char *const flags[] = {"--listen", "127.0.0.1:0", "--store", location, NULL};
    unsigned long long before = hash_of_folder(database->folder);
    snprintf(expected, sizeof expected, "kldivd: --store %s: %s\n", location, line);
    cr_expect_eq(run_server(flags, output, sizeof output), 1);
    cr_expect_str_eq(output, expected);
    cr_expect_eq(hash_of_folder(database->folder), before, "%s has changed", location);
}

char *expect_status(const struct server *server, const char *method, const char *target,
                    const char *body, long status)
{
    struct fetched f = fetch(server, method, target, NULL, body, body ? strlen(body) : 0);
    cr_expect_eq(f.status, status, "%s %s: %ld %.300s", method, target, f.status, f.body.data);
    char *text = strdup(f.body.data ? f.body.data : "");
    fetched_free(&f);
    return text;
}

/* ---- Files */

static sqlite3 *open_file(const struct database *database)
{
    sqlite3 *sqlite;
    cr_assert_eq(sqlite3_open(database->path, &sqlite), SQLITE_OK);
    return sqlite;
}

enum { BINS = 5000 };

static void read_counts(sqlite3_value *value, double counts[BINS])
{
    memset(counts, 0, BINS * sizeof *counts);
    cr_assert(api_counts_add(sqlite3_value_blob(value), (size_t)sqlite3_value_bytes(value), counts,
                             BINS));
}

static void count_of(sqlite3_context *context, int n, sqlite3_value **values)
{
    double counts[BINS], sum = 0;
    read_counts(values[0], counts);
    for (size_t i = 0; i < BINS; i++)
        sum += n == 1 || sqlite3_value_int64(values[1]) == (sqlite3_int64)i ? counts[i] : 0;
    sqlite3_result_double(context, sum);
}

static void doubles_of(sqlite3_context *context, int n, sqlite3_value **values)
{
    double counts[BINS];
    (void)n;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    read_counts(values[0], counts);
    sqlite3_result_blob(context, counts, 100 * sizeof *counts, SQLITE_TRANSIENT);
}

static sqlite3 *open_with_counts(const struct database *database)
{
    sqlite3 *sqlite = open_file(database);
    const struct {
        const char *name;
        int n;
        void (*function)(sqlite3_context *context, int n, sqlite3_value **values);
    } functions[] = {
        {"count_of", 1, count_of}, {"count_of", 2, count_of}, {"doubles_of", 1, doubles_of}};
    for (size_t i = 0; i < COUNT(functions); i++)
        cr_assert_eq(sqlite3_create_function(sqlite, functions[i].name, functions[i].n, SQLITE_UTF8,
                                             NULL, functions[i].function, NULL, NULL),
                     SQLITE_OK);
    return sqlite;
}

double ask_file(const struct database *database, const char *query)
{
    sqlite3 *sqlite = open_with_counts(database);
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(sqlite, query, -1, &statement, NULL);
    cr_assert_eq(result, SQLITE_OK, "%s: %s", query, sqlite3_errmsg(sqlite));
    double value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_double(statement, 0) : -1;
    sqlite3_finalize(statement);
    sqlite3_close(sqlite);
    return value;
}

void change_file(const struct database *database, const char *statements)
{
    sqlite3 *sqlite = open_with_counts(database);
    int result = sqlite3_exec(sqlite, statements, NULL, NULL, NULL);
    cr_assert_eq(result, SQLITE_OK, "%s: %s", statements, sqlite3_errmsg(sqlite));
    sqlite3_close(sqlite);
}

/* ---- Connections */

void write_post(struct api_buffer *to, const char *target, const char *fields, const char *body)
{
    to->size = 0;
    api_append_format(to,
                      "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: text/csv\r\n%s"
                      "Content-Length: %zu\r\n\r\n%s",
                      target, fields, strlen(body), body);
    cr_assert(!to->failed);
}

/* Length of the answer that the buffer begins with; 0 while its head is not complete. */
static size_t length_of(struct response *response)
{
    char *end = memmem(response->bytes.data, response->bytes.size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    *end = '\0';
    const char *length = strstr(response->bytes.data, "Content-Length: ");
    response->body = end + 4;
    response->replayed = strstr(response->bytes.data, "\nIdempotent-Replayed: true") != NULL;
    size_t size = (size_t)(end + 4 - response->bytes.data) +
                  (length ? strtoul(length + strlen("Content-Length: "), NULL, 10) : 0);
    *end = '\r';
    return size;
}

bool converse_on(int fd, const struct api_buffer *request, struct response *response)
{
    char part[16384];
    size_t length = 0;
    response->status = 0;
    response->bytes.size = 0;
    if (send(fd, request->data, request->size, MSG_NOSIGNAL) != (ssize_t)request->size)
        return false;
    while (length == 0 || response->bytes.size < length) {
        ssize_t n = recv(fd, part, sizeof part, 0);
        if (n <= 0)
            return false;
        api_append(&response->bytes, part, (size_t)n);
        length = length_of(response);
    }
    api_append(&response->bytes, "", 1);
    length_of(response); /* the buffer may have moved */
    response->status = atoi(response->bytes.data + strlen("HTTP/1.1 "));
    return true;
}
