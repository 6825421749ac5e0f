/* Shared memory and the real server, whose system calls and files are bounded. */
#include "tests/suites/shared_memory/support.h"
#include "tests/suites/support/process.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(shared_memory_server, .init = shared_memory_begin, .fini = shared_memory_end);

static const char *const flags[] = {"--shared-memory", "/kldiv_test_", NULL};

enum { N = 130000 };
static const struct location reduced[] = {{"a", 0, 4 * N}, {"a", 4 * N, 4 * N}, {NULL}};
static const struct location written[] = {{"a", 0, 4000}, {"a", 4000, 4000}, {"a", 8000, 4000}};

static struct fetched post(const struct server *server, const char *target, const char *body)
{
    return fetch(server, "POST", target, NULL, body, strlen(body));
}

static void expect_from(struct fetched f, long status, const char *part)
{
    char text[3000];
    snprintf(text, sizeof text, "%.*s", (int)f.body.size, f.body.data ? f.body.data : "");
    cr_expect_eq(f.status, status, "%ld %s", f.status, text);
    cr_expect(strstr(text, part), "%s is not in %s", part, text);
    fetched_free(&f);
}

static struct fetched register_at(const struct server *server, const char *name)
{
    char body[200];
    snprintf(body, sizeof body, "{\"key\":\"%s\",\"offset\":0,\"byte_size\":%d}", object,
             OBJECT_SIZE);
    char path[100];
    snprintf(path, sizeof path, REGION "%s/register", name);
    return post(server, path, body);
}

static struct fetched infer_at(const struct server *server, size_t n,
                               const struct location locations[3], const char *reduction)
{
    char body[2000];
    write_request(body, sizeof body, n, locations, reduction);
    return post(server, INFER, body);
}

/* Requests of Triton's clients, but for the fields of the header that all have: in Python, and in C++,
 * which tells the length of the JSON also where nothing follows. */
static const char *const as_python =
    "POST /v2/systemsharedmemory/region/a/register HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Length: %zu\r\nConnection: close\r\n\r\n%s";
static const char *const as_cpp = "POST /v2/models/kl_div/versions/1/infer HTTP/1.1\r\n"
                                  "Host: localhost\r\nAccept: */*\r\n"
                                  "Inference-Header-Content-Length: %zu\r\n"
                                  "Content-Type: application/octet-stream\r\n"
                                  "Content-Length: %zu\r\nConnection: close\r\n\r\n%s";

Test(shared_memory_server, speaks_to_clients_of_triton)
{
    char request[3000], body[2000], answer[4000];
    struct server server = server_start(flags);
    fill(1000, 0, 4000);
    expect_from(post(&server, "/v2/systemsharedmemory/unregister", ""), 200, "{}");
    expect_from(post(&server, "/v2/cudasharedmemory/unregister", ""), 200, "{}");
    snprintf(body, sizeof body, "{\"key\":\"%s\",\"offset\":0,\"byte_size\":%d}", object,
             OBJECT_SIZE);
    snprintf(request, sizeof request, as_python, strlen(body), body);
    talk(&server, request, strlen(request), answer, sizeof answer, 5);
    cr_expect_eq(strncmp(answer, "HTTP/1.1 200", 12), 0, "%s", answer);
    write_request(body, sizeof body, 1000, written, "none");
    snprintf(request, sizeof request, as_cpp, strlen(body), strlen(body), body);
    size_t size = talk(&server, request, strlen(request), answer, sizeof answer - 1, 5);
    answer[size] = '\0';
    cr_expect_eq(strncmp(answer, "HTTP/1.1 200", 12), 0, "%s", answer);
    cr_expect(strstr(answer, "{\"name\":\"loss\",\"datatype\":\"FP32\",\"shape\":[1000]}]}"), "%s",
              answer);
    float first;
    memcpy(&first, bytes + 8000, sizeof first);
    cr_expect_neq(first, 0);
    cr_expect(server_logs(&server, " kind=audit ", 4), "the loss that was written is one of them");
    cr_expect_eq(server_stop(&server, false), 0);
}

