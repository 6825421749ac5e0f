/* The same table twice: what a reference was made of is never drift, in whatever form it comes again. Random tables of all
 * kinds of columns that people have. */
#include "tests/suites/support/monitors.h"
#include "tests/suites/tables/files.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 220, MAX_COLUMNS = 4, TEXT = 24 };

/* Tables by default; KLDIV_TABLES asks for others. */
enum { TABLES = SOME_OF(2000) };

/* cell: of a table. A boolean is 0 or 1. A missing text is as CSV writes it. */
enum kind { NUMBER, BOOLEAN, STRING, MISSING };
struct cell {
    enum kind kind;
    double number;
    char text[TEXT];
};

/* model: a table. Numbers of a column have so many decimals, or as many as they need if that is negative. */
struct model {
    unsigned long long state, seed;
    size_t n_rows, n_columns;
    char names[MAX_COLUMNS][TEXT], what[MAX_COLUMNS][3 * TEXT]; /* for messages */
    int decimals[MAX_COLUMNS];
    bool is_float32[MAX_COLUMNS], has_code[MAX_COLUMNS];
    size_t spelling[MAX_COLUMNS];
    struct cell cells[MAX_COLUMNS][MAX_ROWS];
};

static size_t pick(struct model *m, size_t n) { return uniform_below(&m->state, n); }

static const char *const missing[] = {"", "NA", "NaN", "null", "None"};
static const char *const markers[] = {"?", "N/A", "NULL", "A", "true", "-", "nan", " ", "unknown"};
static const char *const booleans[][2] = {{"false", "true"}, {"False", "True"}, {"FALSE", "TRUE"},
                                          {"f", "t"},        {"no", "yes"},     {"0", "1"}};

/* ---- Columns */

static struct cell number(double value) { return (struct cell){.kind = NUMBER, .number = value}; }

static struct cell text(const char *value)
{
    struct cell cell = {.kind = STRING};
    snprintf(cell.text, sizeof cell.text, "%s", value);
    return cell;
}

static double normal(struct model *m)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(&m->state);
    return sum;
}

static struct cell few(struct model *m, size_t c)
{
    (void)c;
    return number((double)pick(m, 5) + 1);
}

static struct cell many(struct model *m, size_t c)
{
    (void)c;
    return number((double)pick(m, 200) - 50);
}

static struct cell tenths(struct model *m, size_t c)
{
    m->decimals[c] = 1;
    return number(round(normal(m) * (pick(m, 2) ? 3 : 30)) / 10 + 0.0);
}

static struct cell real(struct model *m, size_t c)
{
    m->decimals[c] = -1;
    return number(normal(m) * 1e3);
}

static struct cell boolean(struct model *m, size_t c)
{
    (void)c;
    return (struct cell){.kind = BOOLEAN, .number = (double)(pick(m, 3) > 0)};
}

static struct cell label(struct model *m, size_t c)
{
    static const char *const words[] = {"red",      "green", "Blue", "\xc3\xa9t\xc3\xa9",
                                        " padded ", "a,b",   "x;y",  "q\"q",
                                        "1,5",      "True"};
    (void)c;
    return text(words[pick(m, COUNT(words))]);
}

static struct cell code(struct model *m, size_t c)
{
    char digits[TEXT];
    m->has_code[c] = true;
    snprintf(digits, sizeof digits, "%05zu", pick(m, 12) * pick(m, 2000));
    return text(digits);
}

static struct cell version(struct model *m, size_t c)
{
    static const char *const versions[] = {"1.0.0", "1.0.1", "2.10", "2.1.0", "v3", "x"};
    (void)c;
    return text(versions[pick(m, COUNT(versions))]);
}

static struct cell date(struct model *m, size_t c)
{
    char day[TEXT];
    (void)c;
    snprintf(day, sizeof day, "2026-%02zu-%02zu", pick(m, 12) + 1, pick(m, 28) + 1);
    return text(day);
}

