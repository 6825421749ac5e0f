/* srv_upload: a large body's way past libmicrohttpd's buffer, into the memory that it will stay in.
 * libmicrohttpd asks for 12 KiB at a time, counts them, and never looks at them unless the body is
 * chunked: it is told of bytes that have been received elsewhere, many at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed at the start of a connection; only its network thread uses it. */
struct srv_upload {
    char *next;   /* address of the next byte to be received */
    size_t room;  /* bytes from there on; 0 unless a large body arrives */
    size_t ahead; /* bytes before `next` that libmicrohttpd was not told of */
    size_t piece; /* bytes that it was told of, and that the body has not taken */
};

typedef ssize_t srv_receive(int fd, void *buffer, size_t n, int flags);

/* Receives up to `n` bytes by `receive`, into `buffer` or into the body's place. `left` bytes of the body
 * are still to come by libmicrohttpd's count. Gives fewer than `n` only if the socket has no more, for
 * which libmicrohttpd takes it: then it waits for epoll. An error or an end comes before bytes that wait
 * to be told, unless they complete the body. */
ssize_t srv_upload_receive(struct srv_upload *upload, int fd, void *buffer, size_t n, uint64_t left,
                           srv_receive *receive);

/* True if the `n` bytes that libmicrohttpd hands on, one or more, are in the body's place already. */
bool srv_upload_took(struct srv_upload *upload, size_t n);

/* Offers `room` bytes at `end`, the end of the body as far as it has taken bytes; 0 to offer none. */
void srv_upload_offer(struct srv_upload *upload, char *end, size_t room);
