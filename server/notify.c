#include "server/notify.h"

#include "server/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
    int fd;
    int problem; /* an errno: why there is no connection although one is wanted */
} notify = {.fd = -1};

/* Size of the address that a name stands for; 0 if it stands for none. */
static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
    size_t size = strlen(name);
    bool is_path = *name == '/';
    if ((!is_path && *name != '@') || size >= sizeof address->sun_path)
        return 0;
    memcpy(address->sun_path, name, size);
    if (!is_path)
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + is_path);
}

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval longest = {.tv_sec = 1};
    socklen_t size = address_of(name, &address);
    if (size == 0)
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

void srv_notify_open(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    if (name && *name)
        notify.problem = connect_to(name);
    unsetenv("NOTIFY_SOCKET");
}

void srv_notify_log(void)
{
    if (notify.problem)
        srv_log(SRV_LOG_WARNING, "NOTIFY_SOCKET: the service manager cannot be notified: %s",
                strerror(notify.problem));
}

void srv_notify(const char *format, ...)
{
    char text[500];
    va_list arguments;
    if (notify.fd < 0)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (send(notify.fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        srv_log(SRV_LOG_WARNING, "the service manager was not notified of %.*s: %s",
                (int)strcspn(text, "\n"), text, strerror(errno));
}
