#include "api/monitors/test.h"

/* MAX_TESTS: that wait at most. */
enum { MAX_TESTS = 16 };

struct api_notify_test *api_notify_tests_take(struct api_notifier *notifier, bool ends)
{
    pthread_mutex_lock(&notifier->lock);
    struct api_notify_test *tests = notifier->tests;
    notifier->tests = NULL;
    if (ends)
        notifier->accepts_tests = false;
    pthread_mutex_unlock(&notifier->lock);
    return tests;
}

bool api_notify_test_submit(struct api_notify_test *test, struct api_notifier *notifier)
{
    struct api_notify_test **last = &notifier->tests;
    size_t n = 0;
    test->job->done = false;
    pthread_mutex_lock(&notifier->lock);
    for (; *last; last = &(*last)->next)
        n++;
    bool good = notifier->accepts_tests && n < MAX_TESTS;
    if (good)
        *last = test;
    pthread_mutex_unlock(&notifier->lock);
    if (good)
        notifier->wake();
    return good;
}
