/* Monitors that tell values from missing ones: of ids, dates and free text, and of bins that a body has. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/store.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a table of ids, days, notes and sizes. In the first `n_gone` rows the first three are missing. */
static void write_table(struct api_buffer *to, int n, int n_gone)
{
    to->size = 0;
    api_append_text(to, "id,day,note,size\n");
    for (int i = 0; i < n; i++) {
        if (i < n_gone)
            api_append_format(to, ",NA,,%d\n", i % 7);
        else
            api_append_format(to, "u%05d,2026-%02d-%02d,text number %d of many,%d\n", i,
                              1 + i / 28 % 12, 1 + i % 28, i, i % 7);
    }
    api_append(to, "", 1);
}

static const char *const names[] = {"id", "day", "note", "size"};

/* A result of a column; NULL if there is none. */
static json_t *column(const json_t *json, const char *name)
{
    json_t *monitor;
    size_t i;
    json_array_foreach(at(json, "monitors"), i,
                       monitor) if (strcmp(text_at(monitor, "name"), name) == 0) return monitor;
    return NULL;
}

Test(monitors_presence, watches_ids_dates_and_free_text_for_missing_values)
{
    struct database database = database_new();
    struct api_service service = monitors_new_at(10, database.location);
    struct api_buffer body = {0};
    write_table(&body, 300, 3);
    json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, 201);
    cr_assert_eq(json_array_size(at(json, "monitors")), 4);
    for (size_t i = 0; i < 3; i++) {
        expect_at(column(json, names[i]), "bins", "{\"presence\":true}");
        expect_counts_at(column(json, names[i]), "reference",
                         "{\"counts\":[297],\"missing\":3,\"other\":0}");
    }
    expect_at(json, "warnings.0.code", "\"nearly_unique\"");
    expect_at(json, "warnings.1.code", "\"dates\"");
    cr_expect(strstr(text_at(json, "warnings.0.message"), "only missing values"));
    json_decref(json);
    for (int gone = 0; gone <= 200; gone += 200) {
        write_table(&body, 200, gone == 0 ? 2 : gone);
        json = monitors_get(&service, "POST /monitors/g/observations", body.data, 200);
        for (size_t i = 0; i < 3; i++) {
            const json_t *result = column(json, names[i]);
            expect_at(result, "verdict", gone ? "\"critical\"" : "\"ok\"");
            cr_expect_eq(number_at(result, "missing_ratio"), gone ? 1 : 0.01);
            if (gone)
                expect_at(result, "sentence", "\"missing 1 % → 100 %\"");
        }
        expect_at(column(json, "size"), "verdict", "\"ok\"");
        json_decref(json);
        monitors_restart(&service, 10);
    }
    write_table(&body, 100, 10); /* a new reference keeps the kind of bins */
    json = monitors_get(&service, "POST /monitors/g/reference", body.data, 200);
    expect_at(column(json, "id"), "bins", "{\"presence\":true}");
    expect_counts_at(column(json, "id"), "reference",
                     "{\"counts\":[90],\"missing\":10,\"other\":0}");
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
    database_free(&database);
}

/* By `include` they have the bins of their values; by presence=no none have a monitor. */
Test(monitors_presence, is_left_to_those_who_ask_for_no_other)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    write_table(&body, 300, 0);
    json_t *json = monitors_get(&service, "PUT /monitors/g?presence=no", body.data, 201);
    cr_expect_eq(json_array_size(at(json, "monitors")), 1);
    json_decref(json);
    json = monitors_get(&service, "PUT /monitors/g?include=day,note", body.data, 201);
    cr_expect(at(column(json, "day"), "bins.edges"));
    cr_expect(at(column(json, "note"), "bins.presence"));
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/g?presence=maybe", body.data,
                     "option_invalid ?presence ~yes or no");
    monitors_refused(&service, "PUT /monitors/g/day?presence=no", body.data,
                     "option_unknown ?presence");
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Values of any kind are present, whatever they are called. */
Test(monitors_presence, counts_values_of_all_kinds)
{
    static const struct {
        const char *body;
        double missing;
    } cases[] = {
        {"{\"values\":[0,1.5,\"present\",\"missing\",\"other\",true,false,\"-\"]}", 0},
        {"{\"values\":[null,\"\",\"NA\",\"NaN\",\"a\",1,2,3]}", 0.5},
        {"{\"counts\":[6],\"missing\":2}", 0.25},
        {"{\"probabilities\":[0.75],\"missing\":0.25,\"n\":8}", 0.25},
    };
    struct api_service service = monitors_new(10);
    json_t *json =
        monitors_get(&service, "PUT /monitors/g/m",
                     "{\"bins\":{\"presence\":true},\"reference\":{\"counts\":[100]}}", 201);
    expect_at(json, "bins", "{\"presence\":true}");
    json_decref(json);
    for (size_t i = 0; i < COUNT(cases); i++) {
        json = monitors_get(&service, "POST /monitors/g/m/evaluate", cases[i].body, 200);
        cr_expect_eq(number_at(json, "missing_ratio"), cases[i].missing, "%s: %g", cases[i].body,
                     number_at(json, "missing_ratio"));
        json_decref(json);
    }
    monitors_refused(&service, "PUT /monitors/g/m", "{\"bins\":{\"presence\":false}}",
                     "bins_invalid #/bins ~presence");
    monitors_refused(&service, "PUT /monitors/g/m",
                     "{\"bins\":{\"presence\":true,\"labels\":[\"a\"]}}", "bins_invalid #/bins");
    monitors_end(&service);
}
