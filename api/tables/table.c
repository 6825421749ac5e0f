#include "api/tables/table.h"

#include "api/files/archive.h"
#include "api/files/form.h"
#include "api/files/safetensors_file.h"
#include "api/json/json_text.h"
#include "api/tables/encoding.h"
#include "api/text/accept.h"
#include "api/text/nearest.h"

#include <string.h>

/* A row for each format: a table_*.c. */
extern const struct api_table_format api_table_csv, api_table_tsv, api_table_json,
    api_table_json_lines, api_table_npz, api_table_safetensors;

/* form: has no open of its own: api_table_open puts the file in the place of the body. */
static const char *const form_types[] = {"multipart/form-data", NULL};
static const struct api_table_format form = {.media_types = form_types};

static const struct api_table_format *const formats[] = {
    &api_table_csv,         &api_table_tsv, &api_table_json, &api_table_json_lines, &api_table_npz,
    &api_table_safetensors, &form};
#define N_FORMATS (sizeof formats / sizeof *formats)

/* guessed: the format of bodies whose Content-Type is one that clients send by default. */
static const char *const unspecific[] = {
    "",
    "application/x-www-form-urlencoded",
    "text/plain",
    "application/octet-stream",
    "binary/octet-stream",      /* of S3 */
    "application/vnd.ms-excel", /* CSV, in browsers on Windows */
    "application/zip",
    "application/x-zip-compressed",
    "application/gzip",
    "application/x-gzip",
    NULL};
static const struct api_table_format guessed = {.media_types = unspecific};

/* columnar: formats of files that errors name, but that are not read. */
static const char *const columnar_types[] = {"application/vnd.apache.parquet",
                                             "application/x-parquet",
                                             "application/parquet",
                                             "application/vnd.apache.arrow.file",
                                             "application/vnd.apache.arrow.stream",
                                             NULL};

static const struct api_table_format columnar = {
    .media_types = columnar_types,
    .refusal =
        "Parquet and Arrow are not read here; the package of Python sends them: python -m kldiv "
        "observe GROUP FILE.parquet, or kldiv.Client(URL).group(GROUP).observe(table)"};

/* spreadsheets: likewise. */
static const char *const spreadsheet_types[] = {
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.oasis.opendocument.spreadsheet", NULL};

static const struct api_table_format spreadsheet = {
    .media_types = spreadsheet_types,
    .refusal =
        "this is a spreadsheet (.xlsx, .xls or .ods), which is not read here: save it as CSV "
        "UTF-8 and send that"};

/* zipped: gzip that is left when the coding of the body is undone. */
static const struct api_table_format zipped = {
    .refusal = "this is a gzip file within a form, or gzip twice: send the file alone as the body, "
               "which is unpacked, or what is in it"};

/* archive: a ZIP archive that is no .npz. */
static const struct api_table_format archive = {
    .refusal = "this is a ZIP archive, of which only .npz are read here: unzip it, or gzip what is "
               "in it instead"};

/* others: files that are none of a table, by their first bytes. */
static const struct other {
    const char *bytes;
    size_t size;
    struct api_table_format format;
} others[] = {
#define OTHER(bytes, what)                                                                         \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, { .refusal = "this is " what }                                   \
    }
    OTHER("BZh91AY&SY", "bzip2: unpack it, or gzip what is in it instead"),
    OTHER("\xfd"
          "7zXZ",
          "xz: unpack it, or gzip what is in it instead"),
    OTHER("\x28\xb5\x2f\xfd", "zstd: unpack it, or gzip what is in it instead"),
    OTHER("\x04\x22\x4d\x18", "lz4: unpack it, or gzip what is in it instead"),
    OTHER("7z\xbc\xaf", "a 7z archive: unpack it, or gzip what is in it instead"),
    OTHER("SQLite format 3\0", "a database of SQLite: export the table as CSV"),
    OTHER("\x80\x03", "a pickle of Python, which is never read: send CSV, or numpy.savez"),
    OTHER("\x80\x04", "a pickle of Python, which is never read: send CSV, or numpy.savez"),
    OTHER("\x80\x05", "a pickle of Python, which is never read: send CSV, or numpy.savez"),
    OTHER("\x93NUMPY", "a .npy file, whose array has no name: send numpy.savez(file, NAME=array)"),
    OTHER("\x89HDF", "an HDF5 file: send CSV"),
    OTHER("%PDF-", "a PDF file: send CSV"),
    OTHER("<!DOCTYPE", "a page of HTML, and no table: was the address of the file right?"),
    OTHER("<html", "a page of HTML, and no table: was the address of the file right?"),
    OTHER("version https://git-lfs.github.com/spec/",
          "a pointer of Git LFS, and not the file: run git lfs pull"),
#undef OTHER
};

