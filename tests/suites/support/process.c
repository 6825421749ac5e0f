#include "tests/suites/support/process.h"

#include "tests/suites/support/log_lines.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FLAGS = 24 };

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Sockets that servers are passed, or -1. */
static int passed[2] = {-1, -1};

void server_pass(int http, int admin)
{
    passed[0] = http;
    passed[1] = admin;
}

/* Moves the sockets to descriptors 3 and 4 of this process, and tells it so. */
static void pass_sockets(void)
{
    static const char *const names[] = {"http", "admin"};
    char pid[20], number[20], list[20] = "";
    int copies[2], n = 0;
    for (int i = 0; i < 2; i++)
        copies[i] = passed[i] < 0 ? -1 : fcntl(passed[i], F_DUPFD_CLOEXEC, 10);
    for (int i = 0; i < 2; i++) {
        if (copies[i] < 0)
            continue;
        dup2(copies[i], 3 + n);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n ? ":" : "", names[i]);
        n++;
    }
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(number, sizeof number, "%d", n);
    setenv("LISTEN_PID", pid, 0);
    setenv("LISTEN_FDS", number, 0);
    setenv("LISTEN_FDNAMES", list, 0);
}

size_t allow_files(size_t files)
{
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = files < limit.rlim_max ? files : limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
}

/* Bounds this process's descriptors, for good: to so many, or to what it has now if that is 0. */
static void bound_files(size_t files)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max = files ? files : limit.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Starts the program with its output in a file; `files` bounds its descriptors unless it is 0. */
static pid_t spawn(const char *const *flags, const char *output, size_t files)
{
    char *other = getenv("KLDIV_SERVER");
    char *argv[MAX_FLAGS + 2] = {other ? other : (char *)KLDIV_BINARY};
    for (size_t i = 0; i < MAX_FLAGS && flags[i]; i++)
        argv[i + 1] = (char *)flags[i];
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid > 0)
        return pid;
    unsetenv("KLDIV_SERVER"); /* a variable of the tests, unknown to the server */
    unsetenv("KLDIV_ROUNDS");
    unsetenv("KLDIV_OVER");
    int fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (passed[0] >= 0 || passed[1] >= 0)
        pass_sockets();
    bound_files(files);
    execv(argv[0], argv);
    _exit(127);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    cr_assert(text);
    if (file) {
        cr_assert(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
        fclose(file);
    }
    return text;
}

static void path_in(const struct server *server, const char *name, char *to, size_t size)
{
    snprintf(to, size, "%s/%s", server->folder, name);
}

/* True if the process has ended; its status is still to be asked for. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static bool has_flag(const char *const *flags, const char *flag)
{
    for (size_t i = 0; flags && flags[i]; i++)
        if (strcmp(flags[i], flag) == 0)
            return true;
    return false;
}

/* True if clients connect to a unix socket: in half of the tests, by the FNV-1a hash of their names. KLDIV_OVER is unix or
 * tcp, for all. */
