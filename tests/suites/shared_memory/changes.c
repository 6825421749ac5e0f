/* Shared memory that its owner changes: shortens, replaces, unregisters, writes while a call reads. */
#include "tests/suites/shared_memory/support.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(shared_memory_changes, .init = shared_memory_begin, .fini = shared_memory_end);

/* N: pairs of a call that is too long for a network thread, so that there is a time between its plan and
 * its run. */
enum { N = 130000, X = 0, T = 4 * N, LOSS = 8 * N };
static const struct location reduced[] = {{"a", X, 4 * N}, {"a", T, 4 * N}, {NULL}};
static const struct location written[] = {{"a", X, 4 * N}, {"a", T, 4 * N}, {"b", 0, 4 * N}};

static char inference[2000]; /* a request's body, and padding */

/* Plans the call of the inference, lets something happen, then runs it. */
static struct answer run_around(void (*happen)(void))
{
    const struct question question = {.path = INFER};
    struct api_exchange x = question_exchange(&question, &service, strlen(inference));
    cr_assert(api_begin(&x));
    x.request.body = inference;
    x.request.body_size = strlen(inference);
    cr_assert_not(api_handle(&x, API_LIGHT_NS), "the call waits for a thread with more time");
    happen();
    cr_assert(api_handle(&x, HUGE_VAL));
    return (struct answer){.status = x.response.status, .response = x.response};
}

static void nothing(void) {}
static struct answer infer_now(void) { return run_around(nothing); }

static struct answer infer_around(const struct location locations[3], const char *reduction,
                                  void (*happen)(void))
{
    memset(inference, 0, sizeof inference);
    write_request(inference, sizeof inference - API_PADDING, N, locations, reduction);
    return run_around(happen);
}

static void vanish(void) { resize_object(0); }
static void shrink_by_a_byte(void) { resize_object(8 * N - 1); }
static void unregister_all(void) { unregister("/v2/systemsharedmemory/unregister"); }

static void make_output(char *name, size_t room)
{
    snprintf(name, room, "%s_out", object);
    munmap(make_object(name, 4 * N, false), 4 * N);
    expect(register_region("b", name, 0, 4 * N), 200, "", "{}");
}

Test(shared_memory_changes, regions_that_are_cut_off_before_a_call_are_lost_until_they_grow)
{
    register_whole();
    fill(N, X, T);
    expect(infer(N, reduced, "sum"), 200, "", "\"data\":[");
    resize_object(8 * N - 1);
    expect(infer(N, reduced, "sum"), 400, "region_lost", "#/inputs/1/parameters");
    resize_object(OBJECT_SIZE);
    expect(infer(N, reduced, "sum"), 200, "", "\"data\":[");
}

Test(shared_memory_changes,
     regions_that_vanish_under_a_call_are_lost_until_they_are_registered_again)
{
    register_whole();
    fill(N, X, T);
    expect(infer_around(reduced, "sum", vanish), 400, "region_lost", "register it again");
    resize_object(OBJECT_SIZE);
    fill(N, X, T);
    expect(infer(N, reduced, "sum"), 400, "region_lost", "register it again");
    unregister_all();
    register_whole();
    expect(infer(N, reduced, "sum"), 200, "", "\"data\":[");
}

/* Bytes behind the end of a file in its last page are zeros: no page is missing. */
Test(shared_memory_changes, a_byte_that_is_cut_off_under_a_call_is_noticed)
{
    register_whole();
    fill(N, X, T);
    expect(infer_around(reduced, "sum", shrink_by_a_byte), 400, "region_lost", "#/inputs/1");
}

static char output_name[80];

static void cut_output(void)
{
    int fd = shm_open(output_name, O_RDWR, 0);
    cr_assert(fd >= 0 && ftruncate(fd, 100) == 0);
    close(fd);
}

