/* Records each call and return of a program that is compiled with -finstrument-functions, in the file that
 * KLDIV_WALK names, for walk.py: a header with the number of records, then the records. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define UNSEEN __attribute__((no_instrument_function))
enum { MAX_RECORDS = 1 << 22 };

struct record {
    uint64_t function; /* offset in the executable */
    uint32_t thread;
    uint32_t is_return;
};

struct log {
    atomic_ullong n;
    uint64_t unused;
    struct record records[MAX_RECORDS];
};

static struct log *records;
extern const char __executable_start[];

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

__attribute__((constructor)) UNSEEN static void open_log(void)
{
    const char *path = getenv("KLDIV_WALK");
    int file = path ? open(path, O_RDWR) : -1;
    if (file < 0 || ftruncate(file, sizeof *records) != 0)
        return;
    void *memory = mmap(NULL, sizeof *records, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    records = memory == MAP_FAILED ? NULL : memory;
}

UNSEEN static void add(const void *function, uint32_t is_return)
{
    static _Thread_local uint32_t thread;
    if (!records)
        return;
    if (thread == 0)
        thread = (uint32_t)gettid();
    unsigned long long i = atomic_fetch_add(&records->n, 1);
    if (i < MAX_RECORDS)
        records->records[i] = (struct record){
            (uint64_t)((const char *)function - __executable_start), thread, is_return};
}

UNSEEN void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    add(function, 0);
}

UNSEEN void __cyg_profile_func_exit(void *function, void *site)
{
    (void)site;
    add(function, 1);
}
