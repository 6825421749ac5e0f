/* POST /compare: two tables of a form. Random ones in each format are in forms.c. */
#include "tests/suites/support/monitors.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define FORM "multipart/form-data; boundary=b"
#define PART(name)                                                                                 \
    "--b\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"t.csv\"\r\n\r\n"
#define TABLES(reference, current)                                                                 \
    PART("reference") reference "\r\n" PART("current") current "\r\n--b--\r\n"

#define ONES "1\n1\n1\n1\n1\n1\n1\n1\n"
#define TWOS "2\n2\n2\n2\n2\n2\n2\n2\n"

static struct answer compare(const struct api_service *service, const char *query, const char *form)
{
    char line[200];
    snprintf(line, sizeof line, "POST /compare%s", query);
    return monitors_send(service,
                         &(struct monitors_request){line, FORM, form, strlen(form), {{0}}});
}

/* The warnings of an answer, "code column" with commas between, but for those of labels. */
static void list_warnings(const json_t *json, char *to, size_t size)
{
    size_t i;
    const json_t *warning;
    *to = '\0';
    json_array_foreach(at(json, "warnings"), i, warning)
    {
        const char *code = text_at(warning, "code"), *before = *to ? ", " : "";
        if (strcmp(code, "labels_chosen") != 0)
            snprintf(to + strlen(to), size - strlen(to), "%s%s %s", before, code,
                     text_at(warning, "column"));
    }
}

Test(monitors_compare_tables, tells_of_each_column_that_is_not_compared)
{
    static const struct {
        const char *query, *form, *columns, *warnings;
    } cases[] = {
        {"", TABLES("a\n" ONES, "a\n" TWOS), "a", ""},
        {"", TABLES("a,b\n1,2\n1,2\n", "b,a\n1,2\n1,2\n"), "b,a", ""},
        {"", TABLES("a,b\n1,2\n1,2\n", "a,c\n1,2\n1,2\n"), "a",
         "column_unknown c, column_absent b"},
        {"?exclude=b", TABLES("a,b\n1,2\n1,2\n", "a,b\n1,2\n1,2\n"), "a", ""},
        {"?include=b", TABLES("a,b\n1,2\n1,2\n", "a,b\n1,2\n1,2\n"), "b", ""},
        {"", TABLES("a,b\n1,\n1,\n", "b,a\n1,2\n1,2\n"), "a", "column_empty b"},
        {"", TABLES("a,b\n1,2\n1,2\n", "a,b\n1,x\n1,2\n"), "a,b", ""},
        {"", TABLES("a,b\n1,2\n1,2\n", "[{\"a\": 1, \"b\": [2]}]"), "a", "values_nested b"},
        {"",
         TABLES("{\"columns\": {\"a\": [1, 1], \"b\": [\"x\", \"x\"]}}",
                "[{\"a\": 1, \"b\": \"y\"}]"),
         "a,b", ""},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = compare(&service, cases[i].query, cases[i].form);
        char warnings[300], columns[300] = "";
        list_warnings(answer.json, warnings, sizeof warnings);
        for (size_t j = 0; j < json_array_size(at(answer.json, "columns")); j++) {
            const json_t *column = json_array_get(at(answer.json, "columns"), j);
            snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "%s%s",
                     j ? "," : "", text_at(column, "name"));
        }
        cr_expect_eq(answer.status, 200, "%zu: %d", i, answer.status);
        cr_expect_str_eq(columns, cases[i].columns, "%zu: %s", i, columns);
        cr_expect_str_eq(warnings, cases[i].warnings, "%zu: %s", i, warnings);
        answer_free(&answer);
    }
    cr_expect_eq(monitors_count(&service), 0);
    monitors_end(&service);
}

