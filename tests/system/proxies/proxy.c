#include "tests/system/proxies/proxy.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name, *path;
} programs[PROXIES] = {
    [NGINX] = {"nginx", "/usr/sbin/nginx"},
    [NGINX_STREAMING] = {"nginx", "/usr/sbin/nginx"},
    [HAPROXY] = {"haproxy", "/usr/sbin/haproxy"},
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

void proxy_needed(enum proxy_kind kind)
{
    if (access(programs[kind].path, X_OK) != 0)
        cr_skip("%s is not installed", programs[kind].name);
}

/* Raises the bound of descriptors, also of programs that are started; gives the pairs of connections
 * that they suffice for. */
static size_t pairs(void)
{
    enum { OTHER_FILES = 100 };
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur > OTHER_FILES + 2 ? (files.rlim_cur - OTHER_FILES) / 2 : 1;
}

size_t proxy_clients(void) { return pairs() < 200 ? pairs() : 200; }

/* A port of 127.0.0.1 that is free now. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* ---- Configurations */

static const char *or_nothing(const char *text) { return text ? text : ""; }

/* Begins a configuration of nginx, whose `http` is still open. */
static void write_nginx_head(FILE *file, const struct proxy *proxy)
{
    const char *folder = proxy->front.folder;
    fprintf(file,
            "daemon off;\nworker_processes 1;\npid %s/pid;\nerror_log %s/errors warn;\n"
            "events { worker_connections 2000; }\n"
            "http {\n"
            "log_format passed '$status $upstream_status';\naccess_log %s/log passed;\n"
            "client_body_temp_path %s/body;\nproxy_temp_path %s/proxy;\n"
            "fastcgi_temp_path %s/fastcgi;\nuwsgi_temp_path %s/uwsgi;\nscgi_temp_path %s/scgi;\n",
            folder, folder, folder, folder, folder, folder, folder, folder);
}

static void write_nginx(FILE *file, const struct proxy *proxy, const int *ports, size_t n,
                        const struct setting *setting)
{
    write_nginx_head(file, proxy);
    fputs("upstream replicas {\n", file);
    for (size_t i = 0; i < n; i++)
        fprintf(file, "server 127.0.0.1:%d %s;\n", ports[i], or_nothing(setting->upstream_server));
    fprintf(file,
            "keepalive 256;\n%s\n}\n"
            "server {\nlisten 127.0.0.1:%d;\n"
            "location / {\nproxy_pass http://replicas;\nproxy_http_version 1.1;\n"
            "proxy_set_header Connection \"\";\nproxy_request_buffering %s;\n}\n}\n}\n",
            or_nothing(setting->upstream), proxy->front.port, proxy->kind == NGINX ? "on" : "off");
}

static void write_haproxy_head(FILE *file)
{
    fprintf(file,
            "global\nmaxconn %zu\nlog stdout format raw local0\n"
            "defaults\nmode http\nlog global\nlog-format \"%%ST %%s\"\n"
            "timeout connect 2s\ntimeout client 30s\ntimeout server 30s\n",
            pairs());
}

static void write_haproxy(FILE *file, const struct proxy *proxy, const int *ports, size_t n,
                          const struct setting *setting)
{
    write_haproxy_head(file);
    fprintf(file,
            "frontend clients\nbind 127.0.0.1:%d\ndefault_backend replicas\n"
            "backend replicas\nbalance roundrobin\n%s\n",
            proxy->front.port, or_nothing(setting->backend));
    for (size_t i = 0; i < n; i++)
        fprintf(file, "server r%zu 127.0.0.1:%d %s\n", i, ports[i],
                or_nothing(setting->backend_server));
}

/* ---- Process */

static void path_in(const struct proxy *proxy, const char *name, char *to, size_t size)
{
    snprintf(to, size, "%s/%s", proxy->front.folder, name);
}

static void run_program(const struct proxy *proxy, const char *settings)
{
    char output[80];
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test that fails does not stop it */
    path_in(proxy, proxy->kind == HAPROXY ? "log" : "errors", output, sizeof output);
    int fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (proxy->kind == HAPROXY)
        execl(programs[HAPROXY].path, "haproxy", "-db", "-dW", "-f", settings, NULL);
    else
        execl(programs[NGINX].path, "nginx", "-p", proxy->front.folder, "-c", settings, "-e",
              output, NULL);
    _exit(127);
}

static bool is_listening(const struct proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)proxy->front.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool listening = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return listening;
}

/* A proxy to be started, with a folder and a port. */
static struct proxy prepare(enum proxy_kind kind)
{
    struct proxy proxy = {.kind = kind, .front.folder = "/tmp/kldiv-proxy-XXXXXX"};
    cr_assert(mkdtemp(proxy.front.folder));
    chmod(proxy.front.folder, 0755); /* nginx, started as root, serves as another user */
    proxy.front.port = free_port();
    return proxy;
}

static void launch(struct proxy *proxy, const char *settings)
{
    proxy->pid = fork();
    if (proxy->pid == 0)
        run_program(proxy, settings);
    bool listening = false;
    for (int i = 0; i < 1000 && !(listening = is_listening(proxy)); i++)
        sleep_ms(10);
    cr_assert(listening, "%s did not start: see %s", programs[proxy->kind].name,
              proxy->front.folder);
}