static struct cell free_text(struct model *m, size_t c)
{
    char words[TEXT];
    (void)c;
    snprintf(words, sizeof words, "note %zu", pick(m, 100000));
    return text(words);
}

static struct cell mixed(struct model *m, size_t c)
{
    size_t which = pick(m, 12);
    return which < 5 ? few(m, c) : which < 7 ? boolean(m, c) : which < 9 ? label(m, c) : many(m, c);
}

static const struct column {
    const char *name;
    struct cell (*make)(struct model *m, size_t c);
} columns[] = {
    {"few", few},         {"many", many},           {"tenths", tenths}, {"real", real},
    {"boolean", boolean}, {"label", label},         {"code", code},     {"version", version},
    {"date", date},       {"free text", free_text}, {"mixed", mixed}};

/* Fills a column; some have markers for what is not known, and some are missing values. */
static void fill(struct model *m, size_t c)
{
    const struct column *column = &columns[pick(m, COUNT(columns))];
    const char *marker = markers[pick(m, COUNT(markers))];
    double share = pick(m, 3) ? 0 : uniform(&m->state) * 0.6,
           holes = pick(m, 2) ? 0 : uniform(&m->state) * 0.3;
    snprintf(m->what[c], sizeof m->what[c], "%s, %.0f %% '%s'", column->name, 100 * share, marker);
    m->decimals[c] = 0;
    m->has_code[c] = false;
    m->is_float32[c] = pick(m, 3) == 0;
    m->spelling[c] = column->make == mixed ? 0 : pick(m, COUNT(booleans));
    if (column->make == boolean && strcmp(marker, "true") == 0)
        marker = "?";
    for (size_t r = 0; r < m->n_rows; r++) {
        struct cell *cell = &m->cells[c][r];
        *cell = column->make(m, c);
        if (uniform(&m->state) < share)
            *cell = text(marker);
        if (uniform(&m->state) < holes) {
            *cell = text(missing[pick(m, COUNT(missing))]);
            cell->kind = MISSING;
        }
        if (cell->kind == NUMBER && m->is_float32[c])
            cell->number = (double)(float)cell->number;
    }
}

static void random_model(struct model *m, unsigned long long seed)
{
    static const char *const names[] = {"c%zu", "size (cm) %zu", "\xcf\x80%zu", "a/b %zu"};
    m->seed = m->state = seed;
    uniform(&m->state);
    m->n_rows = 60 + pick(m, MAX_ROWS - 60);
    m->n_columns = 1 + pick(m, MAX_COLUMNS);
    for (size_t c = 0; c < m->n_columns; c++) {
        snprintf(m->names[c], TEXT, names[pick(m, COUNT(names))], c);
        fill(m, c);
    }
}

/* ---- Writers */

/* Writes a number as the program does that has it: of float32 or float64, with the decimals of its column. */
static void write_number(const struct model *m, struct api_buffer *to, size_t c, double value)
{
    char digits[40];
    if (m->decimals[c] >= 0) {
        api_append_format(to, "%.*f", m->decimals[c], value);
        return;
    }
    for (int n = m->is_float32[c] ? 6 : 15; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        double back = m->is_float32[c] ? (double)strtof(digits, NULL) : strtod(digits, NULL);
        if (back == value)
            break;
    }
    api_append_text(to, digits);
}

