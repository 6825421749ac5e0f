/* A server with a store in a file, its clients, and a look into the file. */
#pragma once

#include "tests/suites/support/process.h"

/* database: a folder, and the file of a store in it. */
struct database {
    char folder[40], path[60], location[80]; /* location: sqlite:PATH */
    bool is_mounted;
};

/* Makes a folder, and names a file in it; removes it with all files. Anyone may write the folder. */
struct database database_new(void);
void database_free(const struct database *database);

/* Mounts a file system of 32 MiB at the folder, which this test alone sees; false if it may not. */
bool database_mount(struct database *database);
void database_remount(const struct database *database, bool read_only);

/* Starts a server on the store, with further flags or NULL. */
struct server store_start(const struct database *database, const char *const *flags);

/* Expects that a server on this store ends at once with status 1 and this line alone, and that all
 * files of the folder are as before. */
void expect_refused(const struct database *database, const char *location, const char *line);

/* Names, sizes and bytes of the files in a folder, as a number. */
unsigned long long hash_of_folder(const char *folder);

/* First value that a query of the file gives; -1 if there is none. No server may have it open. count_of(counts) is the sum of the
 * counts of a window's row, count_of(counts, bin) one of them, doubles_of(counts) the first hundred as doubles. */
double ask_file(const struct database *database, const char *query);

/* Runs statements on the file. */
void change_file(const struct database *database, const char *statements);

/* response: an answer on a connection that stays open. `status` 0 if the connection ended before. */
struct response {
    int status;
    bool replayed;
    struct api_buffer bytes;
    const char *body; /* ends with a NUL */
};

/* Sends a request and reads its answer; the buffer of `response` is used again. */
bool converse_on(int fd, const struct api_buffer *request, struct response *response);

/* Writes a POST. `fields` are header lines with their ends. */
void write_post(struct api_buffer *to, const char *target, const char *fields, const char *body);

/* Expects a status of a request, and gives the body, which the caller frees. */
char *expect_status(const struct server *server, const char *method, const char *target,
                    const char *body, long status);
