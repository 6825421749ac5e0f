#include "server/process.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void metric(struct api_buffer *out, const char *name, const char *type, const char *help,
                   double value)
{
    api_append_format(out, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name,
                      value);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Number of open descriptors, or -1 if it cannot be read. */
static double open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    double n = -1; /* not counting the directory's own */
    if (!directory)
        return n;
    for (const struct dirent *entry; (entry = readdir(directory));)
        n += entry->d_name[0] != '.';
    closedir(directory);
    return n;
}

/* Boot as Unix time, by clocks: containers may hide /proc/stat. */
static double boot_time(void)
{
    struct timespec now, since_boot;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    return (double)(now.tv_sec - since_boot.tv_sec) +
           (double)(now.tv_nsec - since_boot.tv_nsec) / 1e9;
}

/* Reads fields 22 to 24 of /proc/self/stat, counted after the command's name, which may contain
 * spaces. */
static bool read_stat(unsigned long *start_ticks, unsigned long *virtual_bytes, long *resident)
{
    char text[1024];
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest + 1,
                          " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                          "%*d %*d %lu %lu %ld",
                          start_ticks, virtual_bytes, resident) == 3;
}

void srv_process_write(struct api_buffer *out)
{
    unsigned long start_ticks, virtual_bytes;
    long resident;
    struct rlimit files;
    double files_open = open_files();
    metric(out, "process_cpu_seconds_total", "counter", "User and system CPU time spent.",
           cpu_seconds());
    if (files_open >= 0)
        metric(out, "process_open_fds", "gauge", "Open file descriptors.", files_open);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        metric(out, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
               (double)files.rlim_cur);
    if (!read_stat(&start_ticks, &virtual_bytes, &resident))
        return;
    metric(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
           (double)resident * (double)sysconf(_SC_PAGESIZE));
    metric(out, "process_virtual_memory_bytes", "gauge", "Virtual memory.", (double)virtual_bytes);
    metric(out, "process_start_time_seconds", "gauge", "Start of the process, in Unix time.",
           boot_time() + (double)start_ticks / (double)sysconf(_SC_CLK_TCK));
}
