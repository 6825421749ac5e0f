/* Packages that make installs: while another process holds a lock of apt, it waits. apt is that of Debian, with
 * folders of its own, and installs nothing. */
#include "server/config/options.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const parts[] = {"lists", "lists/partial", "archives", "archives/partial"};

/* locks: apt waits by itself for neither of these. */
static const char *const locks[] = {"lists/lock", "archives/lock"};

/* Makes the folders, an empty list of what is installed, and a configuration that names them; gives its path. */
static const char *make_folders(char *folder)
{
    static char path[200];
    cr_assert(mkdtemp(folder));
    chmod(folder, 0755); /* apt, started as root, reads lists as another user */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        cr_assert_eq(mkdir(path, 0755), 0);
    }
    snprintf(path, sizeof path, "%s/status", folder);
    close(creat(path, 0644));
    snprintf(path, sizeof path, "%s/conf", folder);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fprintf(file,
            "Dir::State \"%s/\"; Dir::State::Lists \"lists/\"; Dir::State::status \"%s/status\";\n"
            "Dir::Cache \"%s/\"; Dir::Cache::Archives \"archives/\"; Dir::Log \"%s/\";\n"
            "Dir::Etc::SourceList \"/dev/null\"; Dir::Etc::SourceParts \"/dev/null\";\n",
            folder, folder, folder, folder);
    fclose(file);
    return path;
}

static int take_lock(const char *folder, const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    cr_assert_eq(fcntl(fd, F_SETLK, &(struct flock){.l_type = F_WRLCK}), 0);
    return fd;
}

/* Each lock is given back when make has told that it is taken. */
Test(packages, make_waits_for_the_locks_of_apt)
{
    char folder[] = "/tmp/kldiv-apt-XXXXXX", command[300], line[400];
    int fds[2], times_told[2] = {0};
    if (system("command -v apt-get >/dev/null") != 0)
        cr_skip("apt-get is not installed");
    setenv("APT_CONFIG", make_folders(folder), 1);
    unsetenv("MAKEFLAGS");
    for (int i = 0; i < 2; i++)
        fds[i] = take_lock(folder, locks[i]);
    FILE *make = popen(
        "make -s deps-run PAGE=no PACKAGES_BUILD= APT='env LC_ALL=C.UTF-8 apt-get -qq' 2>&1", "r");
    cr_assert(make);
    while (fgets(line, sizeof line, make)) {
        cr_log_info("%s", line);
        for (int i = 0; i < 2; i++)
            if (strstr(line, "Could not get lock") && strstr(line, locks[i]) &&
                times_told[i]++ == 0)
                close(fds[i]);
    }
    cr_expect_eq(pclose(make), 0);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(times_told[i], 1, "%s: told %d times", locks[i], times_told[i]);
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

static void expect_no_unknown(const char *name, const char *nearest)
{
    cr_expect_fail("%s is not an option; is it %s?", name, nearest);
}

/* Each line of the package's file of options, without its #, is an option with a value that is taken. */
Test(packages, options_of_the_package_of_debian_are_options)
{
    struct srv_options options;
    char *arguments[] = {(char[]){"kldivd"}, NULL}, line[300];
    FILE *file = fopen("docker/debian/kldivd.env", "r");
    int n = 0;
    cr_assert(file);
    clearenv();
    while (fgets(line, sizeof line, file)) {
        char *value = strchr(line, '=');
        line[strcspn(line, "\n")] = '\0';
        cr_expect(*line == '#' || *line == '\0', "it sets %s", line);
        if (strncmp(line, "#KLDIV_", 7) != 0)
            continue;
        *value = '\0';
        setenv(line + 1, value + 1, 1);
        n++;
    }
    fclose(file);
    cr_expect_gt(n, 10);
    cr_expect(srv_options_read(&options, 1, arguments, stderr));
    srv_options_unknown(expect_no_unknown);
}
