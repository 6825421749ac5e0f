/* Columns that come and go: monitors that are stale because tables lack their column, and columns without a monitor. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void observe(const struct api_service *service, const char *table)
{
    monitors_expect(service, "POST /monitors/g/observations", table, 200);
}

/* Expects members of the group: how many are stale, and the names of the absent and of the new ones. */
static void expect_group(const struct api_service *service, int stale, const char *absent,
                         const char *new)
{
    char names[400] = "", number[20];
    size_t i;
    json_t *each, *group = monitors_get(service, "GET /groups/g", NULL, 200);
    json_array_foreach(at(group, "absent"), i, each)
    {
        strcat(names, i ? "," : "");
        strcat(names, text_at(each, "name"));
    }
    snprintf(number, sizeof number, "%d", stale);
    expect_at(group, "stale", number);
    cr_expect_str_eq(names, absent);
    *names = '\0';
    json_array_foreach(at(group, "new"), i, each)
    {
        strcat(names, i ? "," : "");
        strcat(names, json_string_value(each));
    }
    cr_expect_str_eq(names, new);
    json_decref(group);
}

static void expect_stale(const struct api_service *service, const char *name, bool stale)
{
    char line[100];
    snprintf(line, sizeof line, "GET /monitors/g/%s", name);
    json_t *config = monitors_get(service, line, NULL, 200);
    expect_at(config, "stale", stale ? "true" : "false");
    json_decref(config);
}

Test(monitors_missed, three_tables_without_a_column_make_its_monitor_stale)
{
    static const char *const windows[] = {"batch", "1000"};
    for (size_t w = 0; w < COUNT(windows); w++) {
        struct api_service service = monitors_new(100);
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/g?window=%s", windows[w]);
        monitors_expect(&service, line, "a,b\n1,2\n3,4\n", 201);
        observe(&service, "a,b\n1,2\n");
        for (int i = 0; i < 3; i++) {
            expect_group(&service, 0, "", "");
            observe(&service, "a\n1\n");
        }
        expect_group(&service, 1, "b", "");
        expect_stale(&service, "b", true);
        expect_stale(&service, "a", false);
        observe(&service, "a\n1\n");
        expect_group(&service, 1, "b", "");
        monitors_expect(&service, "POST /monitors/g/b/observations", "{\"values\":[1]}", 200);
        expect_group(&service, 0, "", "");
        monitors_end(&service);
    }
}

Test(monitors_missed, only_tables_in_a_row_count)
{
    static const char *const others[] = {"POST /monitors/g/evaluate",
                                         "POST /monitors/g/a/observations"};
    struct api_service service = monitors_new(100);
    monitors_expect(&service, "PUT /monitors/g", "a,b\n1,2\n3,4\n", 201);
    for (int i = 0; i < 4; i++) {
        observe(&service, "a\n1\n");
        observe(&service, "a\n1\n");
        for (size_t j = 0; j < COUNT(others); j++)
            monitors_expect(&service, others[j], "a\n1\n", 200);
        observe(&service, "a\n"); /* a header alone stores nothing */
        monitors_refused(&service, "POST /monitors/g/observations", "c\n1\n", "columns_unknown");
        expect_group(&service, 0, "", "");
        observe(&service, "b\n1\n");
    }
    monitors_end(&service);
}

/* A time says when a monitor is stale, if there is one. */
Test(monitors_missed, a_time_decides_where_there_is_one)
{
    struct api_service service = monitors_new(100);
    monitors_expect(&service, "PUT /monitors/g?stale_after=3600", "a,b\n1,2\n3,4\n", 201);
    observe(&service, "a,b\n1,2\n");
    for (int i = 0; i < 4; i++)
        observe(&service, "a\n1\n");
    expect_group(&service, 0, "", "");
    monitors_expect(&service, "PATCH /monitors/g", "{\"stale_after\":null}", 200);
    for (int i = 0; i < 4; i++)
        observe(&service, "a\n1\n");
    expect_group(&service, 1, "b", "");
    monitors_expect(&service, "PUT /monitors/h?window=60s", "a,b\n1,2\n3,4\n", 201);
    monitors_expect(&service, "POST /monitors/h/observations?timestamp=1000", "a,b\n1,2\n", 200);
    json_t *group = monitors_get(&service, "GET /groups/h", NULL, 200);
    expect_at(group, "stale", "2");
    expect_at(group, "absent", "[]"); /* all are silent */
    json_decref(group);
    monitors_expect(&service, "POST /monitors/h/observations", "a\n1\n", 200);
    group = monitors_get(&service, "GET /groups/h", NULL, 200);
    expect_at(group, "absent", "[{\"last_observation\":\"1970-01-01T00:16:40Z\",\"name\":\"b\"}]");
    json_decref(group);
    monitors_end(&service);
}

