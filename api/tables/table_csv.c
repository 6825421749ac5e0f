/* Tables as CSV (RFC 4180), and as TSV, which is CSV with tabs. Blanks are part of a field. A quote that begins a field
 * quotes it, and within quotes is doubled; elsewhere it is a character. Records end with a line feed, a carriage return,
 * or both. */
#include "api/json/json_text.h"
#include "api/tables/columns.h"
#include "api/tables/encoding.h"
#include "api/tables/field.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* reader: reads the text from `p` to `end`, where NULs follow as padding and none is before. */
struct reader {
    struct api_table *table;
    struct api_problem *problem;
    const char *p, *end;
    size_t line; /* of the text at `p`, the first being 1; in `field`, of the field's start */
    char delimiter;
    bool ends[256];           /* characters that end a plain field, or may not be in one */
    struct api_buffer copied; /* a field with doubled quotes */

    /* Receives a field; false, with a problem, ends the reading. The text lasts until it returns, and API_PADDING
     * bytes after it are readable, of which the first continues no number. */
    bool (*field)(struct reader *r, const char *text, size_t size);

    /* For take_field: */
    const struct api_sink *sink;
    size_t row, column, row_line;
};

static size_t count_lines(const char *from, const char *to)
{
    size_t n = 0;
    for (; from < to; from++)
        n += *from == '\n' || (*from == '\r' && from[1] != '\n');
    return n;
}

static struct reader start(struct api_table *table, struct api_problem *problem)
{
    struct reader r = {.table = table,
                       .problem = problem,
                       .p = table->body + table->rows_at,
                       .end = table->body + table->size,
                       .line = table->rows_line,
                       .delimiter = table->delimiter,
                       .copied = {.budget = table->budget}};
    r.ends['\0'] = r.ends['\r'] = r.ends['\n'] = r.ends[(unsigned char)r.delimiter] = true;
    return r;
}

/* True if eight bytes are ASCII. */
static bool eight_ascii(const char *p)
{
    uint64_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return (bytes & 0x8080808080808080) == 0;
}

/* Checks that the text is UTF-8 without NULs. */
static bool check_text(const struct api_table *table, struct api_problem *problem)
{
    const char *text = table->body, *p = text, *end = text + table->size,
               *nul = memchr(text, '\0', table->size);
    if (nul)
        return api_encoding_fail(table, nul, 1 + count_lines(text, nul), problem);
    while (p < end) {
        if (eight_ascii(p)) {
            p += 8;
            continue;
        }
        size_t length = api_utf8_length((const unsigned char *)p);
        if (length == 0)
            return api_encoding_fail(table, p, 1 + count_lines(text, p), problem);
        p += length;
    }
    return true;
}

/* ---- Records */

/* Skips the end of a line, if it is there, and so a blank line. */
static bool skip_line_end(struct reader *r)
{
    if (r->p == r->end || (*r->p != '\n' && *r->p != '\r'))
        return false;
    r->p += *r->p == '\r' && r->p[1] == '\n' ? 2 : 1;
    r->line++;
    return true;
}

static bool fail_quote(const struct reader *r, const char *at)
{
    return api_fail(r->problem, "csv_malformed",
                    "line %zu: a quoted field goes on behind its quote: double quotes within it",
                    r->line + count_lines(r->p, at));
}

static bool read_plain(struct reader *r)
{
    const char *p = r->p;
    while (!r->ends[(unsigned char)*p])
        p++;
    if (!r->field(r, r->p, (size_t)(p - r->p)))
        return false;
    r->p = p;
    return true;
}

/* Reads the field at r->p, which begins with a quote. Its text is given where it lies unless it has doubled quotes. */
static bool read_quoted(struct reader *r)
{
    const char *text = r->p + 1, *from = text, *quote = text;
    struct api_buffer *copied = &r->copied;
    copied->size = 0;
    while ((quote = memchr(quote, '"', (size_t)(r->end - quote))) && quote[1] == '"') {
        api_append(copied, from, (size_t)(quote + 1 - from));
        from = quote += 2;
    }
    if (!quote)
        return api_fail(r->problem, "csv_malformed",
                        "line %zu: a quoted field begins here and does not end", r->line);
    if (!r->ends[(unsigned char)quote[1]])
        return fail_quote(r, quote);
    size_t size = (size_t)(quote - text);
    if (from != text) {
        api_append(copied, from, (size_t)(quote - from));
        size = copied->size;
        api_append(copied, (const char[API_PADDING]){0}, API_PADDING);
        text = copied->data;
    }
    if (copied->failed)
        return api_fail_oom(r->problem);
    if (!r->field(r, text, size))
        return false;
    r->line += count_lines(r->p, quote);
    r->p = quote + 1;
    return true;
}