static void csv_cell(const struct model *m, struct api_buffer *to, size_t c,
                     const struct cell *cell, char delimiter)
{
    size_t start = to->size;
    if (cell->kind == NUMBER)
        write_number(m, to, c, cell->number);
    else if (cell->kind == BOOLEAN)
        api_append_text(to, booleans[m->spelling[c]][cell->number != 0]);
    else if (strpbrk(cell->text, ",;\t\"")) {
        api_append_text(to, "\"");
        for (const char *p = cell->text; *p; p++)
            api_append(to, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
        api_append_text(to, "\"");
    } else {
        api_append_text(to, cell->text);
    }
    char *point = delimiter == ';' && cell->kind == NUMBER
                      ? memchr(to->data + start, '.', to->size - start)
                      : NULL;
    if (point)
        *point = ',';
}

static void write_delimited(const struct model *m, struct api_buffer *to, char delimiter)
{
    if (m->n_columns == 1 && delimiter != ',')
        api_append_format(to, "sep=%c\n", delimiter);
    for (size_t c = 0; c < m->n_columns; c++) {
        api_append(to, &delimiter, c > 0);
        api_append_text(to, m->names[c]);
    }
    for (size_t r = 0; r < m->n_rows; r++)
        for (size_t c = 0; c < m->n_columns; c++) {
            api_append(to, c ? &delimiter : "\n", 1);
            if (c == 0 && m->n_columns > 1 && !*m->cells[c][r].text &&
                m->cells[c][r].kind == MISSING)
                api_append_text(to, "\"\""); /* no row is blank */
            else
                csv_cell(m, to, c, &m->cells[c][r], delimiter);
        }
    api_append_text(to, "\n");
}

static void json_cell(const struct model *m, struct api_buffer *to, size_t c, size_t r)
{
    const struct cell *cell = &m->cells[c][r];
    if (cell->kind == MISSING)
        api_append_text(to, "null");
    else if (cell->kind == BOOLEAN)
        api_append_text(to, cell->number != 0 ? "true" : "false");
    else if (cell->kind == STRING)
        api_append_json_string(to, cell->text);
    else
        write_number(m, to, c, cell->number);
}

static void json_row(const struct model *m, struct api_buffer *to, size_t r)
{
    bool has_member = false;
    for (size_t c = 0; c < m->n_columns; c++) {
        if (m->cells[c][r].kind == MISSING && r % 2)
            continue;
        api_append_text(to, has_member ? "," : "{");
        api_append_json_string(to, m->names[c]);
        api_append_text(to, ":");
        json_cell(m, to, c, r);
        has_member = true;
    }
    api_append_text(to, has_member ? "}" : "{}");
}

static bool as_csv(const struct model *m, struct api_buffer *to)
{
    write_delimited(m, to, ',');
    return true;
}

/* With decimal commas, as spreadsheets write it there. */
static bool as_semicolons(const struct model *m, struct api_buffer *to)
{
    write_delimited(m, to, ';');
    return true;
}

static bool as_tsv(const struct model *m, struct api_buffer *to)
{
    write_delimited(m, to, '\t');
    return true;
}

static bool as_columns(const struct model *m, struct api_buffer *to)
{
    api_append_text(to, "{\"columns\":");
    for (size_t c = 0; c < m->n_columns; c++) {
        api_append_text(to, c ? "," : "{");
        api_append_json_string(to, m->names[c]);
        for (size_t r = 0; r < m->n_rows; r++) {
            api_append_text(to, r ? "," : ":[");
            json_cell(m, to, c, r);
        }
        api_append_text(to, "]");
    }
    api_append_text(to, "}}");
    return true;
}

static bool as_rows(const struct model *m, struct api_buffer *to)
{
    for (size_t r = 0; r < m->n_rows; r++) {
        api_append_text(to, r ? "," : "{\"rows\":[");
        json_row(m, to, r);
    }
    api_append_text(to, "]}");
    return true;
}

static bool as_lines(const struct model *m, struct api_buffer *to)
{
    for (size_t r = 0; r < m->n_rows; r++) {
        json_row(m, to, r);
        api_append_text(to, "\n");
    }
    return true;
}

/* arrays: the columns of a model that arrays can hold. */
struct arrays {
    struct tables_array of[MAX_COLUMNS];
    double numbers[MAX_COLUMNS][MAX_ROWS];
    char texts[MAX_COLUMNS][MAX_ROWS][TEXT];
};

/* Fills the array of a column; false if an array cannot hold it. */
static bool make_array(const struct model *m, struct arrays *arrays, size_t c, bool has_text)
{
    bool are[MISSING + 1] = {false};
    for (size_t r = 0; r < m->n_rows; r++) {
        const struct cell *cell = &m->cells[c][r];
        are[cell->kind] = true;
        arrays->numbers[c][r] = cell->kind == MISSING ? (double)NAN : cell->number;
        snprintf(arrays->texts[c][r], TEXT, "%s", cell->text);
    }
    const char *dtype = are[STRING] ? "U" : are[BOOLEAN] ? "b1" : m->is_float32[c] ? "f4" : "f8";
    arrays->of[c] = (struct tables_array){.name = m->names[c],
                                          .dtype = dtype,
                                          .n = m->n_rows,
                                          .numbers = arrays->numbers[c],
                                          .texts = arrays->texts[c][0],
                                          .text_size = TEXT};
    return are[NUMBER] + are[BOOLEAN] + are[STRING] == 1 && (has_text || !are[STRING]) &&
           !(are[BOOLEAN] && are[MISSING]);
}

static bool make_arrays(const struct model *m, struct arrays *arrays, bool has_text)
{
    for (size_t c = 0; c < m->n_columns; c++)
        if (!make_array(m, arrays, c, has_text))
            return false;
    return true;
}

static bool as_npz(const struct model *m, struct api_buffer *to)
{
    static struct arrays arrays;
    bool good = make_arrays(m, &arrays, true);
    if (good)
        tables_npz(to, arrays.of, m->n_columns, m->seed % 2);
    return good;
}

static bool as_safetensors(const struct model *m, struct api_buffer *to)
{
    static struct arrays arrays;
    bool good = make_arrays(m, &arrays, false);
    if (good)
        tables_safetensors(to, arrays.of, m->n_columns, 0);
    return good;
}

/* forms: of JSON, whose strings a monitor of numbers refuses, and the others. */
static const struct form {
    const char *name, *type;
    bool (*write)(const struct model *m, struct api_buffer *to);
    bool has_strings;
} forms[] = {
    {"csv", "text/csv", as_csv, false},
    {"semicolons", "text/csv", as_semicolons, false},
    {"tsv", "text/tab-separated-values", as_tsv, false},
    {"columns", "application/json", as_columns, true},
    {"rows", "application/json", as_rows, true},
    {"lines", "application/jsonl", as_lines, true},
    {"npz", "application/x-npz", as_npz, true},
    {"safetensors", "application/safetensors", as_safetensors, false},
};

/* ---- The same table twice */

static struct answer send(const struct api_service *service, const char *line,
                          const struct form *form, const struct api_buffer *body)
{
    return monitors_send(
        service, &(struct monitors_request){
                     .line = line, .type = form->type, .body = body->data, .size = body->size});
}

/* True if a list of objects has one whose member is this text. */
static bool lists(const json_t *list, const char *member, const char *text)
{
    size_t i;
    const json_t *object;
    json_array_foreach(list, i, object)
    {
        if (strcmp(text_at(object, member), text) == 0)
            return true;
    }
    return false;
}

/* Expects each column to have a monitor, or a warning that says why not. */
static void expect_all_told(const struct model *m, const json_t *json, const char *form)
{
    for (size_t c = 0; c < m->n_columns; c++)
        cr_expect(lists(at(json, "monitors"), "name", m->names[c]) ||
                      lists(at(json, "warnings"), "column", m->names[c]),
                  "seed %llu, %s: nothing is said of '%s'", m->seed, form, m->names[c]);
}

/* What a column was made of. */
static const char *what(const struct model *m, const char *name)
{
    size_t c = 0;
    while (c + 1 < m->n_columns && strcmp(m->names[c], name) != 0)
        c++;
    return m->what[c];
}

/* Expects no drift at all in any column. */
static void expect_same(const struct model *m, const json_t *json, const char *form,
                        const char *again)
{
    size_t i;
    const json_t *monitor;
    json_array_foreach(at(json, "monitors"), i, monitor)
    {
        const char *verdict = text_at(monitor, "verdict");
        bool is_half = number_at(monitor, "n_reference") < number_at(monitor, "n");
        double noise = is_half ? 3 * number_at(monitor, "noise_floor") : 0; /* of chosen labels */
        bool is_same = number_at(monitor, "kl") <= 1e-12 + noise;
        cr_expect(is_same &&
                      (strcmp(verdict, "ok") == 0 || strcmp(verdict, "insufficient_data") == 0),
                  "seed %llu, %s then %s: '%s' is %s, kl %g", m->seed, form, again,
                  what(m, text_at(monitor, "name")), verdict, number_at(monitor, "kl"));
    }
}

/* Observes a table in another form. Only strings may be refused, by monitors that were made of fields. */
static void check_again(const struct api_service *service, const struct model *m,
                        const struct form *form, const struct form *again)
{
    struct api_buffer body = {0};
    if (again->write(m, &body)) {
        struct answer answer = send(service, "POST /monitors/g/observations", again, &body);
        const char *code = text_of(answer.json, "code");
        bool is_refused = again->has_strings && !form->has_strings && answer.status == 422;
        cr_expect(is_refused ? strcmp(code, "value_not_number") == 0 : answer.status == 200,
                  "seed %llu, %s then %s: %d %s", m->seed, form->name, again->name, answer.status,
                  text_of(answer.json, "detail"));
        if (answer.status == 200)
            expect_same(m, answer.json, form->name, again->name);
        answer_free(&answer);
    }
    api_buffer_free(&body);
}

static void check(struct api_service *service, struct model *m)
{
    const struct form *form = &forms[pick(m, COUNT(forms))];
    struct api_buffer body = {0};
    if (!form->write(m, &body))
        (form = &forms[pick(m, 6)])->write(m, &body);
    struct answer answer = send(service, "PUT /monitors/g?pool=1", form, &body);
    const char *code = text_of(answer.json, "code");
    bool is_empty = strcmp(code, "reference_empty") == 0 || strcmp(code, "nothing_to_compare") == 0;
    cr_expect(answer.status == 201 || is_empty, "seed %llu, %s: %d %s", m->seed, form->name,
              answer.status, text_of(answer.json, "detail"));
    if (answer.status == 201) {
        expect_all_told(m, answer.json, form->name);
        check_again(service, m, form, form);
        check_again(service, m, form, &forms[pick(m, COUNT(forms))]);
        monitors_expect(service, "DELETE /monitors/g", NULL, 204);
    }
    answer_free(&answer);
    api_buffer_free(&body);
}

Test(monitors_same, a_table_is_never_drift_of_itself)
{
    static struct model m;
    const char *asked = getenv("KLDIV_TABLES");
    unsigned long long n = asked ? strtoull(asked, NULL, 10) : TABLES;
    struct api_service service = monitors_new(100);
    for (unsigned long long seed = 1; seed <= n; seed++) {
        random_model(&m, seed);
        check(&service, &m);
    }
    monitors_end(&service);
}

/* Whole numbers with a marker for what is not known. */
Test(monitors_same, markers_among_whole_numbers_are_labels_both_times)
{
    static const char *const texts[] = {"N/A", "?", "NULL", "A", "true", "-1x", " "};
    struct api_service service = monitors_new(10);
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct api_buffer body = {0};
        api_append_text(&body, "r,s\n");
        for (int row = 0; row < 1000; row++)
            api_append_format(&body, row < 900 ? "%d,x\n" : "%.0d%s,x\n",
                              row < 900 ? row % 5 + 1 : 0, texts[i]);
        api_append(&body, "", 1);
        monitors_expect(&service, "PUT /monitors/g", body.data, i ? 200 : 201);
        json_t *json = monitors_get(&service, "POST /monitors/g/observations", body.data, 200);
        expect_at(json, "monitors.0.kl", "0");
        expect_at(json, "monitors.0.verdict", "\"ok\"");
        json_decref(json);
        api_buffer_free(&body);
    }
    monitors_end(&service);
}
