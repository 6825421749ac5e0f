/* CSV of tables.jsonl against what Python's csv module read. */
#include "tests/suites/support/support.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Formats Python's columns as struct table_text has them. */
static void expect(struct api_buffer *to, const json_t *columns)
{
    static const char *const names[] = {"a:", "|b:"};
    size_t i, j;
    json_t *column, *field;
    json_array_foreach(columns, i, column)
    {
        api_append_text(to, names[i]);
        json_array_foreach(column, j, field)
        {
            api_append_text(to, " `");
            for (const char *p = json_string_value(field); *p; p++)
                api_append(to, *p == '\n' ? "\\" : p, 1);
            api_append_text(to, "`");
        }
    }
    api_append(to, "", 1);
}

static void replay(const json_t *row)
{
    struct api_buffer expected = {0};
    struct table_reading reading = {.content_type = "text/csv", .no_lines = true};
    char *body = decode_base64(text_of(row, "body"), &reading.size);
    reading.body = body;
    struct table_text got = table_read(&reading);
    expect(&expected, json_object_get(row, "columns"));
    if (json_object_get(row, "refused"))
        cr_expect(got.problem.code, "%.*s\n gives %s", (int)reading.size, body, got.text);
    else
        cr_expect_str_eq(got.text, expected.data, "%.*s\n gives    %s\n and not %s",
                         (int)reading.size, body, got.text, expected.data);
    table_text_free(&got);
    api_buffer_free(&expected);
    free(body);
}

Test(tables_golden, csv_is_read_as_python_reads_it)
{
    size_t size, n = 0;
    char *all = read_file("tests/tools/golden/tables.jsonl", &size), *rest = all;
    for (char *line; (line = strtok_r(rest, "\n", &rest)); n++) {
        json_t *row = json_loads(line, 0, NULL);
        cr_assert(row);
        replay(row);
        json_decref(row);
    }
    cr_expect_gt(n, 900);
    free(all);
}
