#include "criterion/criterion.h"

struct cross_test *cross_tests;
int cross_failures;

int main(void)
{
    int tests = 0, failed = 0;
    for (struct cross_test *test = cross_tests; test; test = test->next, tests++) {
        int before = cross_failures;
        test->run();
        failed += cross_failures != before;
        printf("%s %s/%s\n", cross_failures == before ? "pass" : "FAIL", test->suite, test->name);
    }
    printf("%d tests, %d failed\n", tests, failed);
    return failed != 0;
}
