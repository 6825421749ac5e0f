/* Random tables in each form: the same configs, the same results. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/tables/files.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 300, MAX_COLUMNS = 40, TEXT = 24 };
enum kind { FLOAT, INTEGER, TEXTS, TRUTH, KINDS };

/* model: a table. Missing numbers are NaN, missing texts are empty. */
struct model {
    unsigned long long state;
    size_t n_rows, n_columns;
    enum kind kinds[MAX_COLUMNS];
    char names[MAX_COLUMNS][TEXT];
    double numbers[MAX_COLUMNS][MAX_ROWS];
    char texts[MAX_COLUMNS][MAX_ROWS][TEXT];
};

static size_t pick(struct model *m, size_t n) { return uniform_below(&m->state, n); }

static double random_number(struct model *m, enum kind kind)
{
    if (kind == TRUTH)
        return (double)pick(m, 2);
    if (pick(m, 20) == 0)
        return (double)NAN;
    if (kind == INTEGER)
        return (double)pick(m, 30) - 3;
    return pick(m, 30) ? (uniform(&m->state) - 0.3) * 1e3
                       : (pick(m, 2) ? (double)INFINITY : -(double)INFINITY);
}

/* Fills the columns with so many rows; their kinds and names stay. */
static void fill(struct model *m, size_t n_rows)
{
    static const char *const texts[] = {"x", "y;", "\xc3\xa9", "a,b", " z", "'", "NaNs", "\tt"};
    m->n_rows = n_rows;
    for (size_t c = 0; c < m->n_columns; c++)
        for (size_t r = 0; r < n_rows; r++) {
            m->numbers[c][r] = random_number(m, m->kinds[c]);
            strcpy(m->texts[c][r], pick(m, 9) ? texts[pick(m, COUNT(texts))] : "");
        }
}

static void random_model(struct model *m)
{
    static const char *const names[] = {"c%zu", "od280/od315 %zu", "sepal length (cm), %zu",
                                        "\xcf\x80%zu", "#%zu"};
    m->n_columns = 1 + pick(m, pick(m, 3) ? 6 : MAX_COLUMNS);
    for (size_t c = 0; c < m->n_columns; c++) {
        m->kinds[c] = (enum kind)pick(m, KINDS);
        snprintf(m->names[c], sizeof m->names[c], names[pick(m, COUNT(names))], c);
    }
    fill(m, 1 + pick(m, pick(m, 3) ? 20 : MAX_ROWS));
}

/* ---- Writers */

static void csv_text(struct api_buffer *to, const char *text)
{
    bool quoted = strpbrk(text, ",;\t'");
    api_append_format(to, quoted ? "\"%s\"" : "%s", text);
}

/* Appends a number with a comma instead of the point. */
static void number_with_comma(struct api_buffer *to, double number)
{
    char text[40], *point;
    snprintf(text, sizeof text, "%.17g", number);
    if ((point = strchr(text, '.')))
        *point = ',';
    api_append_text(to, text);
}

static void csv_cell(const struct model *m, struct api_buffer *to, size_t c, size_t r,
                     char delimiter)
{
    double number = m->numbers[c][r];
    if (m->kinds[c] == TEXTS)
        csv_text(to, m->texts[c][r]);
    else if (m->kinds[c] == TRUTH)
        api_append_text(to, number ? "true" : "false");
    else if (isfinite(number) && delimiter == ';')
        number_with_comma(to, number);
    else if (isfinite(number))
        api_append_format(to, "%.17g", number);
    else
        api_append_text(to, isnan(number) ? (r % 2 ? "" : "NaN")
                            : number > 0  ? "inf"
                                          : "-Infinity");
}

static bool is_missing(const struct model *m, size_t c, size_t r)
{
    return m->kinds[c] == TEXTS ? !*m->texts[c][r] : isnan(m->numbers[c][r]);
}

/* Writes columns from `first` to `end`; with semicolons numbers have decimal commas. */
static void write_csv(const struct model *m, struct api_buffer *to, size_t first, size_t end,
                      char delimiter)
{
    for (size_t c = first; c < end; c++) {
        api_append(to, &delimiter, c > first);
        csv_text(to, m->names[c]);
    }
    for (size_t r = 0; r < m->n_rows; r++)
        for (size_t c = first; c < end; c++) {
            api_append_text(to, c > first ? "" : "\r\n");
            api_append(to, &delimiter, c > first);
            if (c == first && c + 1 < end && is_missing(m, c, r)) /* no line is blank */
                api_append_text(to, "\"\"");
            else
                csv_cell(m, to, c, r, delimiter);
        }
    api_append_text(to, "\r\n");
}

