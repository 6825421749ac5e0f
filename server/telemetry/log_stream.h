/* srv_log_stream: where lines of the log go, with a thread that alone writes them. Whoever has a line
 * never waits for the reader. */
#pragma once

#include "api/memory/buffer.h"

#include <pthread.h>
#include <stdatomic.h>

struct srv_log_stream {
    const char *path;     /* of a file that lines are appended to; NULL for a descriptor alone */
    int fd;               /* owned by the thread, once there is one */
    atomic_int next;      /* the descriptor that takes its place; -1 for none */
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t lines;
    pthread_t thread;
    bool running, is_torn; /* is_torn: the last line was written in part */
    atomic_bool stopping;
    struct api_buffer waiting;
    unsigned long lost;
};

#define SRV_LOG_STREAM(descriptor)                                                                 \
    {                                                                                              \
        .fd = (descriptor), .next = -1, .lock = PTHREAD_MUTEX_INITIALIZER,                         \
        .lines = PTHREAD_COND_INITIALIZER                                                          \
    }

/* Opens the file at the stream's path, made if it is not there, in the place of the one before; false with errno,
 * and that one stays. Lines that are put later go to the new one. */
bool srv_log_stream_open(struct srv_log_stream *stream);

bool srv_log_stream_start(struct srv_log_stream *stream);

/* Writes what waits, for a second at most if nobody reads, and ends the thread. */
void srv_log_stream_stop(struct srv_log_stream *stream);

/* Takes the bytes of a line, and frees it. One that failed, or beyond 1 MiB that waits, is lost. Without a thread it is
 * written at once. */
void srv_log_stream_put(struct srv_log_stream *stream, struct api_buffer *line);

/* Lines that were lost. */
unsigned long srv_log_stream_lost(struct srv_log_stream *stream);