/* A time of tomorrow, which is accepted, says nothing of a silence from now on. */
Test(monitors_missed, a_time_ahead_of_the_clock_hides_no_silence)
{
    struct api_service service = monitors_new(100);
    char line[120];
    monitors_expect(&service, "PUT /monitors/g?stale_after=0.5", "a\n1\n2\n", 201);
    snprintf(line, sizeof line, "POST /monitors/g/observations?timestamp=%ld", time(NULL) + 82800);
    monitors_expect(&service, line, "a\n1\n", 200);
    expect_stale(&service, "a", false);
    usleep(600000);
    expect_stale(&service, "a", true);
    monitors_end(&service);
}

/* ---- Events of silences */

/* Waits until there are `n` events, and expects the newest to be from and to these states. */
static void expect_events(const struct api_service *service, const char *list, size_t n,
                          const char *from, const char *to)
{
    json_t *events = NULL;
    for (int i = 0; i < 1000; i++) {
        json_decref(events);
        events = monitors_get(service, list, NULL, 200);
        if (json_array_size(at(events, "events")) >= n)
            break;
        usleep(10000);
    }
    cr_expect_eq(json_array_size(at(events, "events")), n);
    const json_t *event = json_array_get(at(events, "events"), 0);
    cr_expect_str_eq(text_at(event, "from"), from);
    cr_expect_str_eq(text_at(event, "to"), to);
    expect_at(event, "window", "null");
    expect_at(event, "kl", "null");
    json_decref(events);
}

static const char *const event_lists[] = {"GET /monitors/g/b/events", "GET /events"};

Test(monitors_missed, begin_and_end_of_a_silence_are_events)
{
    struct database database = database_new();
    struct api_service service = monitors_new_at(100, database.location);
    monitors_expect(&service, "PUT /monitors/g", "a,b\n1,2\n3,4\n", 201);
    for (int i = 0; i < 3; i++)
        observe(&service, "a\n1\n");
    for (size_t i = 0; i < COUNT(event_lists); i++)
        expect_events(&service, event_lists[i], 1, "insufficient_data", "stale");
    monitors_restart(&service, 100);
    observe(&service, "a\n1\n");
    observe(&service, "a,b\n1,2\n");
    for (size_t i = 0; i < COUNT(event_lists); i++)
        expect_events(&service, event_lists[i], 2, "stale", "insufficient_data");
    monitors_end(&service);
    database_free(&database);
}

Test(monitors_missed, a_silence_by_time_is_an_event)
{
    struct api_service service = monitors_new(100);
    monitors_expect(&service, "PUT /monitors/g?stale_after=0.3", "b\n1\n2\n", 201);
    observe(&service, "b\n1\n");
    expect_events(&service, event_lists[0], 1, "insufficient_data", "stale");
    monitors_end(&service);
}

/* ---- Columns without a monitor */

Test(monitors_missed, new_columns_are_told_and_forgotten)
{
    struct database database = database_new();
    struct api_service service = monitors_new_at(100, database.location);
    monitors_expect(&service, "PUT /monitors/g?exclude=id", "id,a\n7,1\n8,2\n", 201);
    observe(&service, "id,a,x,,y\n1,1,1,1,1\n");
    expect_group(&service, 0, "", "x,y"); /* id was left out */
    monitors_expect(&service, "POST /monitors/g/evaluate", "a,z\n1,1\n", 200);
    for (int i = 0; i < 2; i++)
        observe(&service, "a,y\n1,1\n");
    monitors_restart(&service, 100);
    expect_group(&service, 0, "", "x,y");
    observe(&service, "a,x,y\n1,1,1\n");
    for (int i = 0; i < 3; i++) {
        expect_group(&service, 0, "", "x,y");
        observe(&service, "a,y\n1,1\n");
    }
    expect_group(&service, 0, "", "y");
    monitors_expect(&service, "PUT /monitors/g?include=y", "y\n1\n2\n", 201);
    expect_group(&service, 0, "", "");
    monitors_expect(&service, "DELETE /monitors/g/y", NULL, 204);
    observe(&service, "a,y\n1,1\n");
    expect_group(&service, 0, "", ""); /* nobody wants it */
    observe(&service, "a,x\n1,1\n");
    expect_group(&service, 0, "", "x");
    monitors_expect(&service, "PUT /monitors/g?exclude=x", "a,x\n1,1\n2,2\n", 200);
    expect_group(&service, 0, "", "");
    monitors_restart(&service, 100);
    observe(&service, "a,x,y,id\n1,1,1,1\n");
    expect_group(&service, 0, "", "");
    monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
    monitors_expect(&service, "PUT /monitors/g", "a\n1\n2\n", 201);
    observe(&service, "a,x\n1,1\n");
    expect_group(&service, 0, "", "x"); /* another group of the name */
    monitors_end(&service);
    database_free(&database);
}