static void json_cell(const struct model *m, struct api_buffer *to, size_t c, size_t r)
{
    double number = m->numbers[c][r];
    if (m->kinds[c] == TEXTS && *m->texts[c][r])
        api_append_json_string(to, m->texts[c][r]);
    else if (m->kinds[c] == TEXTS || isnan(number))
        api_append_text(to, "null");
    else if (m->kinds[c] == TRUTH)
        api_append_text(to, number ? "true" : "false");
    else if (isfinite(number))
        api_append_format(to, "%.17g", number);
    else
        api_append_text(to, number > 0 ? "1e999" : "-1e999");
}

static void json_array_of(const struct model *m, struct api_buffer *to, size_t c)
{
    for (size_t r = 0; r < m->n_rows; r++) {
        api_append_text(to, r ? "," : "[");
        json_cell(m, to, c, r);
    }
    api_append_text(to, "]");
}

static void write_columns(const struct model *m, struct api_buffer *to)
{
    for (size_t c = 0; c < m->n_columns; c++) {
        api_append_text(to, c ? "," : "{\"columns\":{");
        api_append_json_string(to, m->names[c]);
        api_append_text(to, ":");
        json_array_of(m, to, c);
    }
    api_append_text(to, "}}");
}

static void write_rows(const struct model *m, struct api_buffer *to, const char *between)
{
    for (size_t r = 0; r < m->n_rows; r++) {
        api_append_text(to, r ? between : "");
        for (size_t c = 0; c < m->n_columns; c++) {
            api_append_text(to, c ? "," : "{");
            api_append_json_string(to, m->names[c]);
            api_append_text(to, ":");
            json_cell(m, to, c, r);
        }
        api_append_text(to, "}");
    }
}

static bool has_texts(const struct model *m)
{
    bool has = false;
    for (size_t c = 0; c < m->n_columns; c++)
        has |= m->kinds[c] == TEXTS;
    return has;
}

static void arrays_of(const struct model *m, struct tables_array *arrays)
{
    for (size_t c = 0; c < m->n_columns; c++)
        arrays[c] = (struct tables_array){.name = m->names[c],
                                          .dtype = m->kinds[c] == TEXTS   ? "U"
                                                   : m->kinds[c] == TRUTH ? "b1"
                                                                          : "f8",
                                          .n = m->n_rows,
                                          .numbers = m->numbers[c],
                                          .texts = m->texts[c][0],
                                          .text_size = TEXT};
}

/* ---- Forms of tables */

enum form { CSV, COLUMNS, ROWS, NPZ, SAFETENSORS, SEMICOLONS, TSV, LINES, ARRAY, FORM, FORMS };

static const char *const types[FORMS] = {"text/csv",
                                         "application/json",
                                         "application/json",
                                         "application/x-npz",
                                         "application/x-safetensors",
                                         "text/csv",
                                         "text/tab-separated-values",
                                         "application/x-ndjson",
                                         "application/json",
                                         "multipart/form-data; boundary=\"- -\""};

static void write_text(const struct model *m, struct api_buffer *to, enum form form)
{
    static const char separators[FORMS] = {
        [CSV] = ',', [SEMICOLONS] = ';', [TSV] = '\t', [FORM] = ';'};
    static const char *const starts[FORMS] = {
        [ROWS] = "{\"rows\":[",
        [ARRAY] = "[",
        [FORM] = "--- -\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.csv\"\r\n"
                 "Content-Type: text/csv\r\n\r\nsep=;\n"};
    static const char *const ends[FORMS] = {
        [ROWS] = "]}", [ARRAY] = "]", [FORM] = "\r\n--- ---\r\n"};
    api_append_text(to, starts[form] ? starts[form] : "");
    if (form == SEMICOLONS && m->n_columns == 1) /* the header has none */
        api_append_text(to, "sep=;\n");
    if (form == COLUMNS)
        write_columns(m, to);
    else if (separators[form])
        write_csv(m, to, 0, m->n_columns, separators[form]);
    else
        write_rows(m, to, form == LINES ? "\n" : ",");
    api_append_text(to, ends[form] ? ends[form] : "");
}

