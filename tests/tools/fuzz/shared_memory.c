/* Inferences on shared memory, and registrations: the first byte chooses. */
#include "api/regions/region.h"
#include "api/regions/regions.h"
#include "tests/tools/fuzz/ask.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OBJECT_SIZE = 1 << 16 };

static const char *const paths[] = {"/v2/models/kl_div/infer",
                                    "/v2/systemsharedmemory/region/b/register",
                                    "/v2/systemsharedmemory/region/a/unregister"};
#define PATHS (sizeof paths / sizeof *paths)

/* Makes an object that goes with the process. */
static void make_object(const char *name)
{
    int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, OBJECT_SIZE) != 0)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char object[60];
    struct api_problem problem = {0};
    const struct api_region_key key = {object, 0, OBJECT_SIZE};
    snprintf(object, sizeof object, "/kldiv_fuzz_%d", (int)getpid());
    make_object(object);
    struct api_regions *regions = api_regions_new("kldiv_fuzz_", 4, NULL);
    if (!regions || size < 1 || !api_regions_register(regions, "a", &key, &problem))
        size = 0;
    for (size_t i = 0; size > 0 && i < 2; i++) /* an inference may follow what the byte chose */
        ask_of_regions(regions, (struct question){.path = paths[i ? 0 : data[0] % PATHS]}, data + 1,
                       size - 1);
    api_regions_free(regions);
    shm_unlink(object);
    return 0;
}
