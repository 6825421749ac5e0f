/* Tensors in mapped blocks, through the real server. */
#include "tests/suites/support/process.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Sends 64 MiB of float32 and receives 32 MiB: both are mapped blocks. */
Test(large, takes_and_gives_large_tensors)
{
    enum { N = 8 << 20 };
    static const char *const headers[] = {"Content-Type: application/vnd.safetensors",
                                          "Accept: application/x-npy", NULL};
    char header[300];
    size_t bytes = N * sizeof(float);
    snprintf(header, sizeof header,
             "{\"input\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%zu]},"
             "\"target\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}",
             N, bytes, N, bytes, 2 * bytes);
    uint64_t length = strlen(header);
    size_t size = 8 + (size_t)length + 2 * bytes;
    char *body = malloc(size);
    cr_assert(body);
    memcpy(body, &length, 8);
    memcpy(body + 8, header, (size_t)length);
    float *x = malloc(bytes);
    for (size_t i = 0; i < N; i++)
        x[i] = -(float)(i % 1000) / 100;
    memcpy(body + 8 + length, x, bytes);
    for (size_t i = 0; i < N; i++)
        x[i] = 1;
    memcpy(body + 8 + length + bytes, x, bytes);

    struct server server = server_start(NULL);
    for (int i = 0; i < 3; i++) {
        struct fetched f = fetch(&server, "POST", "/kl_div?reduction=none", headers, body, size);
        cr_assert_eq(f.status, 200);
        cr_assert_eq(f.body.size, 128 + bytes + 1, "with the NUL that fetch adds");
        memcpy(x, f.body.data + 128, bytes);
        size_t wrong = 0;
        for (size_t j = 0; j < N; j++)
            wrong += x[j] != (float)(j % 1000) / 100;
        cr_expect_eq(wrong, 0);
        fetched_free(&f);
    }
    cr_expect_eq(server_stop(&server, false), 0);
    free(x);
    free(body);
}
