/* Texts that are no labels are named, with how often they occur. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MONITOR "{\"bins\":{\"labels\":[\"a\",\"b\",1]},\"reference\":{\"counts\":[100,100,100]}}"
#define OBSERVE "POST /monitors/g/m/observations"

enum { TEXTS = 60, WINDOWS = 3, KEPT = 20, TOLD = 10 };

struct text {
    int number;
    size_t count;
};

static int compare(const void *a, const void *b)
{
    const struct text *first = a, *second = b;
    char names[2][20];
    if (first->count != second->count)
        return first->count > second->count ? -1 : 1;
    snprintf(names[0], sizeof names[0], "t%d", first->number);
    snprintf(names[1], sizeof names[1], "t%d", second->number);
    return strcmp(names[0], names[1]);
}

/* Adds the most frequent texts of a request to those of a window, and keeps the most frequent of these. */
static void merge(size_t *window, const size_t *request)
{
    struct text texts[TEXTS];
    const size_t *const counts[] = {request, window};
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < TEXTS; i++)
            texts[i] = (struct text){i, counts[part][i]};
        qsort(texts, TEXTS, sizeof *texts, compare);
        for (int i = 0; i < KEPT && part == 0; i++)
            window[texts[i].number] += texts[i].count;
        for (int i = KEPT; i < TEXTS && part == 1; i++)
            window[texts[i].number] = 0;
    }
}

static void expect_unseen(const json_t *result, const size_t *counts)
{
    struct text texts[TEXTS];
    size_t n = 0;
    for (int i = 0; i < TEXTS; i++)
        if (counts[i] > 0)
            texts[n++] = (struct text){i, counts[i]};
    qsort(texts, n, sizeof *texts, compare);
    n = n < TOLD ? n : TOLD;
    cr_assert_eq(json_array_size(at(result, "unseen")), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(at(result, "unseen"), i);
        char name[20];
        snprintf(name, sizeof name, "t%d", texts[i].number);
        cr_expect_str_eq(text_at(item, "label"), name);
        cr_expect_eq(number_at(item, "count"), (double)texts[i].count);
    }
}

Test(monitors_unseen, texts_are_the_most_frequent_of_the_requests_of_a_window)
{
    char folder[] = "/tmp/kldiv-unseen-XXXXXX", path[60], location[80], get[60];
    size_t windows[WINDOWS][TEXTS] = {{0}};
    unsigned long long seed = 7;
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(location, sizeof location, "sqlite:%s", path);
    struct api_service service = monitors_new_at(10, location);
    monitors_expect(&service, "PUT /monitors/g/m?window=60s", MONITOR, 201);
    for (int step = 0; step < 60; step++) {
        struct api_buffer body = {0};
        size_t counts[TEXTS] = {0}, window = (size_t)(uniform(&seed) * WINDOWS);
        int texts = 1 + (int)(uniform(&seed) * TEXTS), values = (int)(uniform(&seed) * 200);
        api_append_format(&body, "{\"timestamp\":%zu,\"values\":[\"a\"", 1600000020 + 60 * window);
        for (int i = 0; i < values; i++) {
            int text = (int)(uniform(&seed) * uniform(&seed) * texts);
            counts[text]++;
            api_append_format(&body, ",\"t%d\",\"b\",1,null", text);
        }
        api_append_text(&body, "]}");
        api_append(&body, "", 1);
        merge(windows[window], counts);
        json_t *result = monitors_get(&service, OBSERVE, body.data, 200);
        expect_unseen(result, windows[window]);
        json_decref(result);
        api_buffer_free(&body);
        if (step % 20 == 19)
            monitors_restart(&service, 10);
    }
    json_t *list = monitors_get(&service, "GET /monitors/g/m/windows", NULL, 200);
    for (size_t i = 0; i < WINDOWS; i++) {
        const json_t *window = json_array_get(at(list, "windows"), i);
        size_t begin = WINDOWS - 1 - i;
        expect_unseen(window, windows[begin]);
        snprintf(get, sizeof get, "GET /monitors/g/m/windows/%.0f", number_at(window, "window.id"));
        json_t *one = monitors_get(&service, get, NULL, 200);
        expect_unseen(one, windows[begin]);
        json_decref(one);
    }
    json_decref(list);
    monitors_end(&service);
    unlink(path);
    rmdir(folder);
}

/* cases: values of a column, and the texts among them that are no labels. */
static const struct {
    const char *body, *unseen;
} cases[] = {
    {"{\"values\":[\"a\",1,null]}", "[]"},
    {"{\"values\":[\"a\",2,2,2.5,true,\"x\"]}",
     "[{\"count\":2,\"label\":\"2\"},{\"count\":1,\"label\":\"2.5\"},{\"count\":1,\"label\":"
     "\"true\"},"
     "{\"count\":1,\"label\":\"x\"}]"},
    {"m\na\n\"q\"\"r\"\n1.0\nNA\nTrue\n",
     "[{\"count\":1,\"label\":\"q\\\"r\"},{\"count\":1,\"label\":\"true\"}]"},
    {"m\n00502\n3.0\n", "[{\"count\":1,\"label\":\"00502\"},{\"count\":1,\"label\":\"3\"}]"},
    {"{\"counts\":[1,2,3],\"other\":4}", "[]"},
};

Test(monitors_unseen, texts_are_those_that_labels_would_be)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        monitors_expect(&service, "PUT /monitors/g/m", MONITOR, 201);
        json_t *json = monitors_get(&service, OBSERVE, cases[i].body, 200);
        expect_at(json, "unseen", cases[i].unseen);
        json_decref(json);
        json = monitors_get(&service, "POST /monitors/g/m/evaluate", cases[i].body, 200);
        expect_at(json, "unseen", cases[i].unseen);
        json_decref(json);
        monitors_end(&service);
    }
}

Test(monitors_unseen, texts_are_cut_where_a_character_ends)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    monitors_expect(&service, "PUT /monitors/g/m", MONITOR, 201);
    api_append_text(&body, "{\"values\":[\"");
    for (int i = 0; i < 1000; i++)
        api_append_text(&body, "€");
    api_append_text(&body, "\"]}");
    api_append(&body, "", 1);
    json_t *json = monitors_get(&service, OBSERVE, body.data, 200);
    cr_expect_eq(strlen(text_at(json, "unseen.0.label")), 255);
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
}

Test(monitors_unseen, texts_are_none_of_a_monitor_of_numbers)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g/n", "{\"bins\":{\"edges\":[0,1]}}", 422);
    monitors_expect(&service, "PUT /monitors/g/n",
                    "{\"bins\":{\"edges\":[0,1]},\"reference\":{\"counts\":[9]}}", 201);
    json_t *json = monitors_get(&service, "POST /monitors/g/n/observations", "n\n1\nx\n", 200);
    cr_expect_null(json_object_get(json, "unseen"));
    json_decref(json);
    monitors_end(&service);
}

/* A request of more distinct texts than are counted names those that came first. */
Test(monitors_unseen, texts_of_a_request_are_bounded)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    monitors_expect(&service, "PUT /monitors/g/m", MONITOR, 201);
    api_append_text(&body, "m\n");
    for (int i = 0; i < 100000; i++)
        api_append_format(&body, "t%d\n", i);
    for (int i = 0; i < 3; i++)
        api_append_text(&body, "t4000\nt99999\n");
    api_append(&body, "", 1);
    json_t *json = monitors_get(&service, OBSERVE, body.data, 200);
    cr_expect_eq(json_array_size(at(json, "unseen")), TOLD);
    expect_at(json, "unseen.0", "{\"count\":4,\"label\":\"t4000\"}");
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
}
