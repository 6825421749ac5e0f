/* Watches the files that a reload reads. Files are replaced by renaming others over them, and Kubernetes swaps a link beside
 * them, so what their paths lead to is compared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SRV_MAX_WATCHED = 120 };

/* Watches the first `n` files, of which some may be NULL, in place of those before. A file that is watched already is compared
 * with what it was at the last comparison. */
void srv_watch_files(const char *const *files, size_t n);

/* True if a watched file is another, or was written, since the last call; then it has waited for 300 ms, in which files that
 * are put one after the other, as certificate and key, come. One that is not there is not compared. */
bool srv_files_changed(void);
