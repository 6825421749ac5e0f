#include "server/identity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

static uint64_t seed;

static void make_seed(void)
{
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        seed = (uintptr_t)&seed;
}

/* Finalizer of SplitMix64: a bijection, so different counters give different ids. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

void srv_request_identify(const char *given, char *id, size_t size)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "._-";
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_ullong counter;
    size_t length = given ? strlen(given) : 0;
    if (length >= 1 && length < size && strspn(given, allowed) == length) {
        memcpy(id, given, length + 1);
        return;
    }
    pthread_once(&once, make_seed);
    uint64_t number = mix(seed + atomic_fetch_add(&counter, 1));
    for (int i = 0; i < 16; i++, number <<= 4)
        id[i] = "0123456789abcdef"[number >> 60];
    id[16] = '\0';
}