static bool is_over_unix(void)
{
    const char *over = getenv("KLDIV_OVER");
    uint32_t hash = 2166136261;
    for (const char *c = criterion_current_test->name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619;
    return over && *over ? strcmp(over, "unix") == 0 : hash >> 16 & 1;
}

/* Fills the addresses of a server: a free port, and a unix socket if its clients connect there. */
static void choose_addresses(struct server *server, char *to, size_t size)
{
    snprintf(to, size, "127.0.0.1:0");
    if (!is_over_unix())
        return;
    path_in(server, "socket", server->path, sizeof server->path);
    snprintf(to, size, "127.0.0.1:0,unix:%s", server->path);
}

static struct server start(const char *const *flags, size_t files)
{
    struct server server = {.folder = "/tmp/kldiv-test-XXXXXX"};
    char log[64], port_file[64], addresses[200];
    cr_assert(mkdtemp(server.folder));
    path_in(&server, "log", log, sizeof log);
    path_in(&server, "port", port_file, sizeof port_file);
    const char *all[MAX_FLAGS + 1] = {"--port-file", port_file, "--listen", addresses};
    size_t n = has_flag(flags, "--listen") ? 2 : 4;
    if (n == 4)
        choose_addresses(&server, addresses, sizeof addresses);
    all[n] = NULL;
    for (size_t i = 0; flags && flags[i]; i++)
        all[n + i] = flags[i];
    server.pid = spawn(all, log, files);
    for (int i = 0; i < 3000 && server.port == 0 && !has_ended(server.pid); i++) {
        sleep_ms(5);
        char *text = read_whole(port_file);
        server.port = atoi(text);
        free(text);
    }
    return server;
}

struct server server_start(const char *const *flags) { return server_start_with_files(flags, 0); }

struct server server_start_with_files(const char *const *flags, size_t files)
{
    struct server server = start(flags, files);
    cr_assert(server.port > 0, "the server did not start");
    return server;
}

static int connect_locally(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(fd >= 0);
    memcpy(address.sun_path, path, size);
    if (*path == '@')
        address.sun_path[0] = '\0';
    size += offsetof(struct sockaddr_un, sun_path);
    if (connect(fd, (struct sockaddr *)&address, (socklen_t)size) == 0)
        return fd;
    close(fd);
    return -1;
}

int try_to_dial(const struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (*server->path)
        return connect_locally(server->path);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

int dial(const struct server *server)
{
    int fd = try_to_dial(server);
    cr_assert(fd >= 0, "%s", strerror(errno));
    return fd;
}

struct server server_start_at(const char *address, const char *const *flags)
{
    struct server server = {.folder = "/tmp/kldiv-test-XXXXXX"};
    char log[64];
    const char *all[MAX_FLAGS + 1] = {"--listen", address};
    size_t n = getenv("KLDIV_LISTEN") ? 0 : 2;
    cr_assert(mkdtemp(server.folder));
    path_in(&server, "log", log, sizeof log);
    all[n] = NULL;
    for (size_t i = 0; flags && flags[i]; i++)
        all[n + i] = flags[i];
    snprintf(server.path, sizeof server.path, "%s", address + strlen("unix:"));
    server.pid = spawn(all, log, 0);
    for (int i = 0; i < 3000 && !has_ended(server.pid); i++) {
        int fd = try_to_dial(&server);
        if (fd < 0) {
            sleep_ms(5);
            continue;
        }
        close(fd);
        return server;
    }
    cr_assert_fail("the server did not start: %s", server_log_text(&server));
    return server;
}

struct server server_try(const char *const *flags) { return start(flags, 0); }

char *server_log_text(const struct server *server)
{
    char log[64];
    path_in(server, "log", log, sizeof log);
    return read_whole(log);
}

bool server_logs(const struct server *server, const char *text, size_t n)
{
    for (int i = 0; i < 1000; i++) {
        char *log = server_log_text(server);
        size_t found = 0;
        for (char *p = log; (p = strstr(p, text)); p++)
            found++;
        free(log);
        if (found >= n)
            return true;
        sleep_ms(10);
    }
    return false;
}

void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file);
    cr_assert(fputs(text, file) >= 0);
    cr_assert_eq(fclose(file), 0);
}

