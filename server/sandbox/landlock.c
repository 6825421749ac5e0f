#include "server/sandbox/sandbox_policy.h"

#include "server/config/path_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NEWEST_ABI = 6 };

/* Attributes up to ABI 6; the header of Linux 6.1 has only the first. An older kernel takes the
 * longer structure while what it does not know is 0. */
struct attributes {
    uint64_t files, net, scope;
};

/* Rights of files that each ABI knows, as the number of lowest bits. */
static const unsigned file_bits[NEWEST_ABI + 1] = {0, 13, 14, 15, 15, 16, 16};

/* Binding and connecting TCP sockets; scope: abstract sockets and signals. */
enum { NET_ABI = 4, SCOPE_ABI = 6, BIND = 1 << 0, CONNECT = 1 << 1, SCOPE = 1 << 0 | 1 << 1 };

/* Rights of ABI 3, which the header lacks. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

static const uint64_t of_files =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
static const uint64_t to_read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t to_write = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
                                 LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                                 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;

struct rules {
    int fd;
    struct attributes handled;
};

/* Leaves these rights below a path. The descriptor stays open: procfs makes another inode for a folder
 * that has left its cache, which the rule would not know. Other folders are few. */
static bool allow(const struct rules *rules, const char *path, uint64_t rights)
{
    struct stat status;
    struct landlock_path_beneath_attr beneath = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (beneath.parent_fd < 0)
        return true;
    beneath.allowed_access = rights & rules->handled.files;
    if (fstat(beneath.parent_fd, &status) == 0 && !S_ISDIR(status.st_mode))
        beneath.allowed_access &= of_files;
    return syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
}

static bool allow_folder_of(const struct rules *rules, const char *file, uint64_t rights)
{
    char *path = strdup(file);
    bool good = path && allow(rules, dirname(path), rights);
    free(path);
    return good;
}

/* way: rights on the folders of a path, as far as they could be left. */
struct way {
    const struct rules *rules;
    uint64_t rights;
    bool good;
};

static void allow_entry(void *context, const char *folder, enum srv_entry entry)
{
    struct way *way = context;
    bool reads = way->rights == to_read;
    if (way->good && (entry == SRV_FILE || (entry == SRV_LINK_BELOW && reads)))
        way->good = allow(way->rules, folder, way->rights);
}

/* The folders that the file is in: as named, and where links lead; of a file that is read also one that holds a link on the
 * way to a folder below: the link may lead to another one later. */
static bool allow_file(const struct rules *rules, const char *file, uint64_t rights)
{
    struct way way = {rules, rights, true};
    srv_path_folders(file, allow_entry, &way);
    return way.good;
}

static bool add_rules(const struct rules *rules, const struct srv_sandbox_policy *policy)
{
    const char *const *file;
    /* Read while serving: for metrics, by malloc when it gives memory back, by libraries for seeds. */
    bool good = allow(rules, "/proc/self", to_read) &&
                allow(rules, "/proc/sys/vm/overcommit_memory", to_read) &&
                allow(rules, "/dev/urandom", to_read);
    if (policy->shared_memory)
        good = good && allow(rules, "/dev/shm",
                             LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
    for (file = policy->readable; good && file && *file; file++)
        good = allow_file(rules, *file, to_read);
    for (file = policy->writable; good && file && *file; file++)
        good = allow(rules, *file, to_write);
    for (file = policy->appended; good && file && *file; file++)
        good =
            allow_file(rules, *file, LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG);
    for (file = policy->removable; good && file && *file; file++)
        good = allow_folder_of(rules, *file, LANDLOCK_ACCESS_FS_REMOVE_FILE);
    return good;
}

static int newest_abi(void)
{
    long abi =
        syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < NEWEST_ABI ? (int)abi : NEWEST_ABI;
}

int srv_landlock_enter(const struct srv_sandbox_policy *policy)
{
    unsigned net = policy->connects ? BIND : BIND | CONNECT;
    int abi = newest_abi(), reason = 0;
    if (abi < 1)
        return -ENOSYS;
    struct rules rules = {.handled = {.files = (UINT64_C(1) << file_bits[abi]) - 1,
                                      .net = abi >= NET_ABI ? net : 0,
                                      .scope = abi >= SCOPE_ABI ? SCOPE : 0}};
    rules.fd = (int)syscall(SYS_landlock_create_ruleset, &rules.handled, sizeof rules.handled, 0);
    if (rules.fd < 0)
        return -errno;
    if (!add_rules(&rules, policy) || syscall(SYS_landlock_restrict_self, rules.fd, 0) != 0)
        reason = errno;
    close(rules.fd);
    return reason ? -reason : abi;
}
