#include "api/monitors/test.h"

#include "api/monitors/batch.h"
#include "api/request/exchange.h"

struct api_notify_test *api_notify_test_of(const struct api_notifier *notifier, const char *name)
{
    struct api_notify_test *test = notifier->tests;
    while (test && strcmp(test->name, name) != 0)
        test = test->next;
    return test;
}

bool api_notify_test_submit(struct api_notify_test *test, struct api_notifier *notifier)
{
    test->job->done = false;
    pthread_mutex_lock(&notifier->lock);
    const struct api_receiver_status *status = api_notifier_status(notifier, test->name);
    bool good = status && status->is_served && !api_notify_test_of(notifier, test->name);
    if (good) {
        test->next = notifier->tests;
        notifier->tests = test;
        pthread_cond_broadcast(&notifier->wake);
    }
    pthread_mutex_unlock(&notifier->lock);
    return good;
}

bool api_notify_test_is_left(const struct api_notify_test *test)
{
    const struct api_exchange *x = test->job->x;
    return x && x->stop && atomic_load(x->stop);
}

void api_notify_test_end(struct api_notify_test *test, struct api_notifier *notifier)
{
    struct api_notify_test **link = &notifier->tests;
    pthread_mutex_lock(&notifier->lock);
    while (*link != test)
        link = &(*link)->next;
    *link = test->next;
    pthread_mutex_unlock(&notifier->lock);
    api_store_job_finish(test->job);
}
