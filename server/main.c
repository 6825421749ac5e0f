/* kldivd: the Kullback-Leibler divergence loss over HTTP. */
#include "api/endpoints.h"
#include "api/loss/statistics.h"
#include "api/monitors/monitors.h"
#include "api/regions/regions.h"
#include "api/store/store.h"
#include "api/text/clock.h"
#include "server/connection/connections.h"
#include "server/connection/deadlines.h"
#include "server/connection/linger.h"
#include "server/connection/tls.h"
#include "server/connection/watcher.h"
#include "server/healthcheck.h"
#include "server/listen/admission.h"
#include "server/listen/service_manager.h"
#include "server/memory.h"
#include "server/net/client_address.h"
#include "server/notify/notify.h"
#include "server/reload.h"
#include "server/request/http.h"
#include "server/request/jobs.h"
#include "server/sandbox/sandbox.h"
#include "server/sockets.h"
#include "server/store.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"
#include "server/watch_files.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static atomic_bool ready;
static struct api_budget budget;
static struct api_tokens *tokens; /* NULL without --auth-token-file */
static struct api_statistics statistics;
static struct api_monitors *monitors;
static struct api_regions *regions; /* NULL without --shared-memory */
static FILE *port_file;             /* NULL without --port-file */
static struct srv_sandbox sandbox;

static bool is_ready(void *unused)
{
    (void)unused;
    return atomic_load(&ready);
}

static void write_metrics(void *options, struct api_buffer *out)
{
    const struct srv_snapshot snapshot = {
        .budget = &budget,
        .regions = regions,
        .max_connections = ((const struct srv_options *)options)->max_connections,
        .open_connections = srv_connections_open(),
        .pending_jobs = srv_jobs_pending(),
        .is_draining = srv_http_is_draining(),
        .certificate_until = srv_tls_until(),
    };
    srv_metrics_write(&snapshot, out);
}

static bool complain_of_port_file(const char *path)
{
    fprintf(stderr, "kldivd: --port-file: cannot write %s: %s\n", path, strerror(errno));
    return false;
}

/* Writes and closes the port file, which stays empty until the server answers. */
static bool write_port_file(const char *path)
{
    if (!port_file)
        return true;
    bool good = fprintf(port_file, "%d\n", srv_sockets_port()) > 0;
    return (fclose(port_file) == 0 && good) || complain_of_port_file(path);
}

static void enter_sandbox(const struct srv_options *options)
{
    const struct api_store *store = api_monitors_store(monitors);
    const struct srv_sandbox_policy policy = {
        .has_store_file = api_store_is_in_file(store),
        .appends = srv_log_file() != NULL,
        .removes = srv_sockets_has_files(),
        .shared_memory = options->shared_memory != NULL,
        .connects = api_store_is_shared(store) || options->notify,
    };
    sandbox = srv_sandbox_enter(options, &policy);
}

/* Listens, measures the machine, opens files, then locks the process in. Starts no thread: one started
 * before would keep its rights. */
static bool open_resources(struct srv_options *options)
{
    srv_files_watch(options);
    if (!srv_http_open() || !srv_sockets_open(options, stderr))
        return false;
    srv_manager_open();
    port_file = options->port_file ? fopen(options->port_file, "we") : NULL;
    if (options->port_file && !port_file)
        return complain_of_port_file(options->port_file);
    srv_limits_apply(options, &budget);
    monitors = srv_store_open(options, &budget);
    if (!monitors)
        return false;
    srv_notify_attach(monitors);
    if (options->shared_memory)
        regions = api_regions_new(options->shared_memory, options->max_regions, &budget);
    if (options->shared_memory && !regions) {
        fprintf(stderr, "kldivd: --shared-memory: no memory is left\n");
        return false;
    }
    enter_sandbox(options);
    return true;
}