/* Reads a record that is not blank, or is taken for one empty field. */
static bool read_record(struct reader *r)
{
    for (;; r->p++) {
        if (*r->p == '"' ? !read_quoted(r) : !read_plain(r))
            return false;
        if (*r->p != r->delimiter)
            break;
    }
    skip_line_end(r);
    return true;
}

/* Delimiter of the header at `p`: the one that occurs most outside of quotes. A comma is likely in a
 * name, a tab is not, which decides between equals. */
static char find_delimiter(const char *p)
{
    static const char known[] = "\t;,";
    size_t n[sizeof known] = {0}, best = 2;
    bool inside = false, begins = true;
    for (; *p && (inside || (*p != '\n' && *p != '\r')); p++) {
        const char *found = inside ? NULL : strchr(known, *p);
        inside ^= *p == '"' && (inside || begins);
        begins = found != NULL;
        if (found)
            n[found - known]++;
    }
    for (size_t i = sizeof known - 1; i-- > 0;)
        if (n[i] >= n[best])
            best = i;
    return known[n[best] ? best : 2];
}

/* Skips a first line such as sep=; or "sep=;", by which spreadsheets tell the delimiter, and sets that. */
static bool skip_separator_line(struct reader *r)
{
    static const char begin[] = "sep=";
    const char *p = r->p;
    bool quoted = *p == '"';
    p += quoted;
    if ((size_t)(r->end - p) <= sizeof begin || strncasecmp(p, begin, sizeof begin - 1) != 0)
        return false;
    char delimiter = p[sizeof begin - 1];
    p += sizeof begin;
    if (!strchr("\t;,|^~: ", delimiter) || (quoted && *p++ != '"') || (*p != '\r' && *p != '\n'))
        return false;
    r->p = p;
    r->delimiter = delimiter;
    return skip_line_end(r);
}

/* ---- The header */

/* Skips lines that are blank but for delimiters. */
static void skip_blank_lines(struct reader *r)
{
    const char delimiters[] = {'\t', ';', ',', r->delimiter, '\0'}, *p;
    while (p = r->p + strspn(r->p, delimiters), *p == '\n' || *p == '\r') {
        r->p = p;
        skip_line_end(r);
    }
    if (p == r->end)
        r->p = p;
}

/* Counts the words of a line, and sets *p to its end. *has_number becomes true if one is a number. */
static size_t count_words(const char **p, bool *has_number)
{
    static const char ends[] = " \r\n";
    double number;
    for (size_t n = 0;; n++) {
        *p += strspn(*p, " ");
        const struct api_cell word = {
            .kind = API_CELL_FIELD, .text = *p, .size = strcspn(*p, ends)};
        if (word.size == 0)
            return n;
        *has_number |= api_field_number(&word, API_PLAIN, &number);
        *p += word.size;
    }
}

/* True if the header and the lines behind it, which have one column, have as many words, and some are numbers: columns
 * are separated by blanks. */
static bool has_blanks_for_delimiters(const char *header)
{
    enum { LINES = 10 };
    const char *p = header;
    bool has_number = false, ignored = false;
    size_t n = count_words(&p, &ignored), lines = 0;
    for (; n > 1 && lines < LINES && *(p += strspn(p, "\r\n")); lines++)
        if (count_words(&p, &has_number) != n)
            return false;
    return lines > 0 && has_number;
}

static bool add_column(struct reader *r, const char *text, size_t size)
{
    return api_table_add(r->table, text, size, r->problem);
}