/* Writes the table in a form; false if the form cannot hold it. */
static bool write_form(const struct model *m, enum form form, struct api_buffer *body)
{
    struct tables_array arrays[MAX_COLUMNS];
    if (form == SAFETENSORS && has_texts(m))
        return false;
    arrays_of(m, arrays);
    if (form == NPZ)
        tables_npz(body, arrays, m->n_columns, m->n_rows % 2);
    else if (form == SAFETENSORS)
        tables_safetensors(body, arrays, m->n_columns, 0);
    else
        write_text(m, body, form);
    return true;
}

/* Asks with a table in a form; gives the body of the answer, or NULL if the form cannot hold it. */
static char *ask_form(const struct api_service *service, const struct model *m, enum form form,
                      const char *line, int status)
{
    struct api_buffer body = {0};
    if (!write_form(m, form, &body))
        return NULL;
    struct answer answer = monitors_send(
        service, &(struct monitors_request){line, types[form], body.data, body.size, {{0}}});
    char *text = body_of(&answer), *format;
    while ((format = strstr(
                text, ",\"number_format\":"))) { /* fields of CSV have one, other values not */
        const char *end = format + 1 + strcspn(format + 1, ",}");
        memmove(format, end, strlen(end) + 1);
    }
    cr_expect_eq(answer.status, status, "%s as %s: %d %.300s", line, types[form], answer.status,
                 text);
    answer_free(&answer);
    api_buffer_free(&body);
    return text;
}

/* Makes monitors and observes by one form, as two lines say; expects what another form was answered. */
static void check_form(const struct api_service *service, struct model *m, enum form form,
                       const char *const lines[2], char *expected[2])
{
    const struct model reference = *m;
    char *got[2] = {ask_form(service, m, form, lines[0], 201)};
    if (!got[0])
        return;
    fill(m, 1 + m->n_rows / 2);
    got[1] = ask_form(service, m, form, lines[1], 200);
    *m = reference;
    for (size_t i = 0; i < 2; i++) {
        if (expected[i])
            cr_expect_str_eq(got[i], expected[i], "form %d, %s:\n%.2000s\n%.2000s", form, lines[i],
                             got[i], expected[i]);
        free(expected[i] ? got[i] : NULL);
        expected[i] = expected[i] ? expected[i] : got[i];
    }
    monitors_expect(service, "DELETE /monitors/g", NULL, 204);
}

#define OBSERVE "POST /monitors/g/"
#define AT "?timestamp=1000000000"

Test(monitors_forms, tables_give_the_same_in_each)
{
    static const char *const lines[][2] = {
        {"PUT /monitors/g", OBSERVE "observations" AT},
        {"PUT /monitors/g?bins=3", OBSERVE "observations" AT},
        {"PUT /monitors/g?method=auto&bins=50", OBSERVE "observations" AT}};
    static struct model m;
    struct api_service service = monitors_new(100);
    for (unsigned long long i = 0; i < SOME_OF(150); i++) {
        char *expected[2] = {NULL, NULL};
        m.state = i * 7919 + 1;
        random_model(&m);
        bool any = false; /* a table none of whose columns has a value is refused */
        for (size_t c = 0; c < m.n_columns; c++)
            for (size_t r = 0; r < m.n_rows && !any; r++)
                any = m.kinds[c] == TEXTS ? *m.texts[c][r] : isfinite(m.numbers[c][r]);
        for (enum form form = CSV; any && form < FORMS; form++)
            check_form(&service, &m, form, lines[i % COUNT(lines)], expected);
        free(expected[0]);
        free(expected[1]);
    }
    monitors_end(&service);
}

/* ---- Two tables */

static void add_part(struct api_buffer *to, const char *name, const char *type,
                     const struct api_buffer *content)
{
    api_append_format(to, "--b\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"t\"\r\n",
                      name);
    api_append_format(to, "Content-Type: %s\r\n\r\n", type);
    api_append(to, content->data, content->size);
    api_append_text(to, "\r\n");
}

