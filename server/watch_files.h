/* Watches the files that a reload reads: SIGIO comes to the process when the folder of one changes. Files are replaced by
 * renaming others over them, and Kubernetes swaps a link beside them, so folders are watched, and files compared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Watches the first `n` files, in the folders as named and where links lead, in place of those watched before. Call it first
 * before the sandbox, with SIGIO blocked; then after each reload, which may name other files, or find links that lead
 * elsewhere. */
void srv_watch_files(const char *const *files, size_t n);

/* Logs a warning if they could not be watched, as where the user has no more instances of inotify. */
void srv_watch_log(void);

/* True if a watched file is another, or was written, since the last call. One that is not there is not compared. `settle`:
 * first waits for 300 ms, in which files that are put one after the other, as certificate and key, come. */
bool srv_files_changed(bool settle);