static bool refuse(const struct api_table_format *format, struct api_problem *problem)
{
    return api_fail(problem, "media_type_unsupported", "%s", format->refusal);
}

static const struct api_table_format *const named[] = {&columnar, &spreadsheet};

const struct api_table_format *api_table_format(const char *content_type,
                                                struct api_problem *problem)
{
    char readable[300];
    if (!content_type || api_is_media_type(content_type, unspecific))
        return &guessed;
    for (size_t i = 0; i < N_FORMATS; i++)
        if (api_is_media_type(content_type, formats[i]->media_types))
            return formats[i];
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (api_is_media_type(content_type, named[i]->media_types)) {
            refuse(named[i], problem);
            return NULL;
        }
    api_table_list_formats(readable, sizeof readable);
    api_fail(problem, "media_type_unsupported",
             "Content-Type '%.80s' is not supported for tables; use one of: %s", content_type,
             readable);
    return NULL;
}

void api_table_list_formats(char *to, size_t size)
{
    *to = '\0';
    for (size_t i = 0; i < N_FORMATS; i++)
        for (const char *const *type = formats[i]->media_types; *type; type++)
            api_append_word(to, size, *type);
}

/* True for the first bytes of a spreadsheet: a ZIP archive that begins with what an Excel or OpenDocument file begins
 * with, or the container of an old Excel file. */
static bool is_spreadsheet(const char *body, size_t size)
{
    enum { NAME_SIZE_AT = 26, NAME_AT = 30 };
    static const char *const entries[] = {"[Content_Types].xml", "_rels/", "docProps/", "xl/",
                                          "mimetype"};
    if (size >= 8 && memcmp(body, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8) == 0)
        return true;
    if (size < NAME_AT || !api_archive_is(body, size))
        return false;
    size_t length = (unsigned char)body[NAME_SIZE_AT];
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        size_t n = strlen(entries[i]);
        if (n <= length && n <= size - NAME_AT && memcmp(body + NAME_AT, entries[i], n) == 0)
            return true;
    }
    return false;
}

/* The name of the first entry of a ZIP archive ends with .npy in an .npz. */
static bool is_npz(const char *body, size_t size)
{
    enum { NAME_SIZE_AT = 26, NAME_AT = 30 };
    static const char ending[] = ".npy";
    size_t length = size > NAME_AT ? (unsigned char)body[NAME_SIZE_AT] +
                                         256u * (unsigned char)body[NAME_SIZE_AT + 1]
                                   : 0;
    return length >= sizeof ending - 1 && length <= size - NAME_AT &&
           memcmp(body + NAME_AT + length - (sizeof ending - 1), ending, sizeof ending - 1) == 0;
}

/* The format to refuse of a body that is no table at all; NULL for others. */
static const struct api_table_format *other_file(const char *body, size_t size)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (size >= others[i].size && memcmp(body, others[i].bytes, others[i].size) == 0)
            return &others[i].format;
    return NULL;
}