static int wait_for_exit(pid_t pid)
{
    int status;
    for (int i = 0; i < 6000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        sleep_ms(10);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

/* Checks the log, unless it may complain, and removes the server's files. */
static void clean_up(const struct server *server, bool may_complain)
{
    char path[64];
    char *log = server_log_text(server);
    bool complained = strstr(log, " warning ") || strstr(log, " error ") ||
                      strstr(log, "Sanitizer") || strstr(log, "runtime error");
    cr_expect(may_complain || !complained, "%s", log);
    bool is_whole = !getenv("LD_PRELOAD"); /* no write of it was made to fail */
    for (const char *line = log, *end; (end = strchr(line, '\n')); line = end + 1) {
        json_t *fields = *line == '2' ? log_line_read(line) : NULL; /* else JSON, or a library's */
        cr_expect(!is_whole || *line != '2' || fields, "not key=value: %.*s", (int)(end - line),
                  line);
        json_decref(fields);
    }
    free(log);
    path_in(server, "log", path, sizeof path);
    unlink(path);
    path_in(server, "port", path, sizeof path);
    unlink(path);
    path_in(server, "socket", path, sizeof path); /* of one that was killed */
    unlink(path);
    rmdir(server->folder);
}

int server_stop(struct server *server, bool may_complain)
{
    kill(server->pid, SIGTERM);
    int status = wait_for_exit(server->pid);
    clean_up(server, may_complain);
    return status;
}

void server_kill(struct server *server, bool may_complain)
{
    kill(server->pid, SIGKILL);
    wait_for_exit(server->pid);
    clean_up(server, may_complain);
}

int run_server(const char *const *flags, char *output, size_t size)
{
    char path[] = "/tmp/kldiv-run-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    int status = wait_for_exit(spawn(flags, path, 0));
    char *text = read_whole(path);
    snprintf(output, size, "%s", text);
    free(text);
    unlink(path);
    return status;
}

static size_t collect(char *bytes, size_t size, size_t n, void *buffer)
{
    api_append(buffer, bytes, size * n);
    return size * n;
}

static void set_address(CURL *curl, const struct server *server, const char *target)
{
    char url[400];
    bool is_abstract = *server->path == '@';
    snprintf(url, sizeof url, "%s://127.0.0.1:%d%s", server->certificate ? "https" : "http",
             server->port, target);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    if (*server->path)
        curl_easy_setopt(curl,
                         is_abstract ? CURLOPT_ABSTRACT_UNIX_SOCKET : CURLOPT_UNIX_SOCKET_PATH,
                         server->path + is_abstract);
}

static struct fetched fetch_once(const struct server *server, const char *method,
                                 const char *target, const char *const *headers, const char *body,
                                 size_t body_size)
{
    struct fetched fetched = {0};
    struct curl_slist *list = NULL;
    CURL *curl = curl_easy_init();
    for (size_t i = 0; headers && headers[i]; i++)
        list = curl_slist_append(list, headers[i]);
    set_address(curl, server, target);
    curl_easy_setopt(curl, CURLOPT_CAINFO, server->certificate);
    curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* else read whole for each connection */
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_size);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    }
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &fetched.head);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &fetched.body);
    CURLcode result = curl_easy_perform(curl);
    if (result == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &fetched.status);
    fetched.lost = result != CURLE_OK && result != CURLE_COULDNT_CONNECT;
    curl_easy_cleanup(curl);
    curl_slist_free_all(list);
    api_append(&fetched.head, "", 1);
    if (fetched.body.size)
        fetched.json = json_loadb(fetched.body.data, fetched.body.size, 0, NULL);
    api_append(&fetched.body, "", 1);
    return fetched;
}

struct fetched fetch(const struct server *server, const char *method, const char *target,
                     const char *const *headers, const char *body, size_t body_size)
{
    struct fetched f = fetch_once(server, method, target, headers, body, body_size);
    for (int i = 0; i < 100 && strcmp(target, "/metrics") == 0 && f.status == 200 &&
                    !strstr(f.body.data, "\nkldiv_http_requests_in_flight 1\n");
         i++) {
        fetched_free(&f);
        usleep(2000);
        f = fetch_once(server, method, target, headers, body, body_size);
    }
    return f;
}

struct fetched post_json(const struct server *server, const char *target, const char *body)
{
    static const char *const json[] = {"Content-Type: application/json", NULL};
    return fetch(server, "POST", target, json, body, strlen(body));
}

void fetched_free(struct fetched *fetched)
{
    api_buffer_free(&fetched->head);
    api_buffer_free(&fetched->body);
    json_decref(fetched->json);
}

const char *header_in(const struct fetched *fetched, const char *name, char *to, size_t size)
{
    size_t length = strlen(name);
    *to = '\0';
    for (const char *line = fetched->head.data; line && *line; line += strcspn(line, "\n") + 1) {
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1 + strspn(line + length + 1, " ");
            snprintf(to, size, "%.*s", (int)strcspn(value, "\r\n"), value);
        }
        if (!strchr(line, '\n'))
            break;
    }
    return to;
}

size_t talk(const struct server *server, const char *bytes, size_t size, char *answer, size_t room,
            double seconds)
{
    int fd = dial(server);
    size_t got = 0;
    if (send(fd, bytes, size, MSG_NOSIGNAL) < 0)
        size = 0;
    while (got < room - 1) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, (int)(seconds * 1000)) <= 0)
            break;
        ssize_t n = recv(fd, answer + got, room - 1 - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    answer[got] = '\0';
    close(fd);
    return got;
}