/* Compares two tables, and expects the results of an evaluation by the monitors of the group; gives the warnings. */
static size_t compare_tables(const struct api_service *service, const struct api_buffer bodies[2],
                             const char *const of_parts[2], const json_t *evaluated)
{
    static const char type[] = "multipart/form-data; boundary=b";
    struct api_buffer form = {0};
    add_part(&form, "current", of_parts[1], &bodies[1]);
    add_part(&form, "reference", of_parts[0], &bodies[0]);
    api_append_text(&form, "--b--\r\n");
    struct answer answer = monitors_send(
        service,
        &(struct monitors_request){"POST /compare?bins=7", type, form.data, form.size, {{0}}});
    cr_expect_eq(answer.status, 200, "%.*s", (int)answer.response.body.size,
                 answer.response.body.data);
    char *columns =
        json_dumps(at(answer.json, "columns"), JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    char *monitors =
        json_dumps(at(evaluated, "monitors"), JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    cr_expect_str_eq(columns, monitors);
    size_t n = json_array_size(at(answer.json, "warnings"));
    free(columns);
    free(monitors);
    answer_free(&answer);
    api_buffer_free(&form);
    return n;
}

static json_t *send_table(const struct api_service *service, const char *line, const char *type,
                          const struct api_buffer *body, int status)
{
    struct answer answer = monitors_send(
        service, &(struct monitors_request){line, type, body->data, body->size, {{0}}});
    cr_expect_eq(answer.status, status, "%s: %.*s", line, (int)answer.response.body.size,
                 answer.response.body.data);
    json_t *json = json_incref(answer.json);
    answer_free(&answer);
    return json;
}

static size_t count_warnings(const json_t *answer, const char *but)
{
    size_t n = 0, i;
    const json_t *warning;
    json_array_foreach(at(answer, "warnings"), i, warning) n +=
        strcmp(text_at(warning, "code"), but) != 0;
    return n;
}

/* In any two forms. A column that the reference left out is told of once. */
Test(monitors_forms, two_tables_compare_as_a_reference_and_an_evaluation)
{
    static struct model m;
    size_t n_compared = 0;
    struct api_service service = monitors_new(100);
    for (unsigned long long i = 0; i < SOME_OF(150); i++) {
        struct api_buffer bodies[2] = {{0}};
        m.state = i * 104729 + 3;
        random_model(&m);
        const enum form forms[] = {(enum form)pick(&m, FORM), (enum form)pick(&m, FORM)};
        const char *const of_parts[] = {types[forms[0]], types[forms[1]]};
        bool can = write_form(&m, forms[0], &bodies[0]);
        fill(&m, 1 + pick(&m, 2 * MAX_ROWS / 3));
        can = can && write_form(&m, forms[1], &bodies[1]);
        struct answer put = {.status = 0};
        if (can)
            put =
                monitors_send(&service, &(struct monitors_request){"PUT /monitors/g?bins=7&pool=1",
                                                                   of_parts[0],
                                                                   bodies[0].data,
                                                                   bodies[0].size,
                                                                   {{0}}});
        if (put.status == 201) {
            json_t *evaluated =
                send_table(&service, "POST /monitors/g/evaluate", of_parts[1], &bodies[1], 200);
            size_t warnings = compare_tables(&service, bodies, of_parts, evaluated);
            cr_expect_eq(warnings, count_warnings(put.json, "") +
                                       count_warnings(evaluated, "column_unknown"));
            json_decref(evaluated);
            monitors_expect(&service, "DELETE /monitors/g", NULL, 204);
            n_compared++;
        }
        if (can)
            answer_free(&put);
        api_buffer_free(&bodies[0]);
        api_buffer_free(&bodies[1]);
    }
    cr_expect_geq(n_compared, SOME_OF(150) / 2);
    monitors_end(&service);
}

/* ---- Forms of one monitor */

static char *ask_body(const struct api_service *service, const char *line, const char *type,
                      const struct api_buffer *body)
{
    struct answer answer = monitors_send(
        service, &(struct monitors_request){line, type, body->data, body->size, {{0}}});
    cr_expect_eq(answer.status, 200, "%s: %d %.*s", line, answer.status,
                 (int)answer.response.body.size, answer.response.body.data);
    char *text = body_of(&answer);
    answer_free(&answer);
    return text;
}

/* Writes the counts that a result has. */
static void write_counts(struct api_buffer *to, const char *result)
{
    json_t *json = json_loads(result, 0, NULL);
    const json_t *bin;
    size_t i;
    double n = number_at(json, "n");
    const char *before = "{\"counts\":[", *after = "";
    for (int outer = 0; outer <= 1; outer++, before = ",", after = "]")
        json_array_foreach(at(json, "bins"), i, bin)
        {
            const char *kind = text_at(bin, "kind");
            bool inner = strcmp(kind, "interval") == 0 || strcmp(kind, "label") == 0;
            double count = round(number_at(bin, "current") * n);
            if (inner == (outer == 1))
                continue;
            if (outer)
                api_append_format(to, "%s,\"%s\":%.17g", after, kind, count);
            else
                api_append_format(to, "%s%.17g", before, count);
            before = ",";
            after = outer ? "" : after;
        }
    api_append_text(to, "}");
    json_decref(json);
}

/* Takes out of a result what counts tell nothing of. */
static void forget_values(char **result)
{
    static const char *const members[] = {"unseen", "sentence", "pooled", "verdict", "mean", "sd"};
    json_t *json = json_loads(*result, 0, NULL);
    for (size_t i = 0; i < COUNT(members); i++)
        json_object_del(json, members[i]);
    free(*result);
    *result = json_dumps(json, JSON_REAL_PRECISION(17));
    json_decref(json);
}

/* Repeats the items of an array, which a body ends with from `first` on, ten times, so that each label has a bin and no text
 * is unseen: a body of counts has none. */
static void repeat(struct api_buffer *body, size_t first)
{
    size_t size = --body->size - first - 1;
    char *items = strndup(body->data + first + 1, size);
    for (int i = 1; i < 10; i++) {
        api_append_text(body, ",");
        api_append(body, items, size);
    }
    api_append_text(body, "]");
    free(items);
}

Test(monitors_forms, one_monitor_takes_its_values_in_each)
{
    static struct model m;
    struct api_service service = monitors_new(100);
    for (unsigned long long i = 0; i < SOME_OF(120); i++) {
        char *results[3];
        struct api_buffer bodies[3] = {{0}};
        static const char *const single[] = {"application/json", NULL, "application/json"};
        m.state = i + 99;
        m.n_columns = 1;
        m.kinds[0] = (enum kind)(i % KINDS);
        strcpy(m.names[0], "values");
        fill(&m, 30 + pick(&m, 100));
        api_append_text(&bodies[0], "{\"reference\":{\"values\":");
        size_t first = bodies[0].size;
        json_array_of(&m, &bodies[0], 0);
        repeat(&bodies[0], first);
        api_append(&bodies[0], "}}", 3);
        monitors_expect(&service, "PUT /monitors/g/values?bins=5", bodies[0].data, 201);
        api_buffer_free(&bodies[0]);
        fill(&m, 30 + pick(&m, 100));
        api_append_text(&bodies[0], "{\"values\":");
        json_array_of(&m, &bodies[0], 0);
        api_append_text(&bodies[0], "}");
        write_csv(&m, &bodies[1], 0, 1, ',');
        for (size_t j = 0; j < COUNT(bodies); j++) {
            if (j == 2)
                write_counts(&bodies[j], results[0]);
            results[j] =
                ask_body(&service, "POST /monitors/g/values/evaluate", single[j], &bodies[j]);
            if (j == 2)
                forget_values(&results[0]), forget_values(&results[2]);
            cr_expect_str_eq(results[j], results[0], "form %zu of %llu: %.*s", j, i,
                             (int)bodies[j].size, bodies[j].data);
        }
        for (size_t j = 0; j < COUNT(bodies); j++) {
            free(results[j]);
            api_buffer_free(&bodies[j]);
        }
        monitors_expect(&service, "DELETE /monitors/g/values", NULL, 204);
    }
    monitors_end(&service);
}

/* A table is the same for a monitor as for its group: its column in each form makes the same monitor, and the same
 * result. */
Test(monitors_forms, one_monitor_takes_its_column_of_a_table_in_each)
{
    static const char *const lines[][2] = {{"PUT /monitors/g/c0", OBSERVE "c0/observations" AT},
                                           {"PUT /monitors/g/c0", OBSERVE "c0/evaluate"}};
    static struct model m;
    struct api_service service = monitors_new(100);
    for (unsigned long long i = 0; i < SOME_OF(60); i++) {
        char *expected[2] = {NULL, NULL};
        m.state = i + 7;
        m.n_columns = 1 + pick(&m, 3);
        for (size_t c = 0; c < m.n_columns; c++) {
            m.kinds[c] = (enum kind)((i / 2 + c) % KINDS);
            snprintf(m.names[c], sizeof m.names[c], "c%zu", c);
        }
        fill(&m, 30 + pick(&m, 100));
        for (enum form form = CSV; form < FORMS; form++)
            check_form(&service, &m, form, lines[i % COUNT(lines)], expected);
        free(expected[0]);
        free(expected[1]);
    }
    monitors_end(&service);
}