/* Guesses by the first bytes. */
static const struct api_table_format *guess(const char *body, size_t size)
{
    if (is_spreadsheet(body, size))
        return &spreadsheet;
    if (size >= 3 && memcmp(body, "\x1f\x8b\x08", 3) == 0)
        return &zipped;
    if (api_archive_is(body, size))
        return is_npz(body, size) ? &api_table_npz : &archive;
    if (api_safetensors_is(body, size))
        return &api_table_safetensors;
    if (size >= 8 && (memcmp(body, "PAR1\x15", 5) == 0 || memcmp(body, "ARROW1\0", 8) == 0))
        return &columnar;
    const char *start = api_json_start(body), *next = api_json_skip_space(start + 1);
    bool is_array =
        *start == '[' && (*next == '{' || *next == '[' || *next == '"' ||
                          strncmp(next, "NaN", 3) == 0 || strncmp(next, "null", 4) == 0);
    return *start == '{' || is_array ? &api_table_json : &api_table_csv;
}

bool api_table_check_parts(const char *content_type, const char *body, size_t size,
                           const char *const *names, struct api_problem *problem)
{
    struct api_form reader;
    struct api_form_part part;
    unsigned seen = 0;
    if (!api_form_begin(&reader, content_type, body, size, problem))
        return false;
    while (api_form_next(&reader, &part, problem)) {
        size_t i = api_word_index(names, part.name);
        if (!names[i])
            return api_fail(problem, "multipart_malformed",
                            "the form has a part '%.60s', which is none of its files; settings are "
                            "parameters of the query",
                            part.name);
        if (seen >> i & 1)
            return api_fail(problem, "multipart_malformed", "the form has two files '%s'",
                            names[i]);
        seen |= 1u << i;
    }
    return !problem->code;
}

/* Finds the part of a name among several. */
static bool find_part(const struct api_table *table, struct api_form *reader,
                      struct api_form_part *part, struct api_problem *problem)
{
    while (api_form_next(reader, part, problem))
        if (strcmp(part->name, table->part) == 0)
            return true;
    return !problem->code &&
           api_fail(problem, "multipart_malformed", "the form has no file '%s'", table->part);
}

/* Finds the file of a form: its only part, or that of the table's name. */
static bool find_file(const struct api_table *table, struct api_form_part *file,
                      struct api_problem *problem)
{
    struct api_form reader;
    struct api_form_part part;
    if (!api_form_begin(&reader, table->content_type, table->body, table->size, problem))
        return false;
    if (table->part)
        return find_part(table, &reader, file, problem);
    if (!api_form_next(&reader, file, problem))
        return !problem->code && api_fail(problem, "multipart_malformed", "the form has no file");
    if (api_form_next(&reader, &part, problem))
        return api_fail(
            problem, "multipart_malformed",
            "the form must have one file and no other part, but has '%s' and '%s'; settings "
            "and timestamp are parameters of the query",
            file->name, part.name);
    return !problem->code;
}

/* Copies the file of a form, padded as bodies are, and makes it the body. Finds its format by its type, or by its
 * first bytes if the type is not known: browsers on Windows send a type of their own for CSV. */
static bool take_file(struct api_table *table, enum api_encoding *encoding,
                      struct api_problem *problem)
{
    struct api_form_part file;
    struct api_problem ignored = {0};
    if (!find_file(table, &file, problem))
        return false;
    if (!api_buffer_reserve(&table->file, file.size + API_PADDING))
        return api_fail_oom(problem);
    memcpy(table->file.data, file.content, file.size);
    memset(table->file.data + file.size, 0, API_PADDING);
    table->body = table->file.data;
    table->size = file.size;
    table->format = api_table_format(file.content_type, &ignored);
    if (!table->format || table->format == &form)
        table->format = &guessed;
    return api_encoding_of(file.content_type, encoding, problem);
}

/* True for a format whose bodies are text. */
static bool is_text(const struct api_table_format *format)
{
    return format == &api_table_csv || format == &api_table_tsv || format == &api_table_json ||
           format == &api_table_json_lines;
}

/* Finds the format of a body, and has its text be UTF-8: what JSON begins with shows only then. */
static bool find_format(struct api_table *table, struct api_problem *problem)
{
    enum api_encoding encoding;
    if (!api_encoding_of(table->content_type, &encoding, problem) ||
        (table->format == &form && !take_file(table, &encoding, problem)))
        return false;
    bool is_guessed = table->format == &guessed;
    if (is_guessed)
        table->format = guess(table->body, table->size);
    if (!is_text(table->format))
        return true;
    const struct api_table_format *other = other_file(table->body, table->size);
    if (other) {
        table->format = other;
        return true;
    }
    if (!api_encoding_convert(table, encoding, problem))
        return false;
    if (is_guessed && table->text.data)
        table->format = guess(table->body, table->size);
    return true;
}