Test(monitors_compare_tables, refuses_what_is_no_pair_of_tables)
{
    static const struct {
        const char *query, *form, *code, *detail;
    } cases[] = {
        {"", PART("reference") "a\n1\n\r\n--b--\r\n", "multipart_malformed",
         "the form has no file 'current'"},
        {"", PART("current") "a\n1\n\r\n--b--\r\n", "multipart_malformed",
         "the form has no file 'reference'"},
        {"", "", "multipart_malformed", ""},
        {"", PART("critical") "5\r\n" TABLES("a\n" ONES, "a\n" TWOS), "multipart_malformed",
         "the form has a part 'critical'"},
        {"", PART("current") "a\n1\n\r\n" TABLES("a\n" ONES, "a\n" TWOS), "multipart_malformed",
         "the form has two files 'current'"},
        {"", TABLES("{\"columns\": {\"a\": [1, 1]}, \"thresholds\": {\"critical\": 3}}", "a\n1\n"),
         "option_unknown", "reference: a table is"},
        {"", TABLES("a\n1\n1\n", "{\"columns\": {\"a\": [1, 1]}, \"timestamp\": 5}"),
         "option_unknown", "current: a table is"},
        {"", TABLES("a\n1\n1\n", "a\n"), "observations_empty", "current: the table has no rows"},
        {"?window=1h", TABLES("a\n" ONES, "a\n" TWOS), "option_unknown",
         "'window' is a setting of"},
        {"?compare=previous:3", TABLES("a\n" ONES, "a\n" TWOS), "option_unknown", "'compare' is"},
        {"?dry_run=true", TABLES("a\n" ONES, "a\n" TWOS), "option_unknown", "dry_run"},
        {"?include=c", TABLES("a\n" ONES, "a\n" TWOS), "column_missing", "'c'"},
        {"?critical=0.1&warning=0.2", TABLES("a\n" ONES, "a\n" TWOS), "option_invalid",
         "below the warning"},
        {"", TABLES("a\n\n", "a\n" TWOS), "reference_empty", "'a' (column_empty)"},
        {"", TABLES("a\n" ONES, "b\n" TWOS), "columns_unknown",
         "current: the tables have no column in common: the reference has 'a', this one 'b'"},
        {"", TABLES("a\n" ONES, "[{\"a\": 1}, 2]"), "value_invalid",
         "current: a row must be an object"},
        {"", TABLES("{\"columns\": {\"a\": 1}}", "a\n1"), "value_invalid",
         "reference: a column must be an array"},
        {"", TABLES("a\n" ONES, "a,b\n1\n"), "csv_malformed", "current: "},
        {"", TABLES("PK\3\4", "a\n1\n"), "media_type_unsupported", "ZIP archive"},
    };
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer answer = compare(&service, cases[i].query, cases[i].form);
        cr_expect_str_eq(text_at(answer.json, "code"), cases[i].code, "%zu: %.*s", i,
                         (int)answer.response.body.size, answer.response.body.data);
        cr_expect(strstr(text_at(answer.json, "detail"), cases[i].detail), "%zu: %s", i,
                  text_at(answer.json, "detail"));
        answer_free(&answer);
    }
    monitors_refused(&service, "POST /compare", "{}", "media_type_unsupported ~curl -F reference=");
    monitors_end(&service);
}

/* 250 columns of 1,000 intervals. */
Test(monitors_compare_tables, bounds_the_bins_of_all_columns)
{
    struct api_service service = monitors_new(10);
    struct api_buffer table = {0}, form = {0};
    for (int row = -1; row < 2; row++)
        for (int i = 0; i < 250; i++)
            api_append_format(&table, "%s%s%d",
                              i         ? ","
                              : row < 0 ? ""
                                        : "\n",
                              row < 0 ? "c" : "", row < 0 ? i : row * 1000 + i);
    for (int i = 0; i < 2; i++) {
        api_append_text(&form, i ? PART("current") : PART("reference"));
        api_append(&form, table.data, table.size);
        api_append_text(&form, "\r\n");
    }
    api_append_text(&form, "--b--\r\n");
    api_append(&form, "", 1);
    struct answer answer = compare(&service, "?method=width&bins=1000", form.data);
    cr_expect_eq(answer.status, 422);
    cr_expect(strstr(text_at(answer.json, "detail"), "bins together, and at most 200000"), "%s",
              text_at(answer.json, "detail"));
    answer_free(&answer);
    answer = compare(&service, "?method=width&bins=700", form.data);
    cr_expect_eq(answer.status, 200);
    answer_free(&answer);
    api_buffer_free(&table);
    api_buffer_free(&form);
    monitors_end(&service);
}

/* Each allocation in turn, or all from it on: the answer is right, or 503, and all memory is given back. */
Test(monitors_compare_tables, runs_out_of_memory_at_any_allocation)
{
    static const char form[] = TABLES("a,b\n1,x\n2,y\n2,x\n", "a,b,c\n1,x,3\n2,z,\n");
    for (int sticky = 0; sticky <= 1; sticky++) {
        struct api_service service = monitors_new(10);
        bool failed = true;
        for (long n = 0; failed && n < 2000; n++) {
            fail_allocation(n, sticky);
            struct answer answer = compare(&service, "", form);
            failed = allocation_failed();
            cr_expect(answer.status == 200 || (failed && answer.status == 503), "%ld: %d", n,
                      answer.status);
            answer_free(&answer);
        }
        cr_expect(!failed);
        monitors_end(&service);
    }
}