/* Waits for connections and jobs to end; false if some have not at the deadline. */
static bool finish_requests(double deadline)
{
    while (srv_connections_open() > 0 || srv_jobs_pending() > 0) {
        srv_connections_close_idle();
        if (api_seconds() > deadline)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return true;
}

/* Seconds from a signal to the end of a process that is stuck. */
static size_t seconds_to_end(const struct srv_options *options)
{
    return options->drain_delay + options->drain_timeout + SRV_LAST_RESORT;
}

/* Shuts down in order: /readyz gives 503, keep-alive ends, load balancers have --drain-delay to
 * notice, the socket closes, tests of receivers end, requests finish. */
static bool drain(const struct srv_options *options)
{
    atomic_store(&ready, false);
    srv_watcher_end_process(seconds_to_end(options));
    srv_manager_tell("STOPPING=1\nSTATUS=Finishing the requests in progress");
    srv_http_drain();
    srv_log(SRV_LOG_INFO, "draining");
    sleep((unsigned)options->drain_delay);
    srv_sockets_stop();
    srv_admission_stop();
    srv_notify_end_tests();
    return finish_requests(api_seconds() + (double)options->drain_timeout);
}

static void warn_of_variable(const char *name, const char *nearest)
{
    srv_log(SRV_LOG_WARNING,
            nearest ? "an environment variable is not an option name=%s did_you_mean=%s"
                    : "an environment variable is not an option name=%s",
            name, nearest);
}

static void log_store(bool is_failure, const char *sentence)
{
    srv_log(is_failure ? SRV_LOG_WARNING : SRV_LOG_INFO, "--store: detail=%s", sentence);
}

static bool start_threads(const struct srv_options *options, const struct api_service *service)
{
    srv_connections_init(srv_connection_look);
    return srv_watcher_start(options->max_files, seconds_to_end(options)) &&
           srv_jobs_start(kl_pool_threads(service->pool)) &&
           api_monitors_start(monitors, log_store) && srv_notify_start(monitors, &budget) &&
           srv_http_start(service, options);
}

static void log_start(const struct srv_options *options, const struct api_service *service)
{
    srv_log(SRV_LOG_INFO, "kldivd " KLDIV_VERSION ", simd=%s threads=%zu", kl_simd_name(),
            kl_pool_threads(service->pool));
    srv_limits_log(options);
    srv_store_log(options, monitors);
    if (regions)
        srv_log(SRV_LOG_INFO,
                "shared memory: at most %zu regions of objects whose names start with prefix=%s",
                options->max_regions, options->shared_memory);
    srv_sandbox_log(&sandbox);
    srv_files_log(options, service->tokens);
    srv_notify_log(options);
    srv_options_unknown(warn_of_variable);
    srv_manager_log();
    if (!options->auth_token_file && !options->allowed_hosts && !options->tls_cert &&
        srv_sockets_are_public())
        srv_log(SRV_LOG_WARNING,
                "other machines may connect, without tokens (--auth-token-file): any page that a "
                "browser of this network opens can read everything here, through a name of its "
                "own that points to this server (DNS rebinding), unless --allowed-hosts lists "
                "the names of this server");
}

static bool start(const struct srv_options *options, const struct api_service *service)
{
    if (!srv_log_start(options)) {
        fprintf(stderr, "kldivd: cannot start the log's threads\n");
        return false;
    }
    srv_deadlines_set(options->timeout, options->request_timeout);
    srv_proxies_set(options->trusted_proxies);
    api_store_report_migrations(api_monitors_store(monitors), srv_log_migration);
    bool good = start_threads(options, service);
    atomic_store(&ready, true); /* for clients that ask /readyz on the first connection */
    if (good && !srv_http_test()) {
        fprintf(stderr,
                "kldivd: libmicrohttpd %s, which the server is linked to, does not read "
                "requests by server/connection/door.c\n",
                MHD_get_version());
        return false;
    }
    if (!good || !srv_sockets_accept(service->tls)) {
        fprintf(stderr, "kldivd: --threads, --http-threads: cannot start that many threads, or no "
                        "memory or descriptors are left\n");
        return false;
    }
    if (!write_port_file(options->port_file))
        return false;
    log_start(options, service);
    srv_manager_tell("READY=1\nSTATUS=Serving");
    return true;
}

/* KEEP_SECONDS: time after which texts of /metrics that nobody asks for are freed. LAST_LINGER_MS: time, in
 * ms at the end, for clients that still send a refused body to read the response. EXIT_CUT_OFF: the
 * exit status if requests were in progress at the end of the drain. */
enum { KEEP_SECONDS = 10, LAST_LINGER_MS = 1000, EXIT_CUT_OFF = 3 };

/* Ignores signals that would end the process without a drain; beyond a limit on the size of files, a
 * write then fails. Keeps what a preloaded library has set. */
static void ignore_signals(void)
{
    static const int ignored[] = {SIGPIPE, SIGXFSZ,   SIGUSR1, SIGUSR2,
                                  SIGALRM, SIGVTALRM, SIGPROF, SIGIO};
    struct sigaction set;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (sigaction(ignored[i], NULL, &set) == 0 && set.sa_handler == SIG_DFL)
            signal(ignored[i], SIG_IGN);
}

/* Blocks the signals that serve waits for: those that end the process, and SIGHUP. */
static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
}

