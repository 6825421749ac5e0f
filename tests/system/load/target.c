#include "tests/system/load/target.h"

#include "tests/system/load/wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_FLAGS = 24, START_SECONDS = 30, STOP_SECONDS = 60 };

/* ---- Log */

static void find_port(const char *line, const char *what, atomic_int *port)
{
    const char *address = strstr(line, what), *colon = address ? strrchr(address, ':') : NULL;
    if (colon)
        atomic_store(port, atoi(colon + 1));
}

static void count_line(struct target *target, const char *line)
{
    bool is_error = strstr(line, " error ") || strstr(line, "Sanitizer") || strstr(line, "runtime");
    if (!is_error && !strstr(line, " warning "))
        return;
    if (atomic_fetch_add(is_error ? &target->errors : &target->warnings, 1) == 0)
        snprintf(target->first[is_error], sizeof target->first[is_error], "%.*s",
                 (int)strcspn(line, "\n"), line);
}

/* Reads the log as it comes: a file would grow to gigabytes. */
static void *read_log(void *argument)
{
    struct target *target = argument;
    FILE *log = fdopen(target->log, "r");
    char line[4096];
    while (log && fgets(line, sizeof line, log)) {
        if (atomic_load(&target->admin_port) == 0) {
            find_port(line, "listening on http", &target->port);
            find_port(line, "health and metrics on http", &target->admin_port);
        }
        count_line(target, line);
    }
    if (log)
        fclose(log);
    return NULL;
}

/* ---- Process */

static pid_t spawn(const char *program, const char *const *flags, int output)
{
    const char *argv[MAX_FLAGS + 6] = {program, "--listen", "127.0.0.1:0", "--admin-listen",
                                       "127.0.0.1:0"};
    for (size_t i = 0; i < MAX_FLAGS && flags[i]; i++)
        argv[i + 5] = flags[i];
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execv(program, (char **)argv);
    _exit(127);
}

bool target_start(struct target *target, const char *program, const char *const *flags)
{
    int ends[2];
    *target = (struct target){0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    target->log = ends[0];
    target->pid = spawn(program, flags, ends[1]);
    close(ends[1]);
    if (target->pid < 0 || pthread_create(&target->reader, NULL, read_log, target) != 0)
        return false;
    for (double end = seconds_now() + START_SECONDS; seconds_now() < end; sleep_seconds(0.01))
        if (atomic_load(&target->admin_port) > 0 && target_metric(target, "kldiv_memory") >= 0)
            return true;
    target_stop(target);
    return false;
}

int target_stop(struct target *target)
{
    int status = 0;
    pid_t ended = 0;
    kill(target->pid, SIGTERM);
    for (double end = seconds_now() + STOP_SECONDS; ended == 0 && seconds_now() < end;) {
        ended = waitpid(target->pid, &status, WNOHANG);
        if (ended == 0)
            sleep_seconds(0.01);
    }
    if (ended == 0) {
        kill(target->pid, SIGKILL);
        waitpid(target->pid, &status, 0);
    }
    pthread_join(target->reader, NULL);
    return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- Figures */

static double status_line(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? atof(line + strlen(name)) : -1;
}

static double count_descriptors(pid_t pid)
{
    char path[40];
    double n = -2; /* "." and ".." */
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

struct held target_holds(const struct target *target)
{
    char path[40], text[4096] = "";
    snprintf(path, sizeof path, "/proc/%d/status", (int)target->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        text[0] = '\0';
    if (fd >= 0)
        close(fd);
    return (struct held){.resident = status_line(text, "VmRSS:") * 1024,
                         .peak = status_line(text, "VmHWM:") * 1024,
                         .threads = status_line(text, "Threads:"),
                         .descriptors = count_descriptors(target->pid)};
}

double target_metric(const struct target *target, const char *name)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    enum { ROOM = 1 << 18 };
    char *text = malloc(ROOM), line[100];
    int fd = wire_dial(atomic_load(&target->admin_port), 0);
    bool is_kept;
    double value = -1;
    if (text && fd >= 0 &&
        wire_exchange(fd, request, sizeof request - 1, text, ROOM, 5, &is_kept) == 200) {
        snprintf(line, sizeof line, "\n%s", name);
        const char *found = strstr(text, line);
        value = found ? strtod(strchr(found, ' '), NULL) : -1;
    }
    if (fd >= 0)
        close(fd);
    free(text);
    return value;
}