static bool open_delimited(struct api_table *table, char delimiter, struct api_problem *problem)
{
    static const char mark[] = "\xef\xbb\xbf";
    struct reader r = start(table, problem);
    r.field = add_column;
    r.line = 1;
    r.delimiter = delimiter;
    if (!check_text(table, problem))
        return false;
    if (strncmp(r.p, mark, sizeof mark - 1) == 0)
        r.p += sizeof mark - 1;
    skip_blank_lines(&r);
    bool is_told = skip_separator_line(&r);
    skip_blank_lines(&r);
    if (r.p == r.end)
        return api_fail(problem, "csv_malformed",
                        "the body is empty, but CSV begins with a header line");
    if (!is_told && !delimiter)
        r.delimiter = find_delimiter(r.p);
    r.ends[(unsigned char)r.delimiter] = true;
    const char *header = r.p;
    bool good = read_record(&r);
    api_buffer_free(&r.copied);
    table->has_blanks = table->names.n == 1 && has_blanks_for_delimiters(header);
    table->delimiter = r.delimiter;
    table->rows_at = (size_t)(r.p - table->body);
    table->rows_line = r.line;
    table->has_values = table->is_rows = table->has_header = true;
    return good;
}

/* True for one line in brackets or braces. */
static bool is_json_line(const struct api_table *table)
{
    const char *p = api_json_start(table->body), *end = table->body + table->size;
    while (end > p && strchr(" \t\r\n", end[-1]))
        end--;
    return end > p && (*p == '{' ? end[-1] == '}' : *p == '[' && end[-1] == ']') &&
           !memchr(p, '\n', (size_t)(end - p));
}

/* If malformed CSV (`good` is false) looks like JSON, fails with what to send for JSON instead. */
static bool check_json(const struct api_table *table, bool good, struct api_problem *problem)
{
    char start = *api_json_start(table->body);
    if (good ? !is_json_line(table)
             : (start != '{' && start != '[') || strcmp(problem->code, "csv_malformed") != 0)
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

static __attribute__((cold)) bool fail_length(const struct reader *r, bool longer)
{
    if (longer && r->row == 0 && r->table->n_columns == 1)
        return api_fail(r->problem, "csv_malformed",
                        "line %zu is no header: it has one field, and line %zu has more; remove it",
                        r->table->rows_line - 1, r->row_line);
    return api_fail(r->problem, "csv_malformed",
                    "line %zu has %s%zu fields, but the header has %zu", r->row_line,
                    longer ? "more than " : "", r->column, r->table->n_columns);
}

static bool take_field(struct reader *r, const char *text, size_t size)
{
    if (r->column == r->table->n_columns)
        return fail_length(r, true);
    size_t column = r->column++;
    if (!r->table->columns[column].wanted)
        return true;
    const struct api_cell cell = {
        .kind = API_CELL_FIELD, .text = text, .size = size, .row = r->row, .line = r->line};
    return r->sink->cell(r->sink->context, column, &cell, r->problem);
}

/* Skips a line that is blank but for delimiters. */
static bool skip_blank_line(struct reader *r)
{
    const char *p = r->p;
    while (*p == r->delimiter)
        p++;
    if (p < r->end && *p != '\n' && *p != '\r')
        return false;
    r->p = p;
    skip_line_end(r);
    return true;
}

static bool read_rows(struct reader *r)
{
    size_t n = r->table->n_columns;
    while (r->p < r->end) {
        if (n != 1 && skip_blank_line(r))
            continue;
        r->column = 0;
        r->row_line = r->line;
        if (!read_record(r) || (r->column != n && !fail_length(r, false)))
            return false;
        r->row++;
    }
    return true;
}

static bool read_csv(struct api_table *table, const struct api_sink *sink,
                     struct api_problem *problem)
{
    struct reader r = start(table, problem);
    r.field = take_field;
    r.sink = sink;
    bool good = read_rows(&r);
    api_buffer_free(&r.copied);
    table->n_rows = r.row;
    return check_json(table, good, problem);
}

static const char *const media_types[] = {"text/csv", "application/csv", "text/x-csv", NULL};
const struct api_table_format api_table_csv = {
    .media_types = media_types, .open = open_csv, .read_rows = read_csv};

static const char *const tab_types[] = {"text/tab-separated-values", NULL};
const struct api_table_format api_table_tsv = {
    .media_types = tab_types, .open = open_tsv, .read_rows = read_csv};