/* Makes table->columns of the names that were added. */
static bool finish(struct api_table *table, struct api_problem *problem)
{
    size_t n = table->names.n;
    if (!api_buffer_reserve(&table->memory, n * sizeof *table->columns + 1))
        return api_fail_oom(problem);
    table->columns = (struct api_column *)(void *)table->memory.data;
    table->n_columns = n;
    for (size_t i = 0; i < n; i++)
        table->columns[i] = (struct api_column){.name = api_names_get(&table->names, i),
                                                .flaws = api_names_at(&table->names, i)->flaws};
    return true;
}

bool api_table_open(struct api_table *table, struct api_problem *problem)
{
    table->names.text.budget = table->names.list.budget = table->names.order.budget =
        table->memory.budget = table->arrays.budget = table->file.budget = table->text.budget =
            table->budget;
    if (!find_format(table, problem))
        return false;
    if (table->format->refusal)
        return refuse(table->format, problem);
    return table->format->open(table, problem) && finish(table, problem);
}

/* ---- Reads */

/* selecting: a read of some rows, which the sink gets. */
struct selecting {
    const struct api_table *table;
    const struct api_sink *sink;
};

static bool is_selected(const struct selecting *s, size_t row)
{
    return s->table->part_of_row[row] == s->table->selected;
}

static bool select_cell(void *context, size_t column, const struct api_cell *cell,
                        struct api_problem *problem)
{
    const struct selecting *s = context;
    return !is_selected(s, cell->row) || s->sink->cell(s->sink->context, column, cell, problem);
}

/* Gives each run of selected rows. */
static bool select_numbers(void *context, size_t column, enum kl_dtype dtype, const void *values,
                           size_t row, size_t n, struct api_problem *problem)
{
    const struct selecting *s = context;
    for (size_t i = 0, end; i < n; i = end) {
        bool wanted = is_selected(s, row + i);
        for (end = i + 1; end < n && is_selected(s, row + end) == wanted;)
            end++;
        if (wanted && !s->sink->numbers(s->sink->context, column, dtype,
                                        (const char *)values + i * kl_dtype_size(dtype), row + i,
                                        end - i, problem))
            return false;
    }
    return true;
}

void api_table_select(struct api_table *table, const uint32_t *part_of_row, uint32_t part, size_t n)
{
    if (!table->part_of_row)
        table->n_whole = table->n_rows;
    table->part_of_row = part_of_row;
    table->selected = part;
    table->n_rows = part_of_row ? n : table->n_whole;
}

static bool read_all(struct api_table *table, const struct api_sink *sink,
                     struct api_problem *problem)
{
    if (table->is_rows)
        return table->format->read_rows(table, sink, problem);
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].wanted && !table->format->read_column(table, i, sink, problem))
            return false;
    return true;
}

bool api_table_read(struct api_table *table, const struct api_sink *sink,
                    struct api_problem *problem)
{
    struct selecting selecting = {table, sink};
    const struct api_sink selected = {&selecting, select_cell, select_numbers};
    size_t n = table->n_rows;
    if (!table->part_of_row)
        return read_all(table, sink, problem);
    table->n_rows = table->n_whole;
    bool good = read_all(table, &selected, problem);
    table->n_rows = n;
    return good;
}

void api_table_free(struct api_table *table)
{
    if (table->format && table->format->close)
        table->format->close(table);
    api_buffer_free(&table->names.text);
    api_buffer_free(&table->names.list);
    api_buffer_free(&table->names.order);
    api_buffer_free(&table->memory);
    api_buffer_free(&table->arrays);
    api_buffer_free(&table->file);
    api_buffer_free(&table->text);
    *table = (struct api_table){0};
}
