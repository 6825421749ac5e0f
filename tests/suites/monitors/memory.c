/* Memory that monitors hold between requests: it is in the budget. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

/* Bytes that the program has allocated, but for the store in memory. */
static size_t allocated(void)
{
#if defined(__SANITIZE_ADDRESS__)
    size_t all = __sanitizer_get_current_allocated_bytes();
#else
    struct mallinfo2 info = mallinfo2();
    size_t all = info.uordblks + info.hblkhd;
#endif
    return all - (size_t)sqlite3_memory_used();
}

static size_t retained(const struct api_service *service)
{
    return atomic_load(&service->budget->retained);
}

/* Appends a monitor of `n` bins: edges, or labels of `length` characters and more. */
static void write_config(struct api_buffer *to, size_t n, size_t length, const char *window)
{
    api_append_format(to, "{\"bins\":{\"%s\":[", length ? "labels" : "edges");
    for (size_t i = 0; i < n + (length == 0); i++) {
        api_append_text(to, i ? "," : "");
        for (size_t j = 0; j < length; j++)
            api_append_text(to, j ? "x" : "\"");
        api_append_format(to, length ? "%zu\"" : "%zu.125", i);
    }
    api_append_format(to, "]},\"window\":%s,\"reference\":{\"counts\":[", window);
    for (size_t i = 0; i < n; i++)
        api_append_format(to, "%s%zu", i ? "," : "", 1000 + i);
    api_append_text(to, "]}}");
    api_append(to, "", 1);
}

static void write_counts(struct api_buffer *to, size_t n)
{
    api_append_text(to, "{\"counts\":[");
    for (size_t i = 0; i < n; i++)
        api_append_text(to, i ? ",1" : "1");
    api_append_text(to, "]}");
    api_append(to, "", 1);
}

/* Makes monitors that all have an open window. */
static void make_monitors(struct api_service *service, size_t count, size_t bins, size_t length)
{
    struct api_buffer config = {0}, counts = {0};
    write_config(&config, bins, length, "{\"count\":1000000}");
    write_counts(&counts, bins);
    for (size_t i = 0; i < count; i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/group/monitor_%zu", i);
        monitors_expect(service, line, config.data, 201);
        snprintf(line, sizeof line, "POST /monitors/group/monitor_%zu/observations", i);
        monitors_expect(service, line, counts.data, 200);
    }
    api_buffer_free(&config);
    api_buffer_free(&counts);
}

Test(monitors_memory, is_counted)
{
    cr_assert_eq(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1), SQLITE_OK);
    cr_assert_eq(sqlite3_initialize(), SQLITE_OK); /* later calls do not undo that */
    static const struct {
        size_t count, bins, length;
    } cases[] = {{300, 10, 0}, {100, 100, 0}, {30, 1000, 0}, {100, 20, 40}, {30, 500, 60}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(1000);
        make_monitors(&service, 1, cases[i].bins, cases[i].length); /* what is made once */
        size_t before = allocated(), counted = retained(&service);
        monitors_expect(&service, "DELETE /monitors/group", NULL, 204);
        make_monitors(&service, cases[i].count, cases[i].bins, cases[i].length);
        size_t grown = allocated() - before, more = retained(&service) - counted;
        cr_expect_geq(more, grown, "%zu bins: %zu bytes of %zu are counted", cases[i].bins, more,
                      grown);
        cr_expect_leq(more, 4 * grown, "%zu bins: %zu bytes for %zu", cases[i].bins, more, grown);
        monitors_end(&service);
        cr_expect_eq(retained(&service), 0);
    }
}

