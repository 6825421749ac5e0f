#include "api/monitors/test.h"

#include "api/monitors/batch.h"
#include "api/request/exchange.h"

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
    test->job->done = false;
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *of = api_notifier_status(notifier, test->name);
    bool good = notifier->accepts_tests && notifier->n_tests < API_MAX_TESTS && of &&
                of->n_tests < API_MAX_TESTS_OF_ONE;
    if (good) {
        of->n_tests++;
        test->next = notifier->tests;
        notifier->tests = test;
        notifier->n_tests++;
    }
    pthread_mutex_unlock(&notifier->lock);
    if (good)
        notifier->wake();
    return good;
}

bool api_notify_test_is_left(const struct api_notify_test *test)
{
    const struct api_exchange *x = test->job->x;
    return x && x->stop && atomic_load(x->stop);
}

void api_notify_test_end(struct api_notify_test *test, struct api_notifier *notifier)
{
    pthread_mutex_lock(&notifier->lock);
    struct api_receiver_status *of = api_notifier_status(notifier, test->name);
    notifier->n_tests--;
    if (of && of->n_tests > 0) /* the receiver may have come anew */
        of->n_tests--;
    pthread_mutex_unlock(&notifier->lock);
    api_store_job_finish(test->job);
}
