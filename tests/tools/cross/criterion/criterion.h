/* Subset of Criterion for the tests of the kernels on emulated machines. Tests run in one
 * process, one after another, by tests/tools/cross/main.c. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cross_test {
    const char *suite, *name;
    void (*run)(void);
    struct cross_test *next;
};

extern struct cross_test *cross_tests;
extern int cross_failures;

#define Test(suite_name, test_name, ...)                                                           \
    static void suite_name##_##test_name(void);                                                    \
    __attribute__((constructor)) static void add_##suite_name##_##test_name(void)                  \
    {                                                                                              \
        static struct cross_test test = {#suite_name, #test_name, suite_name##_##test_name, NULL}; \
        test.next = cross_tests;                                                                   \
        cross_tests = &test;                                                                       \
    }                                                                                              \
    static void suite_name##_##test_name(void)

#define cr_expect(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            cross_failures++;                                                                      \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            printf(" " __VA_ARGS__);                                                               \
            puts("");                                                                              \
        }                                                                                          \
    } while (0)
#define cr_assert(condition, ...)                                                                  \
    do {                                                                                           \
        int failures_before = cross_failures;                                                      \
        cr_expect(condition, __VA_ARGS__);                                                         \
        if (cross_failures != failures_before)                                                     \
            exit(1);                                                                               \
    } while (0)
#define cr_log_info(...) (printf(__VA_ARGS__), puts(""))
#define cr_expect_eq(a, b, ...) cr_expect((a) == (b), __VA_ARGS__)
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b), __VA_ARGS__)
#define cr_expect_lt(a, b, ...) cr_expect((a) < (b), __VA_ARGS__)
#define cr_expect_leq(a, b, ...) cr_expect((a) <= (b), __VA_ARGS__)
#define cr_expect_not(a, ...) cr_expect(!(a), __VA_ARGS__)
#define cr_expect_null(a, ...) cr_expect((a) == NULL, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...) cr_expect(memcmp(a, b, size) == 0, __VA_ARGS__)