/* Waits for a signal to end. Files are read again when one has changed, and at SIGHUP. */
static void wait_for_end(const sigset_t *signals, const struct srv_options *options,
                         const struct api_service *service)
{
    for (;;) {
        long ms = (long)srv_manager_beat();
        int signal = sigtimedwait(
            signals, NULL, &(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000});
        if (signal > 0 && signal != SIGHUP)
            return;
        if (signal < 0) {
            api_monitors_trim(monitors, KEEP_SECONDS);
            srv_memory_give_back(&budget);
        }
        if (srv_files_changed() || signal == SIGHUP)
            srv_reload(options, service->tokens);
    }
}

/* Makes the service; its pool is NULL if the threads cannot be started. */
static struct api_service make_service(struct srv_options *options)
{
    return (struct api_service){.endpoints = api_endpoints,
                                .pool = kl_pool_new(options->threads),
                                .budget = &budget,
                                .max_body = options->max_body,
                                .statistics = &statistics,
                                .cors_origin = options->cors_origin,
                                .tokens = tokens,
                                .monitors = monitors,
                                .regions = regions,
                                .ready_needs_store = options->ready_needs_store,
                                .log_level = (enum api_log_level)options->log_level,
                                .allowed_hosts = options->allowed_hosts,
                                .tls = options->tls_cert != NULL,
                                .host = options,
                                .ready = is_ready,
                                .metrics = write_metrics};
}

static int serve(struct srv_options *options)
{
    sigset_t signals;
    block_signals(&signals);
    ignore_signals();
    json_object_seed(0);
    if (options->auth_token_file)
        tokens = api_tokens_new();
    if (!srv_log_open(options, stderr) || !srv_files_read(options, tokens, stderr) ||
        !srv_notify_open(options, stderr) || !open_resources(options))
        return 1;
    struct api_service service = make_service(options);
    if (!service.pool) {
        fprintf(stderr,
                "kldivd: --threads: cannot start that many threads, or no memory is left\n");
        return 1;
    }
    if (!start(options, &service))
        return 1;
    wait_for_end(&signals, options, &service);
    if (!drain(options)) {
        srv_log(SRV_LOG_WARNING,
                "%zu connections were cut off after --drain-timeout: exit status %d",
                srv_connections_open(), EXIT_CUT_OFF);
        srv_notify_stop();
        srv_log_stop();
        _exit(EXIT_CUT_OFF);
    }
    srv_jobs_stop();
    srv_http_stop();
    srv_linger_stop(LAST_LINGER_MS);
    bool all_ended = srv_notify_stop();
    api_monitors_stop(monitors);
    if (!all_ended) {
        srv_log(SRV_LOG_INFO, "stopped");
        srv_log_stop();
        _exit(0);
    }
    api_monitors_free(monitors);
    srv_notify_close();
    api_regions_free(regions);
    kl_pool_free(service.pool);
    api_tokens_free(tokens);
    srv_tls_stop();
    srv_log(SRV_LOG_INFO, "stopped");
    srv_log_stop();
    srv_watcher_stop();
    return 0;
}

/* Opens descriptors 0 to 2 on /dev/null where they are closed: a socket must not take their place. */
static void open_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return;
}

int main(int argc, char **argv)
{
    struct srv_options options;
    struct kl_problem problem = {0};
    open_standard_files();
    if (!srv_options_read(&options, argc, argv, stderr))
        return 1;
    if (options.help) {
        srv_options_help(stdout);
        return 0;
    }
    if (options.version) {
        puts("kldivd " KLDIV_VERSION);
        return 0;
    }
    if (options.migrate)
        return srv_store_migrate(&options) ? 0 : 1;
    if (options.backup)
        return srv_store_backup(&options) ? 0 : 1;
    if (options.healthcheck)
        return srv_healthcheck_options(&options, argc, argv) ? srv_healthcheck(&options) : 1;
    if (!kl_simd_select(options.simd, &problem)) {
        fprintf(stderr, "kldivd: --simd: %s\n", problem.detail);
        return 1;
    }
    int status = serve(&options);
    srv_sockets_remove(); /* those of a start that failed */
    return status;
}