static void append_names(struct api_buffer *to, const char *format, int n)
{
    api_append_text(to, "a");
    for (int i = 0; i < n; i++)
        api_append_format(to, format, i);
    api_append_text(to, "\n1");
    for (int i = 0; i < n; i++)
        api_append_text(to, ",2");
    api_append(to, "\n", 2);
}

/* Names are bounded: in a group, and in all. */
Test(monitors_missed, few_new_columns_are_kept)
{
    struct api_service service = monitors_new(1000);
    struct api_buffer table = {0};
    size_t kept = 0;
    append_names(&table, ",new column %d", 3000);
    for (int i = 0; i < 110; i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/g%d", i);
        monitors_expect(&service, line, "a\n1\n2\n", 201);
        snprintf(line, sizeof line, "POST /monitors/g%d/observations", i);
        monitors_expect(&service, line, table.data, 200);
        snprintf(line, sizeof line, "GET /groups/g%d", i);
        json_t *group = monitors_get(&service, line, NULL, 200);
        size_t n = json_array_size(at(group, "new"));
        cr_expect(n == 100 || (i >= 100 && n == 0), "%zu of group %d", n, i);
        kept += n;
        json_decref(group);
    }
    cr_expect_eq(kept, 10000, "%zu", kept);
    api_buffer_free(&table);
    monitors_end(&service);
}

/* Names that no monitor can have, and columns that are not read. */
Test(monitors_missed, only_columns_that_could_have_a_monitor_are_new)
{
    struct api_service service = monitors_new(100);
    char name[200];
    monitors_expect(&service, "PUT /monitors/g", "a\n1\n2\n", 201);
    memset(name, 'n', 150);
    strcpy(name + 150, ",a,..,observations\n1,1,1,1\n");
    observe(&service, name);
    observe(&service, "{\"columns\":{\"a\":[1],\"nested\":[[1]],\"\xc3\xa9\":[2]}}");
    expect_group(&service, 0, "", "\xc3\xa9");
    monitors_end(&service);
}

/* Random tables, against a count by hand. */
Test(monitors_missed, are_those_of_a_model)
{
    enum { COLUMNS = 6 };
    struct api_service service = monitors_new(100);
    unsigned long long seed = 11;
    int missed[2 * COLUMNS] = {0};
    bool known[2 * COLUMNS] = {false}; /* the first half have monitors, the others none */
    struct api_buffer head = {0}, row = {0};
    monitors_expect(&service, "PUT /monitors/g", "ma,mb,mc,md,me,mf\n1,2,3,4,5,6\n2,3,4,5,6,7\n",
                    201);
    for (int round = 0; round < SOME_OF(300); round++) {
        char absent[100] = "", new[100] = "";
        int stale = 0;
        head.size = row.size = 0;
        for (int c = 0; c < 2 * COLUMNS; c++) {
            bool has = c == 0 || uniform(&seed) < 0.4;
            missed[c] = has ? 0 : missed[c] + 1;
            known[c] = has || (known[c] && missed[c] < 3);
            if (has) {
                api_append_format(&head, "%s%c%c", head.size ? "," : "", c < COLUMNS ? 'm' : 'n',
                                  'a' + c);
                api_append_text(&row, row.size ? ",1" : "1");
            }
            char *to = c < COLUMNS ? absent : new;
            if (c < COLUMNS ? missed[c] >= 3 : known[c])
                sprintf(to + strlen(to), "%s%c%c", *to ? "," : "", c < COLUMNS ? 'm' : 'n',
                        'a' + c);
            stale += c < COLUMNS && missed[c] >= 3;
        }
        api_append(&head, "\n", 1);
        api_append(&head, row.data, row.size);
        api_append(&head, "\n", 2);
        observe(&service, head.data);
        expect_group(&service, stale, absent, new);
    }
    api_buffer_free(&head);
    api_buffer_free(&row);
    monitors_end(&service);
}