struct proxy proxy_start(enum proxy_kind kind, const int *ports, size_t n,
                         const struct setting *setting)
{
    char settings[80];
    struct proxy proxy = prepare(kind);
    path_in(&proxy, "settings", settings, sizeof settings);
    FILE *file = fopen(settings, "w");
    cr_assert(file);
    (kind == HAPROXY ? write_haproxy : write_nginx)(file, &proxy, ports, n, setting);
    fclose(file);
    launch(&proxy, settings);
    return proxy;
}

char *proxy_text(const char *path, const char *begin)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 17);
    cr_assert(file && text, "%s", path);
    cr_assert_lt(fread(text, 1, (1 << 17) - 1, file), (1 << 17) - 1);
    fclose(file);
    char *start = strstr(text, begin), *end = start ? strstr(start, "\n\n") : NULL;
    cr_assert(start, "%s has no %s", path, begin);
    if (end && *begin)
        end[1] = '\0';
    memmove(text, start, strlen(start) + 1);
    return text;
}

/* Copies a text in which each `from` is replaced by 127.0.0.1 and a port. Frees the text. */
static char *with_address(char *text, const char *from, int port)
{
    struct api_buffer copy = {0};
    const char *rest = text;
    cr_assert(strstr(text, from), "%s is not in %s", from, text);
    for (const char *at; (at = strstr(rest, from)); rest = at + strlen(from)) {
        api_append(&copy, rest, (size_t)(at - rest));
        api_append_format(&copy, "127.0.0.1:%d", port);
    }
    api_append(&copy, rest, strlen(rest) + 1);
    cr_assert(!copy.failed);
    free(text);
    return copy.data;
}

struct proxy proxy_start_text(enum proxy_kind kind, const char *text,
                              const struct proxy_address *addresses)
{
    char settings[80], *own = strdup(text);
    struct proxy proxy = prepare(kind);
    for (; addresses->in_text; addresses++)
        own = with_address(own, addresses->in_text,
                           addresses->port ? addresses->port : proxy.front.port);
    path_in(&proxy, "settings", settings, sizeof settings);
    FILE *file = fopen(settings, "w");
    cr_assert(file);
    if (kind == HAPROXY)
        write_haproxy_head(file);
    else
        write_nginx_head(file, &proxy);
    fprintf(file, "%s\n%s", own, kind == HAPROXY ? "" : "}\n");
    fclose(file);
    free(own);
    launch(&proxy, settings);
    return proxy;
}

static void set_address(const char *variable, int port)
{
    char address[30];
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    setenv(variable, address, 1);
}

static struct proxy start_shipped_nginx(const int ports[2])
{
    const struct proxy_address addresses[] = {
        {"*:80", 0}, {"10.0.0.1:8080", ports[0]}, {"10.0.0.2:8080", ports[1]}, {NULL, 0}};
    char *text = proxy_text("docker/nginx.conf", "");
    struct proxy proxy = proxy_start_text(NGINX, text, addresses);
    free(text);
    return proxy;
}

struct proxy proxy_start_shipped(enum proxy_kind kind, const int ports[2])
{
    if (kind == NGINX)
        return start_shipped_nginx(ports);
    struct proxy proxy = prepare(HAPROXY);
    set_address("FRONT", proxy.front.port);
    set_address("STATS", free_port());
    set_address("REPLICA_1", ports[0]);
    set_address("REPLICA_2", ports[1]);
    launch(&proxy, "docker/haproxy.cfg");
    return proxy;
}

struct server replica_start(int port, const char *drain_delay)
{
    char address[30];
    const char *const flags[] = {"--listen", address, "--drain-delay", drain_delay, "--log-level",
                                 "warning",  NULL};
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    return server_start(flags);
}

void proxy_stop(struct proxy *proxy)
{
    static const char *const names[] = {"settings", "log",     "errors", "pid",  "body",
                                        "proxy",    "fastcgi", "uwsgi",  "scgi", ""};
    int status;
    kill(proxy->pid, SIGTERM);
    waitpid(proxy->pid, &status, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[80];
        path_in(proxy, names[i], path, sizeof path);
        remove(path);
    }
}

/* ---- Log */

/* Requests passed on, by a line of the log. nginx has a status for each try, or "-"; HAProxy the
 * server's name, or "<NOSRV>". */
static double passed_by(enum proxy_kind kind, const char *line)
{
    double n = 0;
    int status, used;
    const char *p = strchr(line, ' ');
    if (!p)
        return 0;
    if (kind == HAPROXY)
        return strstr(p, " r") != NULL;
    for (; sscanf(p, "%*[ ,:]%d%n", &status, &used) == 1; p += used)
        n++;
    return n;
}

double proxy_passed(const struct proxy *proxy)
{
    char path[80], line[400];
    double n = 0;
    path_in(proxy, "log", path, sizeof path);
    FILE *log = fopen(path, "r");
    while (log && fgets(line, sizeof line, log))
        n += passed_by(proxy->kind, line);
    if (log)
        fclose(log);
    return n;
}
