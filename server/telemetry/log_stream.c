#include "server/telemetry/log_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

/* MAX_WAITING: bytes of lines that wait while nobody reads; further lines are dropped and counted. */
enum { MAX_WAITING = 1 << 20 };

/* Interval, in ns, at which lines are written. Waking the thread for each line cost a tenth of
 * the requests per second. */
enum { WRITE_INTERVAL_NS = 20000000 };

/* Time, in ms, for a reader at the end; and between looks at it. */
enum { LAST_WRITE_MS = 1000, POLL_MS = 100 };

/* True once the descriptor takes PIPE_BUF bytes. A reader that does not read holds up the log, but not
 * the end of the process: then it has LAST_WRITE_MS. */
static bool wait_for_reader(const struct srv_log_stream *stream)
{
    struct pollfd reader = {.fd = stream->fd, .events = POLLOUT};
    for (int waited = 0; !atomic_load(&stream->stopping) || waited < LAST_WRITE_MS;
         waited += POLL_MS) {
        int ready = poll(&reader, 1, POLL_MS);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        waited = atomic_load(&stream->stopping) ? waited : 0;
    }
    return false;
}

/* Writes at most PIPE_BUF bytes at a time, for which a ready pipe does not block. Gives the bytes that
 * were not written. What follows a line that a full disk has cut begins on a line of its own. */
static size_t write_all(struct srv_log_stream *stream, const char *bytes, size_t size)
{
    const char *p = bytes;
    while (size > 0 && wait_for_reader(stream)) {
        if (stream->is_torn && write(stream->fd, "\n", 1) != 1)
            break;
        stream->is_torn = false;
        ssize_t n = write(stream->fd, p, size < PIPE_BUF ? size : PIPE_BUF);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        p += n;
        size -= (size_t)n;
    }
    stream->is_torn |= p > bytes && p[-1] != '\n';
    return size;
}

static size_t count_lines(const char *bytes, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += bytes[i] == '\n';
    return n;
}

/* Takes the file that was opened last. */
static void renew(struct srv_log_stream *stream)
{
    int next = atomic_exchange(&stream->next, -1);
    if (next < 0)
        return;
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = next;
    stream->is_torn = false;
}

bool srv_log_stream_open(struct srv_log_stream *stream)
{
    int fd = open(stream->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
    int unused = fd < 0 ? -1 : atomic_exchange(&stream->next, fd);
    if (unused >= 0)
        close(unused);
    return fd >= 0;
}

static void *write_lines(void *argument)
{
    struct srv_log_stream *stream = argument;
    struct api_buffer out = {0};
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (stream->waiting.size == 0 && !stream->stopping)
            pthread_cond_wait(&stream->lines, &stream->lock);
        if (stream->waiting.size == 0)
            break;
        if (!stream->stopping) {
            pthread_mutex_unlock(&stream->lock);
            nanosleep(&(struct timespec){.tv_nsec = WRITE_INTERVAL_NS}, NULL);
            pthread_mutex_lock(&stream->lock);
        }
        struct api_buffer full = stream->waiting;
        stream->waiting = out;
        pthread_mutex_unlock(&stream->lock);
        renew(stream);
        size_t left = write_all(stream, full.data, full.size);
        size_t lost = count_lines(full.data + full.size - left, left);
        out = full;
        out.size = 0;
        out.failed = false;
        pthread_mutex_lock(&stream->lock);
        stream->lost += lost;
        if (lost && atomic_load(&stream->stopping))
            break;
    }
    pthread_mutex_unlock(&stream->lock);
    api_buffer_free(&out);
    return NULL;
}

bool srv_log_stream_start(struct srv_log_stream *stream)
{
    atomic_store(&stream->stopping, false);
    stream->running = pthread_create(&stream->thread, NULL, write_lines, stream) == 0;
    return stream->running;
}

void srv_log_stream_stop(struct srv_log_stream *stream)
{
    if (!stream->running)
        return;
    pthread_mutex_lock(&stream->lock);
    atomic_store(&stream->stopping, true);
    pthread_cond_signal(&stream->lines);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&stream->lock);
    stream->running = false;
    api_buffer_free(&stream->waiting);
    pthread_mutex_unlock(&stream->lock);
}

void srv_log_stream_put(struct srv_log_stream *stream, struct api_buffer *line)
{
    pthread_mutex_lock(&stream->lock);
    if (line->failed || stream->waiting.size + line->size > MAX_WAITING) {
        stream->lost++;
    } else if (!stream->running) {
        write_all(stream, line->data, line->size);
    } else {
        bool first = stream->waiting.size == 0;
        api_append(&stream->waiting, line->data, line->size);
        stream->lost += stream->waiting.failed;
        stream->waiting.failed = false;
        if (first)
            pthread_cond_signal(&stream->lines);
    }
    pthread_mutex_unlock(&stream->lock);
    api_buffer_free(line);
}

unsigned long srv_log_stream_lost(struct srv_log_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    unsigned long lost = stream->lost;
    pthread_mutex_unlock(&stream->lock);
    return lost;
}
