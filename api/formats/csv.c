#include "api/formats/csv.h"

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

/* Skips the end of a line, if it is there. */
static bool end_line(struct api_csv *csv)
{
    if (csv->p == csv->end || (*csv->p != '\n' && *csv->p != '\r'))
        return false;
    csv->p += *csv->p == '\r' && csv->p[1] == '\n' ? 2 : 1;
    csv->line++;
    return true;
}

bool api_csv_skip_blank(struct api_csv *csv) { return end_line(csv); }

bool api_csv_record(struct api_csv *csv)
{
    for (;;) {
        const char *field = csv->p, *p = field;
        while (!csv->ends[(unsigned char)*p])
            p++;
        if (*p == '"' ? !api_csv_quoted(csv) : !csv->field(csv, field, (size_t)(p - field)))
            return false;
        if (*p != '"')
            csv->p = p;
        if (*csv->p != csv->delimiter)
            break;
        csv->p++;
    }
    end_line(csv);
    return true;
}
