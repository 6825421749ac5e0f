/* Columns of tables: which get a monitor, and which of them observations have. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which get a monitor */

/* Appends a table of `n` rows: an id that rises, a number, a text that is distinct in the first rows, a label. */
static void append_ids(struct api_buffer *to, size_t n, size_t distinct)
{
    api_append_text(to, "id,x,text,label\n");
    for (size_t i = 0; i < n; i++)
        api_append_format(to, "%zu,%zu,t%zu,%c\n", i < n - distinct ? 0 : i, i * 7 % 31,
                          i < distinct ? i : 0, 'a' + (int)(i % 3));
    api_append(to, "", 1);
}

/* Expects the names of the monitors of an answer. */
static void expect_names(const json_t *json, const char *const *names)
{
    size_t n = 0;
    for (; names[n]; n++)
        cr_expect_str_eq(text_at(json_array_get(at(json, "monitors"), n), "name"), names[n]);
    cr_expect_eq(json_array_size(at(json, "monitors")), n);
}

Test(monitors_columns, of_distinct_values_get_no_monitor_unless_they_are_named)
{
    static const struct {
        size_t n, distinct;
        bool is_id_unique, repeats; /* whether a text is there often enough to compare */
    } cases[] = {{100, 100, true, false},
                 {99, 99, false, false},
                 {100, 49, false, true},
                 {300, 299, true, false},
                 {300, 290, true, true}};
    static const char *const names[2][2][5] = {
        {{"id", "x", "label"}, {"id", "x", "text", "label"}},
        {{"x", "label"}, {"x", "label"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_service service = monitors_new(10);
        struct api_buffer body = {0};
        append_ids(&body, cases[i].n, cases[i].distinct);
        bool is_unique = cases[i].is_id_unique, repeats = cases[i].repeats;
        json_t *json = monitors_get(&service, "PUT /monitors/g?presence=no", body.data, 201);
        expect_names(json, names[is_unique][repeats]);
        if (is_unique) {
            expect_at(json, "warnings.0.code", "\"nearly_unique\"");
            expect_at(json, "warnings.0.column", "\"id\"");
            expect_at(json, "warnings.1.column", "\"text\"");
            cr_expect_eq(number_at(json, "warnings.1.count"), (double)cases[i].n);
            cr_expect_eq(json_array_size(at(json, "warnings")), 2);
        }
        json_decref(json);
        json = monitors_get(&service, "PUT /monitors/g?presence=no&include=id,text", body.data,
                            is_unique ? 201 : 200);
        expect_names(json, repeats ? (const char *const[]){"id", "text", NULL}
                                   : (const char *const[]){"id", NULL});
        json_decref(json);
        api_buffer_free(&body);
        monitors_end(&service);
    }
}

Test(monitors_columns, of_ids_may_rise_or_fall)
{
    struct api_service service = monitors_new(10);
    for (int which = 0; which < 3; which++) { /* rises, falls, does neither */
        struct api_buffer body = {0};
        api_append_text(&body, "id,x\n");
        for (int i = 0; i < 200; i++)
            api_append_format(&body, "%d,%d\n",
                              which == 0   ? i
                              : which == 1 ? 200 - i
                                           : i * 77 % 199,
                              i % 4);
        api_append(&body, "", 1);
        json_t *json = monitors_get(&service, "PUT /monitors/g?presence=no", body.data,
                                    which ? 200 + (which > 1) : 201);
        expect_names(json, which < 2 ? (const char *const[]){"x", NULL}
                                     : (const char *const[]){"id", "x", NULL});
        json_decref(json);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}

Test(monitors_columns, that_are_the_only_one_get_a_monitor)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    api_append_text(&body, "x\n");
    for (size_t i = 0; i < 1000; i++)
        api_append_format(&body, "%zu\n", i + 1);
    api_append(&body, "", 1);
    json_t *json = monitors_get(&service, "PUT /monitors/g", body.data, 201);
    expect_names(json, (const char *const[]){"x", NULL});
    expect_at(json, "warnings.0.code", "\"nearly_unique\"");
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Columns of dates; `n` rows are made of a format and a number that grows by `step`, every tenth being another text. */
Test(monitors_columns, of_dates_get_no_monitor_unless_they_are_named)
{
    static const struct {
        const char *format;
        long first, step, span;
        bool are_dates;
    } cases[] = {
        {"2026-11-%02ld", 1, 1, 30, true},
        {"2026-11-25T%02ld:15:00Z", 0, 7, 24, true},
        {"%02ld.11.2026", 1, 1, 30, true},
        {"Nov %ld, 2026", 1, 1, 30, true},
        {"%ld", 1795602615, 7919, 100000, true},
        {"%ld000", 1795602615, 7919, 100000, true},
        {"%ld123456789", 1795602615, 7919, 100000, true},
        {"%ld", 20261101, 1, 30, true},
        {"%ld", 1795602615, 0, 1, false},
        {"%ld.5", 1795602615, 7919, 100000, false},
        {"%ld", 20261200, 37, 9000, false},
        {"version 2026-11-%02ld", 1, 1, 30, false},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int others = 0; others <= 1; others++) {
            struct api_buffer body = {0};
            api_append_text(&body, "day;x\n");
            for (long row = 0; row < 60; row++) {
                if (others && row % (5 * others) == 1)
                    api_append_text(&body, "later");
                else
                    api_append_format(&body, cases[i].format,
                                      cases[i].first + row * cases[i].step % cases[i].span);
                api_append_format(&body, ";%ld\n", row % 3);
            }
            api_append(&body, "", 1);
            bool are_dates = cases[i].are_dates && !others;
            json_t *json = monitors_get(&service, "PUT /monitors/g?presence=no", body.data, 201);
            expect_names(json, are_dates ? (const char *const[]){"x", NULL}
                                         : (const char *const[]){"day", "x", NULL});
            cr_expect_eq(strcmp(text_at(json, "warnings.0.code"), "dates") == 0, are_dates, "%s",
                         body.data);
            if (are_dates)
                expect_at(json, "warnings.0.count", "60");
            json_decref(json);
            json = monitors_get(&service, "PUT /monitors/g?presence=no&include=day", body.data,
                                are_dates ? 201 : 200);
            expect_names(json, (const char *const[]){"day", NULL});
            json_decref(json);
            monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
            api_buffer_free(&body);
        }
    monitors_end(&service);
}

/* Free text may be longer than labels. */
Test(monitors_columns, of_long_free_text_do_not_refuse_the_table)
{
    struct api_service service = monitors_new(10);
    struct api_buffer body = {0};
    api_append_text(&body, "note,x\n");
    for (size_t i = 0; i < 120; i++) {
        for (size_t j = 0; j < (i % 2 ? 300 : 1); j++)
            api_append_format(&body, "n%09zu", i);
        api_append_format(&body, ",%zu\n", i % 5);
    }
    api_append(&body, "", 1);
    json_t *json = monitors_get(&service, "PUT /monitors/g?presence=no", body.data, 201);
    expect_names(json, (const char *const[]){"x", NULL});
    expect_at(json, "warnings.0.code", "\"nearly_unique\"");
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/g?presence=no&include=note", body.data,
                     "reference_empty ~'note' (nearly_unique)");
    api_buffer_free(&body);
    monitors_end(&service);
}

Test(monitors_columns, are_chosen_by_their_names)
{
    static const char body[] = "a,\"b,c\",c,\n1,2,3,0\n";
    static const struct {
        const char *query, *names[4];
    } cases[] = {
        {"", {"a", "b,c", "c"}},
        {"?include=a", {"a"}},
        {"?include=a,c", {"a", "c"}},
        {"?include=b,c", {"b,c"}},
        {"?include=a,b,c,c", {"a", "b,c", "c"}},
        {"?exclude=b%2Cc", {"a", "c"}},
        {"?exclude=a,b,c", {"c"}},
        {"?include=a,c&exclude=a", {"c"}},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/g%s", cases[i].query);
        json_t *json = monitors_get(&service, line, body, i ? 200 : 201);
        expect_names(json, cases[i].names);
        json_decref(json);
    }
    monitors_refused(&service, "PUT /monitors/g?include=a,d", body, "column_missing ?include ~'d'");
    monitors_refused(&service, "PUT /monitors/g?exclude=b", body, "column_missing ?exclude ~'b'");
    monitors_refused(&service, "PUT /monitors/g?include=", body, "option_invalid ?include ~empty");
    monitors_refused(&service, "PUT /monitors/g?exclude=", body, "option_invalid ?exclude ~empty");
    monitors_refused(&service, "PUT /monitors/g/a?include=a", body, "option_unknown ?include");
    monitors_end(&service);
}

Test(monitors_columns, that_are_all_left_out_are_named_with_the_reason)
{
    struct api_service service = monitors_new(10);
    monitors_refused(&service, "PUT /monitors/g?presence=no",
                     "day,a,\n2026-11-25,,1\n2026-11-26,NA,2\n",
                     "reference_empty ~'day' (dates), 'a' (column_empty), '' (column_unnamed); "
                     "?include=");
    monitors_refused(&service, "PUT /monitors/g?presence=no", "{\"columns\":{}}",
                     "reference_empty ~no columns");
    struct api_buffer body = {0};
    for (int i = 0; i < 100; i++)
        api_append_format(&body, i ? ",column %d" : "column %d", i);
    api_append(&body, "\n", 2);
    monitors_refused(&service, "PUT /monitors/g?presence=no", body.data,
                     "reference_empty ~'column 0' (column_empty), 'column 1'");
    api_buffer_free(&body);
    monitors_end(&service);
}

/* One bad column does not refuse the table. */
/* ---- Observations */

Test(monitors_columns, that_are_absent_are_told)
{
    static const struct {
        const char *body, *absent;
    } cases[] = {
        {"a,b,c\n1,2,3\n", ""},
        {"c,a\n1,2\n", "b"},
        {"c,x\n1,2\n", "a b"},
        {"c\n", "a b"},
        {"{\"rows\":[{\"a\":1},{\"b\":2}]}", "c"},
    };
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g", "a,b,c\n1,2,3\n", 201);
    monitors_expect(&service, "PUT /monitors/f", "d\n1\n", 201);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_buffer absent = {0};
        size_t j;
        json_t *warning,
            *json = monitors_get(&service, "POST /monitors/g/observations", cases[i].body, 200);
        json_array_foreach(at(json, "warnings"), j, warning)
        {
            if (strcmp(text_at(warning, "code"), "column_absent") == 0)
                api_append_format(&absent, "%s%s", absent.size ? " " : "",
                                  text_at(warning, "column"));
        }
        api_append(&absent, "", 1);
        cr_expect_str_eq(absent.data, cases[i].absent, "%s", cases[i].body);
        api_buffer_free(&absent);
        json_decref(json);
    }
    monitors_end(&service);
}

Test(monitors_columns, that_are_all_unknown_are_refused)
{
    static const char *const bodies[] = {"x,y\n1,2\n",
                                         ",x\n1,2\n",
                                         "x\n",
                                         "A\n1\n",
                                         "{\"columns\":{\"x\":[1]}}",
                                         "[{\"x\":1}]",
                                         "{\"columns\":{\"x\":[]}}"};
    static const char *const without[] = {"{\"columns\":{}}",
                                          "{\"rows\":[]}",
                                          "{\"rows\":[{},{}]}",
                                          "{\"columns\":{},\"timestamp\":1000}",
                                          "[{}]",
                                          "{}\n{}\n"};
    static const char *const empty[] = {"a\n", "b,a\r\n", "{\"columns\":{\"b\":[]}}",
                                        "{\"columns\":{\"a\":[],\"b\":[]}}"};
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g", "a,b\n1,2\n", 201);
    for (size_t i = 0; i < COUNT(bodies); i++)
        monitors_refused(&service, "POST /monitors/g/observations", bodies[i],
                         "columns_unknown ~such as 'a'");
    for (size_t i = 0; i < COUNT(without); i++)
        monitors_refused(&service, "POST /monitors/g/observations", without[i],
                         "columns_unknown ~has no columns");
    for (size_t i = 0; i < COUNT(empty); i++)
        monitors_expect(&service, "POST /monitors/g/observations", empty[i], 200);
    monitors_refused(&service, "POST /monitors/h/observations", bodies[0], "group_not_found");
    monitors_refused(&service, "POST /monitors/h/observations", without[0], "group_not_found");
    monitors_expect(&service, "GET /monitors/g/a/windows/latest", NULL, 404);
    monitors_refused(&service, "POST /monitors/g/observations", "{\"a\":[1]}",
                     "option_unknown #/a ~\"columns\"");
    monitors_refused(&service, "PUT /monitors/g", "{}", "reference_empty ~\"columns\"");
    monitors_end(&service);
}

/* More than a thousand are counted. */
Test(monitors_columns, that_are_absent_are_named_up_to_a_thousand)
{
    struct api_service service = monitors_new(2000);
    struct api_buffer header = {0};
    for (size_t i = 0; i < 1011; i++)
        api_append_format(&header, "%sc%04zu", i ? "," : "", i);
    for (size_t i = 0; i < 1011; i++)
        api_append_text(&header, i ? ",1" : "\n1");
    api_append(&header, "\n", 2);
    monitors_expect(&service, "PUT /monitors/g?window=1000", header.data, 201);
    json_t *json = monitors_get(&service, "POST /monitors/g/observations", "c0003\n1\n", 200);
    cr_expect_eq(json_array_size(at(json, "warnings")), 1001);
    expect_at(json, "warnings.999.column", "\"c1000\"");
    expect_at(json, "warnings.1000.column", "\"\"");
    expect_at(json, "warnings.1000.count", "10");
    json_decref(json);
    api_buffer_free(&header);
    monitors_end(&service);
}

/* Annotations of a table are written with the config of each of its monitors. */
Test(monitors_columns, of_any_number_share_annotations)
{
    enum { COLUMNS = 1000 };
    struct api_service service = monitors_new(COLUMNS);
    struct api_buffer body = {0};
    for (int i = 0; i < COLUMNS; i++)
        api_append_format(&body, "%s\"m%04d\":[1,2,3,4,5,6,7,8,9]", i ? "," : "{\"columns\":{", i);
    api_append_text(&body, "},\"annotations\":{\"owner\":{\"team\":\"risk\",\"of\":[1,\"x\"]}}}");
    api_append(&body, "", 1);
    json_t *made = monitors_get(&service, "PUT /monitors/g", body.data, 201);
    cr_expect_eq(json_array_size(at(made, "monitors")), COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++)
        expect_at(json_array_get(at(made, "monitors"), i), "annotations",
                  "{\"owner\":{\"of\":[1,\"x\"],\"team\":\"risk\"}}");
    json_decref(made);
    api_buffer_free(&body);
    monitors_end(&service);
}

static void expect_warnings(const struct api_service *service, const char *body,
                            const char *columns)
{
    json_t *json = monitors_get(service, "POST /monitors/g/observations", body, 200);
    const json_t *warning;
    char told[200] = "";
    size_t i;
    json_array_foreach(at(json, "warnings"), i,
                       warning) if (strcmp(text_at(warning, "code"), "column_unknown") == 0)
        snprintf(told + strlen(told), sizeof told - strlen(told), "%s ",
                 text_at(warning, "column"));
    cr_expect_str_eq(told, columns, "%s: %s", body, told);
    json_decref(json);
}

/* That the group got its reference without them, or that their monitor was deleted, was said before. */
Test(monitors_columns, that_were_left_out_are_no_news)
{
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g?exclude=c", "a,b,c\n1,1,1\n1,1,1\n", 201);
    expect_warnings(&service, "a,b,c\n1,1,1\n", "");
    expect_warnings(&service, "a,b,c,d\n1,1,1,1\n", "d ");
    expect_warnings(&service, "a,b,c,d\n1,1,1,1\n", "d ");
    monitors_expect(&service, "DELETE /monitors/g/b", NULL, 204);
    expect_warnings(&service, "a,b,c,d\n1,1,1,1\n", "d ");
    monitors_expect(&service, "PUT /monitors/g?exclude=a,d", "a,c,d\n1,1,1\n1,1,1\n", 201);
    expect_warnings(&service, "a,b,c,d,e\n1,1,1,1,1\n", "e ");
    monitors_end(&service);
}

/* As curl -d sends a file; a text of several lines, and one that curl sent as it was, are tables. */
Test(monitors_columns, of_one_line_by_curl_are_refused_with_the_option)
{
    static const struct {
        const char *line, *type, *body;
        int status;
    } cases[] = {
        {"PUT /monitors/t", "application/x-www-form-urlencoded", "a,b1,22,3", 400},
        {"POST /monitors/g/observations", "application/x-www-form-urlencoded", "a122", 400},
        {"POST /monitors/g/evaluate", "application/x-www-form-urlencoded", "a1", 400},
        {"POST /monitors/g/observations", "application/x-www-form-urlencoded", "a\n1\n", 200},
        {"POST /monitors/g/observations", "application/x-www-form-urlencoded", "a\r1\r", 200},
        {"POST /monitors/g/observations", "application/x-www-form-urlencoded", "[{\"a\":1}]", 200},
        {"POST /monitors/g/observations", "text/csv", "a", 200},
    };
    struct api_service service = monitors_new(10);
    monitors_expect(&service, "PUT /monitors/g", "a\n1\n1\n", 201);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = monitors_send(
            &service, &(struct monitors_request){
                          .line = cases[i].line, .type = cases[i].type, .body = cases[i].body});
        cr_expect_eq(answer.status, cases[i].status, "%zu: %d", i, answer.status);
        cr_expect(cases[i].status == 200 ||
                      strstr(text_at(answer.json, "detail"), "curl -d leaves out the line ends"),
                  "%zu: %s", i, text_at(answer.json, "detail"));
        answer_free(&answer);
    }
    monitors_end(&service);
}