static void expect_metric(const struct server *server, const char *line)
{
    struct fetched metrics = fetch(server, "GET", "/metrics", NULL, NULL, 0);
    cr_expect(memmem(metrics.body.data, metrics.body.size, line, strlen(line)), "%s", line);
    fetched_free(&metrics);
}

Test(shared_memory_server, tells_what_is_registered)
{
    char bytes_of_it[80];
    struct server server = server_start(flags);
    snprintf(bytes_of_it, sizeof bytes_of_it, "\nkldiv_shared_memory_bytes %d\n", OBJECT_SIZE);
    expect_metric(&server, "\nkldiv_shared_memory_regions 0\n");
    expect_from(register_at(&server, "a"), 200, "{}");
    expect_metric(&server, "\nkldiv_shared_memory_regions 1\n");
    expect_metric(&server, bytes_of_it);
    cr_expect(server_logs(&server, " names start with prefix=/kldiv_test_", 1));
    cr_expect_eq(server_stop(&server, false), 0);
    struct stat status;
    int fd = shm_open(object, O_RDONLY, 0);
    cr_expect(fd >= 0 && fstat(fd, &status) == 0 && status.st_size == OBJECT_SIZE,
              "the object is its owner's");
    close(fd);
}

/* The server has given up the right of root to open what it does not own or may not read. */
Test(shared_memory_server, goes_by_owner_and_mode)
{
    char path[100];
    struct server server = server_start(flags);
    snprintf(path, sizeof path, "/dev/shm%s", object);
    fill(1000, 0, 4000);
    chmod(path, 0);
    expect_from(register_at(&server, "a"), 400, "owner and mode");
    chmod(path, 0400);
    expect_from(register_at(&server, "a"), 200, "{}");
    expect_from(infer_at(&server, 1000, written, "none"), 400, "for writing");
    chmod(path, 0600);
    expect_from(infer_at(&server, 1000, written, "none"), 200, "\"shape\":[1000]");
    cr_expect_eq(server_stop(&server, false), 0);
}

/* A signal that is sent is no page that is missing: it ends the server, as without shared memory. */
Test(shared_memory_server, ends_by_a_signal_that_is_sent)
{
    int status;
    struct server server = server_start(flags);
    fill(1000, 0, 4000);
    expect_from(register_at(&server, "a"), 200, "{}");
    expect_from(infer_at(&server, 1000, written, "none"), 200, "\"shape\":[1000]");
    kill(server.pid, SIGBUS);
    cr_assert_eq(waitpid(server.pid, &status, 0), server.pid);
    cr_expect_neq(status, 0, "a sanitizer may have taken the signal, and ended the process");
}

static atomic_bool stop;

static void *shorten(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        resize_object(0);
        resize_object(OBJECT_SIZE);
        usleep(100);
    }
    return NULL;
}

Test(shared_memory_server, outlives_clients_that_cut_off_what_it_reads)
{
    pthread_t thread;
    struct server server = server_start(flags);
    cr_assert_eq(pthread_create(&thread, NULL, shorten, NULL), 0);
    for (size_t i = 0; i < 200; i++) {
        struct fetched registered = register_at(&server, "a");
        fetched_free(&registered);
        struct fetched f = infer_at(&server, N, reduced, "sum");
        cr_expect(f.status == 200 || f.status == 400, "%ld", f.status);
        fetched_free(&f);
        expect_from(post(&server, "/v2/systemsharedmemory/unregister", ""), 200, "{}");
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    fill(N, 0, 4 * N);
    expect_from(register_at(&server, "a"), 200, "{}");
    expect_from(infer_at(&server, N, reduced, "sum"), 200, "\"data\":[");
    cr_expect_eq(server_stop(&server, false), 0);
}

Test(shared_memory_server, wants_a_prefix_that_names_can_have)
{
    static const char *const wrong[] = {"", "/a/b", "../a"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char output[1000];
        cr_expect_eq(
            run_server((const char *[]){"--shared-memory", wrong[i], NULL}, output, sizeof output),
            1);
        cr_expect(strstr(output, "--shared-memory"), "%s", output);
    }
}
