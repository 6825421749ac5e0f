#include "tests/suites/faults/client.h"

#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* RELEASE: time, in seconds, after which calls that fail one and all do so no longer. PAUSE: of a slow
 * reader. */
static const double release = 0.1, pause_s = 0.02;

/* ---- Faults */

struct faults *faults;

/* Has servers that start later load the library. */
void faults_preload(void)
{
#ifdef __SANITIZE_ADDRESS__
    /* The library comes before that of the sanitizer; leaks are told by the count of blocks. */
    setenv("ASAN_OPTIONS",
           "verify_asan_link_order=0:detect_leaks=0:quarantine_size_mb=16:intercept_strstr=0", 1);
#endif
    char path[] = "/tmp/kldiv-faults-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && ftruncate(fd, sizeof *faults) == 0);
    faults = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(faults != MAP_FAILED);
    close(fd);
    setenv(FAULTS_VARIABLE, path, 1);
    setenv("LD_PRELOAD", KLDIV_FAULTS, 1);
    setenv("MALLOC_PERTURB_", "165", 1); /* what is used after it was freed shows */
}

void faults_unload(void) { unlink(getenv(FAULTS_VARIABLE)); }

void faults_disarm(void) { atomic_store(&faults->armed, FAULT_NONE); }

/* Has call number `first` fail, with `sticky` all later ones, too. */
void faults_arm(const struct kind *kind, long first, bool sticky)
{
    faults_disarm();
    atomic_store(&faults->reason, kind->reason);
    atomic_store(&faults->first, first);
    atomic_store(&faults->end, sticky ? LONG_MAX : first + 1);
    atomic_store(&faults->seen, 0);
    atomic_store(&faults->failed, 0);
    atomic_store(&faults->armed, kind->fault);
}

/* ---- Conversations */

/* Reads the last answer; false if more of it is to come. */
static bool is_whole(struct answered *a)
{
    const char *head = a->bytes.data, *end = head ? head + a->bytes.size : NULL;
    for (const char *body; head; head = body) {
        body = memmem(head, (size_t)(end - head), "\r\n\r\n", 4);
        if (!body)
            return false;
        body += 4;
        int status = atoi(head + strlen("HTTP/1.1 "));
        if (status < 200)
            continue;
        const char *length = memmem(head, (size_t)(body - head), "Content-Length: ", 16);
        a->body = body;
        a->body_size = length ? strtoul(length + 16, NULL, 10) : 0;
        if ((size_t)(end - body) < a->body_size)
            return false;
        a->status = status;
        return true;
    }
    return false;
}

/* Sends what the socket takes; passes over the rest once the server has closed it. */
static void send_more(int fd, const struct api_buffer *bytes, size_t *sent)
{
    ssize_t n = send(fd, bytes->data + *sent, bytes->size - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        *sent += (size_t)n;
    else if (errno != EAGAIN)
        *sent = bytes->size;
}

/* Reads what has come; false if the server has closed the connection. */
static bool read_more(int fd, struct answered *a)
{
    static char piece[1 << 16];
    ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n > 0)
        api_append(&a->bytes, piece, (size_t)n);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

struct answered converse(const struct server *server, const struct asked *asked)
{
    struct answered a = {0};
    int fd = dial(server);
    double start = now_seconds(), now = start;
    size_t sent = 0;
    bool open = true;
    while (open && !is_whole(&a) && now < start + PATIENCE) {
        bool reads = !asked->slow || now > start + pause_s, sends = sent < asked->bytes.size;
        struct pollfd p = {fd, (short)((reads ? POLLIN : 0) | (sends ? POLLOUT : 0)), 0};
        poll(&p, 1, 10);
        if (p.revents & POLLOUT)
            send_more(fd, &asked->bytes, &sent);
        if (p.revents & ~POLLOUT)
            open = read_more(fd, &a);
        now = now_seconds();
        if (now > start + release)
            faults_disarm();
    }
    a.hung = open && a.status == 0;
    close(fd);
    return a;
}

bool has_text(const struct answered *a, const char *text)
{
    return memmem(a->body, a->body_size, text, strlen(text)) != NULL;
}

/* Names of an answer's fields, in their order. */
void list_fields(const struct answered *a, char *to, size_t size)
{
    size_t used = 0;
    const char *line = a->bytes.data;
    for (const char *next; line < a->body; line = next) {
        next = (const char *)memchr(line, '\n', (size_t)(a->body - line)) + 1;
        int name = (int)strcspn(line, ":\r");
        used += (size_t)snprintf(to + used, size - used, "%.*s,", name, line);
        cr_assert_lt(used, size);
    }
}

bool is_same(const struct asked *asked, const struct answered *a, const struct answered *b)
{
    char fields_a[1000], fields_b[1000];
    if (a->status != b->status)
        return false;
    list_fields(a, fields_a, sizeof fields_a);
    list_fields(b, fields_b, sizeof fields_b);
    if (strcmp(fields_a, fields_b) != 0)
        return false;
    if (asked->varies)
        return has_text(a, "kldiv_build_info") && !has_text(a, "process_open_fds 0\n");
    if (a->status >= 400 && a->body_size == 0)
        return true; /* no memory for the description of the problem */
    return a->body_size == b->body_size && memcmp(a->body, b->body, a->body_size) == 0;
}

/* ---- Sweeps */
