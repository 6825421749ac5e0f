/* Values of a column of a reference, of which bins are made. */
#pragma once

#include "api/monitors/model/counting.h"
#include "api/monitors/model/halves.h"
#include "api/monitors/model/labels.h"

/* api_sample: values of a column of a reference, in a first pass. Text columns need a second
 * one, for their labels. */
struct api_sample {
    const struct api_table *table;
    size_t column;
    struct api_buffer numbers; /* doubles */
    struct api_buffer commas;  /* doubles: texts that are numbers with a decimal comma */
    struct api_halves halves, comma_halves; /* of these */
    size_t n_rows;                          /* of the first pass */
    size_t n_numbers, n_texts, n_commas, n_missing;
    bool has_point; /* a number has a decimal point */
    struct api_unreadable unreadable;
    bool only_rises; /* whole numbers, none below the one before */
    double last;     /* number, while that is so */
    size_t n_rises;  /* numbers above the one before: distinct ones, while they only rise */
    struct {
        size_t row, line, size;
    } long_text;           /* the first that is too long for a label; size 0: none */
    size_t n_cut;          /* after api_sample_bins: distinct texts that got no label */
    size_t n_chosen;       /* likewise: labels, if they were chosen in one half of the rows */
    bool is_excluded;      /* set by the caller: the column is not read */
    bool text_for_certain; /* a string of JSON or numpy was among them */
    bool is_text;          /* after api_sample_table */
    bool booleans_alone;   /* all are true or false, or these texts in any case */
    struct api_label_table labels; /* of the second pass */
};

/* Empties a sample of a column, and makes room for the numbers of all rows. */
void api_sample_init(struct api_sample *sample, const struct api_table *table, size_t column);
void api_sample_free(struct api_sample *sample);

/* Collects the values of the columns from `first` to `end` of a table, whose samples are at the same places;
 * reads those of text twice. Fails once *stop is true; it may be NULL. */
bool api_sample_table(struct api_sample *samples, size_t first, size_t end, struct api_table *table,
                      const atomic_bool *stop, struct api_problem *problem);

/* True if there is no value from which bins can be made. */
bool api_sample_is_empty(const struct api_sample *sample);

/* True for an id, a time or free text: more than half of at least MANY values are distinct, and they are texts, or
 * whole numbers that only rise. Bins of them tell nothing about later values. */
bool api_sample_is_nearly_unique(const struct api_sample *sample);

/* How many values of a text column are numbers that are written as people do: see api_text_is_formatted_number. */
size_t api_sample_formatted_numbers(const struct api_sample *sample);

/* Collects the label of a value, unless that is missing, of one half of the rows. */
bool api_sample_label(struct api_sample *sample, const struct api_cell *cell, bool chooses,
                      struct api_problem *problem);

/* Makes bins by the settings, and the reference's counts. Fails with labels_too_large for a long text, and for
 * labels that are too long together. */
bool api_sample_bins(struct api_sample *sample, const struct api_monitor_settings *settings,
                     struct api_bins *bins, struct api_weights *reference,
                     struct api_problem *problem);
