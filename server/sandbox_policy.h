/* srv_sandbox_policy: what serving still needs once the server listens. */
#pragma once

#include <stdbool.h>

/* Lists of paths end with NULL, and may be NULL. Without `writable` no file can be made, and without
 * `removable`, too, none removed. */
struct srv_sandbox_policy {
    const char *const *readable;  /* files that are read again later */
    const char *const *writable;  /* folders of files that are made and written */
    const char *const *removable; /* files that are removed at the end */
    bool shared_memory;           /* objects of /dev/shm, read and written */
    bool connects;                /* to other hosts, and to sockets of this one */
};
