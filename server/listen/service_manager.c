#include "server/listen/service_manager.h"

#include "api/text/clock.h"
#include "server/net/unix_socket.h"
#include "server/telemetry/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- Sockets */

/* FIRST: the first descriptor that is passed. MAX_PASSED: for --listen, and one for --admin-listen. */
enum { FIRST = 3, MAX_PASSED = SRV_ADDRESSES + 1 };

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/* True for a socket that can be accepted from; it will not block, and no program that is run has it. */
static bool prepare(int fd)
{
    int domain = option_of(fd, SO_DOMAIN), flags = fcntl(fd, F_GETFL);
    return (domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX) &&
           option_of(fd, SO_TYPE) == SOCK_STREAM && option_of(fd, SO_ACCEPTCONN) == 1 &&
           fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool take_socket(struct srv_passed *passed, int fd, const char *name, int size, FILE *errors)
{
    bool is_admin = size == 5 && memcmp(name, "admin", 5) == 0;
    if (is_admin ? passed->admin >= 0 : passed->n == SRV_ADDRESSES) {
        fprintf(errors,
                "kldivd: LISTEN_FDS: descriptor %d (%.*s) is too many; at most %d are served, and "
                "one more named admin\n",
                fd, size, name, SRV_ADDRESSES);
        return false;
    }
    if (!prepare(fd)) {
        fprintf(errors,
                "kldivd: LISTEN_FDS: descriptor %d (%.*s) is not a listening TCP or unix socket\n",
                fd, size, name);
        return false;
    }
    if (is_admin)
        passed->admin = fd;
    else
        passed->listen[passed->n++] = fd;
    return true;
}

/* Takes descriptors by their number and their names, which have colons between. */
static bool take_all(struct srv_passed *passed, const char *number, const char *names, FILE *errors)
{
    char *end;
    unsigned long n = strtoul(number, &end, 10);
    if (*number < '0' || *number > '9' || *end) {
        fprintf(errors, "kldivd: LISTEN_FDS: '%s' is not a number\n", number);
        return false;
    }
    for (unsigned long i = 0; i < n && i <= MAX_PASSED;
         i++) { /* one more is refused, by its number */
        int size = (int)strcspn(names, ":");
        if (!take_socket(passed, FIRST + (int)i, names, size, errors))
            return false;
        names += size + (names[size] == ':');
    }
    return true;
}

bool srv_passed_read(struct srv_passed *passed, FILE *errors)
{
    const char *pid = getenv("LISTEN_PID"), *number = getenv("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    *passed = (struct srv_passed){.admin = -1};
    bool good = !pid || !number || strtol(pid, NULL, 10) != getpid() ||
                take_all(passed, number, names ? names : "", errors);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return good;
}

/* ---- The watchdog */

static struct {
    unsigned long long half; /* of the manager's time, in ms; 0: nobody watches */
    unsigned long long next; /* when to tell it again, in ms */
} watchdog;

/* ---- Notifications */

static struct {
    int fd;
    int problem; /* an errno: why there is no connection although one is wanted */
} notify = {.fd = -1};

/* Connects to a path or, with '@' first, an abstract name. Returns 0 or an errno. */
static int connect_to(const char *name)
{
    struct sockaddr_un address;
    const struct timeval longest = {.tv_sec = 1};
    char text[sizeof address.sun_path + sizeof "unix:"];
    int length = snprintf(text, sizeof text, "unix:%s", name);
    socklen_t size = length < (int)sizeof text ? srv_unix_name(text, &address) : 0;
    if ((*name != '/' && *name != '@') || size == 0)
        return EINVAL;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest) != 0 ||
        connect(fd, (struct sockaddr *)&address, size) != 0) {
        int problem = errno;
        close(fd);
        return problem;
    }
    notify.fd = fd;
    return 0;
}

void srv_manager_open(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    const char *time = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (name && *name)
        notify.problem = connect_to(name);
    if (time && (!pid || strtol(pid, NULL, 10) == getpid()))
        watchdog.half = strtoull(time, NULL, 10) / 2000;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void srv_manager_log(void)
{
    if (notify.problem)
        srv_log(SRV_LOG_WARNING, "NOTIFY_SOCKET: the service manager cannot be notified error=%s",
                strerror(notify.problem));
}

void srv_manager_tell(const char *format, ...)
{
    char text[500];
    va_list arguments;
    if (notify.fd < 0)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (send(notify.fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        srv_log(SRV_LOG_WARNING, "the service manager was not notified message=%s error=%s", text,
                strerror(errno));
}

unsigned long long srv_manager_beat(void)
{
    enum { MAX_WAIT_MS = 1000 };
    unsigned long long now = api_now_ms();
    if (watchdog.half == 0)
        return MAX_WAIT_MS;
    if (now >= watchdog.next) {
        srv_manager_tell("WATCHDOG=1");
        watchdog.next = now + watchdog.half;
    }
    unsigned long long wait = watchdog.next - now;
    return wait < MAX_WAIT_MS ? wait : MAX_WAIT_MS;
}