/* However many monitors there are, a quarter of the memory is for those that are in memory; a store in memory has half. */
Test(monitors_memory, is_bounded)
{
    enum { MANY = 60 };
    struct api_service service = monitors_new(100000);
    struct api_buffer config = {0}, counts = {0};
    service.budget->limit = 4 << 20;
    write_config(&config, 1000, 0, "\"batch\"");
    write_counts(&counts, 1000);
    for (int i = 0; i < MANY; i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/group/monitor_%d", i);
        monitors_expect(&service, line, config.data, 201);
        snprintf(line, sizeof line, "POST /monitors/group/monitor_%d/observations", i);
        monitors_expect(&service, line, counts.data, 200);
    }
    cr_expect_leq(retained(&service), 3 << 20);
    monitors_expect(&service, "GET /monitors/group/monitor_0", NULL, 200);
    monitors_expect(&service, "PUT /monitors/group/monitor_0?critical=7", config.data, 200);
    monitors_expect(&service, "GET /metrics", NULL, 200);
    monitors_expect(&service, "DELETE /monitors/group", NULL, 204);
    monitors_expect(&service, "PUT /monitors/group/monitor_0", config.data, 201);
    api_buffer_free(&config);
    api_buffer_free(&counts);
    monitors_end(&service);
}

/* There may be one monitor for each 16 KiB of the memory, since /metrics has lines of all. */
Test(monitors_memory, bounds_the_number_of_monitors)
{
    enum { MIB = 6, MOST = MIB * 64 };
    static const char config[] = "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[1]}}";
    struct api_service service = monitors_new(100000);
    char line[100];
    service.budget->limit = MIB << 20;
    for (int i = 0; i < MOST; i++) {
        snprintf(line, sizeof line, "PUT /monitors/group/monitor_%d", i);
        monitors_expect(&service, line, config, 201);
    }
    struct answer answer = monitors_ask(&service, "PUT /monitors/group/more", config);
    cr_expect_eq(answer.status, 503);
    cr_expect_str_eq(text_of(answer.json, "detail"),
                     "there would be 385 monitors, and --max-memory allows 384, one for each 16 "
                     "KiB");
    answer_free(&answer);
    monitors_expect(&service, "PUT /monitors/group/monitor_0?critical=7", config, 200);
    monitors_expect(&service, "GET /metrics", NULL, 200);
    monitors_expect(&service, "DELETE /monitors/group/monitor_1", NULL, 204);
    monitors_expect(&service, "PUT /monitors/group/more", config, 201);
    monitors_end(&service);
}

/* A store in memory grows with its windows, which are of the same half. */
Test(monitors_memory, holds_the_store_that_is_in_memory)
{
    struct api_service service = monitors_new(10);
    struct api_buffer config = {0}, counts = {0};
    if (getenv("KLDIV_TEST_STORE"))
        cr_skip_test("the store is a database");
    service.budget->limit = 8 << 20;
    write_config(&config, 1000, 0, "\"batch\"");
    monitors_expect(&service, "PUT /monitors/g/m", config.data, 201);
    write_counts(&counts, 1000);
    int i = 0, status;
    do {
        struct answer answer =
            monitors_ask(&service, "POST /monitors/g/m/observations", counts.data);
        status = answer.status;
        if (status != 200)
            cr_expect_str_eq(text_of(answer.json, "code"), "store_full");
        answer_free(&answer);
        cr_assert_lt(i, 10000);
    } while (status == 200 && ++i);
    cr_expect_gt(i, 30);
    cr_expect_leq(retained(&service), (4 << 20) + (64 << 10));
    monitors_expect(&service, "GET /monitors/g/m/windows?limit=1", NULL, 200);
    monitors_expect(&service, "PUT /monitors/g/m?retention_days=30", config.data, 200);
    monitors_expect(&service, "DELETE /monitors/g/m", NULL, 204);
    for (int tries = 0; retained(&service) > 2 << 20 && tries < 200; tries++)
        usleep(50000); /* until its windows are swept */
    monitors_expect(&service, "PUT /monitors/g/m", config.data, 201);
    monitors_expect(&service, "POST /monitors/g/m/observations", counts.data, 200);
    api_buffer_free(&config);
    api_buffer_free(&counts);
    monitors_end(&service);
}
