/* Values of a column counted into bins. */
#pragma once

#include "api/monitors/model/config.h"
#include "api/monitors/model/moments.h"
#include "api/monitors/model/unseen.h"
#include "api/tables/field.h"
#include "api/tables/table.h"

/* Fails, when it looks at every 4,096th row, if nobody waits for the response any more. */
bool api_check_cancelled(const atomic_bool *stop, const struct api_cell *cell,
                         struct api_problem *problem);

/* Reads a number by the style of a column: a date of one of dates, in a zone, else what api_cell_number reads. */
static inline bool api_number_or_date(const struct api_cell *cell, enum api_style style,
                                      const struct api_zone *zone, double *number)
{
    return style >= API_DATES ? api_cell_date(cell, style, zone, number)
                              : api_cell_number(cell, style, number);
}

/* api_unreadable: fields of numeric columns that are no numbers, which count as missing. */
struct api_unreadable {
    size_t count, line; /* of the first */
};

/* api_part: what is counted of the rows of one window. */
struct api_part {
    struct api_tally tally;
    struct api_label_table unseen; /* texts that are no label */
};

/* api_counting: counts of a column by the bins of a config, which outlives it; of all rows, or apart for each window that
 * they go to. API_NO_PART is of a row that goes to none. */
#define API_NO_PART UINT32_MAX
struct api_counting {
    const struct api_bins *bins;
    struct api_part *parts;
    size_t n_parts;
    const uint32_t *part_of_row; /* NULL: all rows are of the first */
    size_t of_booleans[2];       /* bins of false and true; the number of bins if they have none */
    bool takes_any_booleans;     /* t, yes, y and 1 mean true, too */
    struct api_numbered {
        double number;
        size_t bin;
    } * numbered; /* labels that are numbers, but not as they are written here: 1.0, 00501; sorted */
    size_t n_numbered;
    struct api_unreadable unreadable;
    enum api_style style;        /* of its fields: at first that of the reference, if it is known */
    const struct api_zone *zone; /* of dates without one; NULL: UTC */
    struct api_style_tally
        styles; /* of fields that are no numbers by it; of all, in a pass that only looks */
    bool style_is_known; /* no field contradicts it */
    bool only_looks;
};

bool api_counting_init(struct api_counting *counting, const struct api_bins *bins,
                       struct api_problem *problem);
void api_counting_free(struct api_counting *counting);

/* Has the rows be counted apart, in n parts instead of one; before any is counted. The bytes that n parts take. */
bool api_counting_split(struct api_counting *counting, size_t n, const uint32_t *part_of_row,
                        struct api_problem *problem);
size_t api_counting_size(const struct api_bins *bins, size_t n);

/* Reads a label as a number, if a field of CSV would be one. */
bool api_label_number(const char *label, double *number);

/* The bin of a value that is counted by labels. A text is looked up as it stands; else it, or any other value, as a
 * boolean, as the shortest decimal of its number in a dtype, and by that number. */
size_t api_counting_find(const struct api_counting *counting, const struct api_cell *cell,
                         enum kl_dtype dtype);

/* Counts the columns of a table that have a counting; others have NULL. Fails for a string where numbers are
 * due, and once *stop is true; it may be NULL. */
bool api_counting_table(struct api_counting *const *of_columns, struct api_table *table,
                        const atomic_bool *stop, struct api_problem *problem);
