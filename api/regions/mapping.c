#include "api/regions/mapping.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* api_watched: the pages of a mapping, for the handler, which takes no lock. `start` is NULL in a free
 * entry, and the last to be set. */
struct api_watched {
    _Atomic(char *) start;
    atomic_size_t size;
    atomic_bool is_used, is_lost, is_written;
};

static struct api_watched table[API_MAPPINGS];
static struct sigaction previous;

/* Maps zeros in place of the pages of a file. Neither kind counts as data of the process (RLIMIT_DATA),
 * which would have a limit refuse it. */
static bool replace(char *start, size_t size, bool is_written)
{
    int kind = is_written ? MAP_SHARED : MAP_PRIVATE;
    return mmap(start, size, is_written ? PROT_READ | PROT_WRITE : PROT_READ,
                kind | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* Replaces the mapping that an address is in by zeros. False if the address is in no mapping, or the replacement
 * fails. The mapping cannot be closed meanwhile: the thread that touched the address holds it. */
static bool replace_faulted(const char *address)
{
    for (struct api_watched *w = table; w < table + API_MAPPINGS; w++) {
        char *start = atomic_load(&w->start);
        size_t size = atomic_load(&w->size);
        if (!start || address < start || (size_t)(address - start) >= size ||
            atomic_load(&w->start) != start)
            continue;
        atomic_store(&w->is_lost, true);
        return replace(start, size, atomic_load(&w->is_written));
    }
    return false;
}

/* Returns to the access, which is done again. After a fault elsewhere it meets the earlier handler, and
 * so does a signal that a process sent. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    int reason = errno;
    bool is_sent = info->si_code <= 0;
    (void)context;
    if (is_sent || !replace_faulted(info->si_addr))
        sigaction(signal, &previous, NULL);
    if (is_sent)
        raise(signal);
    errno = reason;
}

static void set_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
}

static struct api_watched *watch_pages(void *pages, size_t size, bool is_written)
{
    for (struct api_watched *w = table; w < table + API_MAPPINGS; w++)
        if (!atomic_exchange(&w->is_used, true)) {
            atomic_store(&w->is_lost, false);
            atomic_store(&w->is_written, is_written);
            atomic_store(&w->size, size);
            atomic_store(&w->start, pages);
            return w;
        }
    return NULL;
}

bool api_mapping_open(struct api_mapping *m, int fd, size_t offset, size_t size, bool writes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t before = offset % (size_t)sysconf(_SC_PAGESIZE);
    pthread_once(&once, set_handler);
    *m = (struct api_mapping){.size = size + before};
    m->pages = mmap(NULL, m->size, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd,
                    (off_t)(offset - before));
    if (m->pages == MAP_FAILED) {
        *m = (struct api_mapping){0};
        return false;
    }
    m->data = (char *)m->pages + before;
    m->own = watch_pages(m->pages, m->size, writes);
    if (m->own)
        return true;
    api_mapping_close(m);
    errno = ENOMEM;
    return false;
}

bool api_mapping_is_lost(const struct api_mapping *m)
{
    return m->own && atomic_load(&m->own->is_lost);
}

void api_mapping_drop(struct api_mapping *m)
{
    if (api_mapping_is_lost(m))
        replace(m->pages, m->size, atomic_load(&m->own->is_written));
}

void api_mapping_close(struct api_mapping *m)
{
    if (m->own) {
        atomic_store(&m->own->start, NULL);
        atomic_store(&m->own->is_used, false);
    }
    if (m->pages)
        munmap(m->pages, m->size);
    *m = (struct api_mapping){0};
}
