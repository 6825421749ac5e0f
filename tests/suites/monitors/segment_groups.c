/* Segments as groups: their names, how they read values, and what a change of their group is to them. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Sends CSV, which ends with a NUL. */
static json_t *send(const struct api_service *service, const char *line,
                    const struct api_buffer *body, int status)
{
    return monitors_send_as(service, line, "text/csv", body, status);
}

/* Rows with a c and an x, such as "a 3, b 2": as CSV. */
static void write_values(struct api_buffer *out, const char *const *values, size_t each)
{
    out->size = 0;
    api_append_text(out, "c,x\n");
    for (; *values; values++)
        for (size_t i = 0; i < each; i++)
            api_append_format(out, "%s,%zu\n", *values, i % 5);
    api_append(out, "", 1);
}

/* Values are the same however they are written; rows without a segment are told, and a request without `by`. */
Test(monitors_segment_groups, take_values_as_labels_are_taken)
{
    static const char *const made[] = {"1", "007", "True", "DE", NULL}, *const sent[] = {
                                                                            "1.0", "007", "true",
                                                                            "DE",  "XX",  NULL};
    static const char *const deleted[] = {"1", "007", "true", "DE", NULL};
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    write_values(&body, made, 60);
    json_decref(send(&service, "PUT /monitors/g?by=c", &body, 201));
    write_values(&body, sent, 60);
    json_t *json = send(&service, "POST /monitors/g/observations?by=c", &body, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 4);
    expect_at(json, "warnings.0.code", "\"rows_without_segment\"");
    expect_at(json, "warnings.0.count", "60");
    json_decref(json);
    json = send(&service, "POST /monitors/g/observations", &body, 200);
    expect_at(json, "warnings.0.code", "\"segments_left_out\"");
    json_decref(json);
    json = send(&service, "POST /monitors/g/evaluate", &body, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "warnings")), 0);
    json_decref(json);
    for (const char *const *value = deleted; *value; value++) {
        char path[100];
        snprintf(path, sizeof path, "DELETE /monitors/g%%5Bc=%s%%5D", *value);
        monitors_expect(&service, path, NULL, 204);
    }
    json = send(&service, "POST /monitors/g/observations", &body, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "warnings")), 0);
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/g%5Bc=1%5D?by=x", body.data, "option_conflict ?by");
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Without a value at all, all rows are of `other`. Names without their bracket are no segments. */
Test(monitors_segment_groups, are_named_by_a_rule)
{
    static const char *const none[] = {"", NULL}, *const some[] = {"DE", NULL};
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    write_values(&body, none, 60);
    json_t *json = send(&service, "PUT /monitors/n?by=c", &body, 201);
    cr_expect_str_eq(text_at(json, "segments.0.group"), "n[c=other]");
    json_decref(json);
    write_values(&body, some, 60);
    static const char *const others[] = {"o%5Bc=", "o%5Bc=DE~", "o%5Bc=DE", "o%5Bc=a%5D%5Bd=b%5D",
                                         "o"};
    for (size_t i = 0; i < COUNT(others); i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/%s%s", others[i], i == 4 ? "?by=c" : "");
        json_decref(send(&service, line, &body, 201));
    }
    json = send(&service, "POST /monitors/o/observations?by=c", &body, 200);
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 1);
    cr_expect_str_eq(text_at(json, "segments.0.group"), "o[c=DE]");
    json_decref(json);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* A column that does not come any more is stale in segments, too. */
