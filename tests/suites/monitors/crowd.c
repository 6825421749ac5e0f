/* Monitors that are made, replaced and deleted while others read them. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { READERS = 3, GROUPS = 40, COLUMNS = 20 };

static struct api_service service;
static atomic_bool is_over;

static void expect_one_of(struct answer answer, int status, int other)
{
    cr_expect(answer.status == status || answer.status == other, "%d", answer.status);
    answer_free(&answer);
}

static void *read_on(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over)) {
        expect_one_of(monitors_ask(&service, "GET /monitors?limit=1000", NULL), 200, 200);
        expect_one_of(monitors_ask(&service, "GET /monitors/g0", NULL), 200, 404);
        expect_one_of(monitors_ask(&service, "GET /monitors/g0/c0", NULL), 200, 404);
        expect_one_of(
            monitors_ask(&service, "POST /monitors/g0/c0/observations", "{\"values\":[1,2,3]}"),
            200, 404);
        expect_one_of(monitors_ask(&service, "GET /metrics", NULL), 200, 200);
    }
    return NULL;
}

/* Writes a table of as many columns, with a row of numbers. */
static void write_table(char *to, size_t size, int seed)
{
    size_t used = 0;
    for (int i = 0; i < COLUMNS; i++)
        used += (size_t)snprintf(to + used, size - used, "%sc%d", i ? "," : "", i);
    used += (size_t)snprintf(to + used, size - used, "\n");
    for (int i = 0; i < COLUMNS; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%d", i ? "," : "", i + seed);
}

Test(monitors_crowd, reads_what_is_there_while_it_changes)
{
    pthread_t readers[READERS];
    char line[60], table[2000];
    service = monitors_new(GROUPS * COLUMNS);
    for (size_t i = 0; i < READERS; i++)
        cr_assert_eq(pthread_create(&readers[i], NULL, read_on, NULL), 0);
    for (int g = 0; g < GROUPS; g++) {
        write_table(table, sizeof table, g);
        snprintf(line, sizeof line, "PUT /monitors/g%d", g);
        monitors_expect(&service, line, table, 201);
        monitors_expect(&service, "PUT /monitors/g0?method=width", table, g % 3 == 1 ? 201 : 200);
        if (g % 3 == 0)
            monitors_expect(&service, "DELETE /monitors/g0", NULL, 204);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    monitors_end(&service);
}
