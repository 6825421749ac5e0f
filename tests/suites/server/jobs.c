/* Threads for large requests: who runs while all of them are held, and who is next. */
#include "server/request/jobs.h"
#include "tests/suites/support/crowd.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <pthread.h>

enum { MAX = 64 };

/* held: a job that runs until one of its kind may end. */
struct held {
    struct srv_job job;
    enum srv_queue kind;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int may_end[SRV_QUEUES]; /* so many more that run, or will */
    int running[SRV_QUEUES], total;
    enum srv_queue order[MAX]; /* of the begins */
    struct held jobs[MAX];
    size_t n;
} work = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hold(struct srv_job *job)
{
    enum srv_queue kind = ((struct held *)job)->kind;
    pthread_mutex_lock(&work.lock);
    work.order[work.total++] = kind;
    work.running[kind]++;
    while (work.may_end[kind] == 0)
        pthread_cond_wait(&work.changed, &work.lock);
    work.may_end[kind]--;
    work.running[kind]--;
    pthread_mutex_unlock(&work.lock);
}

static void add(enum srv_queue kind, int n)
{
    for (int i = 0; i < n; i++) {
        struct held *held = &work.jobs[work.n++];
        *held = (struct held){.job = {.run = hold}, .kind = kind};
        cr_assert_null(srv_jobs_add(kind, &held->job));
    }
}

static void let_go(enum srv_queue kind, int n)
{
    pthread_mutex_lock(&work.lock);
    work.may_end[kind] = n;
    pthread_cond_broadcast(&work.changed);
    pthread_mutex_unlock(&work.lock);
}

/* Waits until so many jobs of a kind run, and sees that no more do. */
static void expect_running(enum srv_queue kind, int n)
{
    double end = now_seconds() + 10;
    while (work.running[kind] < n && now_seconds() < end)
        wait_ms(1);
    wait_ms(30);
    cr_expect_eq(work.running[kind], n, "kind %d: %d of %d", kind, work.running[kind], n);
}

Test(jobs, leave_threads_to_more_urgent_ones)
{
    static const int cases[][3] = {{1, 1, 1}, {2, 2, 1}, {4, 4, 1}, {8, 8, 2}, {16, 16, 4}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int *n = cases[i]; /* threads; huge jobs, and large ones beside them, that run */
        work.n = 0;
        work.total = 0;
        cr_assert(srv_jobs_start((size_t)n[0]));
        add(SRV_HUGE, n[1] + 2);
        expect_running(SRV_HUGE, n[1]);
        add(SRV_LARGE, n[2] + 2);
        expect_running(SRV_LARGE, n[2]);
        add(SRV_PROBES, 2);
        expect_running(SRV_PROBES, 1);
        for (int kind = 0; kind < SRV_QUEUES; kind++)
            let_go((enum srv_queue)kind, MAX);
        srv_jobs_stop();
        cr_expect_eq(srv_jobs_pending(), 0);
        cr_expect_eq(work.total, (int)work.n);
        for (int kind = 0; kind < SRV_QUEUES; kind++)
            let_go((enum srv_queue)kind, 0);
    }
}

/* Large jobs leave a quarter to huge ones; of those that wait for a thread, the urgent begin first. */
Test(jobs, begin_by_urgency_and_in_order)
{
    cr_assert(srv_jobs_start(4));
    add(SRV_LARGE, 6);
    expect_running(SRV_LARGE, 4);
    add(SRV_HUGE, 3);
    expect_running(SRV_HUGE, 1);
    add(SRV_LARGE, 1);
    for (int total = 5; total < 8; total++) {
        double end = now_seconds() + 10;
        let_go(SRV_LARGE, 1);
        while (work.total == total && now_seconds() < end)
            wait_ms(1);
        cr_expect_eq(work.order[total], SRV_LARGE, "%d", total);
    }
    let_go(SRV_LARGE, MAX);
    expect_running(SRV_HUGE, 3);
    let_go(SRV_HUGE, MAX);
    srv_jobs_stop();
    cr_expect_eq(work.total, 10);
}
