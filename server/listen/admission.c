#include "server/listen/admission.h"

#include "api/text/clock.h"
#include "server/connection/framing.h"
#include "server/connection/watcher.h"
#include "server/listen/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* HOLD_MS: time, in ms, for a header. */
enum { HOLD_MS = 250 };

struct waiting {
    struct srv_watched watched;
    bool is_used;
    bool is_busy; /* the watcher reads its bytes, and is not locked */
    unsigned long long until;
    struct sockaddr_storage address;
    socklen_t size;
};

/* Held under the watcher's lock. */
static struct {
    size_t n, capacity;
    srv_admit *admit;
    struct waiting entries[SRV_ADMISSIONS];
} admission;

void srv_admission_init(size_t capacity, srv_admit *admit)
{
    admission.capacity = capacity == 0 ? 1 : capacity < SRV_ADMISSIONS ? capacity : SRV_ADMISSIONS;
    admission.admit = admit;
}

/* verdict: on the bytes that a client has sent. */
enum verdict { INCOMPLETE, LEFT, PROBE, OTHER };

static enum verdict judge(int fd)
{
    char bytes[SRV_HEADER_SIZE];
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return INCOMPLETE;
    if (n <= 0)
        return LEFT;
    if (n < (ssize_t)sizeof bytes && !memmem(bytes, (size_t)n, "\r\n\r\n", 4))
        return INCOMPLETE;
    return memcmp(bytes, "GET ", 4) == 0 || memcmp(bytes, "HEAD", 4) == 0 ? PROBE : OTHER;
}

/* Ends the wait of a connection that was taken out. */
static void admit_or_close(const struct waiting *w, enum verdict verdict)
{
    int fd = w->watched.fd;
    if (verdict == PROBE || verdict == OTHER) {
        admission.admit(fd, (const struct sockaddr *)&w->address, w->size, verdict == PROBE);
        return;
    }
    if (verdict == INCOMPLETE)
        srv_turn_away(fd);
    close(fd);
}

static struct waiting leave(struct waiting *w)
{
    srv_watch_remove(&w->watched);
    w->is_used = false;
    return *w;
}

static void look(struct srv_watched *watched, unsigned events, unsigned long long now)
{
    struct waiting *w = (struct waiting *)watched;
    (void)events;
    w->is_busy = true;
    srv_watcher_unlock();
    enum verdict verdict = judge(watched->fd);
    srv_watcher_lock();
    w->is_busy = false;
    if (verdict == INCOMPLETE && now < w->until) {
        srv_watch_at(watched, w->until);
        return;
    }
    const struct waiting left = leave(w);
    srv_watcher_unlock();
    admit_or_close(&left, verdict);
    srv_watcher_lock();
    admission.n--;
}

/* An entry for a new connection: a free one, or that of the oldest, which leaves: *oldest is a copy of it. NULL if there
 * is none. */
static struct waiting *free_entry(struct waiting *oldest)
{
    struct waiting *first = NULL;
    for (struct waiting *w = admission.entries; w < admission.entries + admission.capacity; w++) {
        if (!w->is_used)
            return w;
        if (!w->is_busy && (!first || w->until < first->until))
            first = w;
    }
    if (first) {
        *oldest = leave(first);
        admission.n--;
    }
    return first;
}

/* Adds a connection; false if that cannot be. */
static bool add(const struct waiting *newcomer, struct waiting *oldest)
{
    struct waiting *w = free_entry(oldest);
    if (!w)
        return false;
    *w = *newcomer;
    if (!srv_watch_add(&w->watched))
        return false;
    w->is_used = srv_watch_events(&w->watched, EPOLLIN | EPOLLET);
    if (!w->is_used)
        srv_watch_remove(&w->watched);
    admission.n += w->is_used;
    return w->is_used;
}

void srv_admission_take(int client, const struct sockaddr *address, socklen_t size)
{
    unsigned long long until = api_now_ms() + HOLD_MS;
    struct waiting newcomer = {
        .watched = {.fd = client, .due = until, .look = look}, .until = until, .size = size};
    struct waiting oldest = {.watched = {.fd = -1}};
    memcpy(&newcomer.address, address, size);
    srv_watcher_lock();
    bool is_added = add(&newcomer, &oldest);
    srv_watcher_unlock();
    if (oldest.watched.fd >= 0) /* its header may have come since the last look */
        admit_or_close(&oldest, judge(oldest.watched.fd));
    if (!is_added)
        admit_or_close(&newcomer, INCOMPLETE);
}

void srv_admission_stop(void) { srv_watcher_wait(&admission.n); }