Test(shared_memory_changes, outputs_that_vanish_under_a_call_are_lost)
{
    register_whole();
    make_output(output_name, sizeof output_name);
    fill(N, X, T);
    expect(infer_around(written, "none", cut_output), 400, "region_lost", "#/outputs/0");
    shm_unlink(output_name);
}

Test(shared_memory_changes, calls_keep_regions_that_are_unregistered)
{
    register_whole();
    make_output(output_name, sizeof output_name);
    fill(N, X, T);
    expect(infer_around(written, "none", unregister_all), 200, "", "\"shape\":[130000]");
    expect(ask_path("GET", "/v2/systemsharedmemory/status", ""), 200, "", "[]");
    shm_unlink(output_name);
}

/* A region is the object that was registered, not the one that has its name later. */
Test(shared_memory_changes, outputs_do_not_go_to_an_object_that_took_the_name)
{
    register_whole();
    make_output(output_name, sizeof output_name);
    shm_unlink(output_name);
    char *other = make_object(output_name, 4 * N, true);
    expect(infer(N, written, "none"), 400, "region_invalid", "another object has the name");
    cr_expect_eq(other[0], 0);
    munmap(other, 4 * N);
    shm_unlink(output_name);
}

Test(shared_memory_changes, inputs_are_those_of_the_object_that_was_registered)
{
    register_whole();
    fill(N, X, T);
    char sum_of_losses[100];
    struct answer answer = infer(N, reduced, "sum");
    const struct api_buffer *body = &answer.response.body;
    const char *data = memmem(body->data, body->size, "\"data\"", strlen("\"data\""));
    cr_assert(data);
    snprintf(sum_of_losses, sizeof sum_of_losses, "%.*s", (int)(body->data + body->size - data),
             data);
    answer_free(&answer);
    shm_unlink(object);
    char *other = make_object(object, OBJECT_SIZE, false);
    expect(infer(N, reduced, "sum"), 200, "", sum_of_losses);
    munmap(other, OBJECT_SIZE);
}

/* ---- Memory */

Test(shared_memory_changes, memory_that_objects_lack_is_counted_until_they_are_unregistered)
{
    register_whole();
    fill(N, X, T);
    expect(infer(N, reduced, "sum"), 200, "", "");
    cr_expect_eq(bytes_held(), 0, "all of the object has memory");
    make_output(output_name, sizeof output_name);
    cr_expect_eq(bytes_held(), 0);
    expect(infer(N, written, "none"), 200, "", "");
    cr_expect_geq(bytes_held(), 4 * N);
    size_t held = bytes_held();
    expect(infer(N, written, "none"), 200, "", "");
    cr_expect_eq(bytes_held(), held, "it has memory now");
    unregister(REGION "b/unregister");
    cr_expect_eq(bytes_held(), 0);
    shm_unlink(output_name);
}

Test(shared_memory_changes, objects_do_not_get_more_memory_than_the_budget_has)
{
    struct api_budget small = {.limit = 400000};
    struct api_regions *regions = service.regions;
    service.regions = api_regions_new("/", 4, &small);
    register_whole();
    make_output(output_name, sizeof output_name);
    expect(infer(N, reduced, "sum"), 200, "", "");
    expect(infer(N, written, "none"), 503, "out_of_memory", "");
    api_regions_free(service.regions);
    cr_expect_eq(atomic_load(&small.used), 0);
    service.regions = regions;
    shm_unlink(output_name);
}

/* Reads from an object of which the first bytes are registered and none has memory. */
static void expect_counted(off_t size)
{
    const struct location inputs[] = {{"s", X, 4 * N}, {"s", T, 4 * N}, {NULL}};
    char name[80];
    snprintf(name, sizeof name, "%s_sparse", object);
    int fd = shm_open(name, O_RDWR, 0);
    cr_assert(fd >= 0 && ftruncate(fd, size) == 0);
    if (geteuid() == 0) /* else the object is this user's, as in the other tests */
        cr_assert(fchmod(fd, 0644) == 0 && seteuid(65534) == 0);
    expect(register_region("s", name, 0, OBJECT_SIZE), 200, "", "{}");
    expect(infer(N, inputs, "sum"), 200, "", "\"data\":[");
    struct stat now;
    cr_expect(fstat(fd, &now) == 0 && now.st_blocks > 0);
    cr_expect_geq(bytes_held(), 512 * (size_t)now.st_blocks, "%zu", bytes_held());
    unregister(REGION "s/unregister");
    cr_assert(seteuid(getuid()) == 0 && ftruncate(fd, 0) == 0);
    close(fd);
}

