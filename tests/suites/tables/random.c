/* Random tables, written in each format: all give the same cells. */
#include "tests/suites/support/support.h"
#include "tests/suites/tables/files.h"
#include "tests/suites/tables/tables.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 40, MAX_COLUMNS = 5, TEXT = 64, TABLES = 3000 };

enum kind { FLOAT, INTEGER, TRUTH, TEXTS, KINDS };

struct model {
    unsigned long long state;
    size_t n_rows, n_columns;
    bool has_missing; /* null and absent members, which arrays lack */
    enum kind kinds[MAX_COLUMNS];
    bool missing[MAX_COLUMNS][MAX_ROWS];
    double numbers[MAX_COLUMNS][MAX_ROWS];
    char texts[MAX_COLUMNS][MAX_ROWS][TEXT];
};

static size_t pick(struct model *m, size_t n) { return uniform_below(&m->state, n); }

/* No text looks like a number, nor has a dot, which would undo the decimal comma. */
static void random_text(struct model *m, char *to)
{
    static const char *const pieces[] = {"x",
                                         "yz",
                                         " ",
                                         ",",
                                         ";",
                                         "\t",
                                         "\"",
                                         "\n",
                                         "\r",
                                         "\xc3\xa9",
                                         "\xe6\xb0\xb4",
                                         "\xf0\x9f\x98\x80",
                                         "/",
                                         "\\",
                                         "'"};
    strcpy(to, pick(m, 4) ? "x" : "");
    for (size_t n = *to ? pick(m, 8) : 0; n > 0; n--)
        strcat(to, pieces[pick(m, pick(m, 2) ? COUNT(pieces) : 2)]);
}

static void random_model(struct model *m)
{
    m->n_rows = pick(m, MAX_ROWS + 1);
    m->n_columns = 1 + pick(m, MAX_COLUMNS);
    m->has_missing = pick(m, 2);
    for (size_t c = 0; c < m->n_columns; c++) {
        m->kinds[c] = (enum kind)pick(m, KINDS);
        for (size_t r = 0; r < m->n_rows; r++) {
            m->missing[c][r] = m->has_missing && pick(m, 5) == 0;
            m->numbers[c][r] =
                m->kinds[c] == TRUTH ? (double)pick(m, 2) : (double)pick(m, 200) - 100;
            if (m->kinds[c] == FLOAT)
                m->numbers[c][r] = (uniform(&m->state) - 0.5) * (pick(m, 2) ? 1e10 : 1e-20);
            random_text(m, m->texts[c][r]);
        }
    }
}

/* ---- What is expected: see struct table_text */

static void expect_text(struct api_buffer *to, char quote, const char *text)
{
    api_append_format(to, " %c", quote);
    for (; *text; text++)
        api_append(to, *text == '\n' ? "\\" : text, 1);
    api_append(to, &quote, 1);
}

static void expect_cell(const struct model *m, struct api_buffer *to, size_t c, size_t r)
{
    if (m->missing[c][r])
        api_append_text(to, " -");
    else if (m->kinds[c] == TEXTS)
        expect_text(to, '\'', m->texts[c][r]);
    else if (m->kinds[c] == TRUTH)
        api_append_text(to, m->numbers[c][r] ? " true" : " false");
    else
        api_append_format(to, " %.17g", m->numbers[c][r]);
}

static void expect_field(const struct model *m, struct api_buffer *to, size_t c, size_t r,
                         size_t line)
{
    if (!m->missing[c][r] && m->kinds[c] <= INTEGER) {
        api_append_format(to, " %.17g", m->numbers[c][r]);
        return;
    }
    expect_text(to, '`',
                m->missing[c][r]       ? ""
                : m->kinds[c] == TEXTS ? m->texts[c][r]
                : m->numbers[c][r]     ? "true"
                                       : "false");
    if (line != r + 2)
        api_append_format(to, "@%zu", line);
}

/* lines: the line of each field of CSV, or NULL for other formats. */
static void check(const struct model *m, const char *format, struct table_reading reading,
                  const size_t lines[MAX_ROWS][MAX_COLUMNS])
{
    struct api_buffer expected = {0};
    for (size_t c = 0; c < m->n_columns; c++) {
        api_append_format(&expected, "%sc%zu:", c ? "|" : "", c);
        for (size_t r = 0; r < m->n_rows; r++)
            if (lines)
                expect_field(m, &expected, c, r, lines[r][c]);
            else
                expect_cell(m, &expected, c, r);
    }
    api_append(&expected, "", 1);
    reading.numbers = true;
    struct table_text got = table_read(&reading);
    cr_expect_str_eq(got.text, expected.data, "%s:\n%.*s\n gives    %s\n and not %s", format,
                     (int)reading.size, reading.body, got.text, expected.data);
    table_text_free(&got);
    api_buffer_free(&expected);
}

