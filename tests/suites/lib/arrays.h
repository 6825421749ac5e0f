/* Arrays and numbers for the tests of lib/, which include no other header of tests/. */
#pragma once

#include <criterion/criterion.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Rounds of a loop of random cases: a fifth under a sanitizer or on an emulated machine, which take ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
#define SOME_OF(n) ((n) / 5)
#else
#define SOME_OF(n) (n)
#endif

/* Pseudo-random numbers in (0, 1), the same on all machines. */
static inline double uniform(unsigned long long *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*state >> 11) * 0x1p-53;
}

/* A random number of 0 to n - 1. */
static inline size_t uniform_below(unsigned long long *state, size_t n)
{
    return (size_t)(uniform(state) * (double)n);
}

static inline size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page) / page * page;
}

/* Allocates an array whose end is the end of mapped memory: any access past it is fatal. */
static inline char *before_the_edge(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = whole_pages(size);
    char *map =
        mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(map != MAP_FAILED);
    cr_assert_eq(mprotect(map + whole, page, PROT_NONE), 0);
    return map + whole - size;
}

static inline void unmap(char *array, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = whole_pages(size);
    munmap(array + size - whole, whole + page);
}