/* As root, with the rights of a user who may only read the object. */
Test(shared_memory_changes, memory_of_others_objects_and_of_the_largest_is_counted)
{
    char name[80];
    snprintf(name, sizeof name, "%s_sparse", object);
    munmap(make_object(name, OBJECT_SIZE, false), OBJECT_SIZE);
    expect_counted(OBJECT_SIZE);
    expect_counted(INT64_MAX);
    shm_unlink(name);
}

/* A client may declare more than its output needs; a refused call touches nothing. */
Test(shared_memory_changes, memory_that_is_not_touched_is_not_counted)
{
    enum { DECLARED = 64 << 20 };
    const struct location too_small[] = {{"a", X, 40}, {"a", T, 36}, {"b", 0, DECLARED}};
    const struct location small[] = {{"a", X, 40}, {"a", T, 40}, {"b", 0, DECLARED}};
    snprintf(output_name, sizeof output_name, "%s_out", object);
    munmap(make_object(output_name, DECLARED, false), DECLARED);
    register_whole();
    expect(register_region("b", output_name, 0, DECLARED), 200, "", "{}");
    for (size_t i = 0; i < 20; i++) {
        expect(infer(10, too_small, "none"), 400, "inference_malformed", "#/inputs/1");
        expect(infer(10, small, "none"), 200, "", "\"shape\":[10]");
    }
    cr_expect_eq(bytes_held(), (size_t)sysconf(_SC_PAGESIZE), "%zu", bytes_held());
    shm_unlink(output_name);
}

#ifndef __SANITIZE_ADDRESS__ /* which needs more data than any limit */

/* The zeros in place of lost pages are no data, which may be limited. */
Test(shared_memory_changes, regions_are_lost_also_where_data_are_limited)
{
    enum { LARGE = 64 << 20 };
    const struct location locations[] = {{"b", X, 4 * N}, {"b", T, 4 * N}, {"b", LOSS, 4 * N}};
    struct rlimit limit;
    snprintf(output_name, sizeof output_name, "%s_out", object);
    munmap(make_object(output_name, LARGE, false), LARGE);
    expect(register_region("b", output_name, 0, LARGE), 200, "", "{}");
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = 48 << 20;
    cr_assert_eq(setrlimit(RLIMIT_DATA, &limit), 0);
    expect(infer_around(locations, "none", cut_output), 400, "region_lost", "");
    shm_unlink(output_name);
}

#endif

static void register_more(void)
{
    unregister_all();
    for (size_t i = 0; i < 3; i++) {
        char name[10];
        snprintf(name, sizeof name, "c%zu", i);
        expect(register_region(name, object, 0, 1), 200, "", "{}");
    }
    expect(register_region("c3", object, 0, 1), 400, "too_many_regions", "");
}

Test(shared_memory_changes, regions_count_until_their_last_call_ends)
{
    register_whole();
    fill(N, X, T);
    expect(infer_around(reduced, "sum", register_more), 200, "", "\"data\":[");
    expect(register_region("c3", object, 0, 1), 200, "", "{}");
}

Test(shared_memory_changes, failed_allocations_lose_nothing)
{
    char path[100], body[200];
    snprintf(path, sizeof path, REGION "a/register");
    snprintf(body, sizeof body, "{\"key\":\"%s\",\"byte_size\":100}", object);
    bool failed = true;
    for (long n = 0; failed; n++) {
        fail_allocation(n, false);
        struct answer answer = ask_path("POST", path, body);
        failed = allocation_failed();
        cr_expect(answer.status == (failed ? 503 : 200), "%ld: %d", n, answer.status);
        answer_free(&answer);
    }
    unregister_all();
}