/* ---- CSV */

struct dialect {
    char delimiter;
    bool comma;
    const char *end;
    size_t line;
};

static void csv_text(struct model *m, struct api_buffer *to, struct dialect *d, const char *text)
{
    bool quoted =
        *text == '"' || strpbrk(text, "\r\n") || strchr(text, d->delimiter) || pick(m, 3) == 0;
    api_append_text(to, quoted ? "\"" : "");
    for (; *text; text++) {
        api_append(to, text, 1);
        if (*text == '"' && quoted)
            api_append_text(to, "\"");
        d->line += *text == '\n' || (*text == '\r' && text[1] != '\n');
    }
    api_append_text(to, quoted ? "\"" : "");
}

static void csv_field(struct model *m, struct api_buffer *to, struct dialect *d, size_t c, size_t r)
{
    char number[40];
    if (m->missing[c][r])
        return;
    if (m->kinds[c] >= TRUTH) {
        csv_text(m, to, d,
                 m->kinds[c] == TEXTS ? m->texts[c][r]
                 : m->numbers[c][r]   ? "true"
                                      : "false");
        return;
    }
    snprintf(number, sizeof number, "%s%s%.17g", pick(m, 4) ? "" : " ",
             m->numbers[c][r] > 0 && pick(m, 4) == 0 ? "+" : "", m->numbers[c][r]);
    if (d->comma && strchr(number, '.'))
        *strchr(number, '.') = ',';
    csv_text(m, to, d, number);
}

static void check_csv(struct model *m)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    struct api_buffer to = {0};
    size_t lines[MAX_ROWS][MAX_COLUMNS];
    struct dialect d = {.delimiter = "\t;,"[pick(m, 3)], .end = ends[pick(m, 3)], .line = 2};
    d.comma = d.delimiter == ';' && m->n_columns > 1;
    if (m->n_columns == 1)
        d.delimiter = ',';
    api_append_text(&to, pick(m, 2) ? "\xef\xbb\xbf" : "");
    for (size_t c = 0; c < m->n_columns; c++) {
        api_append(&to, &d.delimiter, c ? 1 : 0);
        api_append_format(&to, pick(m, 3) ? "c%zu" : "\"c%zu\"", c);
    }
    for (size_t r = 0; r < m->n_rows; r++, d.line++) {
        api_append_text(&to, d.end);
        while (m->n_columns > 1 && pick(m, 10) == 0) {
            for (size_t n = pick(m, 4); n > 0; n--)
                api_append(&to, &d.delimiter, 1);
            api_append_text(&to, d.end);
            d.line++;
        }
        for (size_t c = 0; c < m->n_columns; c++) {
            api_append(&to, &d.delimiter, c ? 1 : 0);
            lines[r][c] = d.line;
            size_t start = to.size;
            csv_field(m, &to, &d, c, r);
            if (c == 0 && m->n_columns > 1 && to.size == start)
                api_append_text(&to, "\"\""); /* no row is blank */
        }
    }
    api_append_text(&to, pick(m, 2) || m->n_columns == 1 ? d.end : "");
    check(m, "CSV", (struct table_reading){"text/csv", .body = to.data, .size = to.size}, lines);
    api_buffer_free(&to);
}

/* ---- JSON */

static void json_text(struct model *m, struct api_buffer *to, const char *text)
{
    json_t *string = json_string(text);
    char dumped[8 * TEXT];
    size_t flags = JSON_ENCODE_ANY | (pick(m, 2) ? JSON_ENSURE_ASCII : 0) |
                   (pick(m, 2) ? JSON_ESCAPE_SLASH : 0);
    size_t size = json_dumpb(string, dumped, sizeof dumped, flags);
    cr_assert_lt(size, sizeof dumped);
    api_append(to, dumped, size);
    json_decref(string);
}

static void json_cell(struct model *m, struct api_buffer *to, size_t c, size_t r)
{
    if (m->missing[c][r])
        api_append_text(to, "null");
    else if (m->kinds[c] == TEXTS)
        json_text(m, to, m->texts[c][r]);
    else if (m->kinds[c] == TRUTH)
        api_append_text(to, m->numbers[c][r] ? "true" : "false");
    else
        api_append_format(to, "%.17g", m->numbers[c][r]);
}

