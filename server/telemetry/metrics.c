#include "server/telemetry/metrics.h"

#include "api/endpoints.h"
#include "api/loss/warnings.h"
#include "api/metrics/metrics.h"
#include "server/telemetry/log.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char *const methods[] = {"GET",    "HEAD",  "POST",    "PUT",
                                      "DELETE", "PATCH", "OPTIONS", "other"};
static const char *const statuses[] = {"200", "201", "202", "204", "304", "400", "401",  "403",
                                       "404", "405", "406", "408", "409", "410", "411",  "412",
                                       "413", "414", "415", "417", "421", "422", "428",  "429",
                                       "431", "500", "501", "503", "505", "507", "other"};
static const double seconds_bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                        0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
static const double bytes_bounds[] = {1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { MAX_ROUTES = API_MAX_ENDPOINTS };

/* Factor from seconds to the microseconds in which sums are kept. */
#define MICRO 1e6

/* Codes of the reasons for which the server ends connections, in deadlines.c and framing.c. */
static const char *const endings[] = {"idle",          "request_timeout",      "compute_timeout",
                                      "reply_timeout", "too_many_connections", "out_of_memory",
                                      "draining",      "bad_request",          "other"};

static struct {
    atomic_ulong requests[MAX_ROUTES][COUNT(methods)][COUNT(statuses)];
    struct api_histogram seconds[MAX_ROUTES];
    struct api_histogram body_bytes;
    atomic_long in_flight;
    atomic_ulong elements;
    atomic_ulong warnings[API_WARNINGS];
    atomic_ulong refused;
    atomic_ulong ended[COUNT(endings)];
    atomic_bool reload_failed;
} counters;

static void increment(atomic_ulong *counter, unsigned long n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Number of the series of each row of the table: 1 more than the index of the first row of its path, as the methods of a path
 * share their series. 0 is of unknown paths. */
static unsigned char routes[MAX_ROUTES];

__attribute__((constructor)) static void number_routes(void)
{
    for (size_t i = 0, first; api_endpoints[i].path; i++) {
        for (first = 0; strcmp(api_endpoints[first].path, api_endpoints[i].path) != 0;)
            first++;
        routes[i] = (unsigned char)(first + 1);
    }
}

static size_t route_of(const struct api_endpoint *endpoint)
{
    return endpoint ? routes[endpoint - api_endpoints] : 0;
}

static const char *route_name(size_t route)
{
    return route > 0 ? api_endpoints[route - 1].path : "other";
}

/* Index of a word; that of the last word if it is not in the list. */
static size_t index_of(const char *word, const char *const *words, size_t n)
{
    size_t i = 0;
    while (i < n - 1 && strcmp(words[i], word) != 0)
        i++;
    return i;
}

static size_t status_index(int status)
{
    const char word[] = {(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
                         (char)('0' + status % 10), '\0'};
    return index_of(word, statuses, COUNT(statuses));
}

void srv_metrics_begin_request(void)
{
    atomic_fetch_add_explicit(&counters.in_flight, 1, memory_order_relaxed);
}

void srv_metrics_count_response(const struct api_response *response, const char *method,
                                size_t body_size)
{
    size_t route = route_of(response->endpoint);
    size_t method_index = index_of(method, methods, COUNT(methods));
    increment(&counters.requests[route][method_index][status_index(response->status)], 1);
    api_histogram_add(&counters.body_bytes, bytes_bounds, COUNT(bytes_bounds), (double)body_size,
                      1);
    increment(&counters.elements, response->elements);
    for (unsigned i = 0; i < API_WARNINGS; i++)
        if (response->warnings & 1u << i)
            increment(&counters.warnings[i], 1);
}

void srv_metrics_count_time(const struct api_response *response, double seconds)
{
    api_histogram_add(&counters.seconds[route_of(response->endpoint)], seconds_bounds,
                      COUNT(seconds_bounds), seconds, MICRO);
}

void srv_metrics_end_request(void)
{
    atomic_fetch_sub_explicit(&counters.in_flight, 1, memory_order_release);
}

void srv_metrics_connection_refused(void) { increment(&counters.refused, 1); }

void srv_metrics_connection_ended(const char *code)
{
    increment(&counters.ended[index_of(code, endings, COUNT(endings))], 1);
}

static void write_requests(struct api_buffer *out)
{
    api_metrics_head(out, "kldiv_http_requests_total", "counter", "Requests answered.");
    for (size_t r = 0; r == 0 || api_endpoints[r - 1].path; r++)
        for (size_t m = 0; m < COUNT(methods); m++)
            for (size_t s = 0; s < COUNT(statuses); s++) {
                unsigned long n = atomic_load(&counters.requests[r][m][s]);
                if (n)
                    api_append_format(out,
                                      "kldiv_http_requests_total{route=\"%s\",method=\"%s\","
                                      "code=\"%s\"} %lu\n",
                                      route_name(r), methods[m], statuses[s], n);
            }
    api_metrics_head(out, "kldiv_http_request_duration_seconds", "histogram",
                     "From the request's header to the end of its response.");
    for (size_t r = 0; r == 0 || api_endpoints[r - 1].path; r++) {
        char labels[80];
        snprintf(labels, sizeof labels, "route=\"%s\",", route_name(r));
        if (api_histogram_count(&counters.seconds[r], COUNT(seconds_bounds)) == 0)
            continue;
        api_histogram_write(out, "kldiv_http_request_duration_seconds", labels,
                            &counters.seconds[r], seconds_bounds, COUNT(seconds_bounds), MICRO);
    }
    api_metrics_head(out, "kldiv_http_request_size_bytes", "histogram", "Bodies of requests.");
    api_histogram_write(out, "kldiv_http_request_size_bytes", "", &counters.body_bytes,
                        bytes_bounds, COUNT(bytes_bounds), 1);
}

static void write_warnings(struct api_buffer *out)
{
    api_metrics_head(out, "kldiv_warnings_total", "counter", "Warnings given in responses.");
    for (unsigned i = 0; i < API_WARNINGS; i++)
        api_append_format(out, "kldiv_warnings_total{code=\"%s\"} %lu\n", api_warning_code(i),
                          atomic_load(&counters.warnings[i]));
}

static void write_connections(const struct srv_snapshot *snapshot, struct api_buffer *out)
{
    api_metrics_value(out, "kldiv_connections_limit", "Effective --max-connections.",
                      (double)snapshot->max_connections);
    api_metrics_value(out, "kldiv_connections_open", "Connections of all addresses.",
                      (double)snapshot->open_connections);
    api_metrics_value(out, "kldiv_connections_refused_total", "Connections over --max-connections.",
                      (double)atomic_load(&counters.refused));
    api_metrics_head(out, "kldiv_connections_ended_total", "counter",
                     "Connections ended by the server.");
    for (size_t i = 0; i < COUNT(endings); i++)
        api_append_format(out, "kldiv_connections_ended_total{code=\"%s\"} %lu\n", endings[i],
                          atomic_load(&counters.ended[i]));
    api_metrics_value(out, "kldiv_jobs_pending", "Requests that wait for a job thread or have one.",
                      (double)snapshot->pending_jobs);
}

static void write_memory(const struct api_budget *budget, size_t reserved, struct api_buffer *out)
{
    api_metrics_value(out, "kldiv_memory_limit_bytes", "Effective --max-memory.",
                      (double)budget->limit);
    api_metrics_value(out, "kldiv_memory_available_bytes",
                      "What may be reserved now: the limit, or less while the rest of the process "
                      "has much of the container's memory.",
                      (double)api_budget_max(budget, 0));
    api_metrics_value(out, "kldiv_memory_reserved_bytes",
                      "Held for bodies, tensors, responses and monitors; at most --max-memory.",
                      (double)reserved);
    api_metrics_value(out, "kldiv_memory_retained_bytes",
                      "Held by monitors that are in memory, and by a store in memory, of what is "
                      "reserved; such a "
                      "store is full beyond half of --max-memory.",
                      (double)atomic_load(&budget->retained));
    api_metrics_value(out, "kldiv_memory_idle_bytes",
                      "Kept for reuse for 10 s; freed earlier if the limit demands it.",
                      (double)atomic_load(&budget->idle));
    if (budget->resident)
        api_metrics_value(out, "kldiv_memory_uncounted_bytes",
                          "Measured beyond what is reserved and idle: the program, libraries, "
                          "stacks, fragments.",
                          (double)atomic_load(&budget->uncounted));
}

static void write_regions(struct api_regions *regions, struct api_buffer *out)
{
    size_t bytes = 0, n = regions ? api_regions_count(regions, &bytes) : 0;
    api_metrics_value(out, "kldiv_shared_memory_regions", "Registered regions of shared memory.",
                      (double)n);
    api_metrics_value(out, "kldiv_shared_memory_bytes", "Bytes of these regions together.",
                      (double)bytes);
}

void srv_metrics_reload(bool good) { atomic_store(&counters.reload_failed, !good); }

static void write_operation(const struct srv_snapshot *snapshot, struct api_buffer *out)
{
    api_metrics_value(out, "kldiv_config_last_reload_successful",
                      "0 if a file could not be read again at the last reload, else 1.",
                      !atomic_load(&counters.reload_failed));
    api_metrics_value(
        out, "kldiv_log_lines_lost_total",
        "Lines of the log that were dropped: standard error was not read, or the file of "
        "--audit-log could not be written.",
        (double)srv_log_lost());
    if (snapshot->certificate_until > 0)
        api_metrics_value(out, "kldiv_tls_certificate_expiry_timestamp_seconds",
                          "End of the certificate of --tls-cert, in Unix time.",
                          (double)snapshot->certificate_until);
}

/* ---- The process */

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Number of open descriptors, or -1 if it cannot be read. */
static double count_open_files(void)
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

/* Start of the process, in Unix time. */
static double start_time;

__attribute__((constructor)) static void note_start(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    start_time = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool read_memory(unsigned long *virtual_pages, unsigned long *resident_pages)
{
    FILE *file = fopen("/proc/self/statm", "re");
    bool good = file && fscanf(file, "%lu %lu", virtual_pages, resident_pages) == 2;
    if (file)
        fclose(file);
    return good;
}

/* The process_* metrics of Prometheus' client libraries. */
static void write_process(struct api_buffer *out)
{
    unsigned long virtual_pages, resident_pages;
    double page = (double)sysconf(_SC_PAGESIZE);
    struct rlimit files;
    double files_open = count_open_files();
    api_metrics_value(out, "process_cpu_seconds_total", "User and system CPU time spent.",
                      cpu_seconds());
    if (files_open >= 0)
        api_metrics_value(out, "process_open_fds", "Open file descriptors.", files_open);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        api_metrics_value(out, "process_max_fds",
                          "Maximal number of file descriptors that may be open.",
                          (double)files.rlim_cur);
    if (read_memory(&virtual_pages, &resident_pages)) {
        api_metrics_value(out, "process_resident_memory_bytes", "Resident memory.",
                          (double)resident_pages * page);
        api_metrics_value(out, "process_virtual_memory_bytes", "Virtual memory.",
                          (double)virtual_pages * page);
    }
    api_metrics_value(out, "process_start_time_seconds", "Start of the process, in Unix time.",
                      start_time);
}

/* Reads the requests in flight first: a request that is not among them is in all counts. Reads the memory first, too,
 * before the response takes some. */
void srv_metrics_write(const struct srv_snapshot *snapshot, struct api_buffer *out)
{
    long in_flight = atomic_load_explicit(&counters.in_flight, memory_order_acquire);
    size_t reserved = atomic_load(&snapshot->budget->used);
    api_metrics_head(out, "kldiv_build_info", "gauge",
                     "1, with version and instruction set as labels.");
    api_append_format(out, "kldiv_build_info{version=\"%s\",simd=\"%s\"} 1\n", KLDIV_VERSION,
                      kl_simd_name());
    api_metrics_value(out, "kldiv_draining", "1 from SIGTERM on, else 0.", snapshot->is_draining);
    write_requests(out);
    api_metrics_value(out, "kldiv_http_requests_in_flight", "Requests being read or answered.",
                      (double)in_flight);
    write_connections(snapshot, out);
    api_metrics_value(out, "kldiv_elements_total", "Elements of input compared with target.",
                      (double)atomic_load(&counters.elements));
    write_warnings(out);
    write_memory(snapshot->budget, reserved, out);
    write_regions(snapshot->regions, out);
    write_operation(snapshot, out);
    write_process(out);
}
