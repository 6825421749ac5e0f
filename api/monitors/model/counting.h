/* Values of a column counted into bins. */
#pragma once

#include "api/monitors/model/config.h"
#include "api/monitors/model/moments.h"
#include "api/monitors/model/unseen.h"
#include "api/tables/table.h"

/* True for a string of JSON or a field of CSV; for a value that is not there, or a text that says so. */
bool api_cell_is_text(const struct api_cell *cell);
bool api_cell_is_missing(const struct api_cell *cell);

/* Reads a value as a number, a boolean as 0 or 1, a string if it stands for an infinite number, a field also
 * with a decimal comma if that is allowed. False if it is none. */
bool api_cell_number(const struct api_cell *cell, bool decimal_comma, double *number);

/* True for a boolean, and for a text that is `true` or `false` in any case. */
bool api_cell_is_boolean(const struct api_cell *cell, bool *value);

/* Fails, when it looks at every 4,096th row, if nobody waits for the response any more. */
bool api_check_cancelled(const atomic_bool *stop, const struct api_cell *cell,
                         struct api_problem *problem);

/* api_unreadable: fields of numeric columns that are no numbers, which count as missing. */
struct api_unreadable {
    size_t count, line; /* of the first */
};

/* api_counting: counts of a column by the bins of a config, which outlives it. */
enum { API_COUNTED_AT_ONCE = 256 };
struct api_counting {
    const struct api_bins *bins;
    uint64_t *counts;        /* one for each bin */
    size_t of_booleans[2];   /* bins of false and true; the number of bins if they have none */
    bool takes_any_booleans; /* t, yes, y and 1 mean true, too */
    struct api_numbered {
        double number;
        size_t bin;
    } * numbered; /* labels that are numbers, but not as they are written here: 1.0, 00501; sorted */
    size_t n_numbered;
    struct api_unreadable unreadable;
    struct api_label_table unseen; /* texts that are no label */
    struct api_moments moments;    /* of numbers */
    size_t buffered;
    double buffer[API_COUNTED_AT_ONCE];
};

bool api_counting_init(struct api_counting *counting, const struct api_bins *bins,
                       struct api_problem *problem);
void api_counting_free(struct api_counting *counting);

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