static void space(struct model *m, struct api_buffer *to)
{
    static const char *const spaces[] = {"", "", " ", "\n", "\r\n\t"};
    api_append_text(to, spaces[pick(m, COUNT(spaces))]);
}

static void check_json_columns(struct model *m)
{
    struct api_buffer to = {0};
    api_append_text(&to, "{\"columns\":{");
    for (size_t c = 0; c < m->n_columns; c++) {
        api_append_format(&to, "%s\"c%zu\":[", c ? "," : "", c);
        for (size_t r = 0; r < m->n_rows; r++) {
            space(m, &to);
            json_cell(m, &to, c, r);
            space(m, &to);
            api_append_text(&to, r + 1 < m->n_rows ? "," : "");
        }
        api_append_text(&to, "]");
        space(m, &to);
    }
    api_append_text(&to, "}}");
    check(m, "columns",
          (struct table_reading){"application/json", .body = to.data, .size = to.size}, NULL);
    api_buffer_free(&to);
}

/* Members come in another order in each row but the first, which has all. */
static void check_json_rows(struct model *m)
{
    struct api_buffer to = {0};
    if (m->n_rows == 0)
        return;
    api_append_text(&to, "{\"rows\":[");
    for (size_t r = 0; r < m->n_rows; r++) {
        size_t first = r ? pick(m, m->n_columns) : 0;
        const char *before = "{";
        for (size_t i = 0; i < m->n_columns; i++) {
            size_t c = (first + i) % m->n_columns;
            if (r && m->missing[c][r] && pick(m, 2))
                continue;
            api_append_text(&to, before);
            space(m, &to);
            api_append_format(&to, pick(m, 3) ? "\"c%zu\"" : "\"\\u0063%zu\"", c);
            space(m, &to);
            api_append_text(&to, ":");
            json_cell(m, &to, c, r);
            space(m, &to);
            before = ",";
        }
        api_append_text(&to, *before == '{' ? "{}" : "}");
        api_append_text(&to, r + 1 < m->n_rows ? "," : "]}");
    }
    check(m, "rows", (struct table_reading){"application/json", .body = to.data, .size = to.size},
          NULL);
    api_buffer_free(&to);
}

/* ---- Arrays */

static void check_arrays(struct model *m)
{
    static const char *const dtypes[] = {"f8", "i1", "b1"};
    struct tables_array arrays[MAX_COLUMNS] = {{0}};
    char names[MAX_COLUMNS][24];
    bool has_text = false;
    if (m->has_missing)
        return;
    for (size_t c = 0; c < m->n_columns; c++) {
        bool is_text = m->kinds[c] == TEXTS;
        has_text |= is_text;
        snprintf(names[c], sizeof names[c], "c%zu", c);
        arrays[c] = (struct tables_array){.name = names[c],
                                          .dtype = is_text ? "U" : dtypes[m->kinds[c]],
                                          .swapped = pick(m, 2),
                                          .n = m->n_rows,
                                          .numbers = m->numbers[c],
                                          .texts = m->texts[c][0],
                                          .text_size = TEXT};
        if (m->kinds[c] == INTEGER)
            arrays[c].dtype = (const char *const[]){"i1", "i2", "i4", "i8"}[pick(m, 4)];
    }
    for (int deflated = 0; deflated <= 1; deflated++) {
        struct api_buffer npz = {0};
        tables_npz(&npz, arrays, m->n_columns, deflated);
        check(m, "npz",
              (struct table_reading){deflated ? "application/x-npz" : NULL, .body = npz.data,
                                     .size = npz.size},
              NULL);
        api_buffer_free(&npz);
    }
    struct api_buffer safe = {0};
    if (has_text)
        return;
    tables_safetensors(&safe, arrays, m->n_columns, pick(m, 8));
    check(m, "safetensors",
          (struct table_reading){"application/x-safetensors", .body = safe.data, .size = safe.size},
          NULL);
    api_buffer_free(&safe);
}

Test(tables_random, random_tables_are_the_same_in_every_format)
{
    static struct model m;
    for (unsigned long long i = 0; i < TABLES; i++) {
        m.state = i + 1;
        uniform(&m.state);
        random_model(&m);
        check_csv(&m);
        check_json_columns(&m);
        check_json_rows(&m);
        check_arrays(&m);
    }
}
