/* Records of CSV (RFC 4180). Blanks are part of a field. A quote begins a field or does not stand in it;
 * within quotes it is doubled. Records end with a line feed, a carriage return, or both. */
#pragma once

#include "api/json/problem.h"

#include <csv.h>

/* api_csv: a reader of records, from api_csv_begin on. */
struct api_csv {
    const char *p, *end;
    size_t line; /* of the text at `p`, the first being 1; in `field`, of the field's start */
    char delimiter;
    bool ends[256]; /* characters that end a plain field, or are none of it */
    void *context;

    /* Receives a field; false, with a problem, ends the reading. The text lasts until it returns, and
     * API_PADDING bytes after it are readable, of which the first continues no number. */
    bool (*field)(struct api_csv *csv, const char *text, size_t size);
    struct api_budget *budget;
    struct api_problem *problem;

    /* Private: */
    struct csv_parser quoted;
    bool has_quoted, stopped;
};

/* Sets up a reader of the text from csv->p to csv->end, where NULs follow as padding and none is before.
 * `line`, `delimiter`, `context`, `field`, `budget`, `problem` are set by the caller. */
void api_csv_begin(struct api_csv *csv);

/* Reads one record that is not blank, or is taken for one empty field; false, with a problem, if it is
 * malformed. */
bool api_csv_record(struct api_csv *csv);

/* Skips the end of a line, and so a blank line; false if there is none. */
bool api_csv_skip_blank(struct api_csv *csv);
void api_csv_end(struct api_csv *csv);

/* Number of lines that end before `to`. */
size_t api_csv_lines(const char *from, const char *to);