Test(monitors_segment_groups, notice_columns_that_are_gone)
{
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    api_append_text(&body, "c,x,y\n");
    for (int i = 0; i < 200; i++)
        api_append_format(&body, "%s,%d,%d\n", i % 2 ? "a" : "b", i % 5, i % 7);
    api_append(&body, "", 1);
    json_decref(send(&service, "PUT /monitors/g?by=c", &body, 201));
    static const char *const values[] = {"a", "b", NULL};
    write_values(&body, values, 60);
    for (int i = 0; i < 3; i++)
        json_decref(send(&service, "POST /monitors/g/observations?by=c", &body, 200));
    static const char *const paths[] = {"g/y", "g%5Bc=a%5D/y", "g%5Bc=b%5D/y"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        char line[100];
        snprintf(line, sizeof line, "GET /monitors/%s", paths[i]);
        json_t *json = monitors_get(&service, line, NULL, 200);
        expect_at(json, "stale", "true");
        json_decref(json);
    }
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Mean of x, or of the reference, of the segments DE and FR. */
static void expect_means(const json_t *json, const char *member, double de, double fr)
{
    const double expected[] = {de, fr};
    for (size_t i = 0; i < COUNT(expected); i++) {
        char path[60];
        snprintf(path, sizeof path, "segments.%zu.monitors.0.%s", i, member);
        cr_expect_float_eq(number_at(json, path), expected[i], 1e-6 * expected[i], "%s: %.17g",
                           path, number_at(json, path));
    }
}

/* Segments read separators of numbers, and orders of dates, as the whole table does. */
Test(monitors_segment_groups, read_numbers_as_the_whole_table_does)
{
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    enum { N = 300 };
    static const struct {
        const char *line, *member, *of_de[3], *of_fr[3];
        double de, fr;
    } cases[] = {
        {"PUT /monitors/g?by=c&method=width",
         "reference.mean",
         {"1,5", "2,5", "3,5"},
         {"1.234", "1.235", "1.236"},
         2.5,
         1235},
        {"POST /monitors/g/observations?by=c",
         "mean",
         {"7", "8", "9"},
         {"1.234", "1.235", "1.236"},
         8,
         1235},
        {"PUT /monitors/p?by=c",
         "reference.mean",
         {"1.5", "2.5", "3.5"},
         {"10.5", "20.5", "30.5"},
         2.5,
         20.5},
        {"POST /monitors/p/observations?by=c",
         "mean",
         {"1,5", "2,5", "3,5"},
         {"1.234", "1.235", "1.236"},
         2.5,
         1235},
        {"PUT /monitors/d?by=c&include=x",
         "reference.mean",
         {"11/24/2026", "11/25/2026", "11/26/2026"},
         {"03/04/2026", "03/05/2026", "03/06/2026"},
         1795564800,
         1772668800},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        body.size = 0;
        api_append_text(&body, "c;x\n");
        for (size_t j = 0; j < N; j++)
            api_append_format(&body, "%s;%s\n", j % 2 ? "DE" : "FR",
                              (j % 2 ? cases[i].of_de : cases[i].of_fr)[j / 2 % 3]);
        api_append(&body, "", 1);
        json_t *json = send(&service, cases[i].line, &body, cases[i].line[1] == 'U' ? 201 : 200);
        expect_means(json, cases[i].member, cases[i].de, cases[i].fr);
        json_decref(json);
    }
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Expects a number of windows of x, in the group g and in its segments by c. */
static void expect_windows(const struct api_service *service, size_t n)
{
    static const char *const groups[] = {"g", "g%5Bc=a%5D", "g%5Bc=b%5D"};
    for (size_t i = 0; i < COUNT(groups); i++) {
        char line[100];
        snprintf(line, sizeof line, "GET /monitors/%s/x/windows", groups[i]);
        json_t *json = monitors_get(service, line, NULL, 200);
        cr_expect_eq(json_array_size(json_object_get(json, "windows")), n, "%s", line);
        json_decref(json);
    }
}

/* A change of a group is one of its segments: settings, a reference from a period, mutes, deletions. */
Test(monitors_segment_groups, follow_changes_of_their_group)
{
    static const char *const both[] = {"a", "b", NULL}, *const b[] = {"b", NULL};
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    write_values(&body, both, 100);
    json_decref(send(&service, "PUT /monitors/g?by=c&window=1d", &body, 201));
    write_values(&body, both, 60);
    json_decref(
        send(&service, "POST /monitors/g/observations?by=c&timestamp=2026-01-01", &body, 200));
    json_decref(
        send(&service, "POST /monitors/g/observations?by=c&timestamp=2026-01-02", &body, 200));
    write_values(&body, b, 100); /* a has no window on this day */
    json_decref(
        send(&service, "POST /monitors/g/observations?by=c&timestamp=2026-01-03", &body, 200));

    json_t *json = monitors_get(&service, "PATCH /monitors/g", "{\"critical\":0.5}", 200);
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 2);
    expect_at(json, "segments.1.monitors.0.thresholds.critical", "0.5");
    json_decref(json);
    json = monitors_get(&service, "GET /monitors/g%5Bc=a%5D/x", NULL, 200);
    expect_at(json, "thresholds.critical", "0.5");
    json_decref(json);
    json = monitors_get(&service, "PATCH /monitors/g%5Bc=a%5D", "{\"critical\":0.7}", 200);
    cr_expect_null(json_object_get(json, "segments"));
    json_decref(json);

    json = monitors_get(&service, "POST /monitors/g/reference?include=x",
                        "{\"from\":\"2026-01-02\",\"to\":\"2026-01-03\"}", 200);
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 2);
    expect_at(json, "segments.0.monitors.0.revision", "2");
    json_decref(json);
    json = monitors_get(&service, "POST /monitors/g/reference?include=c",
                        "{\"from\":\"2026-01-02\",\"to\":\"2026-01-03\"}", 200);
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 0);
    json_decref(json);

    json = send(&service, "POST /monitors/g/reference?by=c", &body, 200); /* of b alone */
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 1);
    expect_at(json, "segments.0.monitors.0.revision", "3");
    expect_at(json, "segments.0.monitors.0.thresholds.critical", "0.5");
    json_decref(json);
    monitors_refused(&service, "POST /monitors/g/reference?by=c",
                     "{\"from\":\"2026-01-02\",\"to\":\"2026-01-03\"}", "option_conflict ?by");
    monitors_refused(&service, "POST /monitors/g/reference?by=x", body.data,
                     "segments_missing ?by");

    monitors_expect(&service, "POST /groups/g/mute", "{\"seconds\":3600}", 200);
    json = monitors_get(&service, "GET /monitors/g%5Bc=a%5D/x", NULL, 200);
    cr_expect_str_eq(text_at(json, "muted.scope"), "group");
    json_decref(json);
    monitors_expect(&service, "DELETE /groups/g/mute", NULL, 204);
    json = monitors_get(&service, "GET /monitors/g%5Bc=a%5D/x", NULL, 200);
    expect_at(json, "muted", "null");
    json_decref(json);

    json = monitors_get(&service, "DELETE /monitors/g/windows?from=2026-01-03&to=2026-01-04", NULL,
                        200);
    expect_at(json, "windows", "3"); /* of c and x, and of x in b */
    expect_at(json, "monitors", "3");
    json_decref(json);
    expect_windows(&service, 2);
    monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
    cr_expect_eq(monitors_count(&service), 0);
    api_buffer_free(&body);
    monitors_end(&service);
}

