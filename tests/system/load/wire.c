#include "tests/system/load/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void sleep_seconds(double seconds)
{
    time_t whole = (time_t)seconds;
    nanosleep(
        &(struct timespec){.tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9)},
        NULL);
}

int wire_dial(int port, int receive)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (receive > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof receive);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

/* Bytes of the answer in all, as far as its header tells; 0 while that is not complete. */
static size_t whole_size(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n"), *length = strcasestr(answer, "\nContent-Length:");
    if (!end)
        return 0;
    return (size_t)(end + 4 - answer) +
           (length && length < end ? strtoull(length + 16, NULL, 10) : 0);
}

/* transfer: an exchange under way. Bytes beyond the room are counted, not kept. */
struct transfer {
    int fd;
    const char *request;
    size_t size, sent;
    char *answer;
    size_t room, got;
};

/* Sends what the socket takes. A server may close after an early answer, which is still read. */
static void send_some(struct transfer *t)
{
    ssize_t n = send(t->fd, t->request + t->sent, t->size - t->sent, MSG_NOSIGNAL);
    if (n > 0)
        t->sent += (size_t)n;
    else if (errno != EAGAIN && errno != ENOTCONN)
        t->sent = t->size;
}

/* Reads what has come; false at the end of the connection. */
static bool read_some(struct transfer *t)
{
    char dropped[1 << 16];
    size_t free = t->got < t->room - 1 ? t->room - 1 - t->got : 0;
    ssize_t n = recv(t->fd, free ? t->answer + t->got : dropped, free ? free : sizeof dropped, 0);
    if (n > 0)
        t->got += (size_t)n;
    if (n > 0 && free)
        t->answer[t->got] = '\0';
    return n > 0 || (n < 0 && errno == EAGAIN);
}

int wire_exchange(int fd, const char *request, size_t size, char *answer, size_t room, double limit,
                  bool *is_kept)
{
    struct transfer t = {fd, request, size, 0, answer, room, 0};
    double end = seconds_now() + limit, left;
    size_t whole = 0;
    bool open = true;
    *answer = '\0';
    while (open && (whole == 0 || t.got < whole) && (left = end - seconds_now()) > 0) {
        struct pollfd p = {.fd = fd, .events = (short)(POLLIN | (t.sent < size ? POLLOUT : 0))};
        if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
            break;
        if (t.sent < size && p.revents & (POLLOUT | POLLERR))
            send_some(&t);
        if (p.revents & (POLLIN | POLLHUP | POLLERR))
            open = read_some(&t);
        whole = whole_size(answer);
    }
    bool is_whole = whole > 0 && t.got >= whole;
    *is_kept = open && is_whole && !strcasestr(answer, "\nConnection: close");
    return is_whole ? atoi(answer + 9) : 0;
}
