#include "tests/suites/shared_memory/support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct api_service service;
char object[60]; /* its name, which begins with the prefix */
char *bytes;

char *make_object(const char *name, size_t size, bool full)
{
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    cr_assert(fd >= 0, "%s: %s", name, strerror(errno));
    cr_assert_eq(ftruncate(fd, (off_t)size), 0, "%s: %s", name, strerror(errno));
    cr_assert(!full || posix_fallocate(fd, 0, (off_t)size) == 0);
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(map != MAP_FAILED);
    close(fd);
    return map;
}

void resize_object(size_t size)
{
    int fd = shm_open(object, O_RDWR, 0);
    cr_assert(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    close(fd);
}

/* With the time in its name, since the object of a test that crashed stays behind, and a later
 * test may have the same process id. */
static void name_object(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(object, sizeof object, "/kldiv_test_%d_%lld_%ld", (int)getpid(), (long long)now.tv_sec,
             now.tv_nsec);
}

void shared_memory_begin(void)
{
    name_object();
    bytes = make_object(object, OBJECT_SIZE, true);
    service = service_of(1 << 30);
    service.regions = api_regions_new("/kldiv_test_", 4, service.budget);
}

void shared_memory_end(void)
{
    api_regions_free(service.regions);
    munmap(bytes, OBJECT_SIZE);
    shm_unlink(object);
    cr_expect_eq(bytes_held(), 0);
}

struct answer ask_path(const char *method, const char *path, const char *body)
{
    const struct question question = {.method = method, .path = path};
    return ask_question(&question, &service, body, strlen(body));
}

void expect(struct answer answer, int status, const char *code, const char *part)
{
    const struct api_buffer *body = &answer.response.body;
    char text[2000];
    snprintf(text, sizeof text, "%.*s", (int)body->size, body->data ? body->data : "");
    cr_expect_eq(answer.status, status, "%d %s", answer.status, text);
    cr_expect_str_eq(answer.response.code ? answer.response.code : "", code, "%s", text);
    cr_expect(strstr(text, part), "%s is not in %s", part, text);
    answer_free(&answer);
}

struct answer register_region(const char *name, const char *key, size_t offset, size_t size)
{
    char path[100], body[200];
    snprintf(path, sizeof path, REGION "%s/register", name);
    snprintf(body, sizeof body, "{\"key\":\"%s\",\"offset\":%zu,\"byte_size\":%zu}", key, offset,
             size);
    return ask_path("POST", path, body);
}

void register_whole(void) { expect(register_region("a", object, 0, OBJECT_SIZE), 200, "", "{}"); }

void unregister(const char *path) { expect(ask_path("POST", path, ""), 200, "", "{}"); }

static void append_location(char *to, size_t room, const struct location *location)
{
    size_t used = strlen(to);
    snprintf(to + used, room - used,
             "\"parameters\":{\"shared_memory_region\":\"%s\",\"shared_memory_byte_size\":%zu,"
             "\"shared_memory_offset\":%zu}",
             location->region, location->size, location->offset);
}

void write_request(char *to, size_t room, size_t n, const struct location locations[3],
                   const char *reduction)
{
    static const char *const names[] = {"input", "target"};
    snprintf(to, room, "{\"parameters\":{\"reduction\":\"%s\"},\"inputs\":[", reduction);
    for (size_t i = 0; i < 2; i++) {
        size_t used = strlen(to);
        snprintf(to + used, room - used,
                 "%s{\"name\":\"%s\",\"datatype\":\"FP32\",\"shape\":[%zu],", i ? "," : "",
                 names[i], n);
        append_location(to, room, &locations[i]);
        strcat(to, "}");
    }
    strcat(to, "]");
    if (locations[2].region) {
        strcat(to, ",\"outputs\":[{\"name\":\"loss\",");
        append_location(to, room, &locations[2]);
        strcat(to, "}]");
    }
    strcat(to, "}");
}

struct answer infer(size_t n, const struct location locations[3], const char *reduction)
{
    char body[2000];
    write_request(body, sizeof body, n, locations, reduction);
    return ask_path("POST", INFER, body);
}

void fill(size_t n, size_t x_at, size_t t_at)
{
    unsigned long long state = 3;
    for (size_t i = 0; i < n; i++) {
        float x = (float)log(uniform(&state)), t = (float)uniform(&state);
        memcpy(bytes + x_at + i * sizeof x, &x, sizeof x);
        memcpy(bytes + t_at + i * sizeof t, &t, sizeof t);
    }
}