/* Repeats lines, such as "D;1,5\nF;1.234\n", under the header c;x. */
static void repeat_lines(struct api_buffer *out, const char *lines)
{
    out->size = 0;
    api_append_text(out, "c;x\n");
    for (int i = 0; i < 100; i++)
        api_append_text(out, lines);
    api_append(out, "", 1);
}

/* A column of labels, and one with both decimal marks, are read alike in a table and its segments. */
Test(monitors_segment_groups, read_labels_and_both_marks_as_the_whole_table_does)
{
    static const struct {
        const char *reference, *observed;
    } cases[] = {
        {"D;1000\nD;2000\nF;1000000\n", "D;1.000\nD;2.000\nF;1.000.000\n"},
        {"D;1,5\nD;2.5\n", "D;1.500\nD;2.500\n"},
    };
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        repeat_lines(&body, cases[i].reference);
        json_decref(send(&service, "PUT /monitors/g?by=c", &body, i == 0 ? 201 : 200));
        repeat_lines(&body, cases[i].observed);
        json_t *json = send(&service, "POST /monitors/g/observations?by=c", &body, 200);
        expect_at(json, "monitors.1.verdict", "\"ok\"");
        expect_at(json, "segments.0.monitors.0.verdict", "\"ok\"");
        json_decref(json);
    }
    api_buffer_free(&body);
    monitors_end(&service);
}

/* A group with a bracket in its name has none, so that no group takes those of another. */
Test(monitors_segment_groups, are_not_of_groups_with_brackets)
{
    static const char *const names[] = {"a%5Bb", "a%5Bb=c", "%5Bb", "a%5Bc=D%5D"},
                             *const both[] = {"D", "F", NULL}, *const odd[] = {"x][y", "F", NULL};
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    write_values(&body, both, 60);
    for (size_t i = 0; i < COUNT(names); i++) {
        char line[100];
        snprintf(line, sizeof line, "PUT /monitors/%s?by=c", names[i]);
        monitors_refused(&service, line, body.data, "option_conflict ?by");
    }
    write_values(&body, odd, 60);
    json_t *json = send(&service, "PUT /monitors/v?by=c", &body, 201);
    cr_expect_str_eq(text_at(json, "segments.0.group"), "v[c=F]");
    cr_expect_str_eq(text_at(json, "segments.1.group"), "v[c=other]");
    json_decref(json);
    json = send(&service, "POST /monitors/v/observations?by=c", &body, 200);
    cr_expect_eq(number_at(json, "segments.1.monitors.0.n"), 60);
    json_decref(json);
    monitors_refused(&service, "PUT /monitors/w?by=c&include=c", body.data, "segments_missing ?by");
    api_buffer_free(&body);
    monitors_end(&service);
}

/* A reference from a period for some columns, of which segments lack one; the end of a group by the end of its monitors. */
Test(monitors_segment_groups, follow_choices_of_columns_and_the_last_deletion)
{
    static const char *const both[] = {"a", "b", NULL};
    struct api_service service = monitors_new(1000);
    struct api_buffer body = {0};
    write_values(&body, both, 100);
    json_decref(send(&service, "PUT /monitors/g?by=c&window=1d", &body, 201));
    write_values(&body, both, 60);
    json_decref(
        send(&service, "POST /monitors/g/observations?by=c&timestamp=2026-01-02", &body, 200));
    json_t *json = monitors_get(&service, "POST /monitors/g/reference?include=c,x",
                                "{\"from\":\"2026-01-02\",\"to\":\"2026-01-03\"}", 200);
    cr_expect_eq(json_array_size(json_object_get(json, "segments")), 2);
    expect_at(json, "segments.0.monitors.0.revision", "2");
    json_decref(json);
    monitors_refused(&service, "POST /monitors/g/reference?include=nope",
                     "{\"from\":\"2026-01-02\",\"to\":\"2026-01-03\"}", "column_missing ?include");
    monitors_expect(&service, "DELETE /monitors/g/c", NULL, 204);
    cr_expect_eq(monitors_count(&service), 3);
    monitors_expect(&service, "DELETE /monitors/g/x", NULL, 204);
    cr_expect_eq(monitors_count(&service), 0);
    api_buffer_free(&body);
    monitors_end(&service);
}
