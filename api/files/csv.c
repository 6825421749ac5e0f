#include "api/files/csv.h"

#include "api/text/number.h"

#include <string.h>

void api_csv_begin(struct api_csv *csv)
{
    const char *ends = "\r\n\"";
    for (; *ends; ends++)
        csv->ends[(unsigned char)*ends] = true;
    csv->ends[(unsigned char)csv->delimiter] = csv->ends['\0'] = true;
}

size_t api_csv_lines(const char *from, const char *to)
{
    size_t n = 0;
    for (; from < to; from++)
        n += *from == '\n' || (*from == '\r' && from[1] != '\n');
    return n;
}

/* ---- Quoted fields */

/* block: precedes memory that libcsv asks for. */
struct block {
    size_t size; /* of all, in bytes */
    max_align_t memory[];
};

/* lender: the budget for what libcsv allocates in this thread, whose allocators know no context. */
static _Thread_local struct api_budget *lender;

/* Grows libcsv's buffer of a field, which asks for a few more bytes each time. */
static void *resize(void *memory, size_t size)
{
    struct block *old = memory ? (struct block *)((char *)memory - sizeof *old) : NULL;
    size_t wanted = sizeof *old + size + API_PADDING, old_size = old ? old->size : 0;
    if (wanted <= old_size)
        return memory;
    wanted = wanted < 2 * old_size ? 2 * old_size : wanted;
    struct block *block = api_block_resize(lender, old, old_size, &wanted);
    if (!block)
        return NULL;
    block->size = wanted;
    return block->memory;
}

static void release(void *memory)
{
    struct block *block = (struct block *)((char *)memory - sizeof *block);
    api_block_free(lender, block, block->size);
}

static int is_blank(unsigned char c)
{
    (void)c;
    return 0;
}

static bool begin_quoted(struct api_csv *csv)
{
    lender = csv->budget;
    if (csv->has_quoted)
        return true;
    if (csv_init(&csv->quoted, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return api_fail_oom(csv->problem);
    csv_set_delim(&csv->quoted, (unsigned char)csv->delimiter);
    csv_set_space_func(&csv->quoted, is_blank);
    csv_set_realloc_func(&csv->quoted, resize);
    csv_set_free_func(&csv->quoted, release);
    csv->has_quoted = true;
    return true;
}

static void take_field(void *text, size_t size, void *context)
{
    struct api_csv *csv = context;
    if (csv->stopped)
        return;
    memset((char *)text + size, 0, API_PADDING);
    csv->stopped = !csv->field(csv, text, size);
    csv->line += api_csv_lines(text, (const char *)text + size);
}

static void take_record(int end, void *context) { (void)end, (void)context; }

/* End of the field at `p`: the first delimiter, or end of a line, outside of quotes. */
static const char *end_of_field(const struct api_csv *csv, const char *p)
{
    bool inside = false;
    for (; p < csv->end; p++) {
        if (*p == '"')
            inside = !inside;
        else if (!inside && csv->ends[(unsigned char)*p])
            break;
    }
    return p;
}

static bool fail(struct api_csv *csv, size_t line)
{
    if (csv_error(&csv->quoted) == CSV_ENOMEM || csv_error(&csv->quoted) == CSV_ETOOBIG)
        return api_fail_oom(csv->problem);
    return api_fail(csv->problem, "csv_malformed",
                    "line %zu: a quote within a field: double it, and quote the whole field, "
                    "without blanks around it",
                    line);
}

/* Reads the field at csv->p, which has quotes, by libcsv. */
static bool read_quoted(struct api_csv *csv)
{
    const char *start = csv->p, *end = end_of_field(csv, start);
    size_t size = (size_t)(end - start), line = csv->line;
    if (!begin_quoted(csv))
        return false;
    size_t read = csv_parse(&csv->quoted, start, size, take_field, take_record, csv);
    if (csv->stopped)
        return false;
    if (read < size)
        return fail(csv, line + api_csv_lines(start, start + read));
    if (csv_fini(&csv->quoted, take_field, take_record, csv) != 0)
        return api_fail(csv->problem, "csv_malformed",
                        "line %zu: a quoted field begins here and does not end", csv->line);
    csv->p = end;
    return !csv->stopped;
}

/* ---- Records */

/* Skips the end of a line, if it is there. */
bool api_csv_skip_blank(struct api_csv *csv)
{
    if (csv->p == csv->end || (*csv->p != '\n' && *csv->p != '\r'))
        return false;
    csv->p += *csv->p == '\r' && csv->p[1] == '\n' ? 2 : 1;
    csv->line++;
    return true;
}

bool api_csv_record(struct api_csv *csv)
{
    for (;;) {
        const char *field = csv->p, *p = field;
        while (!csv->ends[(unsigned char)*p])
            p++;
        if (*p == '"' ? !read_quoted(csv) : !csv->field(csv, field, (size_t)(p - field)))
            return false;
        if (*p != '"')
            csv->p = p;
        if (*csv->p != csv->delimiter)
            break;
        csv->p++;
    }
    api_csv_skip_blank(csv);
    return true;
}

void api_csv_end(struct api_csv *csv)
{
    lender = csv->budget;
    if (csv->has_quoted)
        csv_free(&csv->quoted);
    csv->has_quoted = false;
}