/* ---- At the same time */

static atomic_bool stop;

/* Writes any bytes over input and target, and over them again. */
static void *scribble(void *unused)
{
    unsigned long long state = 9;
    (void)unused;
    while (!atomic_load(&stop))
        for (size_t i = 0; i + 8 <= LOSS; i += 8) {
            uniform(&state);
            memcpy(bytes + i, &state, 8);
        }
    return NULL;
}

static void *shorten(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        resize_object(0);
        resize_object(OBJECT_SIZE);
    }
    return NULL;
}

Test(shared_memory_changes, data_that_change_under_a_call_give_some_loss)
{
    static const char *const reductions[] = {"sum", "mean", "batchmean"};
    pthread_t thread;
    register_whole();
    cr_assert_eq(pthread_create(&thread, NULL, scribble, NULL), 0);
    for (size_t i = 0; i < 60; i++)
        expect(infer(N, reduced, reductions[i % COUNT(reductions)]), 200, "", "\"data\":[");
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

Test(shared_memory_changes, objects_that_shrink_and_grow_all_the_time_lose_no_more_than_their_calls)
{
    pthread_t thread;
    size_t lost = 0;
    cr_assert_eq(pthread_create(&thread, NULL, shorten, NULL), 0);
    for (size_t i = 0; i < 300; i++) {
        answer_free(&(struct answer[]){register_region("a", object, 0, OBJECT_SIZE)}[0]);
        struct answer answer = infer(N, reduced, "sum");
        bool is_lost = answer.status == 400;
        cr_expect(answer.status == 200 || is_lost, "%d", answer.status);
        lost += is_lost;
        answer_free(&answer);
        unregister_all();
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    cr_expect_gt(lost, 0);
}

static void *flip_an_index(void *unused)
{
    volatile int32_t *index = (volatile int32_t *)(bytes + T);
    (void)unused;
    while (!atomic_load(&stop))
        *index = *index == 3 ? INT32_MAX : 3;
    return NULL;
}

/* Indices are checked before derivatives are written to their places: if they were read again, some would be written
 * outside of the gradient. */
Test(shared_memory_changes, indices_that_change_under_a_call_are_used_as_they_were_checked)
{
    enum { LENGTH = 5000 };
    static const int32_t indices[] = {3, 1};
    pthread_t thread;
    register_whole();
    fill(N, X, T);
    memcpy(bytes + T, indices, sizeof indices);
    snprintf(
        inference, sizeof inference - API_PADDING,
        "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1,%d],\"parameters\":{"
        "\"shared_memory_region\":\"a\",\"shared_memory_byte_size\":%d}},{\"name\":\"indices\","
        "\"datatype\":\"INT32\",\"shape\":[1,2],\"parameters\":{\"shared_memory_region\":\"a\","
        "\"shared_memory_offset\":%d,\"shared_memory_byte_size\":8}},{\"name\":\"target\","
        "\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[0.5,0.25]}],\"parameters\":"
        "{\"gradient\":\"input\"}}",
        LENGTH, 4 * LENGTH, T);
    cr_assert_eq(pthread_create(&thread, NULL, flip_an_index, NULL), 0);
    enum { CALLS = 300, MOST = 300000 }; /* a thread may be late to begin */
    size_t good = 0, refused = 0, calls = 0;
    for (; calls < CALLS || ((good == 0 || refused == 0) && calls < MOST); calls++) {
        struct answer answer = infer_now();
        good += answer.status == 200;
        refused += answer.status == 400 || answer.status == 422;
        answer_free(&answer);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    cr_expect_gt(good, 0);
    cr_expect_gt(refused, 0);
    cr_expect_eq(good + refused, calls);
}
