/* Tables as CSV, and as TSV, which is CSV with tabs. */
#include "api/files/csv.h"
#include "api/json/json_text.h"
#include "api/tables/columns.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* True if eight bytes are ASCII. */
static bool eight_ascii(const char *p)
{
    uint64_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return (bytes & 0x8080808080808080) == 0;
}

/* Checks that the text is UTF-8 without NULs. */
static bool check_text(const char *text, size_t size, struct api_problem *problem)
{
    const char *p = text, *end = text + size, *nul = memchr(text, '\0', size);
    if (nul)
        return api_fail(problem, "csv_malformed",
                        "line %zu: there is a NUL at byte %zu; CSV is read as UTF-8",
                        1 + api_csv_lines(text, nul), (size_t)(nul - text));
    while (p < end) {
        if (eight_ascii(p)) {
            p += 8;
            continue;
        }
        size_t length = api_utf8_length((const unsigned char *)p);
        if (length == 0)
            return api_fail(problem, "csv_malformed", "line %zu: byte %zu is not UTF-8",
                            1 + api_csv_lines(text, p), (size_t)(p - text));
        p += length;
    }
    return true;
}

/* Delimiter of the header at `p`: the one that occurs most outside of quotes. A comma is likely in a
 * name, a tab is not, which decides between equals. */
static char find_delimiter(const char *p)
{
    static const char known[] = "\t;,";
    size_t n[sizeof known] = {0}, best = 2;
    bool inside = false;
    for (; *p && (inside || (*p != '\n' && *p != '\r')); p++) {
        const char *found = strchr(known, *p);
        inside ^= *p == '"';
        if (found && !inside)
            n[found - known]++;
    }
    for (size_t i = sizeof known - 1; i-- > 0;)
        if (n[i] >= n[best])
            best = i;
    return known[n[best] ? best : 2];
}

/* Skips a first line such as sep=; or "sep=;", by which spreadsheets tell the delimiter, and sets that. */
static bool skip_separator_line(struct api_csv *csv)
{
    static const char begin[] = "sep=";
    const char *p = csv->p;
    bool quoted = *p == '"';
    p += quoted;
    if ((size_t)(csv->end - p) <= sizeof begin || strncasecmp(p, begin, sizeof begin - 1) != 0)
        return false;
    char delimiter = p[sizeof begin - 1];
    p += sizeof begin;
    if (!strchr("\t;,|^~: ", delimiter) || (quoted && *p++ != '"') || (*p != '\r' && *p != '\n'))
        return false;
    csv->p = p;
    csv->delimiter = delimiter;
    return api_csv_skip_blank(csv);
}

/* ---- The header */

static bool add_column(struct api_csv *csv, const char *text, size_t size)
{
    return api_table_add(csv->context, text, size, true, csv->problem);
}

static bool open_delimited(struct api_table *table, char delimiter, struct api_problem *problem)
{
    static const char mark[] = "\xef\xbb\xbf";
    struct api_csv csv = {.p = table->body,
                          .end = table->body + table->size,
                          .line = 1,
                          .delimiter = delimiter,
                          .context = table,
                          .field = add_column,
                          .budget = table->budget,
                          .problem = problem};
    if (!check_text(table->body, table->size, problem))
        return false;
    if (strncmp(csv.p, mark, sizeof mark - 1) == 0)
        csv.p += sizeof mark - 1;
    while (api_csv_skip_blank(&csv))
        ;
    bool is_told = skip_separator_line(&csv);
    while (api_csv_skip_blank(&csv))
        ;
    if (csv.p == csv.end)
        return api_fail(problem, "csv_malformed",
                        "the body is empty, but CSV begins with a header line");
    if (!is_told && !delimiter)
        csv.delimiter = find_delimiter(csv.p);
    api_csv_begin(&csv);
    bool good = api_csv_record(&csv);
    api_csv_end(&csv);
    table->delimiter = csv.delimiter;
    table->rows_at = (size_t)(csv.p - table->body);
    table->rows_line = csv.line;
    table->has_values = table->is_rows = table->has_header = true;
    return good;
}

/* Fails with what JSON needs that is read as CSV; `good` is false where CSV is malformed. */
static bool check_json(const struct api_table *table, bool good, struct api_problem *problem)
{
    char start = *api_json_start(table->body);
    if (good || (start != '{' && start != '[') || strcmp(problem->code, "csv_malformed") != 0)
        return good;
    problem->code = NULL;
    return api_fail(
        problem, "csv_malformed",
        "the body looks like JSON, but is read as CSV: send Content-Type: application/json, and "
        "{\"columns\": {NAME: [...]}}, {\"rows\": [{...}]} or [{...}]");
}

static bool open_csv(struct api_table *table, struct api_problem *problem)
{
    return check_json(table, open_delimited(table, '\0', problem), problem);
}

static bool open_tsv(struct api_table *table, struct api_problem *problem)
{
    return open_delimited(table, '\t', problem);
}

/* ---- Rows */

struct rows {
    struct api_table *table;
    const struct api_sink *sink;
    size_t row, column;
    size_t line; /* of the row's start */
};

static bool fail_length(struct api_csv *csv, bool longer)
{
    const struct rows *rows = csv->context;
    return api_fail(csv->problem, "csv_malformed",
                    "line %zu has %s%zu fields, but the header has %zu", rows->line,
                    longer ? "more than " : "", rows->column, rows->table->n_columns);
}

static bool take_field(struct api_csv *csv, const char *text, size_t size)
{
    struct rows *rows = csv->context;
    if (rows->column == rows->table->n_columns)
        return fail_length(csv, true);
    size_t column = rows->column++;
    if (!rows->table->columns[column].wanted)
        return true;
    const struct api_cell cell = {
        .kind = API_CELL_FIELD, .text = text, .size = size, .row = rows->row, .line = csv->line};
    return rows->sink->cell(rows->sink->context, column, &cell, csv->problem);
}

static bool read_rows(struct api_csv *csv, struct rows *rows)
{
    size_t n = rows->table->n_columns;
    while (csv->p < csv->end) {
        if (n != 1 && api_csv_skip_blank(csv))
            continue;
        rows->column = 0;
        rows->line = csv->line;
        if (!api_csv_record(csv) || (rows->column != n && !fail_length(csv, false)))
            return false;
        rows->row++;
    }
    return true;
}

static bool read_csv(struct api_table *table, const struct api_sink *sink,
                     struct api_problem *problem)
{
    struct rows rows = {.table = table, .sink = sink};
    struct api_csv csv = {.p = table->body + table->rows_at,
                          .end = table->body + table->size,
                          .line = table->rows_line,
                          .delimiter = table->delimiter,
                          .context = &rows,
                          .field = take_field,
                          .budget = table->budget,
                          .problem = problem};
    api_csv_begin(&csv);
    bool good = read_rows(&csv, &rows);
    api_csv_end(&csv);
    table->n_rows = rows.row;
    return check_json(table, good, problem);
}

static const char *const media_types[] = {"text/csv", "application/csv", NULL};
const struct api_table_format api_table_csv = {
    .media_types = media_types, .open = open_csv, .read_rows = read_csv};

static const char *const tab_types[] = {"text/tab-separated-values", NULL};
const struct api_table_format api_table_tsv = {
    .media_types = tab_types, .open = open_tsv, .read_rows = read_csv};
